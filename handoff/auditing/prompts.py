"""Renders a run's prompts again, from the records alone.

A template in a manifest is untrusted: rendered are the toolkit's own templates, and those that the auditor gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from handoff.auditing.checks import Check
from handoff.errors import DataError, UsageError
from handoff.policies.language.prompts import BUILTIN, Template
from handoff.policies.policy import Request
from handoff.records import Decision, Step


class Renderer:
    """The templates of a run's policies, as far as they may be rendered here."""

    def __init__(self, policies: Mapping[str, Mapping[str, Any]], check: Check, given: Sequence[str] = ()) -> None:
        """``given`` are template files that the auditor trusts.  Raises :class:`~handoff.errors.UsageError` or
        :class:`~handoff.errors.DataError` if one of them cannot be used."""
        self._check = check
        trusted = {Template.named(name).source for name in (*BUILTIN, *given)}
        self._templates: dict[str, Template] = {}
        for name, described in policies.items():
            form = described.get("prompt") if isinstance(described, dict) else None
            if form is None:
                continue
            if not isinstance(form, dict) or not any(form.get("source") == source for source in trusted):
                check.notes.append(
                    f"policy {name}: its template is not one of the toolkit's, so its prompts were not rendered again; "
                    "give its file by --template"
                )
                continue
            try:
                time = {"now": described["now"]} if "now" in described else {}
                self._templates[name] = Template.from_json({**form, **time})
            except (DataError, UsageError) as error:
                check.require(False, f"policy {name}: {error}")

    def require(self, policy: str, cell: str, requests: Iterable[Request], steps: Sequence[Step]) -> None:
        """Hold every decision in ``steps`` against its prompt, rendered from ``requests``."""
        if policy in self._templates:
            for position, (request, step) in enumerate(zip(requests, steps, strict=True), start=1):
                self.require_one(policy, cell, position, request, step.decision)

    def require_one(self, policy: str, cell: str, position: int, request: Request, decision: Decision) -> None:
        """Hold one decision, number ``position`` of its policy's turn, against its prompt."""
        template, generation = self._templates.get(policy), decision.generation
        if template is None or generation is None:
            return
        try:
            rendered = template.render(request).digest()
        except DataError as error:
            rendered = str(error)
        self._check.require(
            rendered == generation.rendered,
            f"{cell}: the prompt of decision {position} is not what its template makes of the records",
        )
