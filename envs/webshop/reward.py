"""The reward of a purchase: its type times the share of matched attributes, options and price."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import attrs

from handoff.envs.webshop.catalogue import Catalogue, ShopGoal
from handoff.errors import MissingExtra

#: Above this ratio two texts match.
MATCH = 85


@attrs.frozen
class Reward:
    """A reward with its parts."""

    total: float
    r_type: float
    query_match: bool
    category_match: bool
    title_score: float
    #: Shares of matched attributes and options; ``None``: the goal has no options.
    r_att: float
    r_option: float | None
    r_price: bool
    w_att: float
    w_option: float
    w_price: float

    def parts(self) -> dict[str, Any]:
        form: dict[str, Any] = attrs.asdict(self)
        del form["total"]
        return form


@lru_cache(maxsize=200_000)
def ratio(first: str, second: str) -> float:
    """RapidFuzz's token set ratio of two texts, in lower case and without punctuation, from 0 to 100."""
    try:
        from rapidfuzz import fuzz, utils
    except ImportError as error:
        raise MissingExtra("rapidfuzz", "webshop", error, "webshop") from None
    return float(fuzz.token_set_ratio(first, second, processor=utils.default_process))


def reward(catalogue: Catalogue, goal: ShopGoal, asin: str, options: Mapping[str, str]) -> Reward:
    """The reward for buying ``asin`` with the chosen ``options`` where ``goal`` was asked for."""
    product = catalogue.products[asin]
    score = _title_score(catalogue, goal, asin)
    query_match = product.query == goal.query
    category_match = len(_levels(product.category) & _levels(goal.category)) >= 2
    kind = 1.0 if query_match or category_match or score > 0.2 else 0.5
    if score < 0.1:
        kind = 0.1
    if score == 0.0:
        kind = 0.0
    texts = product.texts
    attributes = sum(
        any(ratio(stated, wanted) > MATCH for stated in product.attributes) or any(wanted in text for text in texts)
        for wanted in goal.attributes
    )
    reduced = [_colour(value, catalogue.colours) for value in options.values()]
    chosen = sum(any(ratio(value, str(pair)) > MATCH for value in reduced) for pair in goal.options)
    cheap = catalogue.prices[asin] <= goal.price_upper
    count = len(goal.attributes) + len(goal.options) + 1
    total = kind * (attributes + chosen + cheap) / count
    return Reward(
        total=total,
        r_type=kind,
        query_match=query_match,
        category_match=category_match,
        title_score=score,
        r_att=attributes / len(goal.attributes) if goal.attributes else 0.0,
        r_option=chosen / len(goal.options) if goal.options else None,
        r_price=cheap,
        w_att=len(goal.attributes) / count,
        w_option=len(goal.options) / count,
        w_price=1 / count,
    )


def _title_score(catalogue: Catalogue, goal: ShopGoal, asin: str) -> float:
    """Distinct nouns that both titles have, per noun of the goal's, repeats counted."""
    wanted = catalogue.nouns[goal.asin]
    common = set(catalogue.nouns[asin]) & set(wanted)
    return len(common) / len(wanted) if wanted else 0.2


def _levels(category: str) -> set[str]:
    return {part.strip() for part in category.split("›")}


def _colour(value: str, colours: tuple[str, ...]) -> str:
    """The first name of a colour that ``value`` contains, else ``value``."""
    return next((colour for colour in colours if colour in value), value)
