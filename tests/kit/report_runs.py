"""Run folders written from a table of ones and zeros, through the real store: records that say what the table says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from handoff.estimation.table import Table
from handoff.protocols.frontier.records import Clone, Endpoint, Trajectory
from handoff.records import Certificate, Decision, Record, Step, Task, to_json
from handoff.runs.store import Store

NOWHERE = Certificate(depth=2, member=False, distance=None, tried=(3, 9))
THERE = Certificate(
    depth=2, member=True, distance=2, tried=(3, 9), bridges=("go to desk 1",), path=("go to desk 1", "take pen 1")
)
ADMISSIBLE = ("go to desk 1", "look", "take pen 1")


def record(text: str, won: bool = False) -> Record:
    return Record(text, ADMISSIBLE, float(won), won, won)


def step(action: str, text: str, check: Certificate | None = None, won: bool = False, said: str | None = None) -> Step:
    decision = Decision(said or action, action, "parsed", 7, "0" * 64)
    return Step(decision, record(text, won), check)


def write(
    folder: Path,
    table: Table,
    *,
    budget: int = 48,
    arrives: Callable[[int, int], int] = lambda reacher, arrival: 5,
    environment: Mapping[str, Any] | None = None,
    policies: Mapping[str, Any] | None = None,
    split: str = "unseen",
    done: int | None = None,
    said: str | None = None,
    start: str = "Your task is to: put a pen in the drawer.",
    prefix: str = "",
) -> Path:
    """A run folder of ``table``.

    ``arrives(reacher, n)`` is after how many actions the reacher's n-th arrival comes.  ``done`` records are sealed
    (all by default).  ``prefix`` goes before task ids, so that two runs of one table have no task in common.
    """
    tasks = tuple(
        Task(prefix + id, f"{prefix}{id} game", type, split) for id, type in zip(table.tasks, table.strata, strict=True)
    )
    names = dict.fromkeys((*table.reachers, *table.solvers))
    identity = {
        "environment": dict(environment or {"name": "toy", "version": "1"}),
        "handoff": "0.1.0",
        "policies": dict(policies or {name: {"kind": "noisy", "spec": f"noisy:{name}"} for name in names}),
        "protocol": {
            "name": "frontier",
            "reachers": list(table.reachers),
            "solvers": list(table.solvers),
            "slots": len(table.slots),
            "depth": 2,
            "reach_budget": budget,
            "solve_budget": 2,
            "run_seed": 0,
            "selection_seed": 0,
            "split": split,
            "tasks": len(tasks),
            "types": [],
        },
        "seeds": {"run": 0},
        "tasks": [to_json(task) for task in tasks],
    }
    bodies: list[tuple[tuple[str, ...], Any]] = []
    for w, reacher in enumerate(table.reachers):
        arrivals = 0
        for t, task in enumerate(tasks):
            for s in range(len(table.slots)):
                arrival = None
                if table.arrived_WTS[w, t, s]:
                    arrival = arrives(w, arrivals)
                    arrivals += 1
                run = _trajectory(task.id, s, reacher, arrival, budget, said, start)
                bodies.append((("trajectory", task.id, str(s), reacher), to_json(run)))
                for r, solver in enumerate(table.solvers):
                    won = bool(table.won_WRTS[w, r, t, s])
                    bridge = won if table.bridge_WRTS is None else bool(table.bridge_WRTS[w, r, t, s])
                    end = _endpoint(task.id, s, reacher, solver, arrival, won, bridge)
                    bodies.append((("endpoint", task.id, str(s), reacher, solver), to_json(end)))
    count = len(bodies) if done is None else done
    with Store(folder, identity, [key for key, _ in bodies], {}) as store:
        for key, body in bodies[:count]:
            store.finish(key, body)
        if count == len(bodies):
            store.complete()
    return folder


def _trajectory(
    task: str, slot: int, reacher: str, arrival: int | None, budget: int, said: str | None, start: str
) -> Trajectory:
    length = budget if arrival is None else arrival
    steps = [
        step("look", f"You see shelf {n % 4}.", THERE if n + 1 == arrival else NOWHERE, said=said)
        for n in range(length)
    ]
    return Trajectory(
        task=task,
        slot=slot,
        reacher=reacher,
        reset_seed=1,
        reset=record(start),
        reset_check=THERE if arrival == 0 else NOWHERE,
        steps=tuple(steps),
        arrival=arrival,
        outcome="budget" if arrival is None else "arrived",
    )


def _endpoint(
    task: str, slot: int, reacher: str, solver: str, arrival: int | None, won: bool, bridge: bool
) -> Endpoint:
    if arrival is None:
        return Endpoint(task, slot, reacher, solver, arrived=False, won=False)
    steps = (
        step("go to desk 1" if bridge else "look", "You are at desk 1." if bridge else "Nothing."),
        step("take pen 1" if won else "look", "You take the pen 1." if won else "Nothing.", won=won),
    )
    clone = Clone(arrival + 1, "a" * 64, "b" * 64)
    return Endpoint(task, slot, reacher, solver, True, won, bridge, clone, steps)


def table(
    reachers: Sequence[str], solvers: Sequence[str], arrived: Any, won: Any, types: Sequence[str], slots: int = 2
) -> Table:
    """A small table: ``arrived(w, t, s)`` and ``won(w, r, t, s)`` say the ones."""
    import numpy as np

    wts = (len(reachers), len(types), slots)
    arrived_WTS = np.array([arrived(*index) for index in np.ndindex(*wts)], bool).reshape(wts)
    wrts = (wts[0], len(solvers), *wts[1:])
    won_WRTS = np.array([won(*index) for index in np.ndindex(*wrts)], bool).reshape(wrts) & arrived_WTS[:, None]
    return Table(
        tuple(reachers),
        tuple(solvers),
        tuple(f"task {t:02d}" for t in range(len(types))),
        tuple(types),
        tuple(range(slots)),
        arrived_WTS,
        won_WRTS,
    )
