"""Many pairs of a base and a post-trained policy: which share a base, and how often a number has a sign.

Several post-trained policies may be compared with one evaluation of a base.  Such pairs form one group: the base is
counted once in every mean over pairs, and its tasks are drawn once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any

import attrs

from handoff.errors import DataError, UsageError
from handoff.passk.comparison import TaxComparison
from handoff.passk.counts import Counts, matched
from handoff.passk.estimators import TaxEstimate
from handoff.settings import require
from handoff.text import require_printable


@attrs.frozen(eq=False)
class Pair:
    """A base and a post-trained policy on the same tasks; raises as :func:`~handoff.passk.counts.matched` does."""

    base: Counts
    #: Its tasks are in the base's order.
    post: Counts
    #: Name of the pair; "" stands for the names of both policies.
    name: str = ""
    #: Of the models, such as "Gemma-4"; "" if not stated.
    family: str = ""
    #: Of the tasks, such as "WebShop"; "" if not stated.
    benchmark: str = ""
    #: How the policy was trained, such as "ppo": runs of one recipe are averaged.  Default: the policy's name.
    recipe: str = ""

    def __attrs_post_init__(self) -> None:
        require_printable("name of a pair", (self.name, self.family, self.benchmark, self.recipe))
        object.__setattr__(self, "post", matched(self.base, self.post)[1])
        if not self.name:
            object.__setattr__(self, "name", f"{self.base.name} → {self.post.name}")
        if not self.recipe:
            object.__setattr__(self, "recipe", self.post.name)

    @property
    def rollouts(self) -> int:
        """The fewest rollouts of a task."""
        return min(self.base.rollouts, self.post.rollouts)

    @property
    def task_set(self) -> Hashable:
        """Equal for pairs on the same tasks."""
        return self.benchmark, frozenset(self.base.tasks)


@attrs.frozen(eq=False)
class BaseRuns:
    """One evaluation of a base with the post-trained policies that are compared with it."""

    base: Counts
    pairs: tuple[Pair, ...]


def by_base(pairs: Sequence[Pair]) -> tuple[BaseRuns, ...]:
    """The pairs by their base, in the order of their first.

    Bases are one if they have the same benchmark, name, tasks and counts.  Raises
    :class:`~handoff.errors.UsageError` without pairs, and :class:`~handoff.errors.DataError` if a pair occurs twice.
    """
    if not pairs:
        raise UsageError("a study of pairs needs at least one pair")
    groups: dict[Hashable, list[Pair]] = {}
    for pair in pairs:
        group = groups.setdefault((pair.benchmark, _content(pair.base)), [])
        if any(_content(other.post) == _content(pair.post) for other in group):
            raise DataError(f"the pair {pair.name} occurs twice, with the same counts; name each pair once")
        group.append(pair)
    return tuple(BaseRuns(group[0].base, tuple(group)) for group in groups.values())


def _content(counts: Counts) -> Hashable:
    ordered = counts.in_order_of(sorted(counts.tasks))
    return ordered.name, ordered.tasks, tuple(ordered.n_T.tolist()), tuple(ordered.c_T.tolist())


def common_budget(pairs: Sequence[Pair], budget: int | None = None) -> int:
    """The budget of a study: ``budget``, or the fewest rollouts that a task of any pair has.

    Raises :class:`~handoff.errors.UsageError`, naming the pair, unless 2 <= ``budget`` <= the rollouts of every task.
    """
    least = min(pairs, key=lambda pair: pair.rollouts)
    budget = least.rollouts if budget is None else budget
    require("budget", budget, int, least=0)
    if not 2 <= budget <= least.rollouts:
        raise UsageError(
            f"the budget must be between 2 and the fewest rollouts of a task ({least.rollouts}, in {least.name}), "
            f"not {budget}: make more rollouts, or choose another --budget"
        )
    return budget


@attrs.frozen
class SignCount:
    """In how many pairs a number is above or below zero."""

    #: Pairs in which it is defined.
    pairs: int
    #: By the point.
    positive: int
    negative: int
    #: By an interval on one side of zero.
    above: int
    below: int

    @classmethod
    def of(cls, estimates: Collection[TaxEstimate]) -> SignCount:
        points = [one.point for one in estimates if one.point is not None]
        ends = [(one.low, one.high) for one in estimates if one.low is not None and one.high is not None]
        return cls(
            len(points),
            sum(point > 0 for point in points),
            sum(point < 0 for point in points),
            sum(low > 0 for low, _ in ends),
            sum(high < 0 for _, high in ends),
        )


#: The numbers of a pair whose signs are counted.
SIGNED: dict[str, Callable[[TaxComparison], TaxEstimate]] = {
    "tax_a": lambda one: one.tax_a,
    "tax_s": lambda one: one.tax_s,
    "coverage_lost": lambda one: one.coverage_lost,
    "efficiency_gained": lambda one: one.efficiency_gained,
}


@attrs.frozen
class Signs:
    """Counts of signs over a group of pairs."""

    #: "all", "family" or "benchmark".
    kind: str
    #: Name of the family or of the benchmark.
    name: str
    pairs: int
    tax_a: SignCount
    tax_s: SignCount
    coverage_lost: SignCount
    efficiency_gained: SignCount
    #: Pairs in which the base overtakes within the budget.
    overtaken: int


def signs(pairs: Sequence[Pair], compared: Sequence[TaxComparison]) -> tuple[Signs, ...]:
    """Counts of signs over all pairs, and, where there are several, over each family and each benchmark.

    ``compared`` are the comparisons of ``pairs``, in their order.
    """
    both = list(zip(pairs, compared, strict=True))
    groups: list[tuple[str, str, list[TaxComparison]]] = [("all", "", list(compared))]
    for kind in ("family", "benchmark"):
        names = dict.fromkeys(getattr(pair, kind) for pair in pairs)
        if len(names) > 1:
            groups += [(kind, name, [one for pair, one in both if getattr(pair, kind) == name]) for name in names]
    return tuple(_signs(kind, name, group) for kind, name, group in groups)


def _signs(kind: str, name: str, group: Sequence[TaxComparison]) -> Signs:
    counts: dict[str, Any] = {key: SignCount.of([number(one) for one in group]) for key, number in SIGNED.items()}
    return Signs(kind, name, len(group), **counts, overtaken=sum(one.crossover is not None for one in group))
