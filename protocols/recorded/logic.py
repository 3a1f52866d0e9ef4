"""What follows from the records of one row: outcomes, cuts, budgets, calls and scores.

An audit names every contradiction; a run that goes on refuses a finished record with one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from handoff.auditing.checks import check_statuses
from handoff.canonical import digest
from handoff.errors import DataError
from handoff.protocols.frontier.records import Cell, EndpointCell
from handoff.protocols.recorded.config import RecordedConfig
from handoff.protocols.recorded.records import (
    CONTINUATION,
    FORMATTING,
    TRAJECTORY,
    VERDICT,
    Continuation,
    Formatting,
    History,
    Scoring,
    row_key,
    trajectory_key,
)
from handoff.protocols.recorded.turns import Handover, messages_json, reach_outcome, solve_outcome
from handoff.records import Record, Step, from_json, to_json
from handoff.replay import records_digest
from handoff.runs.chain import Key
from handoff.runs.folder import require_key

if TYPE_CHECKING:
    from handoff.protocols.recorded.study import RecordedStudy


def contradiction(config: RecordedConfig, key: Key, body: Any, body_of: Callable[[Key], Any]) -> str | None:
    """The first contradiction of a finished record, as a clause; ``body_of`` gives the bodies of others by key."""

    def other(kind: type[Any], place: Key) -> Any:
        form = body_of(place)
        return None if form is None else from_json(kind, form)

    try:
        if key[0] == TRAJECTORY:
            history = from_json(History, body)
            require_key(key, trajectory_key(history.cell), "its place")
            return next(history_problems(history, config), None)
        if key[0] == CONTINUATION:
            end = from_json(Continuation, body)
            require_key(key, row_key(CONTINUATION, end.row), "its place")
            start = other(History, trajectory_key(end.row.cell))
            return next(continuation_problems(end, start, config), None)
        if key[0] == VERDICT:
            scoring = from_json(Scoring, body)
            require_key(key, row_key(VERDICT, scoring.row), "its place")
            return next(scoring_problems(scoring, other(Continuation, row_key(CONTINUATION, scoring.row))), None)
        one = from_json(Formatting, body)
        require_key(key, row_key(key[0], one.row), "its place")
        before = other(Formatting, row_key(FORMATTING, one.row)) if key[0] != FORMATTING else None
        end = other(Continuation, row_key(CONTINUATION, one.row))
        return next(formatting_problems(one, end, before, key[0] != FORMATTING), None)
    except DataError as error:
        return str(error)


def problems_of(study: RecordedStudy) -> Iterator[tuple[str, str]]:
    """Every contradiction of a run, as pairs of a label and a clause."""
    config = study.config
    for cell, history in study.histories.items():
        yield from ((study.label(cell), problem) for problem in history_problems(history, config))
    for row, end in study.continuations.items():
        problems = continuation_problems(end, study.histories.get(row.cell), config)
        yield from ((study.label(row), problem) for problem in problems)
    for kind, formatted in ((False, study.formattings), (True, study.repairs)):
        for row, one in formatted.items():
            before = study.formattings.get(row) if kind else None
            problems = formatting_problems(one, study.continuations.get(row), before, kind)
            yield from ((study.label(row), problem) for problem in problems)
    for row, scoring in study.scorings.items():
        problems = scoring_problems(scoring, study.continuations.get(row))
        yield from ((study.label(row), problem) for problem in problems)
    yield from sharing_problems(study)


def history_problems(history: History, config: RecordedConfig) -> Iterator[str]:
    """Where a trajectory contradicts itself or the configuration, as clauses."""
    if not _planned(history.cell, config):
        yield "is not a cell of the plan"
    if not history.reset.messages:
        yield "its reset has no messages"
        return
    yield from _step_problems(history.reset, history.steps)
    ended_at_reset = history.reset.done or history.reset.won
    for count in range(1, len(history.steps)):
        outcome = reach_outcome(history.steps[:count], False, config)
        if outcome is not None or ended_at_reset:
            yield f"went on after decision {count}, which ended it ({outcome or 'ended'})"
            return
    if history.closing and (config.context is None or not config.last_request or not history.steps):
        yield "has a last request, for which the protocol gives no reason"
    if not history.steps:
        expected = "ended" if ended_at_reset else "context"
        known = ended_at_reset or (config.context is not None and not config.last_request)
    else:
        expected = reach_outcome(history.steps, history.closing, config) or "context"
        known = expected != "context" or history.closing or config.context is not None
        known = known or history.steps[-1].decision.status == "context_overflow"
    if history.outcome != expected or not known:
        yield f"its outcome is {history.outcome!r:.40}, but its steps say {expected!r}"


def continuation_problems(end: Continuation, start: History | None, config: RecordedConfig) -> Iterator[str]:
    """Where a continuation contradicts itself, its trajectory or the configuration, as clauses."""
    if not _planned(end.row.cell, config) or end.solver not in config.solvers:
        yield "is not a cell of the plan"
    if start is None:
        yield "has no trajectory"
        return
    given = Handover.of(start, config)
    if given is None:
        if end.cut is not None or end.steps or end.rebuilt is not None or end.outcome != "unreached":
            yield "has a turn, though its trajectory never came to the cut"
        if end.answer is not None:
            yield "has an answer, though its trajectory never came to the cut"
        return
    if end.cut != given.cut:
        yield f"is cut after {end.cut} decisions, but the rule cuts after {given.cut}"
        return
    budget = config.budget_after(given.cut)
    last = start.records()[given.cut]
    yield from _step_problems(last, end.steps)
    if not end.steps:
        yield "has no decision"
        return
    for count in range(1, len(end.steps)):
        outcome = solve_outcome(end.steps[:count], budget, config)
        if outcome is not None:
            yield f"went on after decision {count}, which ended it ({outcome})"
            return
    outcome = solve_outcome(end.steps, budget, config)
    if end.outcome != outcome:
        yield f"its outcome is {end.outcome!r:.40}, but its steps say {outcome!r}"
    if end.answer is not None and end.outcome != "ended":
        yield "has an answer, though its episode did not end"
    recorded, messages = start.records()[: given.cut + 1], given.messages()
    rebuilt = end.rebuilt
    if rebuilt is None:
        yield "states no rebuilt history"
    elif (rebuilt.records, rebuilt.digest) != (len(recorded), records_digest(recorded)):
        yield "its rebuilt records are not those of the trajectory"
    elif (rebuilt.messages, rebuilt.messages_digest) != (len(messages), digest(messages_json(messages))):
        yield "its rebuilt messages are not those of the trajectory"
    elif rebuilt.input_digest != end.steps[0].decision.input_digest:
        yield "its first decision was made from another input than the one that was verified"


def formatting_problems(
    one: Formatting, end: Continuation | None, before: Formatting | None, repair: bool
) -> Iterator[str]:
    """Where a formatted answer, or a ``repair`` of the one ``before``, contradicts itself or its row, as clauses."""
    if (one.call is None) != (one.decision is None):
        yield "has a call without a reply, or a reply without a call"
    if one.call is None and one.answer is not None:
        yield "has a formatted answer without a call"
    if end is None:
        yield "has no continuation"
    elif one.call is not None and not isinstance(end.answer, str):
        yield "asks for an answer in the scored form, though there is no answer"
    if repair and before is None:
        yield "is the repair of nothing"
    elif repair and before is not None:
        if before.empty != (one.call is not None):
            yield "repairs what was not empty, or leaves an empty reply unrepaired"
        elif one.call is not None and one.call != before.call:
            yield "repairs another call than the row's"


def scoring_problems(scoring: Scoring, end: Continuation | None) -> Iterator[str]:
    """Where a score contradicts its row, as clauses."""
    if end is None:
        yield "has no continuation"
    elif (end.outcome == "ended") != (scoring.verdict is not None):
        yield "is scored though its episode did not end, or not scored though it did"
    elif (
        scoring.verdict is not None
        and scoring.passed
        and any(check.passed is False for check in scoring.verdict.checks)
    ):
        yield "passes, though a check of its verdict does not"


def sharing_problems(study: RecordedStudy) -> Iterator[tuple[str, str]]:
    """Rows that share a call must share its reply."""
    for what, formatted in (("call", study.formattings), ("repair", study.repairs)):
        replies: dict[str, tuple[EndpointCell, Any]] = {}
        for row, one in formatted.items():
            if one.call is None:
                continue
            form = [None if one.decision is None else to_json(one.decision), one.answer]
            first, theirs = replies.setdefault(one.call, (row, form))
            if theirs != form:
                yield study.label(row), f"shares its {what} with {study.label(first)}, but not the reply"


def _planned(cell: Cell, config: RecordedConfig) -> bool:
    return cell.reacher in config.reachers and 0 <= cell.slot < config.slots


def _step_problems(before: Record, steps: Sequence[Step]) -> Iterator[str]:
    """Statuses, and records that repeat where no action was taken."""
    for position, step in enumerate(steps, start=1):
        for problem in check_statuses(step.decision, before.offer(free=True)):
            yield f"decision {position} {problem}"
        if not step.decision.action and step.record != before:
            yield f"decision {position} took no action, yet its record is another"
        before = step.record
