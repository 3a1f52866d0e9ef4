"""The table of ones and zeros of a handoff study: all that the statistics read.

Axes in the array names: W reacher, R solver, T task, S seed slot.  Tasks are kept sorted by (type, id), so that
neither points nor intervals depend on the order in which rows were written.
"""

from __future__ import annotations

from typing import TypeVar

import attrs
import numpy as np

from handoff.errors import DataError, UsageError
from handoff.estimation.arrays import BoolArray, IntArray
from handoff.text import require_printable

K = TypeVar("K", bound="tuple[object, ...]")


@attrs.frozen(eq=False)
class Table:
    """A complete crossing of reachers and solvers over tasks and seed slots.

    Optional fields are ``None`` in a table that lacks them.  Raises :class:`~handoff.errors.DataError` where the arrays
    contradict their shapes or each other.
    """

    reachers: tuple[str, ...]
    solvers: tuple[str, ...]
    tasks: tuple[str, ...]
    #: Type of each task, sorted.
    strata: tuple[str, ...]
    slots: tuple[int, ...]
    #: A_w(i, s): the reacher arrived.
    arrived_WTS: BoolArray
    #: Y_{w,r}(i, s): the solver won; false without arrival.
    won_WRTS: BoolArray
    #: The first solver action stays on a shortest path; false without arrival.
    bridge_WRTS: BoolArray | None = None
    #: tau_D in reacher actions, -1 for never.
    arrival_WTS: IntArray | None = None
    #: Reacher actions until arrival or stopping.
    actions_WTS: IntArray | None = None
    #: Most actions that a reacher was given.
    budget: int | None = None

    def __attrs_post_init__(self) -> None:
        wts = (len(self.reachers), len(self.tasks), len(self.slots))
        wrts = (wts[0], len(self.solvers), *wts[1:])
        if 0 in wts:
            raise DataError("the table is empty: it needs at least one reacher, one task and one seed slot")
        for what, names in (("reacher", self.reachers), ("solver", self.solvers), ("task", self.tasks)):
            if len(set(names)) != len(names):
                raise DataError(f"two {what}s of the table have one name")
            require_printable(what, names)
        require_printable("task type", self.strata)
        if len(self.strata) != len(self.tasks):
            raise DataError(f"{len(self.tasks)} tasks but {len(self.strata)} task types")
        if list(self.strata) != sorted(self.strata):
            raise DataError("the tasks of a table must be in the order of their types")
        for name, shape in (("arrived", wts), ("won", wrts), ("bridge", wrts), ("arrival", wts), ("actions", wts)):
            array = getattr(self, f"{name}_{'WRTS' if shape is wrts else 'WTS'}")
            if array is None:
                continue
            if array.shape != shape:
                raise DataError(f"{name} has shape {array.shape}, but the names call for {shape}")
            kind = np.integer if name in ("arrival", "actions") else np.bool_
            if not np.issubdtype(array.dtype, kind):
                raise DataError(f"{name} must be an array of {kind.__name__}, not of {array.dtype}")
            array.flags.writeable = False
        stray_WRTS = self.won_WRTS & ~self.arrived_WTS[:, None]
        if stray_WRTS.any():
            raise DataError(f"won without having arrived: {self._cell(stray_WRTS)}")
        if self.bridge_WRTS is not None:
            stray_WRTS = self.bridge_WRTS & ~self.arrived_WTS[:, None]
            if stray_WRTS.any():
                raise DataError(f"a bridge action without having arrived: {self._cell(stray_WRTS)}")
        if self.arrival_WTS is not None and not np.array_equal(self.arrival_WTS >= 0, self.arrived_WTS):
            w, t, s = np.argwhere((self.arrival_WTS >= 0) != self.arrived_WTS)[0]
            raise DataError(
                f"task {self.tasks[t]}, seed {self.slots[s]}, reacher {self.reachers[w]}: the arrival step "
                "contradicts whether it arrived"
            )

    def _cell(self, mask_WRTS: BoolArray) -> str:
        w, r, t, s = np.argwhere(mask_WRTS)[0]
        return f"task {self.tasks[t]}, seed {self.slots[s]}, reacher {self.reachers[w]}, solver {self.solvers[r]}"

    @property
    def types(self) -> tuple[str, ...]:
        """The task types, sorted."""
        return tuple(sorted(set(self.strata)))

    @property
    def rows(self) -> int:
        """Endpoint rows: W x R x T x S."""
        return self.won_WRTS.size

    def reacher(self, name: str) -> int:
        """Index of a reacher.  Raises :class:`~handoff.errors.UsageError` naming those that exist."""
        return _index("reacher", name, self.reachers)

    def solver(self, name: str) -> int:
        """Index of a solver.  Raises :class:`~handoff.errors.UsageError` naming those that exist."""
        return _index("solver", name, self.solvers)


def _index(what: str, name: str, names: tuple[str, ...]) -> int:
    if name not in names:
        raise UsageError(f"no {what} is named {name!r}; the table has {', '.join(names) or 'none'}")
    return names.index(name)
