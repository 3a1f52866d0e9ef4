"""Every line of a run is one place of its plan: repeated keys and keys outside the plan are refused by every reader."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kit.audits import command_checks
from kit.refusals import refusal
from kit.runs import forge, play, records, reseal

from handoff.runs.folder import read_keys

FRONTIER = ("run", "sokoban", "-p", "a=expert", "-p", "b=noisy:0.5", "--cross", "a,b", "--slots", "1", "--budget", "8")
ROLLOUTS = ("rollout", "sokoban", "-p", "a=expert", "-p", "b=noisy:0.5", "-n", "2", "--budget", "8")


@pytest.fixture(scope="module", params=[FRONTIER, ROLLOUTS], ids=["frontier", "rollouts"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return play(tmp_path_factory.mktemp("plan") / "run", *request.param, "--tasks", "3")


def with_lines(run: Path, folder: Path, change: Callable[[list[Any]], list[Any]]) -> Path:
    shutil.copytree(run, folder)
    reseal(folder, change(records(folder)))
    return folder


def readers(folder: Path) -> list[tuple[str, ...]]:
    run = str(folder)
    own = ("tax", f"{run}#a", f"{run}#b") if records(folder)[0][0][0] == "rollout" else ("estimate", run)
    return [("report", run), ("export", run), own]


def twice(lines: list[Any]) -> list[Any]:
    """The first line again, at the end, with the opposite success."""
    key, body = lines[0]
    return [*lines, (key, {**body})]


def test_the_keys_of_lines_are_read_without_their_bodies(run: Path) -> None:
    assert read_keys(run) == [tuple(key) for key, _ in records(run)]


def test_a_second_record_of_one_cell_is_refused_by_every_reader(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = with_lines(run, tmp_path / "run", twice)
    lines = len(records(folder))
    for arguments in readers(folder):
        sentence = refusal(capsys, *arguments)
        assert f"line {lines} holds a second record of" in sentence
        assert "beside line 1" in sentence
    code, checks = command_checks(folder)
    assert code == 1
    assert "holds a second record" in checks["chain"]["failures"][0]


@pytest.mark.parametrize("change", ["another place", "another name"])
def test_a_record_outside_the_plan_is_refused_by_every_reader(
    run: Path, tmp_path: Path, change: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def more(lines: list[Any]) -> list[Any]:
        key, body = lines[0]
        place = "slot" if "slot" in body else "index"
        name = "reacher" if "reacher" in body else "policy"
        other = {**body, place: 99} if change == "another place" else {**body, name: "nobody"}
        cell = [str(other[place]), other[name]] if place == "slot" else [other[name], str(other[place])]
        return [*lines, ([key[0], key[1], *cell], other)]

    folder = with_lines(run, tmp_path / "run", more)
    for arguments in readers(folder):
        assert f"record {len(records(run))} (" in refusal(capsys, *arguments)
    assert command_checks(folder)[0] == 1


def test_lines_in_another_order_are_found_where_they_part_from_the_plan(run: Path, tmp_path: Path) -> None:
    folder = with_lines(run, tmp_path / "run", lambda lines: [lines[-1], *lines[:-1]])
    code, checks = command_checks(folder, "--records-only")
    assert code == 1
    first, last = (("/".join(key)) for key, _ in (records(run)[0], records(run)[-1]))
    assert checks["order"]["failures"][0] == f"{last} is in the place of {first}"


def test_a_line_that_is_missing_is_counted(run: Path, tmp_path: Path) -> None:
    folder = with_lines(run, tmp_path / "run", lambda lines: lines[:-1])
    _, checks = command_checks(folder, "--records-only")
    count = len(records(run))
    assert f"{count - 1} records, but the plan has {count}" in checks["order"]["failures"]


def test_a_task_that_the_manifest_lists_twice_is_refused(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = forge(run, tmp_path / "run", identity=lambda i: i["tasks"].append(i["tasks"][0]))
    name = json.loads((run / "manifest.json").read_bytes())["identity"]["tasks"][0]["name"]
    assert f"lists the task {name} twice" in refusal(capsys, "report", str(folder))
