"""The report of a protocol that has no other: its records by kind, and its summary."""

from __future__ import annotations

from collections import Counter

import attrs

from handoff.protocols.registry import protocol_of_run
from handoff.report.format import Json, plural
from handoff.report.report import Options, Report
from handoff.report.sheet import Content, Section, Sheet, SheetCell, SheetRow
from handoff.runs.run import Run


@attrs.frozen
class PlainDocument:
    """What any run tells."""

    run: Run
    #: The protocol's summary, which is the JSON twin.
    summary: Json

    def to_json(self) -> Json:
        return self.summary


class PlainReport(Report[Run, PlainDocument]):
    """The records of a run, counted."""

    def document(self, study: Run, options: Options, external: Run | None = None) -> PlainDocument:
        return PlainDocument(study, protocol_of_run(study.folder).summary(study))

    def content(self, document: PlainDocument) -> Content:
        run, environment = document.run, document.run.identity["environment"].get("name", "run")
        scalars = {name: value for name, value in document.summary.items() if not isinstance(value, list | dict)}
        kinds = Counter(key[0] for key in run.keys())  # noqa: SIM118
        return Content(
            heading=f"What is in this run of {run.identity['protocol']['name']}?",
            title=environment,
            kicker=f"{environment} · {plural(len(run.tasks), 'task')}",
            verdict=f"{run.still_owed} are owed." if run.still_owed else f"{plural(run.count, 'record')}, none owed.",
            warn=bool(run.still_owed),
            sections=[
                Section("records", "Records", "Records", (), [_sheet("Records by kind", "kind", kinds)]),
                Section("summary", "Summary", "Summary", (), [_sheet("Summary", "entry", scalars)]),
            ],
        )


def _sheet(title: str, first: str, entries: Json | Counter[str]) -> Sheet:
    rows = tuple(SheetRow(name, (SheetCell(str(value)),)) for name, value in entries.items())
    return Sheet(title, (first, "count" if isinstance(entries, Counter) else "value"), rows, wordy=True)


REPORT = PlainReport()
