"""Do simultaneous intervals hold all at once, and do adjusted p-values reject as often as they say?

    python benchmarks/simultaneous.py [--quick] [--repeats N] [--draws N]

Each repeat draws a paper-sized study with known truth (``handoff.planning.population``) and asks whether all intervals
of the report's main family hold the truth, plain and simultaneous; and a study of four equal checkpoints, of whose 18
pairwise contrasts none should be found.  The last line is one JSON object: shares of the studies, in percent.
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

from handoff.estimation.method import Intervals
from handoff.estimation.simultaneous import main_family, pairwise_family, simultaneous
from handoff.planning.population import Design, from_guesses

NAMES = ("sft", "rl")
#: Near the paper's unseen split.
SOLVE = {("sft", "sft"): 0.44, ("sft", "rl"): 0.93, ("rl", "sft"): 0.58, ("rl", "rl"): 0.95}
EQUAL = ("a", "b", "c", "d")


def sized(design: Design) -> Design:
    """Five tasks of each type, four slots."""
    return attrs.evolve(design, tasks_G=(5,) * len(design.tasks_G), slots=4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--draws", type=int, default=2000)
    options = parser.parse_args()
    repeats = options.repeats or (1000 if options.quick else 4000)
    paper = sized(from_guesses({"sft": 0.13, "rl": 0.82}, SOLVE))
    equal = sized(from_guesses(dict.fromkeys(EQUAL, 0.6), {(w, r): 0.7 for w in EQUAL for r in EQUAL}))
    contrast = ("sft", "rl", "sft", "rl")
    counts = dict.fromkeys(("plain_hold", "simultaneous_hold", "plain_finds", "simultaneous_finds", "p_finds"), 0)
    for repeat in range(repeats):
        intervals = Intervals(draws=options.draws, seed=repeat)
        table = paper.draw(np.random.default_rng([7, repeat]))
        family = main_family(table, contrast)
        members = simultaneous(table, family, intervals).members
        truth_E = paper.truth(family.estimands)
        given = [(one, at) for one, at in zip(members, truth_E, strict=True) if one.low is not None]
        counts["plain_hold"] += all(one.plain.low <= at <= one.plain.high for one, at in given)
        counts["simultaneous_hold"] += all(one.low <= at <= one.high for one, at in given)
        table = equal.draw(np.random.default_rng([8, repeat]))
        members = simultaneous(table, pairwise_family(table), intervals).members
        plain = [one.plain for one in members if one.plain.low is not None]
        counts["plain_finds"] += any(one.low > 0 or one.high < 0 for one in plain)
        counts["simultaneous_finds"] += any(one.resolved for one in members)
        counts["p_finds"] += any(one.p_adjusted is not None and one.p_adjusted <= 0.05 for one in members)
    shares = {name: round(100 * count / repeats, 1) for name, count in counts.items()}
    print(f"{repeats} studies of 30 tasks x 4 slots, {options.draws} draws each; percent of the studies")
    print(f"the main family holds: plain {shares['plain_hold']}, together {shares['simultaneous_hold']}")
    print(
        f"some of 18 contrasts of equal checkpoints excludes 0: plain {shares['plain_finds']}, "
        f"together {shares['simultaneous_finds']}, adjusted p <= .05 {shares['p_finds']}"
    )
    print(json.dumps({"benchmark": "simultaneous", "studies": repeats, "draws": options.draws, "percent": shares}))


if __name__ == "__main__":
    main()
