"""What an audit checks from the records of a recorded-history run alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from handoff.auditing.checks import MOST_MISSING, Audit, Check
from handoff.auditing.prompts import Renderer
from handoff.policies.policy import Request
from handoff.protocols.frontier.records import Cell, EndpointCell
from handoff.protocols.recorded.config import plan
from handoff.protocols.recorded.formatting import FORMAT
from handoff.protocols.recorded.logic import (
    continuation_problems,
    formatting_problems,
    history_problems,
    scoring_problems,
    sharing_problems,
)
from handoff.protocols.recorded.records import History
from handoff.protocols.recorded.study import RecordedStudy
from handoff.protocols.recorded.turns import Handover, closed, seed_after, seed_at
from handoff.records import Step
from handoff.runs.run import requests_of
from handoff.seeds import REACH, SeedSchedule

PROMPTS = "every prompt's digest is that of the prompt that the records give, one per cut for all solvers"


def check_records(audit: Audit, study: RecordedStudy, templates: Sequence[str]) -> None:
    """The checks that need neither the environment nor time."""
    _check_plan(audit, study)
    _check_seeds(audit, study)
    _check_inputs(audit, study)
    _check_logic(audit, study)
    _check_prompts(audit, study, templates)


def _check_plan(audit: Audit, study: RecordedStudy) -> None:
    check = audit.check("crossing", "every planned trajectory, continuation, formatted answer and score is there")
    if study.planned - study.count > MOST_MISSING:
        check.require(False, f"missing: {study.still_owed}")
    else:
        sealed = set(study.keys())
        for key in plan(study.tasks, study.config):
            check.require(key in sealed, f"missing: {'/'.join(key)}")
    stated = study.config.tasks  # none: all that the environment has
    if stated not in (None, len(study.tasks)):
        check.failures.append(f"the protocol states {stated} tasks, the manifest lists {len(study.tasks)}")


def _check_seeds(audit: Audit, study: RecordedStudy) -> None:
    check = audit.check("seeds", "every seed is the schedule's; a solver's first is that of the decision it replaces")
    seeds = SeedSchedule(study.config.run_seed)
    for cell, history in study.histories.items():
        label = study.label(cell)
        check.require(history.reset_seed == seeds.reset(cell.task, cell.slot), f"{label}: reset seed")
        for position, step in enumerate(history.steps):
            expected = seeds.decision(cell.task, cell.slot, REACH, position)
            failure = f"{label}: seed of decision {position + 1} is not the schedule's"
            check.require(step.decision.seed == expected, failure)
    for row, end in study.continuations.items():
        start = study.histories.get(row.cell)
        if start is None or end.cut is None:
            continue
        first = seed_after(start, end.cut, study.config)
        for position, step in enumerate(end.steps):
            failure = f"{study.label(row)}: seed of decision {position + 1} is not s + {position}"
            check.require(step.decision.seed == seed_at(first, position), failure)
    for attempt, formatted in enumerate((study.formattings, study.repairs)):
        for row, one in formatted.items():
            if one.call is not None and one.decision is not None:
                expected = seeds.decision(one.call, 0, FORMAT, attempt)
                failure = f"{study.label(row)}: seed of its formatter's call is not the schedule's"
                check.require(one.decision.seed == expected, failure)


def requests_of_history(study: RecordedStudy, history: History) -> Iterator[Request]:
    """The request of each decision of a trajectory, from the records."""
    steps, config, task = history.steps, study.config, study.task(history.task)
    requests = list(requests_of(task, history.reset, (), steps, config.decisions))
    if history.closing and requests:
        last = requests[-1]
        reset, turns = closed(last.history, last.reset, config.last_request)
        requests[-1] = Request(task, last.seed, reset, turns, last.remaining)
    yield from requests


def _requests(
    study: RecordedStudy,
) -> Iterator[tuple[str, str, Cell | EndpointCell, list[Request], tuple[Step, ...]]]:
    """Policy, label, cell, requests and steps of every episode."""
    for cell, history in study.histories.items():
        yield cell.reacher, study.label(cell), cell, list(requests_of_history(study, history)), history.steps
    for row, end in study.continuations.items():
        start = study.histories.get(row.cell)
        given = None if start is None else Handover.of(start, study.config)
        if given is not None and end.cut == given.cut:
            requests = given.requests(study.task(row.task), end, study.config)
            yield row.solver, study.label(row), row, requests, end.steps


def _check_inputs(audit: Audit, study: RecordedStudy) -> None:
    check = audit.check("inputs", "every input's digest is that of what the records show, one per cut for all solvers")
    first: dict[Cell, set[tuple[str, str, str]]] = {}
    for _, label, cell, requests, steps in _requests(study):
        for position, (request, step) in enumerate(zip(requests, steps, strict=True), start=1):
            failure = f"{label}: input of decision {position} is not what the records show"
            check.require(step.decision.input_digest == request.input_digest(), failure)
        if isinstance(cell, EndpointCell) and steps:
            rebuilt = study.continuations[cell].rebuilt
            if rebuilt is not None:
                shown = (rebuilt.digest, rebuilt.messages_digest, steps[0].decision.input_digest)
                first.setdefault(cell.cell, set()).add(shown)
    for cell, inputs in first.items():
        check.require(len(inputs) == 1, f"{study.label(cell)}: its solvers did not get the same message list")


def _check_logic(audit: Audit, study: RecordedStudy) -> None:
    check = audit.check("protocol", "cuts, outcomes, budgets, shared calls, repairs and scores follow from the records")
    config = study.config
    for cell, history in study.histories.items():
        check.collect(study.label(cell), history_problems(history, config))
    for row, end in study.continuations.items():
        check.collect(study.label(row), continuation_problems(end, study.histories.get(row.cell), config))
    for repair, formatted in ((False, study.formattings), (True, study.repairs)):
        for row, one in formatted.items():
            before = study.formattings.get(row) if repair else None
            problems = formatting_problems(one, study.continuations.get(row), before, repair)
            check.collect(study.label(row), problems)
    for row, scoring in study.scorings.items():
        check.collect(study.label(row), scoring_problems(scoring, study.continuations.get(row)))
    for label, problem in sharing_problems(study):
        check.require(False, f"{label} {problem}")


def _check_prompts(audit: Audit, study: RecordedStudy, templates: Sequence[str]) -> None:
    check = audit.check("prompts", PROMPTS)
    models = [name for name, facts in study.described.items() if isinstance(facts, dict) and "prompt" in facts]
    check.excuse("no template of these policies may be rendered here" if models else "no policy is a language model")
    renderer = Renderer(study.described, check, templates)
    first: dict[Cell, list[tuple[str, Step]]] = {}
    for policy, label, cell, requests, steps in _requests(study):
        renderer.require(policy, label, requests, steps)
        if isinstance(cell, EndpointCell) and steps:
            first.setdefault(cell.cell, []).append((policy, steps[0]))
    for cell, shown in first.items():
        for group in study.config.prompt_groups or (study.solvers,):
            _require_equal(check, study.label(cell), [step for policy, step in shown if policy in group])
    if study.config.prompt_groups:
        sides = " | ".join(", ".join(group) for group in study.config.prompt_groups)
        check.notes.append(
            f"declared before the first episode: solvers get different prompts from equal histories ({sides})"
        )


def _require_equal(check: Check, cell: str, steps: Sequence[Step]) -> None:
    generations = [step.decision.generation for step in steps if step.decision.generation is not None]
    if not generations:
        return
    rendered = {generation.rendered for generation in generations}
    ids = {step.decision.prompt_digest for step in steps if step.decision.prompt_digest is not None}
    check.require(len(rendered) == 1, f"{cell}: its solvers got different rendered prompts")
    check.require(len(ids) <= 1, f"{cell}: its solvers got different prompt token ids")
