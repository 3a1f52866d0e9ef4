"""BM25 over the term vectors of the catalogue, as Lucene scores it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

import attrs

from handoff.envs.webshop.stemmer import stem

K1, B = 0.9, 0.4
#: Results of a search, and results per page.
MOST, PER_PAGE = 50, 10
#: Lucene's words that no query counts.
STOP_WORDS = frozenset(
    {
        "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not",
        "of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was",
        "will", "with",
    }
)  # fmt: skip
_WORD = re.compile(r"[^\W_]+")


def terms(query: str) -> list[str]:
    """The stems of a query, with repeats."""
    return [stem(word) for word in _WORD.findall(query.lower()) if word not in STOP_WORDS]


def quantised(length: int) -> int:
    """A document's length as Lucene keeps it in one byte: exact below 40, then with four significant bits."""
    free = 24
    if length < free:
        return length
    rest = length - free
    bits = rest.bit_length()
    if bits < 4:
        return length
    return free + ((rest >> (bits - 4)) << (bits - 4))


@attrs.frozen(eq=False)
class Index:
    """The term vectors of all products."""

    products: tuple[str, ...]
    #: Term -> {place of the product: weight}, with the inverse document frequency in it.
    postings: Mapping[str, Mapping[int, float]]

    @classmethod
    def of(cls, vectors: Sequence[tuple[str, Mapping[str, int]]]) -> Index:
        """The index of products with the counts of their terms, in the order of their ids for ties."""
        kept = sorted(vectors, key=lambda one: one[0])
        count = len(kept)
        lengths = [sum(vector.values()) for _, vector in kept]
        average = sum(lengths) / max(count, 1)
        holders: dict[str, list[tuple[int, int]]] = {}
        for place, (_, vector) in enumerate(kept):
            for term, times in vector.items():
                holders.setdefault(term, []).append((place, times))
        postings = {}
        for term, entries in holders.items():
            idf = math.log(1 + (count - len(entries) + 0.5) / (len(entries) + 0.5))
            postings[term] = {
                place: idf * times / (times + K1 * (1 - B + B * quantised(lengths[place]) / average))
                for place, times in entries
            }
        return cls(tuple(name for name, _ in kept), postings)

    def search(self, query: str) -> tuple[str, ...]:
        """The ids of at most :data:`MOST` products, the best first."""
        return _search(self, query)


@lru_cache(maxsize=20_000)
def _search(index: Index, query: str) -> tuple[str, ...]:
    scores: dict[int, float] = {}
    for term, times in Counter(terms(query[:10_000])).items():
        for place, weight in index.postings.get(term, {}).items():
            scores[place] = scores.get(place, 0.0) + times * weight
    best = sorted(scores, key=lambda place: (-scores[place], place))[:MOST]
    return tuple(index.products[place] for place in best)
