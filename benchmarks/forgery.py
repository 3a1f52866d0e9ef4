"""Forged runs, audited: how many are found, by which sentence.

    python benchmarks/forgery.py             # every forgery of tests/kit/forgeries.py
    python benchmarks/forgery.py --quick     # those of scripted policies on Sokoban

An honest run of each kind is played first and must pass.  Each forgery then changes it and makes digests, chain and
seal anew, as somebody with our source code would.  Runs of shipped checkpoints are left out, and said to be, where
torch is not installed.

Last line: ``forgeries``, ``found`` (the audit fails with a sentence that names the place), ``declared_unknowable``
(``docs/audit.md`` says why no audit can), ``missed``, ``seconds_per_audit`` (mean).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from kit.forgeries import FORGERIES, verdict
from kit.forgery_runs import NEED_TORCH, RUNS

from handoff.episodes.start import Where
from handoff.protocols.audit import audit_run
from handoff.text import printable

PAGE = Path(__file__).resolve().parents[1] / "docs" / "audit.md"
QUICK = ("handoff", "rollouts")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="scripted policies on Sokoban only")
    quick = parser.parse_args().quick
    runs = list(QUICK if quick else RUNS)
    if not (find_spec("torch") and find_spec("transformers")):
        runs = [name for name in runs if name not in NEED_TORCH]
        if not quick:
            print(f"left out, for torch and transformers are not installed: {', '.join(NEED_TORCH)}")
    page = PAGE.read_text("utf-8").partition("## What it cannot know")[2].partition("\n## ")[0]
    count = {"forgeries": 0, "found": 0, "declared_unknowable": 0, "missed": 0}
    seconds = 0.0
    with tempfile.TemporaryDirectory() as scratch:
        for name in runs:
            honest = Path(scratch, name.replace(" ", "-"))
            RUNS[name](honest)
            if not audit_run(honest, {}, Where(0)).passed:
                raise SystemExit(f"the honest run {name!r} does not pass its audit")
            for number, forgery in enumerate(one for one in FORGERIES if one.run == name):
                started = time.perf_counter()
                result = verdict(forgery, honest, Path(scratch, f"{honest.name}-{number}"))
                seconds += time.perf_counter() - started
                if forgery.unknowable is None:
                    kind = "missed" if result.passed or result.sentence is None else "found"
                    says = result.sentence or f"nothing names {result.place}"
                else:
                    kind = "declared_unknowable" if result.passed and forgery.unknowable in page else "missed"
                    says = f"docs/audit.md: {forgery.unknowable}"
                count["forgeries"] += 1
                count[kind] += 1
                says = says.replace(scratch, "...")
                print(f"{forgery.protocol:9} {forgery.run:16} {forgery.name:52} {kind:20} {printable(says):.150}")
    print(json.dumps({**count, "seconds_per_audit": round(seconds / count["forgeries"], 3)}))


if __name__ == "__main__":
    main()
