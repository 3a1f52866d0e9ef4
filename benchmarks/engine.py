"""The compiled ALFWorld engine against the native one, both in one run on the same games and actions.

    python benchmarks/engine.py --data DIR [--quick]

* steps: per game, the same actions (random and planned) on both; the native engine on the first of them only, the
  compiled one on many episodes from a game freshly loaded, so that working out its texts is counted in;
* reset: a reset of a loaded game;
* load: native load and first reset, against compiling with nothing cached and loading from the disk cache;
* frontier: depth-2 checks along trajectories against every sequence applied through the planner library
  (`set_state_id`); the counting tables, made once per game, are in `prepare_ms`;
* distance: exact distance up to 4 at every state of the trajectories, and at the first state with empty tables;
* memory: resident size, measured in a separate process.

The native engine is textworld as it ships, nothing remembered between resets.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import random
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from alfworld_sample import StockTextworld, mixed_action, parser, sample, timed
from planner_library import PlannerLibrary

from handoff.envs.alfworld.compiled.dynamics import Dynamics
from handoff.envs.alfworld.compiled.engine import CompiledGame
from handoff.envs.alfworld.games.files import Game

STEPS = 50


def episodes(game: CompiledGame, number: int, rng: random.Random) -> list[list[str]]:
    """Actions of whole episodes, half planned and half random, walked past success."""
    sequences = []
    for _ in range(number):
        actions: list[str] = []
        state = game.initial
        while len(actions) < STEPS:
            actions.append(mixed_action(rng, game.admissible(state), game.plan(state), 0.5))
            state, _ = game.step(state, actions[-1])
        sequences.append(actions)
    return sequences


def load_and_reset(native: StockTextworld, game: Game) -> None:
    native.load(game)
    native.reset()


def play(game: CompiledGame, sequences: Sequence[Sequence[str]]) -> None:
    episode = game.episode()
    for actions in sequences:
        episode.reset()
        for action in actions:
            episode.step(action)


def resets(game: CompiledGame, times: int) -> None:
    episode = game.episode()
    for _ in range(times):
        episode.reset()


def resident_mb() -> float:
    gc.collect()
    with open("/proc/self/statm") as stream:
        return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def memory(games: list[Game]) -> tuple[float, float]:
    """(MB per game after one episode of each, MB per 1,000 episodes in the middle of one game)."""
    CompiledGame.of(games[0])  # loads the libraries
    begin = resident_mb()
    loaded = []
    for game in games[1:]:
        compiled = CompiledGame.of(game)
        play(compiled, episodes(compiled, 1, random.Random(0)))
        loaded.append(compiled)
    per_game = (resident_mb() - begin) / max(len(loaded), 1)
    compiled = loaded[-1]
    sequences = episodes(compiled, 20, random.Random(1))
    play(compiled, sequences)
    begin = resident_mb()
    many = []
    for i in range(5000):
        episode = compiled.episode()
        for action in sequences[i % 20][: 5 + i % 40]:
            episode.step(action)
        many.append(episode)
    return per_game, (resident_mb() - begin) / 5


def one_game(game: Game, number: int, native: StockTextworld, native_steps: int, trajectories: int) -> dict[str, Any]:
    row: dict[str, Any] = {}
    cache = os.environ.get("HANDOFF_CACHE")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HANDOFF_CACHE"] = folder
        row["compile_s"], first = timed(CompiledGame.of, game)
        row["load_s"], loaded = timed(CompiledGame.of, game)
    if cache is None:
        del os.environ["HANDOFF_CACHE"]
    else:
        os.environ["HANDOFF_CACHE"] = cache
    with contextlib.redirect_stdout(sys.stderr):
        argv = sys.argv
        row["native_load_s"], _ = timed(load_and_reset, native, game)
        row["native_reset_s"], _ = timed(native.reset)
        rng = random.Random(number)
        sequences = episodes(first, 8 if native_steps < 10 else 40, rng)
        seconds, _ = timed(native.play, sequences[0][:native_steps])
        sys.argv = argv
    row["native_step_s"] = seconds / native_steps
    seconds, _ = timed(play, loaded, sequences)
    row["step_s"] = seconds / sum(map(len, sequences))
    seconds, _ = timed(resets, loaded, 2000)
    row["reset_s"] = seconds / 2000

    dynamics = Dynamics.compile(game.domain, game.grammar, game.problem)
    row["prepare_s"], _ = timed(dynamics.prepare)
    library = PlannerLibrary(game.domain, game.problem, dynamics)
    root = library.state_id()
    mine: list[float] = []
    theirs: list[float] = []
    for actions in sequences[:trajectories]:
        library.go_back(root)
        state = dynamics.initial
        for step, action in enumerate(actions[:24]):
            if dynamics.won(state):
                break
            seconds, certificate = timed(dynamics.certify, state, 2)
            mine.append(seconds)
            if step % 4 == 0:
                seconds, other = timed(library.certify, 2)
                theirs.append(seconds)
                assert certificate == other
            state = dynamics.apply(state, action)
            library.apply_action(action)
    row["check_s"], row["library_check_s"] = statistics.mean(mine), statistics.mean(theirs)
    fresh = Dynamics.compile(game.domain, game.grammar, game.problem)
    row["distance_cold_s"], _ = timed(fresh.distance, fresh.initial, 4)
    distances = []
    for actions in sequences[:trajectories]:
        state = fresh.initial
        for action in actions[:24]:
            distances.append(timed(fresh.distance, state, 4)[0])
            state = fresh.apply(state, action)
    row["distance_s"] = statistics.median(distances)
    return row


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--per-type", type=int, default=2, help="games of each task type (default: 2)")
    arguments = options.parse_args()
    games = list(sample(arguments.data, 1 if arguments.quick else arguments.per_type, seed=11))
    native = StockTextworld()
    rows = []
    for number, (task, game) in enumerate(games):
        row = one_game(game, number, native, 6 if arguments.quick else 20, 2 if arguments.quick else 8)
        rows.append(row)
        print(
            f"{task.name.split('/')[0][:54]:54}"
            f"  step {row['native_step_s'] * 1e3:6.1f} ms / {row['step_s'] * 1e6:5.1f} us"
            f"  reset {row['native_reset_s'] * 1e3:6.0f} ms / {row['reset_s'] * 1e6:4.2f} us"
            f"  load {row['native_load_s']:4.2f} / {row['compile_s']:4.2f} / {row['load_s']:5.3f} s"
            f"  check {row['library_check_s'] * 1e3:6.2f} / {row['check_s'] * 1e3:6.4f} ms",
            flush=True,
        )

    def median(value: Callable[[dict[str, Any]], float], digits: int = 4) -> float:
        return round(statistics.median(map(value, rows)), digits)

    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        per_game, per_thousand = pool.submit(memory, [game for _, game in games]).result()
    print(
        json.dumps(
            {
                "ratio_steps": median(lambda row: row["native_step_s"] / row["step_s"], 0),
                "ratio_reset": median(lambda row: row["native_reset_s"] / row["reset_s"], 0),
                "ratio_frontier_vs_libdownward": median(lambda row: row["library_check_s"] / row["check_s"], 1),
                "ms_distance_4": median(lambda row: row["distance_s"] * 1e3),
                "ms_distance_4_empty_tables": median(lambda row: row["distance_cold_s"] * 1e3, 3),
                "mb_per_game": round(per_game, 2),
                "mb_per_1000_episodes": round(per_thousand, 3),
                "ratio_first_load": median(lambda row: row["native_load_s"] / row["compile_s"], 2),
                "ratio_load_from_cache": median(lambda row: row["native_load_s"] / row["load_s"], 1),
                "us_per_step": median(lambda row: row["step_s"] * 1e6, 2),
                "ms_per_check": median(lambda row: row["check_s"] * 1e3),
                "prepare_ms": median(lambda row: row["prepare_s"] * 1e3, 1),
                "games": len(rows),
            }
        )
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
