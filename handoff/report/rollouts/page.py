"""The report of a rollouts run, on the terminal and as a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from handoff.errors import UsageError
from handoff.protocols.rollouts.study import RolloutStudy
from handoff.report import plots, terminal
from handoff.report.format import Measure, percent, plural, rate_with_interval
from handoff.report.plots import Figure, Mark, Series
from handoff.report.refusals import refusals
from handoff.report.report import Options, Report
from handoff.report.rollouts.document import PolicyCounts, RolloutDocument, TaskCounts, document
from handoff.report.sheet import Card, Content, Fact, Section, Sheet, SheetCell, SheetRow
from handoff.text import command, shell_word

#: Tasks that the terminal lists; the page lists all.
MOST_TASKS = 40

MEANING = (
    "pass@k is the share of tasks that at least one of k rollouts solves, pass^k the share that all k solve: unbiased "
    "averages over all k of a task's rollouts. Tasks have equal weight."
)


class RolloutReport(Report[RolloutStudy, RolloutDocument]):
    """How often does a rollout succeed?"""

    def document(self, study: RolloutStudy, options: Options, external: RolloutStudy | None = None) -> RolloutDocument:
        if external is not None:
            raise UsageError(f"{study.folder} holds rollouts: a prediction (--external) needs a handoff study")
        return document(study)

    def content(self, document: RolloutDocument) -> Content:
        run = document.run
        title = f"{run.identity['environment'].get('name', 'run')}, {run.config.split}"
        head: dict[str, Any] = {
            "heading": "How often does a rollout succeed?", "title": title, "kicker": f"Rollouts · {title}",
        }  # fmt: skip
        if run.still_owed:
            verdict = f"{run.still_owed} are owed: type the run's command again to go on."
            return Content(**head, verdict=verdict, warn=True)
        return Content(
            **head,
            verdict=" ".join([*map(_sentence, document.policies), *document.warnings]),
            cards=[_card(one) for one in document.policies],
            sections=sections(document),
            facts=[
                Fact("Tasks", f"{len(run.tasks)} of split {run.config.split}"),
                Fact("Rollouts", f"{run.config.rollouts} per task and policy, of at most {run.config.budget} actions"),
                *(Fact(name, str(run.described[name]["spec"]), style) for style, name in enumerate(run.policies)),
                Fact("Run", f"{run.folder.resolve().name}, digest {run.manifest['digest'][:16]}"),
            ],
            notes=[MEANING, *(one.sentence() for one in refusals(run.decisions()))],
        )

    def plan_lines(self, identity: Mapping[str, Any], folder: Path) -> list[str]:
        protocol, tasks = identity["protocol"], len(identity["tasks"])
        rollouts = tasks * len(protocol["policies"]) * protocol["rollouts"]
        return [f"{rollouts} rollouts of {tasks} tasks into {shell_word(folder)}"]

    def next_commands(self, study: RolloutStudy) -> Mapping[str, str]:
        """Of two policies and more the sharpening tax too, of the first two."""
        pair = [f"{study.folder}#{name}" for name in study.policies[:2]]
        tax = {"compare": command("handoff", "tax", *pair)} if len(pair) == 2 else {}
        return {**tax, **super().next_commands(study)}

    def show_result(self, console: Console, study: RolloutStudy) -> None:
        """Successes, pass@k, pilots and temperatures, without the tasks."""
        result = document(study)
        if study.still_owed:
            terminal.say(console, self.content(result).verdict, style="yellow")
            return
        for section in sections(result):
            if section.name in ("policies", "ptgs"):
                terminal.show_sections(console, section)
        terminal.say(console, *result.warnings, style="yellow")


REPORT = RolloutReport()


def _sentence(one: PolicyCounts) -> str:
    k = list(one.pass_at_k)[-1]
    return (
        f"{one.policy} succeeds in {percent(one.mean_success)} of its rollouts, solves "
        f"{percent(one.pass_at_k[k])} of the tasks within {plural(int(k), 'rollout')} and "
        f"{percent(one.never_solved)} never."
    )


def _card(one: PolicyCounts) -> Card:
    k = list(one.pass_at_k)[-1]
    about = f"{one.successes} of {plural(one.rollouts, 'rollout')}; pass@{k} {percent(one.pass_at_k[k])}"
    return Card(one.policy, percent(one.mean_success), " success", about=about)


def sections(document: RolloutDocument) -> list[Section]:
    """The sections of a complete run."""
    curves = _figures(document)
    return [
        Section("policies", "Success and coverage", "Policies", (), [_policies(document)], curves),
        Section("ptgs", "Pilots and temperatures", "PTGS", *_ptgs(document)),
        Section("types", "By task type", "Task types", (), [_types(document)], [_by_type(document)]),
        Section("tasks", "Task by task", "Tasks", (), [_tasks(document)]),
    ]


def _policies(document: RolloutDocument) -> Sheet:
    budgets = list(document.policies[0].pass_at_k)
    rows = tuple(
        SheetRow(
            one.policy,
            (
                SheetCell(f"{one.successes}/{one.rollouts}"),
                *(SheetCell(percent(one.pass_at_k[k])) for k in budgets),
                SheetCell(percent(one.pass_hat_k[budgets[-1]])),
                SheetCell(percent(one.never_solved)),
            ),
        )
        for one in document.policies
    )
    columns = ("policy", "successes", *(f"pass@{k}" for k in budgets), f"pass^{budgets[-1]}", "never")
    return Sheet("Successes of rollouts, and of k rollouts, in percent of tasks", columns, rows)


def _figures(document: RolloutDocument) -> list[Figure]:
    if len(document.policies[0].pass_at_k) < 2:
        return []

    def curve(name: str, title: str, caption: str, rates: Callable[[PolicyCounts], dict[str, float]]) -> Figure:
        series = [
            Series(one.policy, place, [(int(k), Measure(None, rate)) for k, rate in rates(one).items()])
            for place, one in enumerate(document.policies)
        ]
        canvas = plots.curves(series, rate_with_interval, y=(0, 100), below="rollouts k", at="at k = {}", log=True)
        return canvas.figure(name, title, caption)

    at_k = "pass@k in percent of tasks: at least one of k rollouts succeeds."
    hat_k = "pass^k in percent of tasks: all of k rollouts succeed."
    return [
        curve("fig-pass-at", "pass@k of every policy", at_k, lambda one: one.pass_at_k),
        curve("fig-pass-hat", "pass^k of every policy", hat_k, lambda one: one.pass_hat_k),
    ]


def _by_task_type(document: RolloutDocument) -> dict[str, dict[str, Measure]]:
    """Mean success per type and policy."""
    types = {task.id: task.type for task in document.run.tasks}
    rates: dict[str, dict[str, Measure]] = {type: {} for type in sorted(set(types.values()))}
    for type, by_policy in rates.items():
        for one in document.policies:
            rows = [row for row in one.tasks if types[row.task] == type]
            c, n = sum(row.c for row in rows), sum(row.n for row in rows)
            by_policy[one.policy] = Measure(None, c / n, numerator=c, denominator=n)
    return rates


def _types(document: RolloutDocument) -> Sheet:
    counts = [task.type for task in document.run.tasks]
    rows = tuple(
        SheetRow(
            type,
            (
                SheetCell(str(counts.count(type))),
                *(SheetCell(percent(one.point), f"{one.numerator}/{one.denominator}") for one in by_policy.values()),
            ),
        )
        for type, by_policy in _by_task_type(document).items()
    )
    columns = ("task type", "tasks", *(one.policy for one in document.policies))
    return Sheet("Mean success by task type", columns, rows)


def _by_type(document: RolloutDocument) -> Figure:
    styles = {one.policy: place for place, one in enumerate(document.policies)}
    groups = [
        (type, [Mark(policy, number, styles[policy]) for policy, number in by_policy.items()])
        for type, by_policy in _by_task_type(document).items()
    ]
    canvas = plots.forest(groups, rate_with_interval, (0, 100))
    return canvas.figure("fig-types", "Mean success by task type", "Mean success by task type, in percent of rollouts.")


def _ptgs(document: RolloutDocument) -> tuple[list[str], list[Sheet]]:
    """Sentences and sheets of a PTGS run."""
    ptgs = document.run.ptgs
    if ptgs is None:
        return [], []
    sentence = (
        f"PTGS: of {document.run.config.rollouts} rollouts per task the first {ptgs.pilots} are pilots and not scored; "
        f"tau {ptgs.tau:g}, target success rate {ptgs.target:g}."
    )
    rows = []
    for one in document.policies:
        assert one.pilots is not None
        cells = (
            f"{ptgs.references[one.policy]:g}",
            f"{min(one.temperatures):.3g} to {max(one.temperatures):.3g}",
            f"{one.pilots.successes}/{one.pilots.rollouts}",
            percent(one.pilots.never_solved),
        )
        rows.append(SheetRow(one.policy, tuple(map(SheetCell, cells))))
    columns = ("policy", "T of the pilots", "T of the scored", "pilot successes", "never in the pilots")
    return [sentence], [Sheet("Pilots and temperatures", columns, tuple(rows))]


def _tasks(document: RolloutDocument) -> Sheet:
    by_task = [dict(zip((row.task for row in one.tasks), one.tasks, strict=True)) for one in document.policies]
    rows = tuple(
        SheetRow(task.name, (SheetCell(task.type), *(_of_task(rows[task.id]) for rows in by_task)))
        for task in document.run.tasks
    )
    title = "Successes by task"
    if document.run.ptgs is not None:
        title += f", with the pilots' (of {document.run.ptgs.pilots}) and the temperature of the scored"
    return Sheet(title, ("task", "type", *(one.policy for one in document.policies)), rows, most=MOST_TASKS)


def _of_task(row: TaskCounts) -> SheetCell:
    pilots = "" if row.temperature is None else f"{row.pilot_successes}, T {row.temperature:.3g}"
    return SheetCell(f"{row.c}/{row.n}", pilots)
