"""PTGS at test time against one fixed temperature, on Sokoban with the ``tempered`` policy, which needs no model.

    python benchmarks/ptgs.py [--quick]

Both sides have the same budget of rollouts and the same seeds, and are judged by the same scored half.  Printed for
each setting: the share of boards without a success (``zero``), the mean success rate, and the two-sided sign test over
the boards that only one side solves.  The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from scipy import stats

from handoff.episodes.start import Where
from handoff.passk.ptgs import EstimateThenSample
from handoff.protocols.rollouts import ROLLOUTS
from handoff.protocols.rollouts import study as rollouts_study
from handoff.protocols.rollouts.config import RolloutsConfig

SPECS = ("tempered:0.2:1.5", "tempered:0.2:3")


def successes(spec: str, ptgs: EstimateThenSample | None, total: int, scored: int, tasks: int, seed: int) -> list[int]:
    """Successes of each board in the last ``scored`` of ``total`` rollouts."""
    config = RolloutsConfig(
        split="test", policies=("x",), rollouts=total, tasks=tasks, budget=20, run_seed=seed, ptgs=ptgs
    )
    with tempfile.TemporaryDirectory() as folder:
        ROLLOUTS.prepare("sokoban", {}, config, {"x": spec}).run(Path(folder), Where(0))
        run = rollouts_study.load(folder)
        return [sum(run.rollouts[t.id, "x", i].won for i in range(total - scored, total)) for t in run.tasks]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="12 boards, one seed")
    arguments = parser.parse_args()
    tasks, seeds, total, scored = (12, 1, 16, 8) if arguments.quick else (60, 3, 32, 16)
    policies = {}
    for spec in SPECS:
        fixed, tempered = [], []
        for seed in range(seeds):
            fixed += successes(spec, None, total, scored, tasks, seed)
            tempered += successes(spec, EstimateThenSample(total - scored, tau=2.0), total, scored, tasks, seed)
        only = sum(t > 0 and f == 0 for f, t in zip(fixed, tempered, strict=True))
        lost = sum(f > 0 and t == 0 for f, t in zip(fixed, tempered, strict=True))
        policies[spec] = {
            "zero_fixed": sum(c == 0 for c in fixed) / len(fixed),
            "zero_ptgs": sum(c == 0 for c in tempered) / len(tempered),
            "success_fixed": sum(fixed) / scored / len(fixed),
            "success_ptgs": sum(tempered) / scored / len(tempered),
            "solved_by_ptgs_only": only,
            "solved_by_fixed_only": lost,
            "sign_test": float(stats.binomtest(only, only + lost).pvalue) if only + lost else None,
        }
        print(spec, {name: round(value, 4) if value is not None else None for name, value in policies[spec].items()})
    print(json.dumps({"boards": tasks, "seeds": seeds, "scored": scored, "tau": 2.0, "policies": policies}))


if __name__ == "__main__":
    main()
