"""The report of a recorded-history run, on the terminal and as a page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from handoff.errors import UsageError
from handoff.protocols.recorded.study import RecordedStudy
from handoff.report import terminal
from handoff.report.format import arrow, counted, interval, percent, plural, points
from handoff.report.recorded import document as documents
from handoff.report.recorded.document import AtBudget, RecordedDocument
from handoff.report.refusals import refusals
from handoff.report.report import Options, Report
from handoff.report.sheet import Card, Content, Fact, Section, Sheet, SheetCell, SheetRow, gap, measure, rate
from handoff.text import shell_word

#: The words of each outcome.
OUTCOMES = {
    "ended": "ended",
    "invalid": "no valid action",
    "budget": "out of decisions",
    "decisions": "out of decisions",
    "calls": "out of calls",
    "context": "out of context",
    "markup": "calls left unread by the server",
    "unreached": "never came to the cut",
}
#: The remark that has a sentence of its own.
CLOSED = "closed_world"
MEANING = (
    "Every row is one task, one reacher's history and one solver. The endpoint is the final pass of the environment's "
    "own score. There is no arrival to verify, so there is no Reach and no Solve: a solver effect is the difference of "
    "two endpoints from equal histories, and the interaction is the difference of two solver effects."
)


class RecordedReport(Report[RecordedStudy, RecordedDocument]):
    """Does a solver act better from the same history?"""

    def document(
        self, study: RecordedStudy, options: Options, external: RecordedStudy | None = None
    ) -> RecordedDocument:
        if external is not None:
            raise UsageError(
                f"{study.folder} is a run of recorded histories: there is no prediction for it (--external)"
            )
        return documents.document(study, options)

    def content(self, document: RecordedDocument) -> Content:
        run = document.run
        title = f"{run.identity['environment'].get('name', 'run')}, {run.config.split}"
        head: dict[str, Any] = {
            "heading": "Who acts better from the same history?",
            "title": title,
            "kicker": f"Recorded-history handoff · {title}",
        }
        if not document.budgets:
            verdict = f"{run.still_owed} are owed: type the run's command again to go on."
            return Content(**head, verdict=verdict, warn=True, sections=[_outcomes(document)])
        return Content(
            **head,
            verdict=_verdict(document),
            cards=_cards(document),
            sections=[
                Section(
                    "endpoints",
                    "Endpoints and effects",
                    "Endpoints",
                    (),
                    [_sheet(document, one) for one in document.budgets],
                ),
                _checks(document),
                _outcomes(document),
                _formatting(document),
            ],
            facts=[
                Fact("Tasks", f"{len(run.tasks)} of split {run.config.split}, {plural(run.config.slots, 'seed slot')}"),
                Fact("Cut", _cut(run.config.cut)),
                *(Fact(name, str(facts["spec"]), style) for style, (name, facts) in enumerate(run.described.items())),
                Fact("Run", f"{run.folder.resolve().name}, digest {run.manifest['digest'][:16]}"),
            ],
            notes=[MEANING, *(one.sentence() for one in refusals(run.decisions()))],
        )

    def plan_lines(self, identity: Mapping[str, Any], folder: Path) -> list[str]:
        protocol, tasks = identity["protocol"], len(identity["tasks"])
        reachers, solvers = protocol["reachers"], protocol["solvers"]
        count = tasks * protocol["slots"] * len(reachers)
        lines = [
            f"{identity['environment']['name']}, split {protocol['split']}: {tasks} tasks",
            (
                f"reachers {', '.join(reachers)}: {count} trajectories ({plural(protocol['slots'], 'seed slot')}) "
                f"of at most {protocol['decisions']} decisions, cut {_cut(protocol['cut'])}"
            ),
            f"solvers {', '.join(solvers)}: {count * len(solvers)} continuations from rebuilt histories",
        ]
        if protocol.get("formatter") is not None:
            lines.append(f"formatter {protocol['formatter']}: equal answers to equal queries share one call")
        return [*lines, f"run folder: {shell_word(folder)}"]

    def show_result(self, console: Console, study: RecordedStudy) -> None:
        result = documents.document(study, Options())
        if not result.budgets:
            terminal.say(console, self.content(result).verdict, style="yellow")
            return
        terminal.show_sheet(console, _sheet(result, result.budgets[-1]))
        for section in (_outcomes(result), _formatting(result)):
            for sheet in section.sheets:
                terminal.show_sheet(console, sheet)


REPORT = RecordedReport()


def _cut(rule: str) -> str:
    kind, _, number = rule.partition(":")
    if kind == "final":
        return "before the final model call"
    where = "last" if number == "last" else f"{number}."
    return f"before the {where} turn of the user" if kind == "turn" else f"before model call {number}"


def _verdict(document: RecordedDocument) -> str:
    last = document.budgets[-1]
    if not document.solver_pairs:
        return "A solver effect needs two solvers; this run has one."
    pair = document.solver_pairs[0]
    words = []
    for reacher in last.table.reachers:
        value = measure(last.of(documents.endpoint_effect(reacher, pair)))
        words.append(f"{points(value.point)} points {interval(value)} from histories of {reacher}".replace("  ", " "))
    sentence = f"Solver {pair[1]} instead of {pair[0]} changes the endpoint by {', and by '.join(words)}."
    if document.reacher_pairs:
        value = measure(last.of(documents.interaction(document.reacher_pairs[0], pair)))
        sentence += f" The interaction is {points(value.point)} points {interval(value)}.".replace(" .", ".")
    return sentence


def _cards(document: RecordedDocument) -> list[Card]:
    last = document.budgets[-1]
    cards = []
    for reacher in last.table.reachers:
        for solver in last.table.solvers:
            value = measure(last.of(documents.endpoint(reacher, solver)))
            cards.append(
                Card(f"{reacher} → {solver}", percent(value.point), "", interval(value), value.note, counted(value))
            )
    return cards[:4]


def _sheet(document: RecordedDocument, at: AtBudget) -> Sheet:
    table, rows = at.table, []
    for reacher in table.reachers:
        cells = [rate(measure(at.of(documents.endpoint(reacher, solver)))) for solver in table.solvers]
        cells += [gap(measure(at.of(documents.endpoint_effect(reacher, pair)))) for pair in document.solver_pairs]
        rows.append(SheetRow(reacher, tuple(cells)))
    for place, reachers in enumerate(document.reacher_pairs):
        cells = [SheetCell("") for _ in table.solvers]
        cells += [gap(measure(at.of(documents.interaction(reachers, pair)))) for pair in document.solver_pairs]
        rows.append(SheetRow(f"interaction, {arrow(reachers)}", tuple(cells), divided=place == 0))
    columns = ("history of", *(f"solver {name}" for name in table.solvers), *map(arrow, document.solver_pairs))
    title = f"Endpoints with {at.label} of the solver, in percent, effects in points"
    return Sheet(title, columns, tuple(rows))


def _checks(document: RecordedDocument) -> Section:
    cells = document.counts["cells"]
    names = list(dict.fromkeys(name for cell in cells for name in cell["checks"]))
    rows = []
    for name in names:
        row = []
        for cell in cells:
            one = cell["checks"].get(name, {"passed": 0, "of": 0})
            row.append(
                SheetCell(percent(one["passed"] / one["of"] if one["of"] else None), f"{one['passed']}/{one['of']}")
            )
        rows.append(SheetRow(name, tuple(row)))
    columns = ("check", *(f"{cell['reacher']} → {cell['solver']}" for cell in cells))
    sheets = [Sheet("Checks that pass, of the rows to which they apply", columns, tuple(rows))] if rows else []
    return Section("checks", "Check by check", "Checks", (), sheets)


def _outcomes(document: RecordedDocument) -> Section:
    reach, cells = document.counts["reach"], document.counts["cells"]
    sheets = [
        _counts("How trajectories ended", "reacher", {one["reacher"]: one["outcomes"] for one in reach}),
        _counts(
            "How continuations ended",
            "reacher → solver",
            {f"{one['reacher']} → {one['solver']}": one["outcomes"] for one in cells},
        ),
    ]
    flagged: dict[str, int] = {}
    for one in (*reach, *cells):
        for flag, count in one["flags"].items():
            flagged[flag] = flagged.get(flag, 0) + count
    sentences = [
        f"The environment's remark {flag} is on {plural(count, 'episode')}"
        + (": a leg that the flight table does not know was taken for one without flights." if flag == CLOSED else ".")
        for flag, count in sorted(flagged.items())
    ]
    return Section("outcomes", "How episodes ended", "Ends", sentences, [sheet for sheet in sheets if sheet.rows])


def _counts(title: str, first: str, outcomes: Mapping[str, Mapping[str, int]]) -> Sheet:
    names = list(dict.fromkeys(name for counts in outcomes.values() for name in counts))
    rows = [
        SheetRow(label, tuple(SheetCell(str(counts.get(name, 0))) for name in names))
        for label, counts in outcomes.items()
        if counts
    ]
    return Sheet(title, (first, *(OUTCOMES.get(name, name) for name in names)), tuple(rows))


def _formatting(document: RecordedDocument) -> Section:
    form = document.counts.get("formatting")
    if form is None:
        return Section("formatting", "The formatter", "Formatter")
    words = {
        "rows": "rows with an answer to format",
        "calls": "unique calls that served them",
        "unread": "rows whose reply could not be read",
        "unique_empties": "unique calls with an empty reply",
        "rows_affected": "rows that an empty reply affected",
        "rows_unaffected": "rows unaffected by one",
        "repaired": "rows that one more call repaired",
    }
    rows = tuple(SheetRow(text, (SheetCell(str(form[key])),)) for key, text in words.items())
    return Section(
        "formatting", "The formatter", "Formatter", (), [Sheet("The formatter's calls", ("", "count"), rows)]
    )
