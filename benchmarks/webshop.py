"""WebShop: pages and rewards beside the recorded ones, and the time of a step.

    python benchmarks/webshop.py [--quick] [--data FOLDER]

* pages, pages_equal: recorded pages that were replayed, and how many are equal byte for byte;
* rewards, rewards_equal: recorded rewards, and how many agree to 1e-12;
* goals, won: goals, and how many the plan wins;
* step_ms, search_ms, reset_ms: means over the plans of all goals, with the list of admissible actions; no search
  profits from an earlier one, for what is remembered is dropped before each;
* pyserini_search_ms: one search by the original's engine over the same documents, where pyserini is installed; null
  otherwise, and the other side is then not measured.

FOLDER has the official layout and the reference files.  Without it the shipped shop runs, and no page is compared.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from handoff.envs.webshop import WebShopEnvironment
from handoff.envs.webshop.search import _search, terms


def recorded(folder: Path | None, name: str) -> list[Any]:
    """Rows of a reference file; none without a folder."""
    if folder is None:
        return []
    return [json.loads(line) for line in gzip.decompress((folder / name).read_bytes()).decode().splitlines()]


def replay(environment: WebShopEnvironment, episodes: list[Any]) -> tuple[int, int]:
    """Pages, and how many are equal: text, reward and end."""
    tasks, pages, equal = environment.tasks("test"), 0, 0
    for episode in episodes:
        record = environment.reset(tasks[episode["goal"]], 0)
        for page in episode["steps"]:
            if page["action"] is not None:
                record = environment.step(page["action"])
            pages += 1
            same = record.observation == page["observation"] and record.done == page["done"]
            equal += same and abs((record.score or 0.0) - page["reward"]) <= 1e-12
    return pages, equal


def walk(environment: WebShopEnvironment) -> tuple[int, dict[str, list[float]], list[str]]:
    """The plans of all goals: goals won, seconds by kind of step, and the queries."""
    won, seconds, queries = 0, {"reset": [], "search": [], "other": []}, []
    for task in environment.tasks("test"):
        began = time.perf_counter()
        record = environment.reset(task, 0)
        seconds["reset"].append(time.perf_counter() - began)
        for action in environment.plan():
            _search.cache_clear()
            began = time.perf_counter()
            record = environment.step(action)
            seconds["search" if action.startswith("search[") else "other"].append(time.perf_counter() - began)
            if action.startswith("search["):
                queries.append(action.removeprefix("search[")[:-1])
        won += record.won
    return won, seconds, queries


def pyserini(folder: Path | None, queries: list[str]) -> float | None:
    """Milliseconds per search of the original's engine; ``None``: it is not installed."""
    documents = None if folder is None else folder / "products_index_docs_1k.jsonl"
    if importlib.util.find_spec("pyserini") is None or documents is None:
        return None
    import subprocess
    import sys

    from pyserini.search.lucene import LuceneSearcher

    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "documents"
        source.mkdir()
        (source / "documents.jsonl").write_bytes(documents.read_bytes())
        index = [
            sys.executable,
            "-m",
            "pyserini.index.lucene",
            "--collection",
            "JsonCollection",
            "--input",
            str(source),
        ]
        subprocess.run(
            [*index, "--index", f"{place}/index", "--generator", "DefaultLuceneDocumentGenerator"], check=True
        )
        searcher = LuceneSearcher(f"{place}/index")
        began = time.perf_counter()
        for query in queries:
            searcher.search(query, k=50)
        return 1000 * (time.perf_counter() - began) / len(queries)


def mean_ms(seconds: list[float]) -> float:
    return round(1000 * sum(seconds) / len(seconds), 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one pass over the goals, not five")
    parser.add_argument("--data", type=Path, default=None, help="folder in the official layout")
    arguments = parser.parse_args()
    shared = Path(os.environ.get("HANDOFF_SHARED") or Path(__file__).resolve().parents[2] / "shared")
    folder = arguments.data or (shared / "data" / "webshop")
    folder = folder if folder.is_dir() else None
    environment = WebShopEnvironment(data=None if folder is None else str(folder), on_unreadable="step")
    pages, pages_equal = replay(environment, recorded(folder, "reference_episodes.jsonl.gz"))
    rewards = recorded(folder, "reference_rewards.jsonl.gz")
    rewards_equal = sum(
        abs(environment.score_row({name: row[name] for name in ("goal", "asin", "options")})["reward"] - row["reward"])
        <= 1e-12
        for row in rewards
    )
    passes = [walk(environment) for _ in range(1 if arguments.quick else 5)]
    best = min(passes, key=lambda one: sum(map(sum, one[1].values())))
    won, seconds, queries = best
    distinct = len({tuple(sorted(terms(query))) for query in queries})
    print(f"{len(queries)} searches of {distinct} different queries, {len(seconds['other'])} other steps")
    original = pyserini(folder, queries)
    print("pyserini is not installed: the other side was not measured" if original is None else "pyserini was measured")
    result = {
        "pages": pages,
        "pages_equal": pages_equal,
        "rewards": len(rewards),
        "rewards_equal": rewards_equal,
        "goals": len(environment.tasks("test")),
        "won": won,
        "step_ms": mean_ms(seconds["search"] + seconds["other"]),
        "search_ms": mean_ms(seconds["search"]),
        "reset_ms": mean_ms(seconds["reset"]),
        "pyserini_search_ms": original,
        "data": "invented" if folder is None else "official",
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
