"""The conformance suite finds what is broken in an adapter, and only that; nothing that an adapter does escapes it."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import unittest
from pathlib import Path

import pytest
from kit import conformance_toys as toys
from kit.command import invoke

from handoff.conformance import suite
from handoff.conformance.suite import CHECKS, Settings, check_class, check_environment
from handoff.envs.frozenlake import FrozenLakeEnvironment
from handoff.envs.sokoban import SokobanEnvironment
from handoff.errors import UsageError
from handoff.registry import inventory
from handoff.testing import Case, conformance_cases

#: Checks of environments whose state is a conversation, and of open actions.
OF_TALK = {"open-actions", "messages", "scored", "formatted", "rows"}

HERE = Path(__file__).resolve().parents[1]


@pytest.fixture
def in_process(monkeypatch):
    """Leave out the one slow check, which starts an interpreter."""
    monkeypatch.setattr(suite, "CHECKS", [check for check in CHECKS if check.name != "processes"])


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a distribution with environments, as an entry point on the path; what an adapter's author ships."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def install(modules: dict[str, str], **points: str) -> None:
        folder = tmp_path / "plugin_under_test-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin-under-test\nVersion: 1.0\n")
        lines = [f"{name} = {target}" for name, target in points.items()]
        (folder / "entry_points.txt").write_text("[handoff.environments]\n" + "\n".join(lines) + "\n")
        for name, text in modules.items():
            (tmp_path / f"{name}.py").write_text(text)
            monkeypatch.delitem(sys.modules, name, raising=False)

    return install


def failed(report: suite.ConformanceReport) -> set[str]:
    return {result.check for result in report.results if result.status == "failed"}


@pytest.mark.parametrize("cls", [toys.Corridor, toys.Able, SokobanEnvironment, FrozenLakeEnvironment])
def test_an_adapter_that_keeps_the_contract_passes_every_check(cls):
    report = check_class(cls)
    assert failed(report) == set()
    assert report.conforms
    # What is skipped is what the adapter does not claim to have.
    skipped = {result.check for result in report.results if result.status == "skipped"}
    assert (
        skipped
        == {
            toys.Corridor: {"snapshots", "planner", "frontier", "distance", "outcomes", "reference", *OF_TALK},
            toys.Able: {"outcomes", *OF_TALK},
            SokobanEnvironment: {"outcomes", "reference", *OF_TALK},
            FrozenLakeEnvironment: {"reference", *OF_TALK},
        }[cls]
    )


@pytest.mark.parametrize("cls", toys.BROKEN, ids=lambda cls: cls.__name__)
def test_each_broken_adapter_fails_the_check_that_is_about_its_fault_and_no_other(cls, in_process, monkeypatch):
    for name in ("argv", "stdout"):
        monkeypatch.setattr(sys, name, getattr(sys, name))
    before = random.getstate()
    try:
        report = check_class(cls)
    finally:
        random.setstate(before)
    assert failed(report) == toys.BROKEN[cls]
    assert not report.conforms
    for result in report.results:
        if result.status == "failed":
            assert result.detail
            assert result.advice


def test_a_record_that_depends_on_the_hash_seed_is_found_in_the_other_process():
    assert failed(check_class(toys.HashesStrings)) == {"processes"}


def test_a_class_that_no_other_process_can_import_fails_with_that_reason():
    class Local(toys.Corridor):
        pass

    result = next(r for r in check_class(Local).results if r.check == "processes")
    assert result.status == "failed"
    assert "AttributeError" in result.detail


def test_options_reach_the_adapter_here_and_in_the_other_process():
    report = check_class(toys.Able, {"lamp": True})
    assert failed(report) == set()
    broken = check_class(toys.Able, {"lamp": {1, 2}})
    assert failed(broken) == {"create"}  # a set has no JSON form


def test_checks_that_need_a_failed_one_are_skipped_with_its_name(in_process):
    report = check_class(toys.IntScore)
    skipped = {result.check: result.detail for result in report.results if result.status == "skipped"}
    assert skipped["determinism"] == "needs 'records', which did not pass"


def test_an_unknown_split_is_the_callers_mistake():
    with pytest.raises(UsageError, match="has no split 'nope'; it has short, long"):
        check_class(toys.Able, settings=Settings(split="nope"))


@pytest.mark.parametrize("field", ["tasks", "steps", "depth"])
def test_settings_below_one_are_refused(field):
    with pytest.raises(UsageError, match=f"{field} must be at least 1"):
        Settings(**{field: 0})


def test_two_reports_of_one_adapter_are_equal():
    first, second = (json.dumps(check_class(toys.Able).to_json(), allow_nan=False) for _ in range(2))
    assert first == second


# As an installed plug-in


def test_an_entry_point_under_another_name_than_the_class_gives_itself_fails(install):
    install({}, corridor="kit.conformance_toys:Misnamed")
    report = check_environment("corridor")
    assert failed(report) == {"create"}
    assert "'another'" in report.results[0].detail


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import a_module_that_is_not_there", "ModuleNotFoundError: No module named 'a_module_that_is_not_there'"),
        ("this is no python", "SyntaxError"),
        ("raise SystemExit('bye')", "importing it ends the program (bye)"),
        ("Broken = 3", "is not a subclass of handoff.Environment"),
        ("", "AttributeError"),
    ],
)
def test_a_broken_plugin_is_reported_and_does_not_hide_the_others(text, reason, install):
    install({"broken_plugin": text}, broken="broken_plugin:Broken", good="kit.conformance_toys:Able")
    listed = {entry.name: entry for entry in inventory()}
    assert reason in listed["broken"].broken
    assert listed["broken"].splits == ()
    assert listed["good"].broken is None
    assert listed["good"].splits == ("short", "long")
    assert listed["good"].abilities == ("snapshots", "frontier-oracle", "distance-oracle", "planner", "certified")
    assert listed["good"].distribution == "plugin-under-test 1.0"
    report = check_environment("broken")
    assert failed(report) == {"load"}
    assert reason in report.results[0].detail


def test_the_command_prints_what_passed_and_exits_with_0(install):
    install({}, able="kit.conformance_toys:Able")
    result = invoke("check", "able", "--split", "long", "--tasks", "2")
    assert result.exit_code == 0, result.output
    assert re.search(r"replay +│ passed", result.output)
    assert "0 failed" in result.output


def test_the_command_says_what_to_do_and_exits_with_1(install):
    install({}, able="kit.conformance_toys:PlansBackwards")
    result = invoke("check", "able", "--json")
    assert result.exit_code == 1
    told = json.loads(result.output)
    planner = next(entry for entry in told["results"] if entry["check"] == "planner")
    assert planner["status"] == "failed"
    assert planner["advice"] == "return actions that win exactly at the last one"
    assert told["failed"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["abel"], "no environment is named 'abel' (did you mean 'able'?; `handoff envs` lists them)"),
        (["able", "--split", "middle"], "Able has no split 'middle'; it has short, long"),
        (["able", "--env-option", "lantern=1"], "does not take these options: lantern"),
        (["able", "--env-option", "lantern"], "write --env-option NAME=VALUE (got 'lantern')"),
    ],
)
def test_a_wrong_request_is_refused_in_one_sentence(arguments, message, install):
    install({}, able="kit.conformance_toys:Able")
    result = invoke("check", *arguments)
    assert isinstance(result.exception, UsageError)
    assert result.exception.exit_code == 2
    assert message in str(result.exception)


def test_a_message_of_the_adapter_on_standard_output_does_not_spoil_the_json(install):
    install({}, able="kit.conformance_toys:Prints")
    result = invoke("check", "able", "--json")
    assert failed_names(result.output) == {"host"}


def failed_names(output: str) -> set[str]:
    return {entry["check"] for entry in json.loads(output)["results"] if entry["status"] == "failed"}


def test_envs_lists_environments_as_text_and_json(install):
    install({"broken_plugin": "import nothing_here"}, able="kit.conformance_toys:Able", broken="broken_plugin:Broken")
    text = invoke("envs")
    assert text.exit_code == 0
    assert "snapshots, frontier-oracle, distance-oracle, planner, certified" in text.output
    assert "No module named 'nothing_here'" in text.output
    told = json.loads(invoke("envs", "--json").output)
    by_name = {entry["name"]: entry for entry in told["environments"]}
    assert by_name["able"]["splits"] == ["short", "long"]
    assert "No module named 'nothing_here'" in by_name["broken"]["broken"]


# Under pytest


def test_the_cases_are_the_checks_by_name():
    cases = conformance_cases(toys.Able)
    assert [case.__name__ for case in cases] == [check.name for check in CHECKS]


@pytest.mark.parametrize("case", conformance_cases(toys.Able))
def test_the_cases_of_a_good_adapter_pass_or_skip(case: Case):
    case()


def test_a_case_of_a_broken_adapter_fails_with_the_advice():
    case = next(case for case in conformance_cases(toys.PlansBackwards) if case.check.name == "planner")
    with pytest.raises(AssertionError, match=r"(?s)has not won.*what to do: return actions that win exactly"):
        case()


def test_a_case_run_alone_skips_when_what_it_needs_fails():
    case = next(case for case in conformance_cases(toys.NoTasks) if case.check.name == "replay")
    with pytest.raises(unittest.SkipTest, match="needs 'records'"):
        case()


def test_pytest_shows_the_checks_as_tests_of_an_adapters_own_suite(tmp_path):
    (tmp_path / "test_mine.py").write_text(
        "import pytest\n"
        "from kit.conformance_toys import Miscounts\n"
        "from handoff.testing import conformance_cases\n"
        '@pytest.mark.parametrize("case", conformance_cases(Miscounts))\n'
        "def test_the_adapter_keeps_its_contract(case):\n"
        "    case()\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs", "-k", "frontier or planner or outcomes",
         str(tmp_path)],
        capture_output=True,
        text=True,
        env={**__import__("os").environ, "PYTHONPATH": f"{HERE.parent}:{HERE}"},
        cwd=tmp_path,
    )  # fmt: skip
    assert "1 failed, 1 passed, 1 skipped" in done.stdout, done.stdout + done.stderr
    assert "test_the_adapter_keeps_its_contract[frontier]" in done.stdout
