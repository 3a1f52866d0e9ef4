"""Step 5: the study's numbers in one file, from the folders of its runs.

    handoff run alfworld --cross sft,rl,control --tasks all --out work/runs/builtin-valid_unseen
    ...
    python collect.py --runs work/runs --into ../../artifacts/checkpoints/study.json

A run's folder is named SOURCE-SPLIT.  Of every run the file has all estimates with intervals, the failure labels, and,
of the built-in games, every endpoint; of the rollouts of sft, rl and control (``--rollouts``) it has the sharpening
tax.  Runs of checkpoints that do not ship, as of another seed, are told under ``also`` by a name of theirs.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from arguments import refuse


def handoff(*words: str) -> Any:
    process = subprocess.run([sys.executable, "-m", "handoff", *words, "--json"], capture_output=True, text=True)
    if process.returncode:
        refuse(process.stderr.strip())
    return json.loads(process.stdout)


def estimates(document: dict[str, Any]) -> dict[str, list[Any]]:
    """Key to point, low, high, numerator, denominator: estimates over all task types."""
    return {
        entry["key"]: [entry[name] for name in ("point", "low", "high", "numerator", "denominator")]
        for entry in document["estimates"]
        if entry["type"] is None
    }


def rows(folder: Path) -> list[list[Any]]:
    """Every endpoint: task, seed slot, reacher, solver, outcome."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-m", "handoff", "export", str(folder), "--out", scratch]
        subprocess.run(command, check=True, capture_output=True)
        with open(Path(scratch) / "endpoints.csv", newline="") as file:
            return [
                [row["task"], int(row["seed"]), row["reacher"], row["solver"], outcome(row)]
                for row in csv.DictReader(file)
            ]


def outcome(row: dict[str, str]) -> str:
    return "won" if row["won"] == "1" else "arrived" if row["arrived"] == "1" else "lost"


def read(runs: Path, whole: bool = True) -> dict[str, Any]:
    """What the runs in a folder found, by source and split, with the transport prediction from seen to unseen games;
    the endpoints of built-in games if it is to be the ``whole``."""
    study: dict[str, Any] = {}
    folders = sorted(folder for folder in runs.iterdir() if folder.is_dir()) if runs.is_dir() else []
    if not folders:
        refuse(f"{runs} holds no runs")
    for folder in folders:
        source, _, split = folder.name.partition("-")
        report = handoff("report", str(folder))
        entry: dict[str, Any] = {"estimates": estimates(report), "failures": report["failures"]}
        if source == "builtin" and whole:
            entry["rows"] = rows(folder)
        study.setdefault(source, {})[split] = entry
        print(folder, flush=True)
    for source in sorted(study):
        target, external = runs / f"{source}-valid_unseen", runs / f"{source}-valid_seen"
        if target.is_dir() and external.is_dir():
            study[source]["transport"] = handoff("transport", str(target), "--external", str(external))
    return study


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument(
        "--also", action="append", default=[], metavar="NAME=RUNS", help="of other checkpoints; repeats"
    )
    parser.add_argument("--curve", action="append", default=[], metavar="NAME=FILE", help="their curve.jsonl")
    parser.add_argument("--rollouts", type=Path)
    parser.add_argument("--into", type=Path, required=True)
    given = parser.parse_args()
    study = read(given.runs)
    if given.rollouts:
        study["tax"] = {
            post: handoff("tax", f"{given.rollouts}#sft", f"{given.rollouts}#{post}") for post in ("rl", "control")
        }
    for entry in given.also:
        name, _, place = entry.partition("=")
        study.setdefault("also", {})[name] = read(Path(place), whole=False)
    for entry in given.curve:
        name, _, place = entry.partition("=")
        lines = Path(place).read_text("utf-8").splitlines()
        study.setdefault("also", {}).setdefault(name, {})["curve"] = [json.loads(line) for line in lines]
    given.into.write_text(json.dumps(study, separators=(",", ":")) + "\n", "utf-8")


if __name__ == "__main__":
    main()
