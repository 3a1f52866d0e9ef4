"""Ways to a full reward: which purchases reach it, and the shortest way there by known searches.

The purchases that count are those of the goal's own product: with its own options, else with any combination of them.
So the length of a plan is an upper bound of the distance.  The frontier is searched over clicks: a way that goes back
and searches anew takes four actions or more from any page, and three from the search page, so up to D = 2 the search
over clicks is complete.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product as combinations

from handoff.envs.webshop.catalogue import Catalogue, ShopGoal
from handoff.envs.webshop.pages import BACK, NEXT, PREVIOUS, Shop, ShopState
from handoff.envs.webshop.reward import reward
from handoff.envs.webshop.search import PER_PAGE, terms

#: A reward from here on is a success.
FULL = 1.0 - 1e-6
#: The most combinations of options that are tried.
MOST_COMBINATIONS = 2_000


def is_full(total: float) -> bool:
    return total >= FULL


@lru_cache(maxsize=4096)
def purchase(catalogue: Catalogue, number: int) -> tuple[str, tuple[tuple[str, str], ...]] | None:
    """A purchase with the full reward and the fewest options for goal ``number``; ``None``: none is known."""
    goal = catalogue.goals[number]
    exact = tuple(goal.options)
    if is_full(reward(catalogue, goal, goal.asin, dict(exact)).total):
        return goal.asin, exact
    for chosen in _choices(catalogue, goal):
        if is_full(reward(catalogue, goal, goal.asin, dict(chosen)).total):
            return goal.asin, chosen
    return None


def _choices(catalogue: Catalogue, goal: ShopGoal) -> Iterator[tuple[tuple[str, str], ...]]:
    """Combinations of options of the goal's product, those with fewer options first."""
    options = catalogue.products[goal.asin].options
    every = [[None, *dict.fromkeys(values)] for values in options.values()]
    count = 1
    for values in every:
        count *= len(values)
    if count > MOST_COMBINATIONS:
        return
    made = [
        tuple((name, value) for name, value in zip(options, chosen, strict=True) if value is not None)
        for chosen in combinations(*every)
    ]
    yield from sorted(made, key=len)


@lru_cache(maxsize=4096)
def query(catalogue: Catalogue, number: int) -> tuple[str, int] | None:
    """A search that shows the purchase's product, and the page that it is on; the page is the lowest of those tried.

    Tried are the title, its first words, and the goal's own query.
    """
    bought = purchase(catalogue, number)
    if bought is None:
        return None
    asin = bought[0]
    words = catalogue.products[asin].title.lower().split()
    tried = [" ".join(words), *(" ".join(words[:count]) for count in (12, 8, 6, 4)), catalogue.goals[number].query]
    found = []
    for place, text in enumerate(tried):
        text = text.replace("[", " ").replace("]", " ")
        results = catalogue.index.search(text) if terms(text) else ()
        if asin in results:
            found.append((results.index(asin) // PER_PAGE + 1, place, text))
    if not found:
        return None
    page, _, text = min(found)
    return text, page


def plan(shop: Shop, state: ShopState) -> tuple[str, ...]:
    """Actions from ``state`` to a full reward; empty: none are known."""
    number = shop.goal.number
    bought, search = purchase(shop.catalogue, number), query(shop.catalogue, number)
    if bought is None or search is None or state.kind == "done":
        return ()
    asin, options = bought
    steps: list[str] = []
    if state.kind == "sub":
        if state.asin == asin:
            steps.append(PREVIOUS)
            state = ShopState("item", state.keywords, state.page, state.asin, state.options)
        else:
            steps.append(BACK)
            state = ShopState()
    if state.kind == "item" and not _can_finish(state, asin, options):
        results = shop.results(state)
        here = asin in results and results.index(asin) // PER_PAGE + 1
        near = bool(here) and abs(int(here) - state.page) + 1 <= 1 + search[1]
        steps.append(PREVIOUS if near else BACK)
        state = ShopState("results", state.keywords, state.page) if near else ShopState()
    if state.kind == "results":
        results = shop.results(state)
        if asin in results:
            turns = results.index(asin) // PER_PAGE + 1 - state.page
            if abs(turns) <= 1 + search[1]:
                steps += [NEXT if turns > 0 else PREVIOUS] * abs(turns)
                state = ShopState("item", state.keywords, results.index(asin) // PER_PAGE + 1, asin)
                return (*_clicks([*steps, asin]), *_finish(state, options))
        steps.append(BACK)
        state = ShopState()
    actions = list(_clicks(steps))
    if state.kind == "search":
        text, page = search
        actions += [f"search[{text}]", *_clicks([NEXT] * (page - 1)), *_clicks([asin])]
        state = ShopState("item", text, page, asin)
    return (*actions, *_finish(state, options))


def _can_finish(state: ShopState, asin: str, options: tuple[tuple[str, str], ...]) -> bool:
    """Whether the purchase can be made from the item's page: no option is chosen that it has not."""
    return state.asin == asin and {name for name, _ in state.options} <= {name for name, _ in options}


def _finish(state: ShopState, options: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    missing = [value for name, value in options if dict(state.options).get(name) != value]
    return (*_clicks(missing), *_clicks(["buy now"]))


def _clicks(names: list[str]) -> tuple[str, ...]:
    return tuple(f"click[{name.lower()}]" for name in names)
