"""The records of a run as flat tables: Parquet, CSV, JSONL."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from handoff import files
from handoff.errors import StoreError, UsageError
from handoff.protocols.frontier.study import Study
from handoff.runs.folder import MANIFEST

Rows = list[dict[str, Any]]
FORMATS = ("parquet", "csv", "jsonl")


@attrs.frozen
class Exported:
    """What was written (path, number of rows), and a sentence on what was left out, if anything was."""

    written: Sequence[tuple[Path, int]]
    skipped: str | None


def export(study: Study, folder: Path, formats: Sequence[str] | None = None) -> Exported:
    """Write the tables ``endpoints``, ``trajectories`` and ``steps`` to ``folder`` in each of ``formats``.

    Without ``formats`` all are written that can be.  Raises :class:`~handoff.errors.UsageError` if Parquet was asked
    for and pyarrow is not installed, or if ``folder`` is a run's own, a link inside it, or holds a file of
    a table's name that no export wrote;
    :class:`~handoff.errors.StoreError` if the folder cannot be written.
    """
    if folder.is_symlink() and study.folder in folder.parents:
        raise UsageError(f"{folder} is a link that came with the run; give a folder by --out")
    if (folder / MANIFEST).exists():
        raise UsageError(f"{folder} holds a run or generated games, not tables; choose another --out")
    skipped = None
    chosen = list(dict.fromkeys(formats or FORMATS))
    if "parquet" in chosen and not _has_pyarrow():
        reason = "Parquet needs pyarrow: pip install 'checkpoint-handoff[report]'"
        if formats:
            raise UsageError(reason)
        chosen.remove("parquet")
        skipped = f"no Parquet was written. {reason}"
    tables = {"endpoints": endpoint_rows(study), "trajectories": trajectory_rows(study), "steps": step_rows(study)}
    for kind in chosen:
        # An export writes all three: a file that is there alone is somebody else's.
        there = [path for name in tables if os.path.lexists(path := folder / f"{name}.{kind}")]
        if there and len(there) < len(tables):
            raise UsageError(f"{there[0]} is not of a whole export; move it away, or choose another --out")
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in tables.items():
            for kind in chosen:
                path = folder / f"{name}.{kind}"
                files.write_atomically(path, _ENCODERS[kind](rows))
                written.append((path, len(rows)))
    except OSError as error:
        raise StoreError(f"cannot write tables to {folder}: {error.strerror or error}") from error
    return Exported(written, skipped)


def _base(study: Study) -> dict[str, dict[str, Any]]:
    return {task.id: {"task": task.id, "name": task.name, "type": task.type} for task in study.tasks}


def endpoint_rows(study: Study) -> Rows:
    """One row an endpoint, with all columns that ``handoff estimate`` reads: ``arrival`` and ``actions`` are the
    reacher's, ``solver_actions`` its own."""
    base = _base(study)
    rows: Rows = []
    for end in study.endpoints.values():
        run = study.trajectories[end.task, end.slot, end.reacher]
        rows.append(
            {
                **base[end.task],
                "seed": end.slot,
                "reacher": end.reacher,
                "solver": end.solver,
                "arrived": int(end.arrived),
                "won": int(end.won),
                "bridge": None if end.bridge is None else int(end.bridge),
                "arrival": run.arrival,
                "actions": len(run.steps),
                "solver_actions": len(end.steps),
            }
        )
    return rows


def trajectory_rows(study: Study) -> Rows:
    """One row a trajectory."""
    base = _base(study)
    return [
        {
            **base[run.task],
            "seed": run.slot,
            "reacher": run.reacher,
            "arrived": int(run.arrived),
            "arrival": run.arrival,
            "outcome": run.outcome,
            "actions": len(run.steps),
        }
        for run in study.trajectories.values()
    ]


def step_rows(study: Study) -> Rows:
    """One row a decision, of reachers (``solver`` null) and of solvers."""
    base = _base(study)
    rows: Rows = []
    turns: list[tuple[Any, str | None]] = [
        *((run, None) for run in study.trajectories.values()),
        *((end, end.solver) for end in study.endpoints.values()),
    ]
    for turn, solver in turns:
        for position, step in enumerate(turn.steps):
            rows.append(
                {
                    **base[turn.task],
                    "seed": turn.slot,
                    "reacher": turn.reacher,
                    "solver": solver,
                    "position": position,
                    "action": step.decision.action,
                    "status": step.decision.status,
                    "flags": " ".join(step.decision.flags),
                    "text": step.decision.text,
                    "observation": step.record.observation,
                    "won": int(step.record.won),
                    "distance": step.distance if step.check is None else step.check.distance or step.distance,
                    "member": None if step.check is None else int(step.check.member),
                }
            )
    return rows


def _has_pyarrow() -> bool:
    from importlib.util import find_spec

    return find_spec("pyarrow") is not None


def _csv(rows: Rows) -> bytes:
    text = io.StringIO()
    if rows:
        writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return text.getvalue().encode("utf-8", "backslashreplace")


def _jsonl(rows: Rows) -> bytes:
    return "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows).encode()


_TEXT = ("task", "name", "type", "reacher", "solver", "outcome", "action", "status", "flags", "text", "observation")


def _parquet(rows: Rows) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: Mapping[str, Any] = {key: [row[key] for row in rows] for key in (rows[0] if rows else {})}
    arrays = {
        key: pa.array(
            [v.encode("utf-8", "backslashreplace").decode() if isinstance(v, str) else v for v in values],
            pa.string() if key in _TEXT else pa.int64(),
        )
        for key, values in columns.items()
    }
    sink = io.BytesIO()
    pq.write_table(pa.table(arrays), sink)
    return sink.getvalue()


_ENCODERS: Mapping[str, Callable[[Rows], bytes]] = {"parquet": _parquet, "csv": _csv, "jsonl": _jsonl}
