"""Is a study as precise as `handoff plan --pilot` said?  Planned half-widths of the interaction against true ones.

    python benchmarks/planning.py [--quick]

Pilots are drawn from a population with known pairing (the share of seed slots on which arms act on one random number),
and each plans the half-width of a study of the pilot's size.  The true half-width is that of studies drawn from the
population.  The last line is one JSON object: ``ratio_pairing_0``, ``ratio_pairing_05`` and ``ratio_pairing_095`` are
mean planned over true half-widths, ``learned_...`` the mean pairings that the pilots told, and ``assumed_...`` the
ratios if 0.5 is assumed instead.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import attrs
import numpy as np
from coverage import CROSS, design  # benchmarks/coverage.py, beside this script

from handoff.estimation.estimands import estimand
from handoff.planning.pairing import learned
from handoff.planning.population import from_pilot
from handoff.planning.power import simulate

QUESTION = estimand("interaction", **CROSS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="20 pilots instead of 100")
    pilots = 20 if parser.parse_args().quick else 100
    report: dict[str, float] = {}
    for name, pairing in (("0", 0.0), ("05", 0.5), ("095", 0.95)):
        truth = design((5,) * 6, reach=(0.5, 0.8), solve=((0.6, 0.615), (0.6, 0.615)), pairing=pairing)
        true = simulate(truth, QUESTION, 5, 4, repeats=400).half_width
        assert true is not None
        planned, assumed, told = [], [], []
        for pilot in range(pilots):
            table = truth.draw(np.random.default_rng([31, pilot, round(100 * pairing)]))
            made = from_pilot(table)
            told.append(learned(table, made).share)
            for share, widths in ((told[-1], planned), (0.5, assumed)):
                widths.append(simulate(attrs.evolve(made, pairing=share), QUESTION, 5, 4, repeats=40).half_width)
        report[f"ratio_pairing_{name}"] = float(np.mean(planned)) / true
        report[f"assumed_pairing_{name}"] = float(np.mean(assumed)) / true
        report[f"learned_pairing_{name}"] = float(np.mean(told))
        print(
            f"pairing {pairing}: true half-width {true:.3f}, planned {np.mean(planned):.3f} with the pairing learned "
            f"({np.mean(told):.2f}, s.d. {np.std(told):.2f}), {np.mean(assumed):.3f} with 0.5"
        )
    print(json.dumps({key: round(value, 3) for key, value in report.items()}))


if __name__ == "__main__":
    main()
