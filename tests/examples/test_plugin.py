"""The plug-in with a policy kind and a protocol: installed from its own folder and run through every command."""

from __future__ import annotations

import json
import shutil
from importlib import metadata
from pathlib import Path

import pytest
from kit import command
from kit.installed import ROOT, commands, install

RUN = ("probe", "sokoban", "-p", "sure=expert", "-p", "same=stubborn:left", "--tasks", "12", "--workers", "0", "-q")


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return install("plugin", tmp_path_factory.mktemp("plugin"))


def handoff(plugin: dict[str, str], cwd: Path, *arguments: str, code: int = 0) -> str:
    done = command.handoff(*arguments, env=plugin, cwd=cwd)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr if code == 2 else done.stdout


@pytest.fixture(scope="module")
def finished(plugin: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("probe")
    handoff(plugin, folder, *RUN, "--out", "run")
    return folder


def test_help_lists_the_command_and_its_options_come_from_the_configuration(
    plugin: dict[str, str], tmp_path: Path
) -> None:
    assert "probe" in handoff(plugin, tmp_path, "--help")
    shown = handoff(plugin, tmp_path, "probe", "--help")
    assert "--slots N" in shown
    assert "--selection-seed N" in shown


def test_the_expert_brings_success_nearer_in_every_probe(plugin: dict[str, str], finished: Path) -> None:
    numbers = json.loads(handoff(plugin, finished, "report", "run", "--json"))
    counts = {row["policy"]: (row["nearer"], row["probes"]) for row in numbers["policies"]}
    lines = [json.loads(line)["body"] for line in (finished / "run" / "records.jsonl").read_text().splitlines()]
    for policy, (nearer, probes) in counts.items():
        mine = [body for body in lines if body["policy"] == policy]
        distances = [(body["distance"], body["step"]["distance"]) for body in mine]
        assert probes == len(mine) == 12
        assert nearer == sum(b is not None and (a is None or b < a) for a, b in distances)
    known = [body for body in lines if body["policy"] == "sure" and body["distance"] is not None]
    assert known, "the expert's first action is on a shortest path, so each known distance falls by one"
    assert all(body["step"]["distance"] == body["distance"] - 1 for body in known)


def test_the_audit_passes_and_notices_a_changed_record(plugin: dict[str, str], finished: Path, tmp_path: Path) -> None:
    audit = json.loads(handoff(plugin, finished, "audit", "run", "--json", "--workers", "0"))
    counts = {check["name"]: check["count"] for check in audit["checks"]}
    assert audit["passed"]
    assert counts["replay"] == 24
    assert counts["policies"] == 2 + 24
    shutil.copytree(finished / "run", tmp_path / "run")
    records = tmp_path / "run" / "records.jsonl"
    records.write_bytes(records.read_bytes().replace(b'"action":"left"', b'"action":"up"', 1))
    audit = json.loads(handoff(plugin, tmp_path, "audit", "run", "--json", "--records-only", code=1))
    assert not audit["passed"]


def test_report_page_export_and_resume_work(plugin: dict[str, str], finished: Path, tmp_path: Path) -> None:
    assert "First actions that bring success nearer" in handoff(plugin, finished, "report", "run")
    handoff(plugin, finished, "report", "run", "--html", str(tmp_path / "page.html"))
    assert "Does the first action help?" in (tmp_path / "page.html").read_text()
    handoff(plugin, finished, "export", "run", "--out", str(tmp_path / "tables"), "--format", "csv")
    assert len((tmp_path / "tables" / "probes.csv").read_text().splitlines()) == 1 + 24
    before = (finished / "run" / "records.jsonl").read_bytes()
    handoff(plugin, finished, *RUN, "--out", "run")
    assert (finished / "run" / "records.jsonl").read_bytes() == before
    plan = json.loads(handoff(plugin, finished, *RUN, "--dry-run", "--json"))
    assert plan["protocol"]["name"] == "probe"


def test_a_study_file_has_the_protocols_settings(plugin: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(
        'environment = "sokoban"\n[study]\ntasks = 6\nslots = 2\n[policies]\nsure = "expert"\n'
    )
    handoff(plugin, tmp_path, "probe", "--config", "study.toml", "--out", "run", "--workers", "0", "-q")
    assert len((tmp_path / "run" / "records.jsonl").read_text().splitlines()) == 12
    (tmp_path / "study.toml").write_text('environment = "sokoban"\n[study]\nslot = 2\n')
    refused = handoff(plugin, tmp_path, "probe", "--config", "study.toml", code=2)
    assert "study.slot is not known (did you mean 'slots'?)" in refused


def test_without_the_plugin_its_runs_are_a_sentence(finished: Path) -> None:
    if any(point.name == "probe" for point in metadata.entry_points(group="handoff.protocols")):
        pytest.skip("the plug-in is installed in this environment")
    for name in ("audit", "report", "export"):
        done = command.handoff(name, finished / "run")
        assert done.returncode == 2
        assert "no protocol is named 'probe'" in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_a_broken_plugin_is_a_sentence_and_hides_nothing(plugin: dict[str, str], tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "broken-1.0.dist-info").mkdir(parents=True)
    (site / "broken-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (site / "broken-1.0.dist-info" / "entry_points.txt").write_text(
        "[handoff.protocols]\ncracked = broken_module:PROTOCOL\nempty = json:dumps\n"
    )
    (site / "broken_module.py").write_text("raise RuntimeError('half installed')\n")
    environment = {**plugin, "PYTHONPATH": f"{site}:{plugin['PYTHONPATH']}"}
    assert "cracked" in handoff(environment, tmp_path, "--help")
    assert "half installed" in handoff(environment, tmp_path, "cracked", "sokoban", code=2)
    assert "is no instance" in handoff(environment, tmp_path, "empty", "sokoban", code=2)


def test_every_command_of_the_documents_works_in_the_order_given(plugin: dict[str, str], tmp_path: Path) -> None:
    listed = commands(ROOT / "docs" / "protocols.md")
    assert [arguments[0] for arguments in listed] == ["probe", "audit", "report", "report", "export"]
    assert commands(ROOT / "examples" / "plugin" / "README.md") == listed
    for arguments in listed:
        handoff(plugin, tmp_path, *arguments)
