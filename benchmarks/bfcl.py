"""BFCL multi_turn_base: verdicts on gold and broken calls, and the milliseconds per check.

    python benchmarks/bfcl.py [--quick]

* valid_gold, invalid_dropped: tasks whose gold calls are valid, and tasks that are invalid without the last of them;
* silent_last: tasks that are valid with gold calls in all turns but the last, and none in that;
* ms_per_check: one check of gold calls, parsed from their texts and written again, against native_ms_per_check, the
  benchmark's checker alone on the same calls;
* ms_per_call: one gold call executed by the engine.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Callable

from handoff.envs.bfcl.calls import parse_call
from handoff.envs.bfcl.checker import check
from handoff.envs.bfcl.engine import Instances
from handoff.envs.bfcl.package import benchmark, checker, utilities
from handoff.envs.bfcl.rounds import as_rounds

NAMES = (f"benchmark{number}x" for number in itertools.count())


def valid(id: str, turns: list[list[str]]) -> bool:
    return check(id, as_rounds(id, turns)).valid


def without_last_call(turns: list[list[str]]) -> list[list[str]]:
    copies = [list(calls) for calls in turns]
    next(calls for calls in reversed(copies) if calls).pop()
    return copies


def native(id: str) -> bool:
    """The benchmark's checker alone, on texts that it evaluates."""
    name, gold = next(NAMES), benchmark().answers[id]
    rounds = [[calls] if calls else [] for calls in gold]
    result = checker().multi_turn_checker(rounds, gold, benchmark().entries[id], "multi_turn_base", name)
    module = vars(utilities())
    for key in [key for key in module if key.startswith(name)]:
        del module[key]
    return bool(result["valid"])


def milliseconds(call: Callable[[str], object], ids: list[str], times: int) -> float:
    """The least of ``times`` means over ``ids``."""
    means = []
    for _ in range(times):
        began = time.perf_counter()
        for id in ids:
            call(id)
        means.append((time.perf_counter() - began) / len(ids))
    return 1000 * min(means)


def play(id: str) -> None:
    instances = Instances(benchmark().entries[id])
    for calls in benchmark().answers[id]:
        for text in calls:
            instances.execute(parse_call(text))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="every tenth task, timed once")
    quick = parser.parse_args().quick
    data = benchmark()
    ids, times = (list(data.entries)[::10], 1) if quick else (list(data.entries), 5)
    calls = sum(len(turn) for id in ids for turn in data.answers[id])
    gold = sum(valid(id, data.answers[id]) for id in ids)
    dropped = sum(not valid(id, without_last_call(data.answers[id])) for id in ids)
    silent = sum(valid(id, [*data.answers[id][:-1], []]) for id in ids)
    ours = milliseconds(lambda id: valid(id, data.answers[id]), ids, times)
    theirs = milliseconds(native, ids, times)
    played = milliseconds(play, ids, times) * len(ids) / calls
    print(f"{len(ids)} tasks, {calls} gold calls, bfcl-eval {data.version}")
    print(f"gold valid {gold}, invalid without the last call {dropped}, valid with a silent last turn {silent}")
    print(f"a check {ours:.2f} ms, {theirs:.2f} ms by the benchmark's checker alone: {ours / theirs:.2f} times")
    print(
        json.dumps(
            {
                "tasks": len(ids),
                "valid_gold": gold,
                "invalid_dropped": dropped,
                "silent_last": silent,
                "ms_per_check": round(ours, 3),
                "native_ms_per_check": round(theirs, 3),
                "ms_per_call": round(played, 3),
            }
        )
    )


if __name__ == "__main__":
    main()
