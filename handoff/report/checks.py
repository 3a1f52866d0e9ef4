"""The sheets of checks: an audit, an adapter's conformance, a policy's diagnosis."""

from __future__ import annotations

from rich.console import Console

from handoff.auditing.checks import Audit, Check, State
from handoff.conformance.suite import FAILED, PASSED, SKIPPED, ConformanceReport
from handoff.policies.doctor import Diagnosis
from handoff.policies.language.fingerprint import Fingerprint
from handoff.report.sheet import Sheet, SheetCell, SheetRow
from handoff.report.terminal import line, show_sheet
from handoff.text import shell_word


def _result(passed: bool, good: str, bad: str) -> SheetCell:
    return SheetCell(good if passed else bad, tone="good" if passed else "bad")


def show_audit(console: Console, audit: Audit, most: int = 10) -> None:
    """The checks with counts, the first failures of each, and why others were not done."""
    rows = tuple(
        SheetRow(check.name, (SheetCell(check.claim), SheetCell(str(check.count)), _state(check)))
        for check in audit.checks
    )
    show_sheet(
        console,
        Sheet(f"Audit of {shell_word(audit.folder)}", ("check", "claim", "checked", "result"), rows, wordy=True),
    )
    line(console, "docs/audit.md says what an audit proves and what it cannot.", "dim")
    for check in audit.checks:
        for failure in check.failures[:most]:
            line(console, f"{check.name}: {failure}", "red")
        if len(check.failures) > most:
            line(console, f"{check.name}: and {len(check.failures) - most} more (--json lists all)", "red")
        if check.reason is not None:
            line(console, f"{check.name}: not done: {check.reason}", "red" if check.blocks else "yellow")
        for note in check.notes:
            line(console, f"{check.name}: {note}", "yellow")
    undone = [check.name for check in audit.checks if check.state is State.NOT_DONE]
    if not audit.passed:
        line(console, "the run does not pass", "bold red")
    elif undone:
        line(console, f"every check that was done passed; not done: {', '.join(undone)}", "green")
    else:
        line(console, "every check passed", "green")


def _state(check: Check) -> SheetCell:
    if check.state is State.FAILED:
        return SheetCell(f"{len(check.failures)} FAILED", tone="bad")
    tone = "bad" if check.blocks else "good" if check.passed else "skipped"
    return SheetCell(check.state.value, tone=tone)


def show_conformance(console: Console, report: ConformanceReport) -> None:
    """What passes, what fails, and what to do about it."""
    abilities = ", ".join(report.abilities) or "none"
    line(console, f"{report.environment} ({report.implementation}); optional abilities: {abilities}")
    tones = {PASSED: "good", FAILED: "bad", SKIPPED: "skipped"}
    rows = tuple(
        SheetRow(result.check, (SheetCell(result.status, tone=tones[result.status]), SheetCell(result.title)))
        for result in report.results
    )
    show_sheet(console, Sheet("Conformance", ("check", "result", "claim"), rows, wordy=True))
    for result in report.results:
        line(console, f"{result.check}: {result.detail}", "dim" if result.status == PASSED else "")
        if result.advice:
            line(console, f"{result.check}: what to do: {result.advice}")
    counts = ", ".join(f"{report.count(status)} {status}" for status in tones)
    line(console, f"{counts}: the adapter {'conforms' if report.conforms else 'does not conform'}")


def show_diagnosis(console: Console, diagnosis: Diagnosis) -> None:
    """The policy, what was compared, and the first difference of each kind."""
    line(console, f"{diagnosis.name}: {diagnosis.facts.get('spec', '')}", "bold")
    for key in ("answers_as", "engine", "digests", "tokens", "guarantee"):
        value = diagnosis.facts.get(key)
        if isinstance(value, dict):
            value = ", ".join(f"{name} {entry}" for name, entry in value.items() if entry not in (None, {}, ""))
        if value:
            line(console, f"  {key}: {value}")
    if "fingerprint" in diagnosis.facts:
        fingerprint = Fingerprint.from_json(diagnosis.facts["fingerprint"])
        replies = ", ".join(reply[:12] if reply else "none" for reply in fingerprint.replies)
        line(console, f"  model's fingerprint: of {fingerprint.of}: {replies}")
        if (limits := fingerprint.limits()) is not None:
            line(console, f"  model's fingerprint: {limits}", "yellow")
    if diagnosis.chat:
        time = "; it shows the time" if diagnosis.chat["reads_clock"] else ""
        line(console, f"  chat template: {diagnosis.chat['in_words']}{time}")
    for caution in diagnosis.cautions:
        line(console, f"  caution: {caution}", "yellow")
    statuses = ", ".join(f"{count} {status}" for status, count in sorted(diagnosis.statuses.items()))
    line(console, f"  replies: {statuses}")
    rows = tuple(
        SheetRow(one.name, (SheetCell(f"{one.equal}/{one.total}"), _result(one.passed, "same", "DIFFERENT")))
        for one in diagnosis.agreements
    )
    show_sheet(console, Sheet("Answers", ("request", "same as alone", "result"), rows))
    for one in diagnosis.agreements:
        if one.first is not None:
            line(console, f"{one.name}: {one.first}", "red")
    line(console, f"answers' digest: {diagnosis.fingerprint}")
