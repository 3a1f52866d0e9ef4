"""The glossary lists every declared estimand and every metric of the sharpening tax, and no other."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import attrs

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
