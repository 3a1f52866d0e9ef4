"""An audit finds the games of a run by their digests, wherever they are known."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from kit import game_files
from kit.audits import command_checks
from kit.forger import Forger
from kit.mini_games import mini_game
from kit.refusals import refusal
from kit.runs import forge, play
from kit.shared import shared_path

from handoff.auditing import reference
from handoff.envs.alfworld.games.builtin import BuiltinSource
from handoff.envs.alfworld.generator.folder import write_official

KIND = "pick_and_place_simple"
RUN = ("run", "alfworld", "-p", "a=expert", "--reacher", "a", "--solver", "a", "--slots", "1", "--budget", "12")


def write_games(folder: Path, split: str, count: int) -> Path:
    """Some built-in games as files in the release's layout."""
    recipes = [recipe for recipe in BuiltinSource().recipes(split) if recipe.type == KIND][:count]
    for recipe in recipes:
        write_official(folder, split, recipe)
    return folder


def write_mini_games(folder: Path) -> Path:
    """Games whose grammar is not known: nobody trusts them."""
    for seed in range(3):
        game_files.write(folder / "valid_unseen" / str(seed), game_files.form(mini_game(seed)))
    return folder


@pytest.fixture(scope="module")
def built_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on one built-in game, played where no variable was set."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("ALFWORLD_DATA", raising=False)
        return play(tmp_path_factory.mktemp("builtin") / "run", *RUN, "--type", KIND, "--tasks", "1")


@pytest.mark.parametrize("place", ["untrusted games", "no folder", "an empty folder", "some of them", "other games"])
def test_a_run_of_built_in_games_passes_wherever_alfworld_data_points(
    place: str, built_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    if place == "untrusted games":
        write_mini_games(data)
    elif place == "an empty folder":
        data.mkdir()
    elif place == "some of them":
        write_games(data, "valid_unseen", 40)  # the run's own game too, but the seed draws another one from these
    elif place == "other games":
        write_games(data, "valid_seen", 1)
    monkeypatch.setenv("ALFWORLD_DATA", str(data))
    code, checks = command_checks(built_in)
    assert code == 0, {name: check["failures"] for name, check in checks.items() if check["failures"]}
    assert (checks["replay"]["count"], checks["environment"]["state"]) == (1, "passed")


def test_a_run_of_built_in_games_passes_beside_the_real_release(
    built_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALFWORLD_DATA", str(shared_path("data/alfworld")))
    code, checks = command_checks(built_in)
    assert code == 0, {name: check["failures"] for name, check in checks.items() if check["failures"]}


def test_a_run_on_a_folder_passes_where_the_folder_went(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_games(tmp_path / "data", "valid_seen", 2)
    run = play(tmp_path / "run", *RUN, "--data", str(data), "--split", "valid_seen", "--tasks", "all")
    moved = data.rename(tmp_path / "moved")
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    assert command_checks(run, "--data", str(moved))[0] == 0
    monkeypatch.setenv("ALFWORLD_DATA", str(moved))
    assert command_checks(run)[0] == 0


def test_games_that_are_nowhere_are_named_and_no_digest_is_said_to_differ(
    built_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def elsewhere(identity: Any) -> None:
        identity["tasks"][0]["id"] = "0" * 64

    def follow(key: list[str], body: Any) -> None:
        key[1] = body["task"] = "0" * 64

    lost = forge(built_in, tmp_path / "lost", follow, identity=elsewhere)
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    code, checks = command_checks(lost)
    assert code == 1
    assert checks["tasks"]["failures"][0].startswith("no game of digest 000000000000...")
    assert checks["environment"]["failures"] == []
    assert checks["environment"]["reason"] == (
        "1 of 1 tasks were not found; domain_sha256, grammar_sha256_sentence_masked not compared"
    )
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / "absent"))
    assert "absent does not exist" in refusal(capsys, "audit", str(lost), "--workers", "0", "-q")


def test_what_does_not_depend_on_the_games_is_compared_without_them(built_in: Path, tmp_path: Path) -> None:
    def elsewhere(identity: Any) -> None:
        identity["tasks"][0]["id"] = "0" * 64
        identity["environment"]["versions"]["textworld"] = "0.0"

    def follow(key: list[str], body: Any) -> None:
        key[1] = body["task"] = "0" * 64

    _, checks = command_checks(forge(built_in, tmp_path / "lost", follow, identity=elsewhere))
    assert checks["environment"]["failures"] == ["these differ here: versions.textworld"]


def test_a_stated_place_is_not_trusted_by_the_folders_word(built_in: Path, tmp_path: Path) -> None:
    """A manifest may choose data; that it names untrusted games, with trust, opens nothing."""
    forger = Forger.read(built_in)
    forger.manifest["host"]["options"] = {"data": str(write_mini_games(tmp_path / "mini")), "trust_games": True}
    code, _ = command_checks(forger.write(tmp_path / "run"))
    assert code == 0, "the games are found among the built-in ones"


def state_options(run: Path, folder: Path, options: Any) -> Path:
    """A copy of ``run`` whose manifest states ``options`` of the environment, which are outside every digest."""
    shutil.copytree(run, folder)
    manifest = json.loads((folder / "manifest.json").read_bytes())
    manifest["host"]["options"] = options
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


@pytest.mark.parametrize(
    "options",
    [
        {"data": "x" * 100_000},
        {"data": "a\0b"},
        {"data": 5},
        {"data": ["a"]},
        {"foo": 1},
        {"engine": "none"},
        {"data": "/"},
    ],
    ids=["long", "NUL", "number", "list", "unknown", "engine", "disk"],
)
def test_options_of_a_run_folder_that_cannot_be_used_count_as_not_found(
    options: dict[str, Any], built_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    monkeypatch.setattr(reference, "STATED_TIMEOUT", 1.0)
    code, checks = command_checks(state_options(built_in, tmp_path / "theirs", options))
    assert (code, checks["tasks"]["failures"]) == (0, [])
    (note,) = checks["tasks"]["notes"]
    assert note.startswith(
        ("the tasks were not found in ", "the options of the environment that the run states are of no")
    )
    assert len(note) < 3000


def test_a_folder_of_games_that_the_run_names_is_found_from_any_folder_and_noted_with_its_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    data = write_games(tmp_path / "data", "valid_seen", 2)
    monkeypatch.chdir(tmp_path)
    run = play(tmp_path / "run", *RUN, "--data", "data", "--split", "valid_seen", "--tasks", "all")
    assert json.loads((run / "manifest.json").read_bytes())["host"]["options"]["data"] == str(data)
    monkeypatch.chdir(data)
    code, checks = command_checks(run)
    assert (code, checks["tasks"]["failures"]) == (0, [])
    (note,) = checks["tasks"]["notes"]
    assert note.startswith(
        f"the tasks were looked for in {data}, which the run itself names (2 tasks of the split there)"
    )
    assert command_checks(run, "--data", str(data))[1]["tasks"]["notes"] == []
