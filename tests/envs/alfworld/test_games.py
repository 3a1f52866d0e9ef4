"""Game files: discovery, identity, and what is refused.  Games are written from the built-in ones."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from kit.game_files import TASK_TYPES, form, write
from kit.shared import shared_path

from handoff.envs.alfworld.games.builtin import BuiltinSource
from handoff.envs.alfworld.games.files import FolderSource, Game, grammar_problem, load_game, mask_sentence
from handoff.envs.alfworld.games.sources import find_source
from handoff.errors import DataError, UsageError
from handoff.records import Task


@pytest.fixture(scope="module")
def game() -> Game:
    source = BuiltinSource()
    return source.load(source.tasks("valid_unseen")[0])


def test_a_task_is_the_digest_of_its_game_wherever_it_lies(tmp_path: Path, game: Game) -> None:
    here = write(tmp_path / "json" / "valid_seen" / "pick_and_place_simple-A-None-B-1" / "trial_1", form(game))
    there = write(tmp_path / "else" / "valid_seen" / "pick_and_place_simple-A-None-B-1" / "trial_1", form(game))
    assert load_game(here).id == load_game(there).id == game.id
    changed = {**form(game), "pddl_problem": game.problem + " "}
    assert load_game(write(tmp_path / "changed", changed)).id != game.id
    without = {key: value for key, value in form(game).items() if key != "walkthrough"}
    assert load_game(write(tmp_path / "without", without)).id == game.id


def test_games_are_found_without_traj_data_sorted_typed_and_split(tmp_path: Path, game: Game) -> None:
    other = {**form(game), "pddl_problem": game.problem + "\n"}
    write(tmp_path / "json_2.1.1" / "valid_seen" / "pick_heat_then_place_in_recep-X-None-Y-2" / "trial_b", form(game))
    write(tmp_path / "json_2.1.1" / "valid_seen" / "look_at_obj_in_light-X-None-Y-2" / "trial_a", other)
    for root in (tmp_path, tmp_path / "json_2.1.1", tmp_path / "json_2.1.1" / "valid_seen"):
        tasks = FolderSource(root).tasks("valid_seen")
        assert [(task.type, task.split) for task in tasks] == [
            ("look_at_obj_in_light", "valid_seen"),
            ("pick_heat_then_place_in_recep", "valid_seen"),
        ]
        assert FolderSource(root).load(tasks[1]).id == game.id


def test_one_game_file_or_its_folder_can_be_given(tmp_path: Path, game: Game) -> None:
    path = write(tmp_path / "valid_seen" / "pick_and_place_simple-A-None-B-1" / "trial_1", form(game))
    for given in (path, path.parent):
        source = FolderSource(given)
        assert [source.load(task).id for task in source.tasks("valid_seen")] == [game.id]


def test_a_copy_of_a_game_is_the_same_task_and_an_unsolvable_one_is_left_out(tmp_path: Path, game: Game) -> None:
    base = tmp_path / "valid_seen"
    write(base / "pick_and_place_simple-A-None-B-1" / "trial_1", form(game))
    write(base / "pick_and_place_simple-A-None-B-1" / "trial_2", form(game))
    write(
        base / "pick_and_place_simple-A-None-B-1" / "trial_3", {**form(game), "pddl_problem": " x", "solvable": False}
    )
    assert len(FolderSource(tmp_path).tasks("valid_seen")) == 1


def test_the_whole_release_splits_are_found() -> None:
    root = shared_path("data/alfworld")
    for split, count in (("valid_unseen", 134), ("valid_seen", 140)):
        tasks = FolderSource(root).tasks(split)
        assert len(tasks) == count
        assert len({task.id for task in tasks}) == count
        assert [task.name for task in tasks] == sorted(task.name for task in tasks)
        assert {task.type for task in tasks} == set(TASK_TYPES)


@pytest.mark.parametrize(
    ("data", "variable", "message"),
    [
        ("/nowhere/at/all", None, "/nowhere/at/all does not exist"),
        ("$NO_SUCH_VARIABLE/json_2.1.1", None, "variable NO_SUCH_VARIABLE is not set"),
        (None, "/nowhere/in/environment", "/nowhere/in/environment does not exist"),
        (None, "", "ALFWORLD_DATA is empty"),
    ],
)
def test_a_missing_place_is_an_error_that_shows_the_resolved_path(
    monkeypatch: pytest.MonkeyPatch, data: str | None, variable: str | None, message: str
) -> None:
    if variable is not None:
        monkeypatch.setenv("ALFWORLD_DATA", variable)
    with pytest.raises(UsageError, match=message.replace("/", r"\/")):
        find_source(data)


def test_zero_games_is_an_error_that_shows_the_resolved_path_and_what_is_there(tmp_path: Path, game: Game) -> None:
    with pytest.raises(UsageError, match=rf"no games of split 'valid_seen' below {tmp_path}"):
        FolderSource(tmp_path).tasks("valid_seen")
    write(tmp_path / "train" / "x" / "y", form(game))
    with pytest.raises(UsageError, match=r"it has train: 1"):
        FolderSource(tmp_path).tasks("valid_seen")


def test_without_data_the_built_in_games_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    assert isinstance(find_source(None), BuiltinSource)
    assert isinstance(find_source("builtin"), BuiltinSource)


BROKEN: dict[str, Any] = {
    "empty": (b"", "is not JSON text"),
    "truncated": (b'{"pddl_domain": "(define', "is not JSON text"),
    "byte order mark": (b"\xef\xbb\xbf{}", "is not JSON text"),
    "utf-16": ("{}".encode("utf-16"), "is not JSON text"),
    "null": (b"null", "is not a JSON object"),
    "list": (b"[]", "is not a JSON object"),
    "no keys": (b"{}", "has no usable 'pddl_domain'"),
    "numbers": (b'{"pddl_domain": 3, "grammar": 4, "pddl_problem": 5}', "has no usable 'pddl_domain'"),
    "NaN": (b'{"pddl_domain": NaN}', "is not JSON text"),
    "duplicate key": (b'{"pddl_domain": "a", "pddl_domain": "b"}', "occurs twice"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_game_file_is_a_sentence_that_names_it(tmp_path: Path, name: str) -> None:
    content, message = BROKEN[name]
    path = write(tmp_path / name, content)
    with pytest.raises(DataError, match=message) as caught:
        load_game(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("key", ["pddl_domain", "grammar", "pddl_problem"])
def test_a_game_without_one_of_its_texts_is_refused_by_the_key(tmp_path: Path, game: Game, key: str) -> None:
    content = form(game)
    del content[key]
    with pytest.raises(DataError, match=f"has no usable '{key}'"):
        load_game(write(tmp_path, content))


def test_a_missing_game_file_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No such file"):
        load_game(tmp_path / "game.tw-pddl")


@pytest.mark.parametrize("sentence", ["{6*7}", "put {x} down", "#intro#", "[a | b]", "put \\u007b", "mug\x00"])
def test_a_task_sentence_that_would_be_run_as_code_is_refused_unless_the_user_trusts_it(
    tmp_path: Path, game: Game, sentence: str
) -> None:
    _, plain = mask_sentence(game.grammar)
    assert plain is not None
    content = {**form(game), "grammar": game.grammar.replace(plain, sentence)}
    path = write(tmp_path, content)
    with pytest.raises(DataError, match=r"is refused: .*--trust-games|contains a NUL"):
        load_game(path)
    if "\0" not in sentence:
        assert load_game(path, trust=True).grammar == content["grammar"]


def test_a_grammar_that_is_not_the_known_one_is_refused(tmp_path: Path, game: Game) -> None:
    changed = game.grammar.replace("You open the {r.name}.", "You open the {__import__('os').getcwd()}.")
    assert changed != game.grammar
    assert grammar_problem(game.grammar) is None
    with pytest.raises(DataError, match="is not a known one"):
        load_game(write(tmp_path, {**form(game), "grammar": changed}))


def test_a_task_from_elsewhere_cannot_name_a_file_outside_the_data_folder(tmp_path: Path, game: Game) -> None:
    inside = tmp_path / "data"
    write(inside / "valid_seen" / "a" / "b", form(game))
    outside = write(tmp_path / "secret", form(game))
    for locator in ("../secret/game.tw-pddl", str(outside)):
        task = Task(id=game.id, name="x", type="x", split="valid_seen", source=locator)
        with pytest.raises(DataError, match="outside the data folder"):
            FolderSource(inside).load(task)


def test_a_game_that_changed_since_it_was_listed_is_refused(tmp_path: Path, game: Game) -> None:
    path = write(tmp_path / "valid_seen" / "a" / "b", form(game))
    source = FolderSource(tmp_path)
    task = source.tasks("valid_seen")[0]
    write(path.parent, {**form(game), "pddl_problem": game.problem + " "})
    with pytest.raises(DataError, match="has digest"):
        source.load(task)
    shutil.rmtree(tmp_path / "valid_seen")
    with pytest.raises(DataError, match="cannot read game file"):
        source.load(task)
