"""Success counts per task: all that the pass@k family and the sharpening tax need.

A file holds one row per task, ``task,n,c``: ``c`` successes out of ``n`` independent rollouts.  As CSV the columns come
in any order, with others; as JSONL each line is an object with these keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from handoff.errors import DataError, UsageError
from handoff.passk.curves import IntArray
from handoff.text import require_printable


@attrs.frozen(eq=False)
class Counts:
    """``c_T[i]`` successes out of ``n_T[i]`` rollouts of task ``tasks[i]``, of one policy."""

    #: Name of the policy.
    name: str
    tasks: tuple[str, ...]
    n_T: IntArray
    c_T: IntArray
    #: Which rollouts are counted, where not all are.
    remark: str = ""
    #: Names by which people call the tasks, where these differ from the ids.
    names: Mapping[str, str] = attrs.Factory(dict)
    #: Tasks whose counted rollouts are all equal; ``None``: the counts do not tell.
    alike: int | None = None

    def __attrs_post_init__(self) -> None:
        if not len(self.tasks) == len(self.n_T) == len(self.c_T):
            raise UsageError(f"{self.name}: give n and c for every task, and no more")
        require_printable("task", self.tasks)
        require_printable("policy", [self.name])
        if not self.tasks:
            raise DataError(f"{self.name} has no tasks")
        if len(set(self.tasks)) != len(self.tasks):
            twice = next(task for task in self.tasks if self.tasks.count(task) > 1)
            raise DataError(f"{self.name}: task {twice!r} occurs twice; give one row per task, with all its rollouts")
        for task, n, c in zip(self.tasks, self.n_T, self.c_T, strict=True):
            if n < 1 or not 0 <= c <= n:
                raise DataError(f"{self.name}: task {task!r} has {c} successes in {n} rollouts; 0 <= c <= n, 1 <= n")

    @classmethod
    def of(cls, name: str, rows: Sequence[tuple[str, int, int]]) -> Counts:
        """From rows (task, n, c)."""
        tasks, n, c = zip(*rows, strict=True) if rows else ((), (), ())
        return cls(name, tuple(tasks), np.array(n, dtype=np.int64), np.array(c, dtype=np.int64))

    @property
    def rollouts(self) -> int:
        """The fewest rollouts that a task has: the greatest budget for which pass@k is known."""
        return int(self.n_T.min())

    @property
    def repeated(self) -> str | None:
        """A warning where all rollouts of most tasks are equal, so that they say no more than one."""
        if self.alike is None or 2 * self.alike <= len(self.tasks):
            return None
        low, high = int(self.n_T.min()), int(self.n_T.max())
        rollouts = f"{low}" if low == high else f"{low} to {high}"
        return (
            f"On {self.alike} of {len(self.tasks)} tasks ({self.alike / len(self.tasks):.1%}) all {rollouts} rollouts "
            f"of {self.name} are equal: there they are one rollout, and pass@k is pass@1 for every k."
        )

    def in_order_of(self, tasks: Sequence[str]) -> Counts:
        """The same counts with the tasks in another order."""
        place = {task: i for i, task in enumerate(self.tasks)}
        order = [place[task] for task in tasks]
        return attrs.evolve(self, tasks=tuple(tasks), n_T=self.n_T[order], c_T=self.c_T[order])


def matched(base: Counts, post: Counts) -> tuple[Counts, Counts]:
    """Both policies' counts with the tasks in the base's order.

    Raises :class:`~handoff.errors.DataError`, naming some, unless both have the same tasks: a comparison over the
    tasks that two policies happen to share would drop the others silently.
    """
    for one, other in ((base, post), (post, base)):
        missing = [task for task in one.tasks if task not in set(other.tasks)]
        if missing:
            names = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
            raise DataError(
                f"{other.name} lacks {len(missing)} of the {len(one.tasks)} tasks of {one.name} ({names}); "
                "compare two policies on the same tasks"
            )
    return base, post.in_order_of(base.tasks)
