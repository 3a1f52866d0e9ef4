"""The compiled engine: the native engine's records byte for byte, and nothing from a game file is ever run."""

from __future__ import annotations

import os
import random
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.game_files import one_of_each_type
from kit.mini_games import GRAMMAR, mini_game
from kit.shared import shared_path

from handoff.canonical import canonical
from handoff.envs.alfworld.compiled import grammar
from handoff.envs.alfworld.compiled.demangling import demangle
from handoff.envs.alfworld.compiled.engine import CompiledGame
from handoff.envs.alfworld.compiled.grammar import Predicate
from handoff.envs.alfworld.compiled.queries import FactTable, Hierarchy, matches
from handoff.envs.alfworld.games.builtin import BuiltinSource
from handoff.envs.alfworld.games.files import TASK_TYPES, Game, load_game
from handoff.envs.alfworld.native.engine import NativeEngine
from handoff.errors import DataError
from handoff.records import Record, to_json


@pytest.fixture(scope="module")
def games() -> dict[str, Game]:
    return one_of_each_type()


@pytest.fixture(scope="module")
def compiled(games: dict[str, Game]) -> dict[str, CompiledGame]:
    return {kind: CompiledGame.of(game) for kind, game in games.items()}


def trouble(rng: random.Random, admissible: tuple[str, ...], last: str) -> str:
    some = rng.choice(admissible)
    return rng.choice(
        [
            "",
            " \n",
            some.upper(),
            f"  {some}\t",
            some.replace(" ", "  ", 1),
            f"{some}.",
            "xyzzy",
            "x" * 20000,
            "{o}",
            last,
        ]
    )


def side_by_side(game: Game, steps: int, seed: int) -> int:
    """Walk both engines and compare whole records; returns how many were compared."""
    rng = random.Random(seed)
    engine, episode = NativeEngine(), CompiledGame.of(game).episode()
    expected, actual, last = engine.reset(game), episode.reset(), ""
    for n in range(steps):
        assert canonical(to_json(actual)) == canonical(to_json(expected)), f"step {n}, after {last!r}"
        plan = episode.plan()
        draw = rng.random()
        if draw < 0.4 and plan:
            last = plan[0]
        elif draw < 0.75:
            last = rng.choice(actual.admissible)
        elif draw < 0.85:
            verbs = tuple(rng.sample(("use", "open", "close", "look", "examine", "move", "take", "inventory"), 3))
            last = rng.choice([c for c in actual.admissible if c.startswith(verbs)] or list(actual.admissible))
        else:
            last = trouble(rng, actual.admissible, last)
        expected, actual = engine.step(last), episode.step(last)
    assert canonical(to_json(actual)) == canonical(to_json(expected))
    return steps + 1


@pytest.mark.parametrize("kind", TASK_TYPES)
def test_records_equal_the_native_engines_on_random_planned_and_adversarial_commands(
    kind: str, games: dict[str, Game]
) -> None:
    assert side_by_side(games[kind], 14, 1) == 15


@pytest.mark.parametrize("seed", range(6))
def test_records_equal_the_native_engines_in_a_domain_and_grammar_unlike_alfworlds(seed: int) -> None:
    assert side_by_side(mini_game(seed), 20, seed) == 21


def test_records_equal_the_native_engines_on_a_game_of_the_release() -> None:
    folder = shared_path("data/alfworld/json_2.1.1/valid_seen")
    path = min(folder.rglob("game.tw-pddl"), key=lambda path: (path.stat().st_size, path))
    assert side_by_side(load_game(path), 30, 2) == 31


def test_walkthroughs_win_exactly_at_their_end_and_going_on_spoils_or_keeps_success(
    games: dict[str, Game], compiled: dict[str, CompiledGame]
) -> None:
    for kind, game in games.items():
        assert game.walkthrough is not None
        state, records = compiled[kind].replay(game.walkthrough)
        assert [record.won for record in records] == [False] * len(game.walkthrough) + [True]
        assert (records[-1].score, records[-1].done) == (1.0, True)
        assert compiled[kind].won(state)
    lamp = compiled["look_at_obj_in_light"].episode()
    for action in games["look_at_obj_in_light"].walkthrough or ():
        lamp.step(action)
    away = next(c for c in lamp.record.admissible if c.startswith("go to "))
    assert not lamp.step(away).won


def test_text_remembers_what_was_moved_where_the_dynamics_do_not() -> None:
    # Two paths to one planner state, one of which made in(x, a) false for a while; textworld's texts tell them apart.
    problem = (
        "(define (problem p) (:domain mini) (:objects me - agent a_bar_1 b_bar_1 - place x_bar_1 - thing)"
        " (:init (at me a_bar_1) (linked a_bar_1 b_bar_1) (linked b_bar_1 a_bar_1) (in x_bar_1 a_bar_1))"
        " (:goal (in x_bar_1 b_bar_1)))"
    )
    game = Game.of(mini_game(1).domain, GRAMMAR, problem)
    compiled = CompiledGame.of(game)
    there = ("take x 1", "go b 1", "drop x 1", "take x 1", "go a 1", "drop x 1", "go b 1")
    back = ("go b 1", "go a 1", "go b 1")
    (one, moved), (two, walked) = compiled.replay(there), compiled.replay(back)
    planner = (1 << len(compiled.dynamics.task.facts)) - 1
    assert one & planner == two & planner
    first, second = compiled.step(one, "look")[1], compiled.step(two, "look")[1]
    assert first.observation != second.observation
    engine = NativeEngine()
    for actions, record in ((there, first), (back, second)):
        engine.reset(game)
        for action in actions:
            engine.step(action)
        assert engine.step("look") == record
    assert moved[-1].admissible == walked[-1].admissible


# ------------------------------------------------------------------------------------------------- snapshots, sharing


def test_a_restored_snapshot_behaves_identically_ever_after(compiled: dict[str, CompiledGame]) -> None:
    rng = random.Random(4)
    episode = compiled["pick_heat_then_place_in_recep"].episode()
    for _ in range(12):
        episode.step(rng.choice(episode.record.admissible))
    snapshot = episode.snapshot()
    actions = []
    futures = []
    for _ in range(12):
        actions.append(rng.choice(episode.record.admissible))
        futures.append(episode.step(actions[-1]))
    other = compiled["pick_heat_then_place_in_recep"].episode()
    for play in (episode, other):
        assert play.restore(snapshot) == snapshot.record == play.record
        assert [play.step(action) for action in actions] == futures
    assert hash(other.snapshot()) == hash(episode.snapshot())
    assert other.snapshot() == episode.snapshot() != snapshot


def test_many_episodes_of_one_compiled_game_do_not_disturb_each_other(compiled: dict[str, CompiledGame]) -> None:
    game = compiled["pick_two_obj_and_place"]
    alone = []
    for seed in range(20):
        rng, episode = random.Random(seed), game.episode()
        records = [episode.reset()]
        for _ in range(15):
            records.append(episode.step(rng.choice(records[-1].admissible)))
        alone.append(records)
    generators = [random.Random(seed) for seed in range(20)]
    episodes = [game.episode() for _ in range(20)]
    together = [[episode.reset()] for episode in episodes]
    for _ in range(15):
        for rng, episode, records in zip(generators, episodes, together, strict=True):
            records.append(episode.step(rng.choice(records[-1].admissible)))
    assert together == alone


def test_distances_fall_by_one_along_a_shortest_plan(games: dict[str, Game], compiled: dict[str, CompiledGame]) -> None:
    for game in compiled.values():
        plan = game.plan(game.initial)
        assert game.distances(plan, 20) == list(range(len(plan), -1, -1))
        capped = [d if d <= 2 else None for d in range(len(plan), -1, -1)]
        assert game.distances(plan, 2) == capped


# ----------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("6*7", "BinOp"),
        ("__import__('os').system('true')", "Call"),
        ("o.__class__", "Attribute"),
        ("o.name.upper", "Attribute"),
        ("o[0]", "Subscript"),
        ("(lambda: 1)", "Lambda"),
        ("1", "Constant"),
        ("o.name if o else ''", "IfExp"),
        ("o.name +", "not allowed"),
    ],
)
def test_an_expression_outside_the_restricted_form_is_refused_by_name(text: str, named: str) -> None:
    with pytest.raises(DataError, match=named):
        grammar.expression(text)


def test_a_task_sentence_that_is_code_is_neither_run_nor_accepted(games: dict[str, Game], tmp_path: Path) -> None:
    game = games["pick_and_place_simple"]
    mark = tmp_path / "ran"
    for code in ("{6*7}", f"{{open('{mark}','w')}}", "{print(1)}"):
        poisoned = game.grammar.replace("Your task is to: ", f"Your task is to: {code} ")
        with pytest.raises(DataError, match="not allowed"):
            CompiledGame.compile(game.domain, poisoned, game.problem)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('"gone": [', '"lost": [', "no rule 'gone'"),
        ("not_shut(q:place)", "not_shut(q:nowhere)", "unknown type 'nowhere'"),
        ('template :: "look"', 'template :: "look [{x.name | in(x:thing, p:place)}]"', "depend on 'in'"),
        ("{x.name}. #scene#", "{y.name}. #scene#", "'y'"),
        ("action stare", "action gaze", "no text for the action 'stare'"),
        ('template :: "go {q}"', 'template :: "go #scene#"', "from other rules"),
    ],
)
def test_a_grammar_that_the_engine_does_not_know_is_refused_by_name(old: str, new: str, named: str) -> None:
    game = mini_game(1)
    assert old in GRAMMAR

    def play() -> None:
        compiled = CompiledGame.compile(game.domain, GRAMMAR.replace(old, new), game.problem)
        state = compiled.initial
        for action in compiled.admissible(state):  # texts are worked out when an action is first taken
            compiled.step(state, action)

    with pytest.raises(DataError, match=named):
        play()


# --------------------------------------------------------------------------------------------------------------- cache


def test_a_game_from_the_disk_cache_plays_as_the_one_just_compiled(
    games: dict[str, Game], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HANDOFF_CACHE", str(tmp_path))
    game = games["look_at_obj_in_light"]
    fresh = CompiledGame.of(game)
    (entry,) = (tmp_path / "games").iterdir()
    cached = CompiledGame.of(game)
    rng, actions, state = random.Random(5), [], fresh.initial
    for _ in range(40):
        actions.append(rng.choice(fresh.admissible(state)))
        state, _ = fresh.step(state, actions[-1])
    assert cached.replay(actions) == fresh.replay(actions)
    assert cached.certify(state, 2) == fresh.certify(state, 2)
    whole = entry.read_bytes()
    entry.write_bytes(whole[:-9])
    assert CompiledGame.of(game).replay(actions) == fresh.replay(actions)
    assert entry.read_bytes() == whole


def _reset_record(job: tuple[str, Game]) -> Record:
    os.environ["HANDOFF_CACHE"], game = job
    return CompiledGame.of(game).reset_record


def test_processes_that_compile_one_game_at_once_agree(tmp_path: Path) -> None:
    game = mini_game(1)
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as pool:
        first, *others = pool.map(_reset_record, [(str(tmp_path), game)] * 6)
    assert all(record == first for record in others)
    assert len(list((tmp_path / "games").iterdir())) == 1


# ------------------------------------------------------------------------------------------------- names and queries


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.builds(
            lambda kind, rest, tail: f"{kind}_bar_{rest}{tail}" if rest else kind,
            st.sampled_from(["desk", "sink", "bathtub", "agent1", "cd", "desklamp"]),
            st.text("abc123_", max_size=6),
            st.sampled_from(["", "_bar_sinkbasin", "_bar_bathtubbasin", "_minus_01_dot_5", "_plus_1_comma_2"]),
        ),
        max_size=12,
        unique=True,
    )
)
def test_names_equal_alfworlds_demangler(identifiers: list[str]) -> None:
    from alfworld.agents.utils.misc import Demangler
    from textworld.generator.game import EntityInfo

    demangler = Demangler(game_infos={i: EntityInfo(i, "object") for i in identifiers}, shuffle=False)
    assert demangle(identifiers) == {i: demangler.demangle_alfred_name(i) for i in identifiers}


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_answers_of_a_query_come_in_textworlds_order(data: st.DataObject) -> None:
    from textworld.logic import GameLogic, Placeholder, Proposition, Rule, State, Type, Variable
    from textworld.logic import Predicate as Theirs

    kinds = [("object", ()), ("agent", ("object",)), ("place", ("object",)), ("nook", ("place", "object"))]
    logic = GameLogic()
    for name, parents in kinds:
        logic.types.add(Type(name, parents))
    things = [(f"{kind[0]}{i}", kind) for kind, _ in kinds for i in range(2)]
    rows = data.draw(st.lists(st.tuples(st.sampled_from("pq"), st.sampled_from(things), st.sampled_from(things))))
    types = st.sampled_from([name for name, _ in kinds])
    kind_of = {name: data.draw(types) for name in "xyz"}
    query = data.draw(
        st.lists(
            st.tuples(st.sampled_from("pq"), st.sampled_from("xyz"), st.sampled_from("xyz")), min_size=1, max_size=3
        )
    )
    bound = {
        (name, kind_of[name]): data.draw(st.sampled_from(things)) for name in data.draw(st.sets(st.sampled_from("xy")))
    }
    state = State(logic, [Proposition(p, [Variable(*a), Variable(*b)]) for p, a, b in rows])
    rule = Rule("query", [Theirs(p, [Placeholder(a, kind_of[a]), Placeholder(b, kind_of[b])]) for p, a, b in query], [])
    expected = [
        {(ph.name, ph.type): (var.name, var.type) for ph, var in mapping.items()}
        for mapping in state.all_assignments(rule, {Placeholder(*k): Variable(*v) for k, v in bound.items()})
    ]
    table = FactTable()
    for predicate, a, b in rows:
        table.add(predicate, (a, b))
    mine = tuple(Predicate(p, ((a, kind_of[a]), (b, kind_of[b]))) for p, a, b in query)
    assert list(matches(mine, bound, table.facts, Hierarchy(kinds))) == expected


def test_a_grammar_is_parsed_once_for_all_sentences() -> None:
    """What is put together from the masked grammar is what parsing the whole text gives."""
    source = BuiltinSource()
    texts = {source.load(task).grammar for task in source.tasks("valid_seen")[::9]}
    assert len(texts) > 4
    for text in texts:
        assert grammar.parse(text) == grammar.parse_whole(text)
    # A sentence that is more than plain words is parsed as it stands.
    odd = text.replace("Your task is to: ", "Your task is to: #intro# ")
    assert odd != text
    assert grammar.parse(odd) == grammar.parse_whole(odd)
