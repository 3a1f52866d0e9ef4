"""The glossary lists every declared estimand and every metric of the sharpening tax, and no other."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
from pathlib import Path

import attrs
from kit import report_runs
from kit.command import output_of

import handoff.estimation
from handoff.estimation.estimands import DECLARED
from handoff.passk.comparison import PolicyCurves, TaxComparison

GLOSSARY = Path(__file__).resolve().parents[2] / "docs" / "glossary.md"


def rows(heading: str) -> dict[str, tuple[str, str, str]]:
    """Label, kind and definition by key."""
    section = GLOSSARY.read_text(encoding="utf-8").split(f"## {heading}")[1].split("\n## ")[0]
    cells = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| `")]
    listed = {key.strip("`"): (label, kind, definition) for key, label, kind, definition in cells}
    assert len(cells) == len(listed)
    return listed


def test_the_glossary_lists_every_declared_estimand_and_no_other() -> None:
    for module in pkgutil.iter_modules(handoff.estimation.__path__):  # every module may declare some
        importlib.import_module(f"handoff.estimation.{module.name}")
    declared = {name: (one.label, one.kind, one.equation.replace("``", "`")) for name, one in DECLARED.items()}
    assert rows("Estimands") == declared


def test_the_glossary_lists_every_metric_of_the_sharpening_tax_and_no_other() -> None:
    metrics = {
        field.name
        for cls in (PolicyCurves, TaxComparison)
        for field in attrs.fields(cls)
        if "TaxEstimate" in str(field.type) or field.name in ("pass_at_k", "pass_hat_k")
    }
    assert set(rows("Metrics of repeated sampling")) == metrics


def test_estimate_report_and_compare_call_an_estimand_by_one_key_and_one_label(tmp_path: Path) -> None:
    names = ("sft", "rl")
    for run, prefix in (("first", ""), ("second", "other ")):
        table = report_runs.table(
            names, names, lambda w, t, s: w == 1 or (t + s) % 2 == 0, lambda w, r, t, s: r == 1, ["a"] * 3 + ["b"] * 3
        )
        report_runs.write(tmp_path / run, table, prefix=prefix)
    first, second = tmp_path / "first", tmp_path / "second"
    fast = ("--draws", "100", "--json")
    estimated, reported = (json.loads(output_of(name, first, *fast))["estimates"] for name in ("estimate", "report"))
    compared = json.loads(output_of("compare", first, second, *fast))["rows"]
    by_key = {one["key"]: one for one in reported}
    assert {one["key"]: one for one in estimated}.items() <= by_key.items()
    assert {row["first"]["key"] for row in compared} <= set(by_key)
    printed = output_of("estimate", first, "--draws", "100", env={"COLUMNS": "300"})
    for row in compared:
        assert row["label"] in printed
        form = re.sub(r"\\\{\w+\\\}", ".+", re.escape(DECLARED[row["name"]].label))
        assert re.fullmatch(form, row["label"])
