"""The WebShop adapter: text pages, clicks and searches, and the reward of one purchase."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, ClassVar

import attrs

from handoff.canonical import digest
from handoff.environment import Environment
from handoff.envs.webshop import plans
from handoff.envs.webshop.catalogue import Catalogue, ShopGoal, load
from handoff.envs.webshop.pages import Shop, ShopState
from handoff.envs.webshop.reward import reward
from handoff.envs.webshop.rows import score_row
from handoff.errors import DataError, UsageError
from handoff.records import BLANK, Record, Task

SPLIT = "test"
SEARCH = f"search[{BLANK}]"
UNREADABLE = ("end", "step")
_FORM = re.compile(r"(search|click)\[(.*?)\]", re.IGNORECASE | re.DOTALL)


class WebShopEnvironment(Environment):
    """WebShop: find and buy the product that an instruction asks for, over text pages; BM25 search, no Java."""

    name: ClassVar[str] = "webshop"
    splits: ClassVar[tuple[str, ...]] = (SPLIT,)

    def __init__(self, data: str | None = None, prices: str | None = None, on_unreadable: str = "end") -> None:
        """``data`` is a folder of the catalogue, ``prices`` a file of other prices.  An action that is neither a search
        nor a click ends the episode (``on_unreadable`` ``end``, as in the published runs) or costs a step."""
        if on_unreadable not in UNREADABLE:
            raise UsageError(f"on_unreadable is one of {', '.join(UNREADABLE)}, not {on_unreadable!r:.40}")
        shipped = str(resources.files("handoff.artifacts") / "webshop")
        self._catalogue: Catalogue = load(shipped if data is None else data, prices)
        self._shipped, self._ends = data is None, on_unreadable == "end"
        self._shop: Shop | None = None
        self._state, self._gave_up = ShopState(), False

    def tasks(self, split: str) -> Sequence[Task]:
        if split != SPLIT:
            raise UsageError(f"webshop has no split {split!r:.40} (it has {SPLIT})")
        return [_task(self._catalogue, goal) for goal in self._catalogue.goals]

    def reset(self, task: Task, seed: int) -> Record:
        number = task.name.removeprefix("goal-")
        goals = self._catalogue.goals
        known = number.isascii() and number.isdigit() and int(number) < len(goals)
        if not known or _task(self._catalogue, goals[int(number)]).id != task.id:
            raise DataError(f"task {task.name!r:.60} is no goal of this catalogue")
        self._shop = Shop(self._catalogue, goals[int(number)])
        self._state, self._gave_up = ShopState(), False
        return self._record()

    def step(self, action: str) -> Record:
        """One search or click.  Anything else costs a step, or ends the episode."""
        match = None if self._over else _FORM.search(action)
        if match is None and not self._over:
            self._gave_up = self._ends
            return self._record("" if self._ends else "it is neither search[...] nor click[...]")
        if match is not None:
            verb, target = match.group(1).lower(), match.group(2)
            after = self._here.after(self._state, f"{verb}[{target}]")
            if after is None:
                after = self._here.after(self._state, f"{verb}[{target.strip(_QUOTES)}]")
            if after is None:
                return self._record("nothing of this name can be clicked or searched here")
            self._state = after
        return self._record()

    @property
    def _here(self) -> Shop:
        if self._shop is None:
            raise UsageError("reset() comes before step()")
        return self._shop

    @property
    def _over(self) -> bool:
        return self._gave_up or self._state.kind == "done"

    def _record(self, problem: str = "") -> Record:
        shop, state = self._here, self._state
        total = 0.0
        if state.kind == "done":
            total = reward(self._catalogue, shop.goal, state.asin, dict(state.options)).total
        searches = state.kind == "search" and not self._over
        clicks = () if self._over else tuple(f"click[{name}]" for name in shop.clickables(state) if name != "search")
        return Record(
            observation=shop.text(state, total),
            admissible=clicks,
            score=total,
            done=self._over,
            won=plans.is_full(total),
            open_actions=(SEARCH,) if searches else (),
            problem=problem,
        )

    def describe(self, tasks: Sequence[Task] = ()) -> Mapping[str, Any]:
        return {
            "rules": 1,
            "on_unreadable": "end" if self._ends else "step",
            "shop": "invented" if self._shipped else "given",
            "files": dict(self._catalogue.digests),
        }

    # Snapshots

    def snapshot(self) -> tuple[Any, ...]:
        return (self._here.goal.number, self._gave_up, *attrs.astuple(self._state))

    def restore(self, snapshot: tuple[Any, ...]) -> Record:
        number, gave_up, *state = snapshot
        self._shop = Shop(self._catalogue, self._catalogue.goals[number])
        self._gave_up, self._state = gave_up, ShopState(*state)
        return self._record()

    # Planner

    def plan(self) -> tuple[str, ...]:
        return () if self._over else plans.plan(self._here, self._state)

    # Rows

    def score_row(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        return score_row(self._catalogue, row)


_QUOTES = " \t\n'\"`"


def _task(catalogue: Catalogue, goal: ShopGoal) -> Task:
    product = catalogue.products[goal.asin]
    content = {"goal": attrs.asdict(goal), "price": catalogue.prices[goal.asin], "title": product.title}
    return Task(
        id=digest({"environment": "webshop", **content}),
        name=f"goal-{goal.number:03d}",
        type=goal.category.split("›")[0].strip() or "shop",
        split=SPLIT,
        source=str(goal.number),
    )
