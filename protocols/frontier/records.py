"""What a verified-frontier run records: trajectories, clones, endpoints."""

from __future__ import annotations

from typing import NamedTuple

import attrs

from handoff.errors import DataError
from handoff.records import Certificate, Record, Step
from handoff.runs.chain import Key

TRAJECTORY, ENDPOINT = "trajectory", "endpoint"


class Cell(NamedTuple):
    """One trajectory's place in the crossing."""

    task: str
    slot: int
    reacher: str

    @property
    def key(self) -> Key:
        """Key of the trajectory's record."""
        return (TRAJECTORY, self.task, str(self.slot), self.reacher)


class EndpointCell(NamedTuple):
    """One endpoint's place in the crossing."""

    task: str
    slot: int
    reacher: str
    solver: str

    @property
    def cell(self) -> Cell:
        """Place of its trajectory."""
        return Cell(self.task, self.slot, self.reacher)

    @property
    def key(self) -> Key:
        """Key of the endpoint's record."""
        return (ENDPOINT, self.task, str(self.slot), self.reacher, self.solver)


@attrs.frozen
class Trajectory:
    """A reacher's turn on one task and seed slot.

    ``arrival`` is tau_D: after how many actions the state was first in F_D (0: at reset; ``None``: never).
    ``outcome`` is ``arrived``, ``won`` (won without ever having been on F_D), ``terminal`` (ended without a win) or
    ``budget``.  ``reset_distance`` is the distance to success at reset, as in :class:`Step`.
    """

    task: str
    slot: int
    reacher: str
    reset_seed: int
    reset: Record
    reset_check: Certificate
    steps: tuple[Step, ...]
    arrival: int | None
    outcome: str
    reset_distance: int | None = None

    def __attrs_post_init__(self) -> None:
        if self.arrival is None:
            return
        if not 0 <= self.arrival <= len(self.steps):
            raise DataError(f"it arrives after {self.arrival} actions, but it has {len(self.steps)}")
        if self.arrival and self.steps[self.arrival - 1].check is None:
            raise DataError("it arrives at a state that has no certificate")

    @property
    def cell(self) -> Cell:
        return Cell(self.task, self.slot, self.reacher)

    @property
    def actions(self) -> int:
        """Actions until arrival, or until the turn ended without one."""
        return len(self.steps) if self.arrival is None else self.arrival

    @property
    def arrived(self) -> bool:
        return self.arrival is not None

    def certificate(self) -> Certificate:
        """The certificate of the arrival state.  Raises ``ValueError`` if the reacher did not arrive."""
        if self.arrival is None:
            raise ValueError("the reacher did not arrive")
        if self.arrival == 0:
            return self.reset_check
        check = self.steps[self.arrival - 1].check
        assert check is not None
        return check

    def records(self) -> tuple[Record, ...]:
        """The record after reset and after every step (``len(steps) + 1`` records)."""
        return (self.reset, *(step.record for step in self.steps))


@attrs.frozen
class Clone:
    """What was verified when a solver's environment was cloned: ``records`` replayed records, all equal, whose
    digests chain to ``digest``; ``input_digest`` is that of the solver's first input."""

    records: int
    digest: str
    input_digest: str


@attrs.frozen
class Endpoint:
    """One row of the crossing: Y_{w,r}(i, s) (Eq. 2).  Non-arrivals are rows too, with ``won`` false.

    ``bridge`` says whether the first action stays on a shortest path (``None`` without arrival).
    """

    task: str
    slot: int
    reacher: str
    solver: str
    arrived: bool
    won: bool
    bridge: bool | None = None
    clone: Clone | None = None
    steps: tuple[Step, ...] = ()

    @property
    def cell(self) -> EndpointCell:
        return EndpointCell(self.task, self.slot, self.reacher, self.solver)
