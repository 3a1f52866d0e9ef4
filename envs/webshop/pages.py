"""Pages of the shop: a state, the text that it shows, what can be clicked, and where an action leads.

Decided here, for the original's episodes do not show it: a search where no search bar is does nothing; chosen options
are forgotten when the item's page is left for the results or the search, and kept over its sub-pages; a value that two
options share counts for the last of them.
"""

from __future__ import annotations

import json
import re

import attrs

from handoff.envs.webshop.catalogue import Catalogue, Product, ShopGoal
from handoff.envs.webshop.search import PER_PAGE

SEPARATOR = " [SEP] "
BACK, PREVIOUS, NEXT, BUY = "Back to Search", "< Prev", "Next >", "Buy Now"
SUB_PAGES = ("Description", "Features", "Reviews")
_ACTION = re.compile(r"\A(search|click)\[(.*)\]\Z", re.DOTALL)


@attrs.frozen
class ShopState:
    """A page.  ``kind`` is search, results, item, sub or done."""

    kind: str = "search"
    keywords: str = ""
    #: Of the results, counted from 1.
    page: int = 1
    asin: str = ""
    #: Chosen values by option, in the order of choice.
    options: tuple[tuple[str, str], ...] = ()
    sub: str = ""


def reads(action: str) -> tuple[str, str] | None:
    """The verb and the argument of an action; ``None``: it has neither form."""
    match = _ACTION.match(action.strip())
    return None if match is None else (match.group(1), match.group(2))


@attrs.frozen
class Shop:
    """The pages of one goal."""

    catalogue: Catalogue
    goal: ShopGoal

    def results(self, state: ShopState) -> tuple[str, ...]:
        return self.catalogue.index.search(state.keywords)

    def product(self, state: ShopState) -> Product:
        return self.catalogue.products[state.asin]

    def text(self, state: ShopState, reward: float = 0.0) -> str:
        """The visible texts, joined; empty ones are left out."""
        if state.kind == "search":
            parts = ["WebShop", "Instruction:", self.goal.instruction, "Search"]
        elif state.kind == "done":
            parts = _receipt(state, reward)
        else:
            parts = ["Instruction:", self.goal.instruction, *self._body(state)]
        return SEPARATOR.join(part.strip() for part in parts if part.strip())

    def _body(self, state: ShopState) -> list[str]:
        if state.kind == "results":
            found = self.results(state)
            parts = [BACK, f"Page {state.page} (Total results: {len(found)})", *self._turns(state)]
            for asin in self._shown(state):
                product = self.catalogue.products[asin]
                parts += [asin, product.title, product.price_text]
            return parts
        product = self.product(state)
        if state.kind == "item":
            options = [part for name, values in product.options.items() for part in (name, *values)]
            rest = [product.title, f"Price: {product.price_text}", f"Rating: {product.rating}", *SUB_PAGES, BUY]
            return [BACK, PREVIOUS, *options, *rest]
        text = {"Description": (product.description,), "Features": product.bullets, "Reviews": ()}[state.sub]
        return [BACK, PREVIOUS, *text]

    def _turns(self, state: ShopState) -> list[str]:
        """The buttons that turn pages of results."""
        before = [PREVIOUS] if state.page > 1 else []
        return before + ([NEXT] if state.page * PER_PAGE < len(self.results(state)) else [])

    def _shown(self, state: ShopState) -> tuple[str, ...]:
        first = (state.page - 1) * PER_PAGE
        return self.results(state)[first : first + PER_PAGE]

    def clickables(self, state: ShopState) -> tuple[str, ...]:
        """What can be clicked, in lower case: buttons, then products, then values, each once."""
        if state.kind == "search":
            names = ["Search"]
        elif state.kind == "results":
            names = [BACK, *self._turns(state), *self._shown(state)]
        elif state.kind == "item":
            values = [value for values in self.product(state).options.values() for value in values]
            names = [BACK, PREVIOUS, *SUB_PAGES, BUY, *values]
        else:
            names = [BACK, PREVIOUS] if state.kind == "sub" else []
        return tuple(dict.fromkeys(name.lower() for name in names))

    def after(self, state: ShopState, action: str) -> ShopState | None:
        """The state after an action; ``None``: the action does nothing there."""
        both = reads(action)
        if both is None or state.kind == "done":
            return None
        verb, argument = both
        if verb == "search":
            return ShopState("results", argument.strip()) if state.kind == "search" and argument.strip() else None
        target = argument.strip().lower()
        if target not in self.clickables(state) or state.kind == "search":
            return None
        return self._clicked(state, target)

    def _clicked(self, state: ShopState, target: str) -> ShopState:
        if target == BACK.lower():
            return ShopState()
        if state.kind == "results":
            if target in (NEXT.lower(), PREVIOUS.lower()):
                return attrs.evolve(state, page=state.page + (1 if target == NEXT.lower() else -1))
            asin = next(one for one in self._shown(state) if one.lower() == target)
            return ShopState("item", state.keywords, state.page, asin)
        if state.kind == "sub":
            return attrs.evolve(state, kind="item", sub="")
        if target == PREVIOUS.lower():
            return ShopState("results", state.keywords, state.page)
        if target == BUY.lower():
            return attrs.evolve(state, kind="done")
        sub = next((name for name in SUB_PAGES if name.lower() == target), None)
        if sub is not None:
            return attrs.evolve(state, kind="sub", sub=sub)
        owners = [(name, value) for name, values in self.product(state).options.items() for value in values]
        name, value = [one for one in owners if one[1].lower() == target][-1]
        chosen = dict(state.options)
        chosen[name] = value
        return attrs.evolve(state, options=tuple(chosen.items()))


def _receipt(state: ShopState, reward: float) -> list[str]:
    """The last page, which is a fixed frame."""
    return [
        "Thank you for shopping with us!", "Your code:", "None", "(Paste it in your MTurk interface.)", "Purchased",
        "asin", state.asin, "options", json.dumps(dict(state.options)), "attrs", "None", "category", "None", "query",
        "None", "product category", "None", "Target", "asin", "options", "attrs", "price upper", "instuction text",
        "category", "product category", "query", "Goal", "None", "Reward", "Your score (min 0.0, max 1.0)",
        str(reward), "Reward Details", "None",
    ]  # fmt: skip
