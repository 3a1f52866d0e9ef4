"""What a person is told about options, names, runs and servers that do not fit: words, not the insides of Python."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path
from typing import Any

import pytest
from kit.command import invoke
from kit.refusals import refusal
from kit.runs import first, forge, play

from handoff.errors import DataError

STUDY = ["run", "sokoban", "-p", "a=expert", "-p", "b=random", "--cross", "a,b", "--slots", "1"]


@pytest.fixture(scope="module")
def rolled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rolled") / "run"
    arguments = ["rollout", "sokoban", "-p", "a=random", "-p", "b=random", "-n", "2", "--tasks", "3", "--budget", "2"]
    return play(folder, *arguments)


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("colour=red", "does not take these options: colour (it takes data, engine, trust_games)"),
        ("self=1", "does not take these options: self"),
    ],
)
def test_a_wrong_option_of_an_environment_is_told_with_those_that_there_are(
    option: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refusal(capsys, "run", "alfworld", "--cross", "random", "--env-option", option)
    assert says in line
    assert "__" not in line


@pytest.mark.parametrize("name", ["a\u202eb", "a\u200bb", "a\x07b", "a\u2028b", "\ufeffa"])
def test_a_policys_name_with_what_cannot_be_seen_is_refused_however_it_is_given(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "unprintable character" in refusal(capsys, "run", "sokoban", "-p", f"{name}=random", "--cross", name)
    Path("study.toml").write_text(
        f'environment = "sokoban"\ncross = [{json.dumps(name)}]\n[policies]\n{json.dumps(name)} = "random"\n'
    )
    assert "unprintable character" in refusal(capsys, "run", "--config", "study.toml")
    Path(f"{name}.txt").write_text("look\n")
    assert "unprintable character" in refusal(capsys, "run", "sokoban", "--cross", f"actions:{name}.txt")
    assert not Path("runs").exists()


def forged(
    run: Path, folder: Path, policies: list[str] | None = None, key: list[str] | None = None, **values: Any
) -> Path:
    """A forged copy with other policies in its manifest, or another key and body of its first record."""

    def change(place: list[str], body: Any) -> bool:
        place[:] = place if key is None else key
        body.update(values)
        return True

    def name_others(identity: Any) -> None:
        identity["protocol"]["policies"] = policies

    return forge(run, folder, first(change), identity=None if policies is None else name_others)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"key": []}, "of no known kind"),
        ({"key": ["rollout"]}, "holds the record of"),
        ({"policies": ["[/]", "b"]}, "names other policies"),
        ({"policies": ["a", "a"]}, "a name occurs twice among the policies"),
        ({"task": "0" * 64}, "no task, policy or rollout"),
        ({"policy": "c"}, "no task, policy or rollout"),
        ({"index": 2}, "no task, policy or rollout"),
    ],
    ids=str,
)
def test_a_forged_rollouts_run_is_a_sentence_in_every_command(
    change: dict[str, Any], says: str, rolled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(forged(rolled, tmp_path / "run", **change))
    assert says in refusal(capsys, "report", folder)
    assert says in refusal(capsys, "tax", f"{folder}#a", f"{folder}#b")
    audit = invoke("audit", folder, "--records-only")
    assert audit.exit_code == 1
    assert says in " ".join(audit.stdout.split())


LONG = "x" * 10**6


@pytest.mark.parametrize(
    "change",
    [
        lambda i: i["protocol"].update(split=LONG),
        lambda i: i["protocol"].update(policies=[LONG, "b"]),
        lambda i: i["protocol"].update(name=LONG),
        lambda i: i["protocol"].update(**{LONG: 1}),
        lambda i: i["policies"].update({LONG: {}}),
        lambda i: i["policies"]["a"].update(spec=LONG),
        lambda i: i["policies"]["a"].update(spec=f"{LONG}:1"),
        lambda i: i["policies"]["a"].update({LONG: 1}),
        lambda i: i["tasks"][0].update(name=LONG),
        lambda i: i["tasks"][0].update(source=LONG),
        lambda i: i["tasks"][0].update(id=LONG),
        lambda i: i["environment"].update(name=LONG),
        lambda i: i["environment"].update({LONG: 1}),
        lambda i: i.update(handoff=LONG),
        lambda i: i.update(seeds={LONG: 1}),
    ],
)
def test_a_megabyte_in_a_folder_is_a_short_sentence(change: Any, rolled: Path, tmp_path: Path) -> None:
    folder = forge(rolled, tmp_path / "run", identity=change)
    for words in (("audit", folder, "--workers", "0", "-q"), ("report", folder), ("export", folder)):
        result = invoke(*words)
        said = f"{result.stdout}{'' if isinstance(result.exception, SystemExit) else result.exception or ''}"
        assert len(said) < 20_000
        assert "x" * 2001 not in said


def test_a_megabyte_in_a_record_is_a_short_sentence(rolled: Path, tmp_path: Path) -> None:
    def long(key: list[str], body: Any) -> bool:
        body["decisions"][0].update(action=LONG, text=LONG, status=LONG, flags=[LONG])
        body["outcome"] = LONG
        return True

    result = invoke("audit", forge(rolled, tmp_path / "run", first(long)), "--workers", "0", "-q")
    assert result.exit_code == 1
    assert len(result.stdout) < 50_000


def test_the_middle_of_a_long_sentence_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    """The cause comes first and the way out last, so both are kept."""
    sentence = f"no game is named {LONG}; choose another"
    error = DataError(sentence)
    for words in (str(error), str(DataError(f"the run: {error}"))):
        assert len(words) < 2100
        assert words.endswith("; choose another")
        assert "no game is named xxx" in words
    assert re.search(r"\(998,0\d\d characters are left out\)", str(error))
    assert str(DataError("x" * 2000)) == "x" * 2000
    line = refusal(capsys, "report", "--order", LONG, "nowhere")
    assert len(line) < 2100
    assert len(refusal(capsys, LONG)) < 2100


def test_runs_that_cannot_predict_one_another_are_told_apart_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, split in (("one", "test"), ("two", "train")):
        play(tmp_path / name, *STUDY, "--split", split, "--tasks", "3")
    other_version = {"boards": "9"}
    forge(tmp_path / "two", tmp_path / "other", identity=lambda i: i["environment"].update(versions=other_version))
    line = refusal(capsys, "transport", str(tmp_path / "one"), "--external", str(tmp_path / "other"))
    assert "the environment: versions" in line
    assert "{" not in line


def test_an_examination_does_not_wait_for_a_server_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        spec = f"a=openai:http://127.0.0.1:{taken.getsockname()[1]}/v1#m"
        line = refusal(capsys, "doctor", "-p", spec, code=3)
    tries = re.search(r"gave no good answer in (\d+) tries", line)
    assert tries is not None
    # Waits of at least 1/8, 1/4, 1/2, 1, 2 and 4 seconds, then what is left of ten; a timer may wake early once.
    assert int(tries[1]) <= 9, "with the patience of a run there are ten tries and more"


def test_a_dry_run_does_not_wait_for_a_server_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket() as taken:  # bound and not listening: nobody else can answer there
        taken.bind(("127.0.0.1", 0))
        spec = f"a=openai:http://127.0.0.1:{taken.getsockname()[1]}/v1#m"
        line = refusal(capsys, "run", "sokoban", "-p", spec, "--cross", "a", "--dry-run")
    tries = re.search(r"gave no good answer in (\d+) tries", line)
    # Waits of at least 1/8, 1/4, 1/2 and 1 second, then what is left of three; a timer may wake early once.
    assert tries is not None
    assert int(tries[1]) <= 7, "with the patience of a run there are ten tries and more"
