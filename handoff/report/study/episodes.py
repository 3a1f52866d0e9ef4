"""The episodes of a run, packed for the page's browser.

Text that recurs (observations, actions) is stored once and pointed at; what the browser can work out is left out; the
whole is compressed.  If that still takes too much room, what a policy said is cut short first, then later seed slots
are left out, and the page says so.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from handoff.protocols.frontier.failures import label, state_of
from handoff.protocols.frontier.records import EndpointCell, Trajectory
from handoff.protocols.frontier.study import Study
from handoff.records import Certificate, Step
from handoff.report.format import plural

#: Characters of base64 that the packed episodes may take.
ROOM = 4_000_000
#: Lengths to which a policy's words are cut, tried in turn.
CUTS = (4000, 1500, 600, 120)

Json = dict[str, Any]


@attrs.frozen
class Packed:
    """The packed episodes."""

    #: Base64 of gzipped JSON.
    data: str
    #: Trajectories in ``data``, and of the run.
    shown: int
    total: int
    #: What is left out.
    remarks: tuple[str, ...]


def pack(study: Study, room: int = ROOM) -> Packed:
    """The episodes, in at most ``room`` characters if that can be."""
    order = {task.id: number for number, task in enumerate(study.tasks)}
    everyone = sorted(
        study.trajectories.values(), key=lambda run: (run.slot, order[run.task], study.reachers.index(run.reacher))
    )
    kept = everyone
    for cut in CUTS:
        data = _encode(study, kept, cut)
        if len(data) <= room:
            break
    while len(data) > room and len(kept) > 1:
        kept = kept[: max(1, min(len(kept) - 1, int(0.9 * len(kept) * room / len(data))))]
        data = _encode(study, kept, cut)
    remarks = []
    if cut != CUTS[0]:
        remarks.append(f"What a policy said is cut after {plural(cut, 'character')}; the run folder has all of it.")
    if len(kept) < len(everyone):
        remarks.append(
            f"{plural(len(kept), 'trajectory')} of {len(everyone):,} are shown, by seed slot; the run folder has all."
        )
    return Packed(data, len(kept), len(everyone), tuple(remarks))


def _encode(study: Study, kept: Iterable[Trajectory], cut: int) -> str:
    form = json.dumps(_form(study, kept, cut), separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(form.encode(), compresslevel=6, mtime=0)).decode()


class _Strings:
    """Strings by number, each once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def __call__(self, text: str | None) -> int:
        return -1 if text is None else self._numbers.setdefault(text, len(self._numbers))

    def all(self) -> list[str]:
        return list(self._numbers)


def _form(study: Study, kept: Iterable[Trajectory], cut: int) -> Json:
    """The data of the browser.  Steps are arrays: action, observation, words (-1: the action itself), status, flags,
    distance (-1: not known), inadmissible."""
    strings = _Strings()
    tasks = {task.id: number for number, task in enumerate(study.tasks)}
    state = state_of(study.trajectories.values())
    episodes = []
    for run in kept:
        records = run.records()
        arrival = run.arrival
        episode: Json = {
            "t": tasks[run.task],
            "s": run.slot,
            "w": study.reachers.index(run.reacher),
            "o": run.outcome,
            "r": strings(run.reset.observation),
            "x": list(_steps(run.steps, records[0].admissible, strings, cut)),
        }
        if arrival is None:
            episode["f"] = label(run, state)
        else:
            episode["a"] = arrival
            episode["c"] = _certificate(run.certificate(), strings)
            episode["m"] = [strings(action) for action in records[arrival].admissible]
            episode["e"] = list(_ends(study, run, strings, cut))
        episodes.append(episode)
    return {
        "depth": study.depth,
        "reachers": list(study.reachers),
        "solvers": list(study.solvers),
        "tasks": [[task.name, task.type, task.id[:12]] for task in study.tasks],
        "episodes": episodes,
        "strings": strings.all(),
    }


def _ends(study: Study, run: Trajectory, strings: _Strings, cut: int) -> Iterator[Json]:
    assert run.arrival is not None
    admissible = run.records()[run.arrival].admissible
    for place, solver in enumerate(study.solvers):
        end = study.endpoints.get(EndpointCell(*run.cell, solver))
        if end is None:
            continue
        form: Json = {"r": place, "won": int(end.won), "x": list(_steps(end.steps, admissible, strings, cut))}
        if end.bridge is not None:
            form["b"] = int(end.bridge)
        if end.clone is not None:
            form["k"] = [end.clone.records, end.clone.digest[:12], end.clone.input_digest[:12]]
        yield form


def _steps(steps: Iterable[Step], admissible: tuple[str, ...], strings: _Strings, cut: int) -> Iterator[list[int]]:
    for step in steps:
        decision = step.decision
        words = decision.text if decision.text != decision.action else None
        if words is not None and len(words) > cut:
            words = words[:cut] + " […]"
        yield [
            strings(decision.action),
            strings(step.record.observation),
            strings(words),
            strings(decision.status),
            strings(" ".join(decision.flags)),
            _distance(step),
            int(decision.action is not None and decision.action not in admissible),
        ]
        admissible = step.record.admissible


def _distance(step: Step) -> int:
    if step.distance is not None:
        return step.distance
    return -1 if step.check is None or step.check.distance is None else step.check.distance


def _certificate(certificate: Certificate, strings: _Strings) -> Json:
    return {
        "depth": certificate.depth,
        "distance": certificate.distance,
        "tried": list(certificate.tried),
        "bridges": [strings(action) for action in certificate.bridges],
        "path": [strings(action) for action in certificate.path],
    }
