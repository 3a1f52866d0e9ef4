"""The Porter stemmer, with its author's later changes (M. F. Porter, "An algorithm for suffix stripping", 1980).

The search index of WebShop holds stems; a query is stemmed in the same way.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

_VOWELS = "aeiou"
_STEP2 = (
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("bli", "ble"),
    ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"), ("ation", "ate"),
    ("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al"),
    ("iviti", "ive"), ("biliti", "ble"), ("logi", "log"),
)  # fmt: skip
_STEP3 = (
    ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", ""),
)  # fmt: skip
_STEP4 = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ou", "ism", "ate", "iti", "ous",
    "ive", "ize", "ion",
)  # fmt: skip


def _is_consonant(word: str, place: int) -> bool:
    if word[place] in _VOWELS:
        return False
    return word[place] != "y" or place == 0 or not _is_consonant(word, place - 1)


def _measure(stem: str) -> int:
    """The number m of vowel-consonant sequences in [C](VC)^m[V]."""
    form = "".join("c" if _is_consonant(stem, place) else "v" for place in range(len(stem)))
    return sum(a == "v" and b == "c" for a, b in pairwise(form))


def _has_vowel(stem: str) -> bool:
    return any(not _is_consonant(stem, place) for place in range(len(stem)))


def _doubled(word: str) -> bool:
    return len(word) > 1 and word[-1] == word[-2] and _is_consonant(word, len(word) - 1)


def _ends_cvc(word: str) -> bool:
    """consonant, vowel, consonant, the last of which is not w, x or y."""
    last = len(word) - 1
    return (
        last >= 2
        and _is_consonant(word, last)
        and not _is_consonant(word, last - 1)
        and _is_consonant(word, last - 2)
        and word[last] not in "wxy"
    )


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """The stem of a word in lower case; words of two letters or fewer stay."""
    if len(word) <= 2:
        return word
    word = _plural(word)
    word = _past(word)
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    word = _replaced(_replaced(word, _STEP2), _STEP3)
    word = _stripped(word)
    if word.endswith("e"):
        rest = word[:-1]
        if _measure(rest) > 1 or (_measure(rest) == 1 and not _ends_cvc(rest)):
            word = rest
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word


def _plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    suffix = next((one for one in ("ed", "ing") if word.endswith(one) and _has_vowel(word[: -len(one)])), None)
    if suffix is None:
        return word
    word = word[: -len(suffix)]
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if _doubled(word):
        return word if word[-1] in "lsz" else word[:-1]
    return word + "e" if _measure(word) == 1 and _ends_cvc(word) else word


def _replaced(word: str, rules: tuple[tuple[str, str], ...]) -> str:
    """The longest suffix of ``rules`` replaced, where what is left has a measure above 0."""
    rule = max((one for one in rules if word.endswith(one[0])), key=lambda one: len(one[0]), default=None)
    if rule is None or _measure(word[: -len(rule[0])]) == 0:
        return word
    return word[: -len(rule[0])] + rule[1]


def _stripped(word: str) -> str:
    suffix = max((one for one in _STEP4 if word.endswith(one)), key=len, default=None)
    if suffix is None:
        return word
    rest = word[: -len(suffix)]
    if _measure(rest) <= 1 or (suffix == "ion" and not rest.endswith(("s", "t"))):
        return word
    return rest
