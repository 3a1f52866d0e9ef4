"""The depth-2 frontier check: compiled dynamics against the planner library and against native reset + replay.

    python benchmarks/frontier.py --data DIR [--quick]

Every check is exhaustive from one state of a trajectory (half planned, half random actions, up to success).  Three
ways, in one run, on the same states:

* compiled: `Dynamics.certify`, tables warm from the trajectory's earlier steps and nothing else;
* libdownward: every action sequence applied through the planner library, `set_state_id` to go back;
* replay: textworld as it ships, one reset and one replay per action sequence.  Measured on a few first and second
  actions per game, and extrapolated to all sequences of the check: the full check takes about half an hour per state.

`compile_ms` is the compiled side's cost per game with the translation cached; `ms_per_check_with_compile` spreads it
over the trajectory.  The certificates of the first two are compared, and must be equal.
"""

from __future__ import annotations

import contextlib
import json
import random
import statistics
import sys
import time

from alfworld_sample import StockTextworld, mixed_action, parser, sample, timed
from planner_library import PlannerLibrary

from handoff.envs.alfworld.compiled.dynamics import Dynamics
from handoff.records import Certificate

DEPTH = 2


def walk(dynamics: Dynamics, steps: int, rng: random.Random) -> list[tuple[str, ...]]:
    """The action prefixes of the states of one trajectory, reset included, success excluded."""
    prefixes: list[tuple[str, ...]] = [()]
    state = dynamics.initial
    while len(prefixes) < steps:
        action = mixed_action(rng, dynamics.admissible(state), dynamics.plan(state), 0.5)
        state = dynamics.apply(state, action)
        if dynamics.won(state):
            break
        prefixes.append((*prefixes[-1], action))
    return prefixes


def replay(textworld: StockTextworld, actions: tuple[str, ...]) -> float:
    """Seconds for a reset and the actions."""
    argv = sys.argv
    begin = time.perf_counter()
    textworld.reset()
    textworld.play(actions)
    sys.argv = argv
    return time.perf_counter() - begin


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--per-type", type=int, default=4, help="games of each task type (default: 4)")
    options.add_argument("--steps", type=int, default=24, help="states checked per game, at most (default: 24)")
    arguments = options.parse_args()
    per_type, steps = (1, 10) if arguments.quick else (arguments.per_type, arguments.steps)
    native = StockTextworld()
    rows: list[dict[str, float]] = []
    checks: list[float] = []
    for number, (task, game) in enumerate(sample(arguments.data, per_type, seed=20)):
        rng = random.Random(number)
        prefixes = walk(Dynamics.compile(game.domain, game.grammar, game.problem), steps, rng)
        # A fresh one, so that planning the walk has not filled its tables.
        compile_s, dynamics = timed(Dynamics.compile, game.domain, game.grammar, game.problem)
        library = PlannerLibrary(game.domain, game.problem, dynamics)
        state = dynamics.initial
        ours: list[float] = []
        theirs: list[float] = []
        certificates: list[Certificate] = []
        dynamics.prepare()
        for i, prefix in enumerate(prefixes):
            if i:
                state = dynamics.apply(state, prefix[-1])
                library.apply_action(prefix[-1])
            seconds, mine = timed(dynamics.certify, state, DEPTH)
            ours.append(seconds)
            seconds, other = timed(library.certify, DEPTH)
            theirs.append(seconds)
            certificates.append(mine)
            if mine != other:
                print(f"{task.name}: certificates differ after {prefix}: {mine} against {other}")
                return 1
        # Replay: one first action and one pair of actions from the middle of the trajectory, extrapolated.
        native.load(game)
        middle = len(prefixes) // 2
        with contextlib.redirect_stdout(sys.stderr):
            first = replay(native, (*prefixes[middle], "look"))
            second = replay(native, (*prefixes[middle], "look", "inventory"))
        tried = [*certificates[middle].tried, 0]
        replay_s = first * tried[0] + second * tried[1]
        checks += ours
        rows.append(
            {
                "compiled_ms": statistics.mean(ours) * 1e3,
                "compile_ms": compile_s * 1e3,
                "library_ms": statistics.mean(theirs) * 1e3,
                "replay_s": replay_s,
                "vs_library": statistics.mean(theirs) / statistics.mean(ours),
                "vs_replay": replay_s / ours[middle],
                "states": len(prefixes),
            }
        )
        row = rows[-1]
        print(
            f"{task.name.split('/')[0][:58]:58} {len(prefixes):3} states  compiled {row['compiled_ms']:7.3f} ms  "
            f"library {row['library_ms']:7.2f} ms ({row['vs_library']:5.0f}x)  "
            f"replay {replay_s / 60:5.1f} min, extrapolated ({row['vs_replay']:,.0f}x)"
        )

    def over_games(key: str) -> float:
        return statistics.median(row[key] for row in rows)

    print(
        json.dumps(
            {
                "ratio_vs_libdownward": round(over_games("vs_library"), 1),
                "ratio_vs_replay": round(over_games("vs_replay")),
                "ms_per_check": round(over_games("compiled_ms"), 4),
                "ms_per_check_median_state": round(statistics.median(checks) * 1e3, 4),
                "ms_per_check_libdownward": round(over_games("library_ms"), 3),
                "ms_per_check_with_compile": round(
                    statistics.median(row["compiled_ms"] + row["compile_ms"] / row["states"] for row in rows), 3
                ),
                "minutes_per_check_replay_extrapolated": round(over_games("replay_s") / 60, 1),
                "compile_ms": round(over_games("compile_ms"), 1),
                "states": sum(int(row["states"]) for row in rows),
                "games": len(rows),
            }
        )
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
