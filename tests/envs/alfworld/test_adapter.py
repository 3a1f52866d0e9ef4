"""The ALFWorld adapter on the real engine: records, isolation, and the study from the command line."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import zlib
from pathlib import Path
from types import SimpleNamespace

import pytest
from kit.audits import by_name
from kit.command import handoff
from kit.game_files import one_of_each_type

from handoff import registry
from handoff.envs.alfworld.adapter import AlfworldEnvironment
from handoff.envs.alfworld.compiled import cache
from handoff.envs.alfworld.compiled.dynamics import Dynamics
from handoff.envs.alfworld.games.files import Game
from handoff.envs.alfworld.native import expressions, memory
from handoff.envs.alfworld.native.engine import NativeEngine
from handoff.errors import DataError, EnvironmentFault, UsageError
from handoff.protocols.frontier import study
from handoff.records import Record
from handoff.replay import records_digest


@pytest.fixture(scope="module")
def games() -> dict[str, Game]:
    return one_of_each_type()


def walk(engine: NativeEngine, game: Game) -> list[Record]:
    return [engine.reset(game), *(engine.step(action) for action in game.walkthrough or ())]


def test_score_and_done_are_set_at_reset_and_success_is_not_latched_by_the_engine(games: dict[str, Game]) -> None:
    engine = NativeEngine()
    records = walk(engine, games["look_at_obj_in_light"])
    assert (records[0].score, records[0].done, records[0].won) == (0.0, False, False)
    assert records[-1].won
    assert all(not record.won for record in records[:-1])
    away = next(c for c in records[-1].admissible if c.startswith("go to ") and "lamp" not in c)
    assert not engine.step(away).won, "the goal holds only under the lamp"


def test_the_memory_of_texts_changes_no_record(games: dict[str, Game]) -> None:
    from textworld.envs.pddl import textgen

    def wander(engine: NativeEngine, game: Game) -> list[Record]:
        rng = random.Random(game.id)
        records = [*walk(engine, game), engine.reset(game)]
        for _ in range(6):
            records.append(engine.step(rng.choice([*records[-1].admissible, "go to nowhere 1"])))
        return records

    remembering = NativeEngine()
    for name in ("look_at_obj_in_light", "pick_two_obj_and_place"):
        walks = [wander(remembering, games[name]) for _ in range(2)]
        with memory.without():
            assert not hasattr(textgen._parse_and_convert, "__wrapped__"), "textworld's own"
            expected = wander(NativeEngine(), games[name])
        assert hasattr(textgen._parse_and_convert, "__wrapped__")
        assert walks == [expected, expected]


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("r.name", "desk 1"),
        ("'On the ' + r.name + ', you see ' + o.name + '.'", "On the desk 1, you see apple 2."),
        ("', '.join(name.upper() for name in [r.name])", "DESK 1"),
        ("len(context['variables'])", 3),
    ],
)
def test_an_expression_of_a_grammar_sees_the_variables_of_its_rule(expression: str, text: object) -> None:
    from textworld.envs.pddl.textgen import EvalSymbol

    expressions.install()
    variables = {"r": SimpleNamespace(name="desk 1"), "o": SimpleNamespace(name="apple 2"), "context": None}
    for symbol, given in (
        (EvalSymbol(expression), {"variables": variables}),
        (EvalSymbol(expression, {"variables": variables}), None),
    ):
        assert [terminal.symbol for terminal in symbol.derive(given)] == [text]


def test_text_that_is_no_command_changes_nothing_and_says_so(games: dict[str, Game]) -> None:
    engine = NativeEngine()
    before = engine.reset(games["pick_and_place_simple"])
    for text in ("put apple 1 in/on desk 1", "", "LOOK", "{6*7}", "x" * 3000):
        after = engine.step(text)
        assert after.observation == "Nothing happens."
        assert after.admissible == before.admissible


def test_the_host_keeps_its_arguments_and_its_output(
    games: dict[str, Game], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["mine", "--flag"])
    stdout = sys.stdout
    NativeEngine().reset(games["pick_and_place_simple"])
    assert sys.argv == ["mine", "--flag"]
    assert sys.stdout is stdout
    assert capsys.readouterr().out == ""


def test_the_native_engine_leaves_the_hosts_variables_and_home_folder_alone(tmp_path: Path) -> None:
    script = (
        "import os; from handoff.envs.alfworld.native.engine import NativeEngine; NativeEngine();"
        "print(os.environ.get('ALFWORLD_DATA'), os.listdir(os.path.expanduser('~')))"
    )
    environment = {key: value for key, value in os.environ.items() if key != "ALFWORLD_DATA"}
    result = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**environment, "HOME": str(tmp_path), "HANDOFF_CACHE": str(tmp_path / "cache")},
    )
    assert result.stdout.strip() == "None []"


def test_the_engine_that_certifies_runs_takes_nothing_from_the_cache_and_leaves_nothing_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HANDOFF_CACHE", str(tmp_path))
    mine, other = AlfworldEnvironment(data="builtin").tasks("valid_unseen")[:2]
    compiled = AlfworldEnvironment(data="builtin", engine="compiled")
    compiled.reset(mine, 0)
    compiled.reset(other, 0)
    entries = sorted((tmp_path / "games").iterdir())
    # Each entry gets the content of the other one, under a right sum: nobody can tell from the file.
    contents = [zlib.decompress(entry.read_bytes().partition(b"\n")[2]) for entry in entries]
    for entry, content in zip(entries, reversed(contents), strict=True):
        cache.store("games", entry.name.partition(".")[0], json.loads(content))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.z")}
    script = (
        "from handoff.envs.alfworld.adapter import AlfworldEnvironment as A; import sys;"
        "e = A(data='builtin', engine=sys.argv[1]); t = e.tasks('valid_unseen')[0];"
        "print(e.reset(t, 0).digest(), e.certify(2).tried)"
    )

    def reset(engine: str) -> str:
        command = [sys.executable, "-c", script, engine]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    true = f"{compiled.reset(mine, 0).digest()} {compiled.certify(2).tried}\n"
    assert reset("compiled") != true, "a run can be deceived"
    assert reset("native") == true, "an audit can not"
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.z")} == before


def test_another_thread_is_refused_before_the_engine_is_called(games: dict[str, Game]) -> None:
    engine = NativeEngine()
    errors: list[Exception] = []

    def other() -> None:
        try:
            engine.reset(games["pick_and_place_simple"])
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert len(errors) == 1
    assert isinstance(errors[0], EnvironmentFault)
    assert "not thread-safe" in str(errors[0])


def test_interleaved_engines_show_what_they_show_alone(games: dict[str, Game]) -> None:
    first, second = games["pick_and_place_simple"], games["pick_cool_then_place_in_recep"]
    alone = [records_digest(walk(NativeEngine(), game)) for game in (first, second)]
    engines = [NativeEngine(), NativeEngine()]
    histories = [[engine.reset(game)] for engine, game in zip(engines, (first, second), strict=True)]
    longest = max(len(first.walkthrough or ()), len(second.walkthrough or ()))
    for index in range(longest):
        for engine, game, records in zip(engines, (first, second), histories, strict=True):
            if index < len(game.walkthrough or ()):
                assert game.walkthrough is not None
                records.append(engine.step(game.walkthrough[index]))
    assert [records_digest(records) for records in histories] == alone


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda p: p[: len(p) // 2], "problem"),
        (lambda p: p.replace("(:goal", "(:gaol", 1), "problem"),
        (lambda p: "(define (problem x) (:domain alfred))", "problem"),
        (lambda d: d[: len(d) // 2], "domain"),
        (lambda d: d + "\n; trailing\n" + ")" * 3, "domain"),
    ],
)
def test_a_malformed_problem_or_domain_is_a_data_error_on_both_engines(
    games: dict[str, Game], change: object, where: str
) -> None:
    assert callable(change)
    whole = games["pick_and_place_simple"]
    texts = {"domain": whole.domain, "grammar": whole.grammar, "problem": whole.problem}
    texts[where] = change(texts[where])
    broken = Game.of(**texts)
    with pytest.raises(DataError):
        Dynamics.compile(broken.domain, broken.grammar, broken.problem)
    with pytest.raises(DataError, match="textworld cannot load"):
        NativeEngine().reset(broken)


@pytest.mark.parametrize("engine", ["native", "compiled"])
def test_both_engines_show_equal_records_and_certificates_through_the_adapter(engine: str) -> None:
    environment = registry.create("alfworld", {"data": "builtin", "engine": engine})
    task = next(t for t in environment.tasks("valid_seen") if t.type == "pick_two_obj_and_place")
    reference = registry.create("alfworld", {"data": "builtin", "engine": "native"})
    records = [environment.reset(task, 0)]
    expected = [reference.reset(task, 0)]
    for action in ("help", "look", "nonsense", *environment.plan()):  # type: ignore[attr-defined]
        records.append(environment.step(action))
        expected.append(reference.step(action))
    assert records == expected
    assert records[-1].won


@pytest.mark.parametrize("options", [{"trust_games": "False"}, {"trust_games": 1}, {"data": 3}, {"data": ["x"]}])
def test_an_option_of_another_type_is_refused_and_never_means_trust(options: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=r"trust_games is true or false|data is a path"):
        registry.create("alfworld", {"data": "builtin", **options})


def test_an_engine_that_does_not_exist_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match="no engine 'fast'; it has compiled and native"):
        registry.create("alfworld", {"engine": "fast"})


@pytest.mark.slow
def test_a_study_on_built_in_games_runs_and_passes_its_audit_on_the_native_engine(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    arguments = [
        *("run", "alfworld", "--data", "builtin", "-p", "rl=expert"),
        *("-p", "sft=noisy:0.5", "--cross", "sft,rl", "--tasks", "6", "--slots", "1", "--budget", "12"),
        *("--out", str(folder), "-q"),
    ]
    result = handoff(*arguments)
    assert result.returncode == 0, result.stderr
    loaded = study.load(folder)
    assert loaded.owed == (0, 0)
    experts = [run for run in loaded.trajectories.values() if run.reacher == "rl"]
    assert all(run.arrived for run in experts), "the expert always arrives"
    ends = [end for end in loaded.endpoints.values() if end.solver == "rl" and end.arrived]
    assert ends
    assert all(end.won and end.bridge for end in ends), "the expert always finishes from two actions away"
    audit = handoff("audit", folder, "--json", "-q")
    assert audit.returncode == 0, audit.stdout
    checks = by_name(audit.stdout)
    assert checks["replay"]["count"] == 12
    assert checks["continuations"]["count"] == sum(end.arrived for end in loaded.endpoints.values())
    environment = registry.create("alfworld", {"data": "builtin"})
    stated = loaded.identity["environment"]
    assert stated["versions"] == environment.describe()["versions"]
    assert len(stated["domain_sha256"]) == len(stated["grammar_sha256_sentence_masked"]) == 1
