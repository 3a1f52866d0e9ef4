"""Tables as CSV files."""

from __future__ import annotations

import csv
from typing import TextIO

import numpy as np

from handoff.estimation.table import Table
from handoff.estimation.table_csv import OPTIONAL, REQUIRED


def write_csv(table: Table, file: TextIO) -> None:
    """Write ``table``, one endpoint per line in the order task, seed, reacher, solver; :func:`read_csv` gives it back.

    Optional columns are written where the table has them; without arrival, ``arrival`` and ``bridge`` are empty.
    """
    optional = [
        name for name in OPTIONAL if getattr(table, f"{name}_{'WRTS' if name == 'bridge' else 'WTS'}") is not None
    ]
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([*REQUIRED, *optional])
    for t, s, w, r in np.ndindex(len(table.tasks), len(table.slots), len(table.reachers), len(table.solvers)):
        arrived = table.arrived_WTS[w, t, s]
        row: list[object] = [table.tasks[t], table.strata[t], table.slots[s], table.reachers[w], table.solvers[r]]
        row += [int(arrived), int(table.won_WRTS[w, r, t, s])]
        if table.bridge_WRTS is not None:
            row.append(int(table.bridge_WRTS[w, r, t, s]) if arrived else "")
        if table.arrival_WTS is not None:
            row.append(int(table.arrival_WTS[w, t, s]) if arrived else "")
        if table.actions_WTS is not None:
            row.append(int(table.actions_WTS[w, t, s]))
        writer.writerow(row)
