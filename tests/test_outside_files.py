"""Paths and game files from outside: nothing leads out of its folder; what cannot be used is named in a sentence."""

from __future__ import annotations

import json
import os
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from kit import fault_server, game_files
from kit.command import invoke, output_of
from kit.game_files import write
from kit.refusals import refusal
from kit.runs import play

from handoff.envs.alfworld import AlfworldEnvironment
from handoff.envs.alfworld.games.builtin import BuiltinSource
from handoff.envs.alfworld.games.files import FolderSource, Game, load_game
from handoff.envs.alfworld.games.pddl_checks import MOST_BYTES, MOST_FACTS, MOST_OBJECTS, MOST_WORDS
from handoff.envs.alfworld.native.engine import NativeEngine
from handoff.errors import DataError, HandoffError, UsageError
from handoff.files import write_atomically

RUN = ["run", "sokoban", "--cross", "random", "--tasks", "3", "--slots", "1", "--budget", "3", "-q", "--workers", "0"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "run"
    return play(folder, *RUN)


@pytest.fixture(scope="module")
def form() -> dict[str, Any]:
    source = BuiltinSource()
    game = source.load(source.tasks("valid_seen")[0])
    return game_files.form(game)


# Paths ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["report", "RUN", "--draws", "100", "--html", "LONG"],
        ["report", "LONG"],
        ["audit", "LONG"],
        ["export", "RUN", "--out", "LONG"],
        ["estimate", "LONG"],
        ["tax", "LONG", "LONG"],
        ["distance", "LONG"],
        ["games", "list", "--data", "LONG"],
        [*RUN, "--out", "LONG"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_name_that_is_too_long_is_one_sentence(
    arguments: list[str], run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = {"RUN": str(run), "LONG": "x" * 300}
    assert "File name too long" in refusal(capsys, *(words.get(word, word) for word in arguments))


def test_nothing_but_a_file_is_written_over_or_waited_for(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(tmp_path / "elsewhere")
    for path in (pipe, link):
        page = ["--html", str(path)]
        assert "exists, and handoff did not write it" in refusal(capsys, "report", str(run), "--draws", "100", *page)
        with pytest.raises(OSError, match="not a regular file"):
            write_atomically(path, b"x")
    assert pipe.is_fifo()
    assert os.readlink(link) == str(tmp_path / "elsewhere")
    zero = "/dev/zero"
    acting = ["run", "sokoban", "--cross", "x", "-p", f"x=actions:{zero}"]
    for words in (["estimate", zero], ["tax", zero, zero], [*RUN, "--config", zero], acting):
        assert "it is a device, not a file" in refusal(capsys, *words)
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    (copy / "seal.json").unlink()
    os.mkfifo(copy / "seal.json")
    assert "not a regular file" in refusal(capsys, "report", str(copy), "--draws", "100")


def test_a_table_may_come_through_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    text = "task,type,seed,reacher,solver,arrived,won\n" + "".join(f"t{i},a,0,w,r,1,{i % 2}\n" for i in range(9))
    writer = threading.Thread(target=pipe.write_text, args=(text,))
    writer.start()
    result = invoke("estimate", pipe, "--draws", "100", "--json")
    writer.join()
    assert result.exit_code == 0, result.output


def test_a_page_is_written_over_an_earlier_one_and_over_nothing_else(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, twin = tmp_path / "mine.html", tmp_path / "mine.json"
    words = ["report", str(run), "--draws", "100", "--html", str(page)]
    twin.write_text("precious")
    assert f"{twin} exists, and handoff did not write it" in refusal(capsys, *words)
    assert (twin.read_text(), page.exists()) == ("precious", False)
    twin.unlink()
    page.write_text("precious")
    assert f"{page} exists, and handoff did not write it" in refusal(capsys, *words)
    assert (page.read_text(), twin.exists()) == ("precious", False)
    page.unlink()
    for _ in range(2):
        output_of(*words)
    assert json.loads(twin.read_text())


def test_tables_are_written_over_earlier_ones_and_over_nothing_else(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "endpoints.csv").write_text("precious")
    words = ["export", str(run), "--out", str(tmp_path)]
    assert "endpoints.csv is not of a whole export; move it away" in refusal(capsys, *words)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("endpoints.csv", "precious")]
    (tmp_path / "endpoints.csv").unlink()
    for _ in range(2):
        output_of(*words)
    assert (tmp_path / "endpoints.csv").read_text().startswith("task,")


def test_answers_that_are_kept_are_written_over_earlier_ones_and_over_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "kept.json"
    kept.write_text("precious")
    with fault_server.serving() as server:
        words = ["doctor", "-p", f"x=openai:{server.url}#m", "--requests", "2", "--keep", str(kept)]
        assert "was not written by handoff doctor" in refusal(capsys, *words)
        assert kept.read_text() == "precious"
        kept.unlink()
        for _ in range(2):
            output_of(*words)
    assert "no language model" in refusal(capsys, "doctor", "-p", "x=noisy:0.1")


def test_a_file_that_is_no_run_folder_is_named_with_what_to_do(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "table.csv"
    table.write_text("task,type\n")
    for command in ("report", "export", "audit"):
        assert "`handoff estimate` tells more" in refusal(capsys, command, str(table))
    assert "is not a folder; choose another --out" in refusal(capsys, *RUN, "--out", str(table))
    assert table.read_text() == "task,type\n"
    rollouts = tmp_path / "rollouts"
    words = ["rollout", "sokoban", "-p", "x=random", "--tasks", "3", "-n", "2", "--budget", "2"]
    play(rollouts, *words)
    assert "holds a run of the protocol 'rollouts', not 'frontier'; `handoff report" in refusal(
        capsys, "estimate", str(rollouts)
    )
    assert "holds a run of the protocol 'frontier', not 'rollouts'; `handoff report" in refusal(
        capsys, "tax", str(run), str(run)
    )


def test_a_plan_without_the_server_is_no_plan(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["-p", "x=openai:http://127.0.0.1:1/v1#m", "--cross", "x", "--dry-run", "--patience", "0.1"]
    assert "there is no plan without the server" in refusal(capsys, "run", "sokoban", *words)


def test_a_file_may_have_the_longest_name_that_there_is(tmp_path: Path) -> None:
    path = tmp_path / ("é" * 127)  # 254 bytes of 255
    write_atomically(path, b"x")
    assert path.read_bytes() == b"x"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "arguments",
    [["export", "RUN", "--out", ""], [*RUN, "--out", ""], ["report", ""], ["games", "write", "--out", ""]],
    ids=lambda words: " ".join(words[:2]),
)
def test_an_empty_path_is_not_the_folder_where_one_is(
    arguments: list[str], run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "the path is empty" in refusal(capsys, *(str(run) if word == "RUN" else word for word in arguments))
    assert list(tmp_path.iterdir()) == []


def test_tables_are_written_into_no_run(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(run, tmp_path / "other")
    before = sorted(path.name for path in (tmp_path / "other").iterdir())
    for folder in (run, tmp_path / "other"):
        assert "holds a run" in refusal(capsys, "export", str(run), "--out", str(folder))
    assert sorted(path.name for path in (tmp_path / "other").iterdir()) == before


def test_a_link_that_came_with_a_run_is_not_written_through(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(run, tmp_path / "theirs")
    (tmp_path / "mine").mkdir()
    (tmp_path / "theirs" / "export").symlink_to(tmp_path / "mine")
    assert "is a link that came with the run" in refusal(capsys, "export", str(tmp_path / "theirs"))
    assert list((tmp_path / "mine").iterdir()) == []


# Folders of games -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_link_that_leads_out_of_the_games_folder_is_refused_by_name(
    what: str, tmp_path: Path, form: dict[str, Any]
) -> None:
    trial = "valid_seen/pick_and_place_simple-A-None-B-1/trial_1"
    outside = write(tmp_path / "outside" / trial, form)
    link = tmp_path / "data" / trial / "game.tw-pddl" if what == "file" else tmp_path / "data" / "valid_seen"
    link.parent.mkdir(parents=True)
    link.symlink_to(outside if what == "file" else tmp_path / "outside" / "valid_seen")
    with pytest.raises(DataError) as caught:
        FolderSource(tmp_path / "data").tasks("valid_seen")
    assert f"{link} is a link that leads out of the data folder" in str(caught.value)
    # The same folder, named by who runs the command, is theirs to read, by way of a link too; so is a link inside it.
    (tmp_path / "door").symlink_to(tmp_path / "outside")
    (tmp_path / "outside" / "again").symlink_to(tmp_path / "outside" / "valid_seen")
    (task,) = FolderSource(tmp_path / "door").tasks("valid_seen")
    assert FolderSource(tmp_path / "door").load(task).id == task.id


def test_a_task_is_not_loaded_through_a_link_that_was_put_in_its_place(tmp_path: Path, form: dict[str, Any]) -> None:
    path = write(tmp_path / "data" / "valid_seen" / "pick_and_place_simple-A-None-B-1" / "trial_1", form)
    source = FolderSource(tmp_path / "data")
    (task,) = source.tasks("valid_seen")
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError, match="leads out of the data folder"):
        source.load(task)


def test_a_folder_with_games_that_cannot_be_won_says_so(tmp_path: Path, form: dict[str, Any]) -> None:
    write(tmp_path / "valid_seen" / "pick_and_place_simple-A-None-B-1" / "trial_1", {**form, "solvable": False})
    with pytest.raises(UsageError, match=r'can be won: all 1 are marked "solvable": false'):
        FolderSource(tmp_path).tasks("valid_seen")


def test_a_pipe_in_the_place_of_a_game_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "game.tw-pddl")
    with pytest.raises(DataError, match="is not a regular file"):
        load_game(tmp_path / "game.tw-pddl")


# Games ----------------------------------------------------------------------------------------------------------------


def insert(problem: str, section: str, more: str) -> str:
    return problem.replace(f"({section}", f"({section} {more}", 1)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda p: insert(p, ":objects", "my{x} - object"), "holds the name 'my{x}'"),
        (lambda p: insert(p, ":objects", "my|x - object"), "holds the name 'my|x'"),
        (lambda p: insert(p, ":objects", "m#y# - object"), "holds the name 'm#y#'"),
        (lambda p: p.replace("(:goal", "(:gaol"), r"has no \(:goal"),
        (lambda p: p.replace("(:init", "(:objects"), r"has no \(:objects ...\), or more than one"),
        (lambda p: p.rstrip()[:-1], r"\d \( and .* \)"),
        (lambda p: insert(p, ":objects", " ".join(f"o{i}" for i in range(200_000))), "200,0.. words|at most 40,000"),
        (lambda p: insert(p, ":objects", " ".join(f"o{i}" for i in range(2 * MOST_OBJECTS))), "at most 4,000"),
        (lambda p: insert(p, ":init", "(f x)" * MOST_FACTS), "10,... facts; at most"),
        (lambda p: p + " " * MOST_BYTES, "bytes; at most 4,000,000"),
    ],
)
def test_a_game_that_no_engine_should_be_given_is_refused_with_its_file_before_either_sees_it(
    change: Any, says: str, tmp_path: Path, form: dict[str, Any]
) -> None:
    path = write(tmp_path / "game", {**form, "pddl_problem": change(form["pddl_problem"])})
    with pytest.raises(DataError, match=says) as caught:
        load_game(path, trust=True)
    assert str(path) in str(caught.value)


def test_the_limits_are_far_above_the_built_in_games() -> None:
    source = BuiltinSource()
    for split in source.splits():
        for task in source.tasks(split):
            problem = source.load(task).problem
            assert 6 * len(problem.split()) < MOST_WORDS
            assert 10 * problem.count("(") < 10 * MOST_FACTS
            assert 20 * len(problem) < MOST_BYTES


def test_a_problem_that_ends_too_early_is_told_in_words_by_the_native_engine_too(form: dict[str, Any]) -> None:
    problem = form["pddl_problem"]
    game = Game.of(form["pddl_domain"], form["grammar"], problem[: problem.index("(:goal")] + ")")
    with pytest.raises(DataError, match="a part of it is missing") as caught:
        NativeEngine().reset(game)
    assert "StopIteration" not in str(caught.value)


@pytest.mark.parametrize("engine", ["compiled", "native"])
def test_the_advice_about_a_trusted_game_helps(engine: str, tmp_path: Path, form: dict[str, Any]) -> None:
    """A grammar that runs code is the native engine's; the compiled one says so, and that advice leads on."""
    grammar = form["grammar"].replace("Your task is to: ", "Your task is to: {str(1 + 1)} ")
    path = write(tmp_path / "valid_seen" / "pick_and_place_simple-A-None-B-1" / "trial_1", {**form, "grammar": grammar})
    refused = AlfworldEnvironment(data=str(tmp_path))
    with pytest.raises(DataError, match="--trust-games"):
        refused.tasks("valid_seen")
    environment = AlfworldEnvironment(data=str(tmp_path), engine=engine, trust_games=True)
    (task,) = environment.tasks("valid_seen")
    if engine == "native":
        assert environment.reset(task, 0).admissible
        return
    with pytest.raises(HandoffError, match=r"--engine native") as caught:
        environment.reset(task, 0)
    assert path.parent.name in str(caught.value)


def test_blank_lines_after_the_last_record_of_a_sealed_run_are_named(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(run, tmp_path / "run")
    with open(tmp_path / "run" / "records.jsonl", "ab") as file:
        file.write(b"\n\n")
    assert "line 7: blank, though the run was sealed complete" in refusal(capsys, "report", str(tmp_path / "run"))
    assert "line 7: blank" in refusal(capsys, *RUN, "--out", str(tmp_path / "run"))
    audit = invoke("audit", tmp_path / "run", "--records-only")
    assert audit.exit_code == 1
    assert "line 7: blank" in " ".join(audit.stdout.split())
