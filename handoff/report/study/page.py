"""The report of a handoff study, on the terminal and as a page."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from handoff.estimation.estimands import PAPER
from handoff.protocols.frontier.study import Study
from handoff.protocols.frontier.summary import summary
from handoff.report import html, more, terminal
from handoff.report.format import Json, Measure, interval, numbered_as_in, percent, plural, points
from handoff.report.report import Options, Report
from handoff.report.sheet import Card, Content, Section, Sheet, SheetCell, SheetRow
from handoff.report.study import document as documents
from handoff.report.study import episodes, figures, tables, values
from handoff.report.study.values import StudyDocument
from handoff.text import shell_word

#: Sections in order: name, heading, and its short form.
SECTIONS = (
    ("interaction", "Who reaches × who solves", "Interaction"),
    ("reach", "Reach: who arrives", "Reach"),
    ("solve", "Solve: from identical states", "Solve"),
    ("stages", "Bridge, then finish", "Bridge and finish"),
    ("types", "By task type", "Task types"),
    ("budgets", "By reacher budget", "Budgets"),
    ("failures", "Those that never arrive", "Non-arrivals"),
)


class StudyReport(Report[Study, StudyDocument]):
    """Where does the gain come from?"""

    def document(self, study: Study, options: Options, external: Study | None = None) -> StudyDocument:
        return documents.document(study, options, external)

    def content(self, document: StudyDocument) -> Content:
        run, results, sentences = document.run, document.results, document.sentences
        title = f"{run.environment.get('name', 'run')}, {run.split}"
        head: dict[str, Any] = {
            "heading": "Where does the gain come from?",
            "title": title,
            "kicker": f"Checkpoint handoff · {title}",
        }
        if results is None:
            sheets = tables.counts(document.counts, run.reachers, run.solvers)
            section = Section("so-far", "Counts so far", "Counts", (_owed(document.counts),), sheets)
            return Content(**head, verdict=document.incomplete or "", warn=True, sections=[section])
        drawn, sheets_of = figures.figures(run, results), tables.sheets(run, results)
        verdict = sentences["verdict"] or sentences["missing"]
        return Content(
            **head,
            verdict=" ".join(verdict),
            cards=_cards(results.tables),
            lead=[*sentences["gaps"], *sentences["gain"], *(sentences["missing"] if sentences["verdict"] else [])],
            sections=[
                Section(name, heading, short, sentences[name], sheets_of[name], drawn[name])
                for name, heading, short in SECTIONS
            ]
            + _beside(document),
            notes=[*sentences["study"], *sentences["intervals"], numbered_as_in(PAPER)],
        )

    def page(self, study: Study, document: StudyDocument) -> str:
        run, results = document.run, document.results
        return html.render(
            self.content(document),
            document.to_json(),
            template="study.html.j2",
            script="browser.js",
            name=self.page_name,
            run=run,
            sentences=document.sentences,
            effects=[] if results is None else figures.figures(run, results)["effects"],
            policies={name: _facts(described) for name, described in run.policies.items()},
            environment=_facts(run.environment),
            packed=episodes.pack(study),
        )

    def plan_lines(self, identity: Mapping[str, Any], folder: Path) -> list[str]:
        protocol, tasks = identity["protocol"], identity["tasks"]
        types = sorted(Counter(task["type"] for task in tasks).items())
        cells = len(tasks) * protocol["slots"] * len(protocol["reachers"])
        solvers, most = protocol["solvers"], protocol["solve_budget"]
        return [
            (
                f"{identity['environment']['name']}, split {protocol['split']}: {len(tasks)} tasks "
                f"({', '.join(f'{count} {name}' for name, count in types)})"
            ),
            (
                f"reachers {', '.join(protocol['reachers'])}: {cells} trajectories "
                f"({plural(protocol['slots'], 'seed slot')}) of at most {protocol['reach_budget']} actions, "
                f"until exactly {protocol['depth']} from success"
            ),
            f"solvers {', '.join(solvers)}: {cells * len(solvers)} endpoints of at most {most} actions",
            *_groups(protocol.get("prompt_groups", ())),
            *(f"policy {name}: {_policy(name, described)}" for name, described in identity["policies"].items()),
            f"run folder: {shell_word(folder)}",
        ]

    def show_result(self, console: Console, study: Study) -> None:
        """Endpoints, Reach and Solve per cell with counts, and what is owed."""
        counts = summary(study)
        for sheet in tables.counts(counts, study.reachers, study.solvers):
            terminal.show_sheet(console, sheet)
        terminal.say(console, _owed(counts))
        if not counts["complete"]:
            terminal.say(console, "The run is not complete: type its command again to go on.", style="yellow")


REPORT = StudyReport()


def _beside(document: StudyDocument) -> list[Section]:
    """What lies beside the plain intervals, and the totals of the frontier search."""
    if document.more is None or document.search is None:
        return []
    searched = (
        SheetRow("accepted states", (SheetCell(document.search.accepted.words),)),
        SheetRow("all checked states", (SheetCell(document.search.checked.words),)),
    )
    sheets = [
        *more.sheets(document.more),
        Sheet("The search for the frontier", ("from", "tried"), searched, wordy=True),
    ]
    sentences, figures = more.sentences(document.more), more.figures(document.more, document.run.styles)
    return [Section("beside", "More: beside the plain intervals", "More", sentences, sheets, figures, folded=True)]


def _groups(groups: Sequence[Sequence[str]]) -> list[str]:
    """That solvers get different prompts, if they do."""
    if not groups:
        return []
    sides = " | ".join(", ".join(group) for group in groups)
    line = (
        f"solvers get different prompts from equal histories, by template or tokenizer: {sides}. The manifest declares "
        "it, so an audit holds equal histories for all, and equal token ids on each side"
    )
    return [line]


def _policy(name: str, described: Mapping[str, Any]) -> str:
    spec = str(described["spec"])
    if described.get("kind") != "builtin":
        return spec
    return f"{spec}, a small checkpoint that ships with handoff (another one: -p {shell_word(f'{name}=SPEC')})"


def _owed(counts: Json) -> str:
    owed, planned = counts["owed"], counts["planned"]
    return (
        f"planned {planned['trajectories']} trajectories and {planned['endpoints']} endpoints; "
        f"owed {owed['trajectories']} and {owed['endpoints']}"
    )


def _cards(parts: values.StudyTables) -> list[Card]:
    """The leading gaps, the interaction, and the whole gain."""
    reach, endpoints, cards = parts.reach.by_reacher, parts.endpoints, []
    if parts.reach_gap:
        a, b = parts.reach_gap.reachers
        about = f"{b} arrives in {percent(reach[b].reach.point)}, {a} in {percent(reach[a].reach.point)}"
        cards.append(_card("Reach gap", parts.reach_gap.value, about))
    if parts.solve_gap:
        a, b = parts.solve_gap.solvers
        first, second = (percent(parts.solve.by_solver[name].point) for name in (a, b))
        about = f"from the same states {b} completes {second}, {a} {first}"
        cards.append(_card("Same-state Solve gap", parts.solve_gap.value, about))
    if parts.interaction:
        (a, b), solvers = parts.interaction.reachers, parts.interaction.solvers
        first, second = (points(endpoints.solver_effect(name, solvers).point) for name in (a, b))
        about = f"solver effect {second} under reacher {b}, {first} under {a}"
        cards.append(_card("Interaction", parts.interaction.interaction, about))
    for gain in endpoints.gains[:1]:
        a, b = gain.checkpoints
        first, second = (percent(endpoints.by_cell[name, name].point) for name in (a, b))
        cards.append(_card("Whole gain", gain.value, f"endpoint {first} to {second}, {a} to {b} in both roles"))
    return cards


def _card(name: str, value: Measure, about: str) -> Card:
    ends = interval(value)
    return Card(name, points(value.point), " points", ends, None if ends else value.note, about)


def _facts(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Facts of the manifest, as text."""
    return [(str(key), value if isinstance(value, str) else json.dumps(value)) for key, value in facts.items()]
