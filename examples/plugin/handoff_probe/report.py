"""The report of a probe run."""

from __future__ import annotations

from typing import Any

import attrs

from handoff.report.report import Options, Report
from handoff.report.sheet import Content, Section, Sheet, SheetCell, SheetRow
from handoff_probe.protocol import PROBE, ProbeRun


@attrs.frozen
class ProbeDocument:
    """Every number of the report."""

    environment: str
    summary: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {"environment": self.environment, **self.summary}


class ProbeReport(Report[ProbeRun, ProbeDocument]):
    def document(self, study: ProbeRun, options: Options, external: ProbeRun | None = None) -> ProbeDocument:
        return ProbeDocument(str(study.identity["environment"]["name"]), PROBE.summary(study))

    def content(self, document: ProbeDocument) -> Content:
        rows = [
            SheetRow(row["policy"], (SheetCell(f"{row['nearer']}/{row['probes']}"),))
            for row in document.summary["policies"]
        ]
        best = max(document.summary["policies"], key=lambda row: row["nearer"] / max(1, row["probes"]))
        sheet = Sheet("First actions that bring success nearer", ("policy", "nearer"), tuple(rows))
        return Content(
            heading="Does the first action help?",
            title=document.environment,
            kicker="probe",
            verdict=f"The first action of {best['policy']} brings success nearer most often.",
            sections=[Section("probes", "First actions", "First actions", sheets=[sheet])],
        )


REPORT = ProbeReport()
