"""The compiled dynamics: equal to the planner's own library and to the native engine, and safe to cache."""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import reduce
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from kit.game_files import one_of_each_type
from kit.mini_games import DOMAIN, GRAMMAR, mini_game
from kit.planner_library import PlannerLibrary

from handoff.envs.alfworld.compiled import cache, sas
from handoff.envs.alfworld.compiled.dynamics import Dynamics
from handoff.envs.alfworld.compiled.engine import CompiledGame
from handoff.envs.alfworld.games.files import TASK_TYPES, Game
from handoff.envs.alfworld.native.engine import NativeEngine
from handoff.errors import DataError
from handoff.records import Certificate, Record


@pytest.fixture(scope="module")
def games() -> dict[str, Game]:
    return one_of_each_type("valid_seen")


def dynamics_of(game: Game) -> Dynamics:
    return Dynamics.compile(game.domain, game.grammar, game.problem)


def after(dynamics: Dynamics, actions: Sequence[str]) -> int:
    """The state that the actions lead to from the start."""
    return reduce(dynamics.apply, actions, dynamics.initial)


def facts_of(dynamics: Dynamics, state: int) -> set[tuple[str, ...]]:
    return {fact for i, fact in enumerate(dynamics.task.facts) if state >> i & 1}


def walk(dynamics: Dynamics, steps: int, rng: random.Random) -> Iterator[tuple[int, str]]:
    """States and the action that leads on from each: planned or random, success walked past."""
    state = dynamics.initial
    for _ in range(steps):
        plan = dynamics.plan(state)
        action = plan[0] if plan and rng.random() < 0.4 else rng.choice(dynamics.admissible(state))
        yield state, action
        state = dynamics.apply(state, action)


@pytest.mark.parametrize("kind", TASK_TYPES)
def test_states_commands_and_depth_2_certificates_equal_the_planner_librarys(kind: str, games: dict[str, Game]) -> None:
    game = games[kind]
    dynamics = dynamics_of(game)
    library = PlannerLibrary(game.domain, game.problem, dynamics)
    changing = set(dynamics.task.facts)
    checked = 0
    for state, action in walk(dynamics, 16, random.Random(kind)):
        assert facts_of(dynamics, state) == library.facts() & changing
        assert dynamics.admissible(state) == library.admissible()
        assert dynamics.won(state) == library.won()
        assert dynamics.certify(state, 2) == library.certify(2)
        checked += 1
        library.apply_action(action)
    assert checked == 16


@pytest.mark.parametrize("seed", range(9))
def test_certificates_of_any_depth_equal_plain_enumeration_in_a_domain_unlike_alfworlds(seed: int) -> None:
    game = mini_game(seed)
    dynamics = dynamics_of(game)
    library = PlannerLibrary(game.domain, game.problem, dynamics)
    distances: set[int | None] = set()
    for state, action in walk(dynamics, 12, random.Random(seed)):
        assert dynamics.admissible(state) == library.admissible()
        for depth in (1, 2, 3, 4):
            certificate = dynamics.certify(state, depth)
            assert certificate == library.certify(depth)
            distances.add(certificate.distance)
        library.apply_action(action)
    assert distances


def native_certificate(game: Game, prefix: Sequence[str], depth: int) -> Certificate:
    """By reset and replay of every action sequence on textworld itself."""
    engine = NativeEngine()

    def replay(path: Sequence[str]) -> Record:
        record = engine.reset(game)
        for action in (*prefix, *path):
            record = engine.step(action)
        return record

    level = [((), replay(()))]
    if level[0][1].won:
        return Certificate(depth, False, 0, ())
    tried: list[int] = []
    for _ in range(depth):
        level = [((*path, c), replay((*path, c))) for path, record in level for c in record.admissible]
        tried.append(len(level))
        wins = [path for path, record in level if record.won]
        if wins:
            bridges = tuple(sorted({path[0] for path in wins}))
            return Certificate(depth, len(tried) == depth, len(tried), tuple(tried), bridges, min(wins))
    return Certificate(depth, False, None, tuple(tried))


def test_a_certificate_equals_native_reset_and_replay_of_every_action(games: dict[str, Game]) -> None:
    game = min(games.values(), key=lambda game: len(game.problem))
    dynamics = dynamics_of(game)
    prefix = dynamics.plan(dynamics.initial)[:-1]
    state = after(dynamics, prefix)
    certificate = dynamics.certify(state, 1)
    assert certificate.member
    assert certificate == native_certificate(game, prefix, 1)


@pytest.mark.parametrize("seed", [4, 7])
def test_a_certificate_of_depth_2_equals_native_reset_and_replay_of_every_pair(seed: int) -> None:
    game = mini_game(seed)
    dynamics = dynamics_of(game)
    plan = dynamics.plan(dynamics.initial)
    for n, action in enumerate(plan[-2:]):
        prefix = plan[: max(len(plan) - 2, 0) + n]
        assert dynamics.certify(after(dynamics, prefix), 2) == native_certificate(game, prefix, 2), action


def test_depth_2_paths_win_natively_and_what_is_no_bridge_does_not(games: dict[str, Game]) -> None:
    game = min(games.values(), key=lambda game: len(game.problem))
    dynamics = dynamics_of(game)
    engine = NativeEngine()
    prefix = dynamics.plan(dynamics.initial)[:-2]
    state = after(dynamics, prefix)
    certificate = dynamics.certify(state, 2)
    assert certificate.member

    def ends_won(first: str, second: str) -> bool:
        engine.reset(game)
        for action in (*prefix, first):
            engine.step(action)
        return engine.step(second).won

    assert ends_won(*certificate.path)
    rng = random.Random(3)
    others = [action for action in dynamics.admissible(state) if action not in certificate.bridges]
    for first in rng.sample(others, 4):
        for second in rng.sample(dynamics.admissible(dynamics.apply(state, first)), 2):
            assert not ends_won(first, second)


@pytest.mark.parametrize("kind", TASK_TYPES)
def test_a_plan_wins_natively_exactly_at_its_end_from_a_state_far_off_any_plan(
    kind: str, games: dict[str, Game]
) -> None:
    game = games[kind]
    dynamics = dynamics_of(game)
    engine = NativeEngine()
    rng = random.Random(kind)
    state, record = dynamics.initial, engine.reset(game)
    for _ in range(6):
        action = rng.choice(record.admissible)
        state, record = dynamics.apply(state, action), engine.step(action)
    plan = dynamics.plan(state)
    assert plan
    assert dynamics.distance(state, len(plan)) == len(plan)
    assert dynamics.distance(state, len(plan) - 1) is None
    assert [engine.step(action).won for action in plan] == [False] * (len(plan) - 1) + [True]


def test_a_state_that_cannot_be_won_has_no_plan() -> None:
    problem = (
        "(define (problem p) (:domain mini) (:objects me - agent a_bar_1 b_bar_1 - place x_bar_1 y_bar_1 - thing)"
        " (:init (at me a_bar_1) (linked a_bar_1 b_bar_1) (linked b_bar_1 a_bar_1) (in x_bar_1 a_bar_1)"
        " (in y_bar_1 a_bar_1) (sticky y_bar_1)) (:goal (in x_bar_1 b_bar_1)))"
    )
    dynamics = Dynamics.compile(DOMAIN, GRAMMAR, problem)
    assert dynamics.plan(dynamics.initial) == ("take x 1", "go b 1", "drop x 1")
    stuck = dynamics.apply(dynamics.initial, "take y 1")
    assert dynamics.plan(stuck) == ()
    assert dynamics.certify(stuck, 6).distance is None


def test_of_two_actions_behind_one_command_the_native_engines_choice_is_taken() -> None:
    problem = (
        "(define (problem p) (:domain mini) (:objects me - agent a_bar_1 - place x_bar_1 y_bar_1 - thing)"
        " (:init (at me a_bar_1) (in x_bar_1 a_bar_1) (switch x_bar_1) (in y_bar_1 a_bar_1)) (:goal (lit x_bar_1)))"
    )
    game = Game.of(DOMAIN, GRAMMAR, problem)
    dynamics = dynamics_of(game)
    assert dynamics.certify(dynamics.initial, 1).path == ("use x 1",)  # flicked, not rubbed
    engine = NativeEngine()
    engine.reset(game)
    assert engine.step("use x 1").won


def test_text_that_is_no_command_leaves_the_state_and_spaces_around_one_do_not_matter(games: dict[str, Game]) -> None:
    dynamics = dynamics_of(games["look_at_obj_in_light"])
    state = dynamics.initial
    some = next(action for action in dynamics.admissible(state) if action.startswith("go to"))
    for text in ("", "  ", some.upper(), some + ".", some.replace(" ", "  "), "xyzzy"):
        assert dynamics.apply(state, text) == state
    assert dynamics.apply(state, f" {some}\n") == dynamics.apply(state, some) != state


def test_a_won_state_is_at_distance_0_and_is_not_searched(games: dict[str, Game]) -> None:
    dynamics = dynamics_of(games["pick_and_place_simple"])
    state = after(dynamics, dynamics.plan(dynamics.initial))
    assert dynamics.certify(state, 2) == Certificate(2, False, 0, ())
    assert dynamics.plan(state) == ()
    with pytest.raises(ValueError, match="at least 1"):
        dynamics.certify(state, 0)


# ---------------------------------------------------------------------------------------------------- translation


def test_the_host_keeps_its_arguments_and_its_output_also_when_the_planner_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HANDOFF_CACHE", str(tmp_path))
    argv, stdout = list(sys.argv), sys.stdout
    game = mini_game(1)
    sas.translate(game.domain, game.problem)
    with pytest.raises(DataError, match="not accepted by the planner"):
        sas.translate(game.domain, game.problem[:-20])
    with pytest.raises(DataError, match="no action"):
        sas.translate(game.domain, game.problem.replace("(at me", "(seen"))
    assert sys.argv == argv
    assert sys.stdout is stdout


def test_a_damaged_cache_entry_is_made_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HANDOFF_CACHE", str(tmp_path))
    game = mini_game(2)
    first = sas.translate(game.domain, game.problem)
    (entry,) = (tmp_path / "sas").iterdir()
    whole = entry.read_bytes()
    for damaged in (b"", b"not a digest\n{}", whole[:-3], whole[:80] + b"X" + whole[81:]):
        entry.write_bytes(damaged)
        assert sas.translate(game.domain, game.problem) == first
        assert entry.read_bytes() == whole


def test_two_cache_entries_that_were_exchanged_are_both_made_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HANDOFF_CACHE", str(tmp_path))
    games = [mini_game(2), mini_game(4)]
    before = [CompiledGame.of(game).reset_record for game in games]
    assert before[0] != before[1]
    contents = []
    for kind in ("games", "sas"):
        one, other = sorted((tmp_path / kind).iterdir())
        contents += [(one, one.read_bytes()), (other, other.read_bytes())]
        one.rename(tmp_path / "aside")
        other.rename(one)
        (tmp_path / "aside").rename(other)
    assert [CompiledGame.of(game).reset_record for game in games] == before
    assert all(path.read_bytes() == content for path, content in contents)


def _change(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    inside = data
    for part in path[:-1]:
        inside = inside[part]
    inside[path[-1]] = value
    return data


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("games", (), []),
        ("games", (), None),
        ("games", ("task",), 3),
        ("games", ("useless",), [10**6]),
        ("games", ("task", "words"), {}),
        ("games", ("task", "words", 0), 7),
        ("games", ("task", "ops", 0), "an operator"),
        ("games", ("task", "ops", 0, 4), [10**12]),
        ("games", ("task", "ops", 0, 4), [-1]),
        ("games", ("task", "places"), 10**9),
        ("games", ("task", "goal"), [[[0]]]),
        ("games", ("task", "names"), []),
        ("games", ("grammar", "rules"), []),
        ("games", ("grammar", "actions", "walk"), [[["eval", "__import__('os')"]], []]),
        ("games", ("grammar", "actions", "walk"), [[["value", [[["x", "__class__"]]]]], []]),
        ("sas", (), "text"),
        ("sas", ("initial",), [1, 0]),
        ("sas", ("initial",), []),
        ("sas", ("goal",), [[10**6, 0]]),
        ("sas", ("operators", 0, 0), 3),
        ("sas", ("objects",), [["one"]]),
        ("sas", ("more",), 1),
    ],
)
def test_an_entry_of_another_shape_is_made_again_though_its_sum_is_right(
    kind: str, path: tuple[Any, ...], value: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HANDOFF_CACHE", str(tmp_path))
    game = mini_game(2)
    before = CompiledGame.of(game).reset_record
    (entry,) = (tmp_path / kind).iterdir()
    whole = entry.read_bytes()
    data = json.loads(zlib.decompress(whole.partition(b"\n")[2]))
    cache.store(kind, entry.name.partition(".")[0], _change(data, path, value) if path else value)
    assert entry.read_bytes() != whole
    if kind == "sas":
        shutil.rmtree(tmp_path / "games")
    assert CompiledGame.of(game).reset_record == before
    assert entry.read_bytes() == whole


def test_an_entry_that_unpacks_to_more_than_memory_holds_is_not_unpacked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HANDOFF_CACHE", str(tmp_path))
    monkeypatch.setattr(cache, "MOST_BYTES", 1000)
    cache.store("any", "ab", "x" * 990)
    assert cache.load("any", "ab", str, len) == 990
    cache.store("any", "ab", "x" * 1000)
    assert cache.load("any", "ab", str, len) is None


def test_a_cache_folder_that_cannot_be_written_only_loses_the_caching(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    monkeypatch.setenv("HANDOFF_CACHE", str(in_the_way / "below"))
    game = mini_game(2)
    assert sas.translate(game.domain, game.problem) == sas.translate(game.domain, game.problem)


def test_the_cache_folder_is_the_named_one_else_the_users_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("HANDOFF_CACHE", raising=False)
    assert cache.folder() == tmp_path / "xdg" / "handoff"
    monkeypatch.setenv("HANDOFF_CACHE", str(tmp_path / "own"))
    assert cache.folder() == tmp_path / "own"


def _store_often(folder: str) -> int:
    os.environ["HANDOFF_CACHE"] = folder
    end = time.monotonic() + 1.0
    torn = 0
    while time.monotonic() < end:
        cache.store("race", "ab", {"numbers": list(range(3000))})
        torn += cache.load("race", "ab", {"numbers": [int]}, dict) != {"numbers": list(range(3000))}
    return torn


def test_concurrent_writers_never_leave_a_torn_entry(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        assert list(pool.map(_store_often, [str(tmp_path)] * 4)) == [0, 0, 0, 0]
    assert [path.name for path in (tmp_path / "race").iterdir()] == ["ab.json.z"]
