"""The depth-2 frontier check: compiled dynamics against the planner library and against native reset + replay.

    python benchmarks/frontier.py --data DIR [--quick]

Every check is exhaustive from one state of a trajectory (half planned, half random commands, up to success).  Three
ways, in one run, on the same states:

* compiled: `Dynamics.certify`, tables warm from the trajectory's earlier steps and nothing else;
* libdownward: every action sequence applied through the planner library, `set_state_id` to go back;
* replay: textworld as it ships, one reset and one replay per action sequence.  Measured on a few first and second
  actions per game, and extrapolated to all sequences of the check: the full check takes about half an hour per state.

`compile_ms` is what the compiled side spends once per game with the translation cached, `ms_per_check_with_compile`
spreads it over the trajectory.  The certificates of the first two are compared, and must be equal.
"""

from __future__ import annotations

import contextlib
import json
import random
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

from alfworld_sample import mixed_action, parser, sample
from planner_library import PlannerLibrary

from handoff.envs.alfworld.compiled.dynamics import Dynamics
from handoff.envs.alfworld.games.files import Game
from handoff.records import Certificate

DEPTH = 2
T = TypeVar("T")


def walk(dynamics: Dynamics, steps: int, rng: random.Random) -> list[tuple[str, ...]]:
    """The action prefixes of the states of one trajectory, reset included, success excluded."""
    prefixes: list[tuple[str, ...]] = [()]
    state = dynamics.initial
    while len(prefixes) < steps:
        command = mixed_action(rng, dynamics.admissible(state), dynamics.plan(state), 0.5)
        state = dynamics.apply(state, command)
        if dynamics.won(state):
            break
        prefixes.append((*prefixes[-1], command))
    return prefixes


class Native:
    """textworld's environment under alfworld's demangler, nothing remembered between resets."""

    def __init__(self) -> None:
        import textworld
        from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
        from textworld.envs.pddl import PddlEnv

        self._env = AlfredDemangler(PddlEnv(textworld.EnvInfos(admissible_commands=True, won=True)), shuffle=False)

    def load(self, game: Game) -> None:
        self._env.load({"pddl_domain": game.domain, "grammar": game.grammar, "pddl_problem": game.problem})

    def replay(self, commands: tuple[str, ...]) -> float:
        """Seconds for a reset and the commands."""
        argv = sys.argv
        begin = time.perf_counter()
        self._env.reset()
        for command in commands:
            self._env.step(command)
        sys.argv = argv
        return time.perf_counter() - begin


def timed(call: Callable[..., T], *arguments: Any) -> tuple[float, T]:
    """Seconds, and what the call returned."""
    begin = time.perf_counter()
    result = call(*arguments)
    return time.perf_counter() - begin, result


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--per-type", type=int, default=4, help="games of each task type (default: 4)")
    options.add_argument("--steps", type=int, default=24, help="states checked per game, at most (default: 24)")
    given = options.parse_args()
    per_type, steps = (1, 10) if given.quick else (given.per_type, given.steps)
    native = Native()
    rows: list[dict[str, float]] = []
    checks: list[float] = []
    for number, (task, game) in enumerate(sample(given.data, per_type, seed=20)):
        rng = random.Random(number)
        prefixes = walk(Dynamics.compile(game.domain, game.grammar, game.problem), steps, rng)
        # A fresh one, so that planning the walk has not filled its tables.
        compile_s, dynamics = timed(Dynamics.compile, game.domain, game.grammar, game.problem)
        library = PlannerLibrary(game.domain, game.problem, dynamics)
        state = dynamics.initial
        ours: list[float] = []
        theirs: list[float] = []
        found: list[Certificate] = []
        dynamics.prepare()
        for i, prefix in enumerate(prefixes):
            if i:
                state = dynamics.apply(state, prefix[-1])
                library.apply_action(prefix[-1])
            seconds, mine = timed(dynamics.certify, state, DEPTH)
            ours.append(seconds)
            seconds, other = timed(library.certify, DEPTH)
            theirs.append(seconds)
            found.append(mine)
            if mine != other:
                print(f"{task.name}: certificates differ after {prefix}: {mine} against {other}")
                return 1
        # Replay: one first action and one pair of actions from the middle of the trajectory, extrapolated.
        native.load(game)
        middle = len(prefixes) // 2
        with contextlib.redirect_stdout(sys.stderr):
            first = native.replay((*prefixes[middle], "look"))
            second = native.replay((*prefixes[middle], "look", "inventory"))
        tried = [*found[middle].tried, 0]
        replay = first * tried[0] + second * tried[1]
        checks += ours
        rows.append(
            {
                "compiled_ms": statistics.mean(ours) * 1e3,
                "compile_ms": compile_s * 1e3,
                "library_ms": statistics.mean(theirs) * 1e3,
                "replay_s": replay,
                "vs_library": statistics.mean(theirs) / statistics.mean(ours),
                "vs_replay": replay / ours[middle],
                "states": len(prefixes),
            }
        )
        row = rows[-1]
        print(
            f"{task.name.split('/')[0][:58]:58} {len(prefixes):3} states  compiled {row['compiled_ms']:7.3f} ms  "
            f"library {row['library_ms']:7.2f} ms ({row['vs_library']:5.0f}x)  "
            f"replay {replay / 60:5.1f} min, extrapolated ({row['vs_replay']:,.0f}x)"
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
