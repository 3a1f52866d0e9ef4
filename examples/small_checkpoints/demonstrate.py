"""Step 1: games and demonstrations.

    python demonstrate.py --games 1000 --rooms 3 --out work

compiles the training games (about a second each, kept on disk), makes ``--rooms`` rooms of each (the game's own and
others with things elsewhere) and writes the planner's solution in each to ``work/demonstrations.jsonl``.  Typed again
it goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
from pathlib import Path

from arguments import differing, refuse
from rooms import compiled, demonstrate, shuffled

PART = 50  # games in one file of the unfinished whole


def part(job: tuple[int, argparse.Namespace, Path]) -> Path:
    """Demonstrations in the games from ``start`` on."""
    start, given, folder = job
    path = folder / f"{start:06d}.jsonl"
    if not path.exists():
        lines = []
        for number in range(start, min(start + PART, given.games)):
            game = compiled(number, given.games)
            for room in range(given.rooms):
                state = game.initial if room == 0 else shuffled(game, random.Random(f"room {number} {room}"))
                demonstration = demonstrate(game, state)
                form = {"game": number, "room": room, "reset": demonstration.reset, "steps": demonstration.steps}
                lines.append(json.dumps(form, ensure_ascii=True))
        half = path.with_suffix(".half")
        half.write_text("".join(line + "\n" for line in lines), "utf-8")
        half.replace(path)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=1000)
    parser.add_argument("--rooms", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("work"))
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    folder = given.out / "demonstrations"
    folder.mkdir(parents=True, exist_ok=True)
    begun, mine = folder / "arguments.json", {"games": given.games, "rooms": given.rooms}
    if begun.exists() and (other := differing(json.loads(begun.read_text("utf-8")), mine)):
        refuse(f"{given.out} holds demonstrations of other games ({other} differ); give another --out")
    begun.write_text(json.dumps(mine), "utf-8")
    jobs = [(start, given, folder) for start in range(0, given.games, PART)]
    paths = []
    with multiprocessing.get_context("spawn").Pool(given.workers) as pool:
        for path in pool.imap(part, jobs):
            paths.append(path)
            print(f"{min(len(paths) * PART, given.games)} of {given.games} games", flush=True)
    whole = given.out / "demonstrations.jsonl"
    half = whole.with_suffix(".half")
    half.write_text("".join(path.read_text("utf-8") for path in paths), "utf-8")
    half.replace(whole)
    print(f"wrote {whole}")


if __name__ == "__main__":
    main()
