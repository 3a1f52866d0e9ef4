"""The audit of prompts: every rendered prompt again, from the records alone, and equal prompts for paired solvers.

A template that stands in a manifest is somebody else's, so only templates that come with the toolkit, and those that
the auditor gives, are rendered.  How far equality of inputs reaches depends on the policies: token ids where a policy
records them, else the rendered prompt, and the check says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from handoff.auditing.checks import Audit, Check
from handoff.errors import DataError, UsageError
from handoff.policies import Request
from handoff.policies.language.prompts import BUILTIN, Template
from handoff.protocols.frontier.study import Study, cells, name_cell, requests_of
from handoff.records import Decision, Step

CLAIM = "every rendered prompt follows from the records; solvers of one clone got equal prompts"


class Renderer:
    """The templates of a run's policies, as far as they may be rendered here."""

    def __init__(self, policies: Mapping[str, Mapping[str, Any]], check: Check, given: Sequence[str] = ()) -> None:
        """``given`` are template files that the auditor trusts.  Raises :class:`~handoff.errors.UsageError` or
        :class:`~handoff.errors.DataError` if one of them cannot be used."""
        self._check = check
        trusted = {Template.named(name).source for name in (*BUILTIN, *given)}
        self._templates: dict[str, Template] = {}
        for name, described in policies.items():
            form = described.get("prompt")
            if form is None:
                continue
            if not isinstance(form, dict) or form.get("source") not in trusted:
                check.notes.append(
                    f"policy {name}: its template is not one of the toolkit's, so its prompts were not rendered again; "
                    "give its file by --template"
                )
                continue
            try:
                self._templates[name] = Template.from_json(form)
            except (DataError, UsageError) as error:
                check.require(False, f"policy {name}: {error}")

    def require(self, policy: str, cell: str, requests: Iterable[Request], steps: Sequence[Step]) -> None:
        """Hold every decision in ``steps`` against its prompt, rendered from ``requests``."""
        template = self._templates.get(policy)
        for position, (request, step) in enumerate(zip(requests, steps, strict=True), start=1):
            generation = step.decision.generation
            if template is None or generation is None:
                continue
            try:
                rendered = template.render(request).digest()
            except DataError as error:
                rendered = str(error)
            self._check.require(
                rendered == generation.rendered,
                f"{cell}: the prompt of decision {position} is not what its template makes of the records",
            )


def check_prompts(audit: Audit, study: Study, given: Sequence[str] = ()) -> None:
    """Add the check ``prompts`` to ``audit``."""
    check = audit.check("prompts", CLAIM)
    renderer = Renderer(study.policies, check, given)
    for (id, slot, reacher), run in study.trajectories.items():
        task = study.task(id)
        asked = requests_of(task, run.reset, (), run.steps, study.protocol["reach_budget"])
        renderer.require(reacher, name_cell(task, slot, reacher), asked, run.steps)
    for task, slot, reacher in cells(study):
        trajectory = study.trajectories.get((task.id, slot, reacher))
        if trajectory is None or not trajectory.arrived:
            continue
        first = []
        for solver in study.solvers:
            end = study.endpoints.get((task.id, slot, reacher, solver))
            if end is None or not end.steps:
                continue
            asked = requests_of(task, trajectory.reset, trajectory.steps, end.steps, study.protocol["solve_budget"])
            renderer.require(solver, name_cell(task, slot, reacher, solver), asked, end.steps)
            first.append(end.steps[0].decision)
        _require_equal(check, name_cell(task, slot, reacher), first)
    _note_guarantee(check, study)


def _require_equal(check: Check, cell: str, decisions: Sequence[Decision]) -> None:
    """That the solvers' first prompts are equal, by everything that was recorded of them."""
    claims: dict[str, set[Any]] = {
        "different rendered prompts": {d.generation.rendered for d in decisions if d.generation is not None},
        "different prompt token ids": {d.prompt_digest for d in decisions if d.prompt_digest is not None},
        "different numbers of prompt tokens": {d.prompt_tokens for d in decisions if d.prompt_tokens is not None},
    }
    spoken = [d for d in decisions if d.generation is not None and d.status != "context_overflow"]
    counted = sum(decision.prompt_tokens is not None for decision in spoken)
    check.require(counted in (0, len(spoken)), f"{cell}: {counted} of {len(spoken)} solvers have a number of tokens")
    for failure, values in claims.items():
        if values:
            check.require(len(values) == 1, f"{cell}: its solvers got {failure}")


def _note_guarantee(check: Check, study: Study) -> None:
    """Name the weaker guarantee where a solver records no token ids."""
    models = {name: study.policies[name] for name in study.solvers if "prompt" in study.policies.get(name, {})}
    weak = sorted(name for name, described in models.items() if described.get("tokens") != "ids")
    if weak:
        check.notes.append(
            f"no token ids are recorded for {', '.join(weak)}: that solvers got equal inputs rests there on the "
            "rendered prompt and the server's count of tokens"
        )
