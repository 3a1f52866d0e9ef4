"""Run folders of version 0.1.0 audit, report, export and resume as they did then."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from kit.command import output_of

DATA = Path(__file__).resolve().parents[1] / "data" / "version_0_1_0"
EXPECTED = json.loads((DATA / "expected.json").read_text())
#: Entries that hold prose, digests of which change with a word, or what another entry repeats.
WORDS = {
    "sentences", "label", "incomplete", "note", "notes", "reason", "interval_reason", "estimates", "policies", "digest",
    "remark", "interval",
}  # fmt: skip


TAX = ("tax", f"{DATA}/rollouts#base", f"{DATA}/rollouts#post", "--interval", "paper")


def numbers(form: Any) -> Any:
    """``form`` without its prose."""
    if isinstance(form, dict):
        return {key: numbers(value) for key, value in form.items() if key not in WORDS}
    return [numbers(value) for value in form] if isinstance(form, list) else form


@pytest.mark.parametrize("run", ["sokoban", "alfworld", "rollouts"])
def test_a_report_has_the_numbers_that_it_had(run: str) -> None:
    # The paper's intervals are those of version 0.1.0; the default ones were mended since.
    paper = () if run == "rollouts" else ("--interval", "paper")
    form = json.loads(output_of("report", str(DATA / run), *paper, "--json"))
    earlier = EXPECTED["reports"][run]
    assert numbers({key: form[key] for key in earlier}) == earlier


@pytest.mark.parametrize("run", ["sokoban", "rollouts", pytest.param("alfworld", marks=pytest.mark.slow)])
def test_an_audit_passes_and_checks_no_less_than_it_did(run: str) -> None:
    form = json.loads(output_of("audit", str(DATA / run), "--json", "--workers", "0"))
    assert form["passed"]
    counts = {check["name"]: check["count"] for check in form["checks"]}
    # Version 0.1.0 counted prompts of scripted policies, which have none: that count is left out of what is expected.
    less = {name: counts.get(name) for name, count in EXPECTED["audits"][run].items() if counts.get(name, 0) < count}
    assert less == {}


def test_the_tax_of_rollouts_has_the_numbers_that_it_had() -> None:
    form, earlier = json.loads(output_of(*TAX, "--json")), EXPECTED["tax"]
    assert numbers({key: form[key] for key in earlier}) == numbers(earlier)


def test_exported_tables_are_the_same_bytes(tmp_path: Path) -> None:
    output_of("export", str(DATA / "sokoban"), "--out", str(tmp_path), "--format", "csv", "--format", "jsonl")
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in tmp_path.iterdir()}
    assert {name: digests.pop(name) for name in EXPECTED["exports"]} == EXPECTED["exports"]
    assert set(digests) == {"searches.csv", "searches.jsonl"}  # which came later


def test_a_run_that_an_earlier_version_left_unfinished_ends_in_the_bytes_that_it_would_have_had(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(DATA / "unfinished", folder)
    arguments = ("-p", "rl=noisy:0.2", "-p", "sft=noisy:0.6", "--cross", "sft,rl", "--tasks", "12", "--slots", "2")
    output_of("run", "sokoban", *arguments, "--budget", "20", "--out", str(folder), "--workers", "0", "-q")
    for name, digest in EXPECTED["resumed"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
