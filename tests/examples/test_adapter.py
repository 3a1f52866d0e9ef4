"""The plug-in example: installed from its own folder, and run through the whole toolkit as its documents say."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest
from kit import command
from kit.installed import ROOT, commands, install

EXAMPLE = ROOT / "examples" / "adapter"


@pytest.fixture(scope="module")
def plugin(tmp_path_factory):
    """Environment variables under which the plug-in is installed, in a folder of its own."""
    return install("adapter", tmp_path_factory.mktemp("plugin"))


def handoff(arguments, plugin, cwd, code=0):
    done = command.handoff(*arguments, env=plugin, cwd=cwd)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def test_the_installed_plugin_is_listed_with_its_abilities(plugin, tmp_path):
    listed = json.loads(handoff(["envs", "--json"], plugin, tmp_path))["environments"]
    entry = next(entry for entry in listed if entry["name"] == "jugs")
    assert entry["broken"] is None
    assert entry["distribution"] == "handoff-jugs 1.0"
    assert entry["abilities"] == ["snapshots", "planner"]


def test_the_installed_plugin_conforms(plugin, tmp_path):
    report = json.loads(handoff(["check", "jugs", "--json"], plugin, tmp_path))
    assert report["conforms"]
    assert report["failed"] == 0
    of_talk = {"open-actions", "messages", "scored", "formatted", "rows"}
    skipped = {r["check"] for r in report["results"] if r["status"] == "skipped"}
    assert skipped == {"distance", "outcomes", "reference", *of_talk}


def test_a_study_of_the_plugin_is_run_audited_and_reported(plugin, tmp_path):
    policies = ["-p", "sure=expert", "-p", "lost=random"]
    size = ["--tasks", "12", "--slots", "2", "--out", "run", "--workers", "1"]
    told = json.loads(handoff(["run", "jugs", *policies, "--cross", "lost,sure", *size, "--json"], plugin, tmp_path))
    assert told
    # The expert always arrives and always finishes, and the audit finds nothing.
    cells = [json.loads(line) for line in (tmp_path / "run" / "records.jsonl").read_text().splitlines()]
    sure = [c["body"] for c in cells if c["key"][0] == "endpoint" and c["key"][3:] == ["sure", "sure"]]
    assert len(sure) == 24
    assert all(row["arrived"] and row["won"] for row in sure)
    audited = handoff(["audit", "run", "--workers", "1"], plugin, tmp_path)
    assert "every check that was done passed; not done: prompts" in audited
    assert "sure" in handoff(["report", "run"], plugin, tmp_path)


def test_the_plugins_own_tests_pass_from_its_own_folder(plugin, tmp_path):
    shutil.copytree(EXAMPLE / "tests", tmp_path / "tests")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."],
        capture_output=True,
        text=True,
        env=plugin,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


def test_every_command_in_the_documents_works_in_the_order_given(plugin, tmp_path):
    listed = commands(ROOT / "docs" / "adapters.md")
    assert len(listed) == 6
    for arguments in listed:
        assert handoff(arguments, plugin, tmp_path)
    in_readme = commands(EXAMPLE / "README.md")
    assert in_readme
    assert [arguments for arguments in in_readme if arguments not in listed] == []
