"""The glossary lists every estimand that is declared, as it is declared, and no other."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import handoff.estimation
from handoff.estimation.estimands import DECLARED

GLOSSARY = Path(__file__).resolve().parents[2] / "docs" / "glossary.md"


def test_the_glossary_lists_every_declared_estimand_and_no_other() -> None:
    for module in pkgutil.iter_modules(handoff.estimation.__path__):  # every module may declare some
        importlib.import_module(f"handoff.estimation.{module.name}")
    text = GLOSSARY.read_text(encoding="utf-8")
    section = text.split("## Estimands")[1].split("## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| `")]
    listed = {key.strip("`"): (label, kind, definition) for key, label, kind, definition in rows}
    assert len(rows) == len(listed)
    assert listed == {name: (one.label, one.kind, one.equation.replace("``", "`")) for name, one in DECLARED.items()}
