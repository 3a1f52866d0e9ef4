"""Equal inputs of all solvers of one clone, enforced while a run plays.

Whatever differs between two solvers of a clone would be taken for a difference between their checkpoints.  The first
solver of a clone fixes what the others must be shown: the state's input digest, and for language models the rendered
prompt, its token ids and their number.  What is known of a solver's prompt is compared before it decides, and what only
its answer tells, before the answer counts.

Prompts are compared between solvers whose descriptions state the same prompt, and their token ids between those that
the run did not declare to get others (:mod:`handoff.protocols.frontier.prompt_groups`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from handoff.errors import Interrupted
from handoff.policies.guard import description, guarded
from handoff.policies.policy import Policy, Request
from handoff.protocols.frontier.prompt_groups import Groups
from handoff.protocols.frontier.records import Cell, Endpoint, EndpointCell
from handoff.records import Decision, Task

#: What is compared, in this order, and how a difference is told.
INPUT, RENDERED, IDS, COUNT = "input digest", "rendered prompt", "prompt token ids", "number of prompt tokens"


@attrs.define
class EqualInputs:
    """What the solvers of each clone were shown so far."""

    #: The prompts that the manifest states, by solver; ``None``: not a language model.
    prompts: Mapping[str, Any]
    #: The number of each solver's group, where some get other token ids of an equal prompt.
    groups: Mapping[str, int] = attrs.Factory(dict)
    _shown: dict[Cell, dict[str, dict[str, Any]]] = attrs.Factory(dict)

    @classmethod
    def of(cls, policies: Mapping[str, Policy], groups: Groups = ()) -> EqualInputs:
        """``groups`` are the solvers by the prompts that the run declared them to get."""
        numbers = {name: number for number, group in enumerate(groups) for name in group}
        return cls({name: description(policy, name).get("prompt") for name, policy in policies.items()}, numbers)

    def before(self, task: Task, cell: EndpointCell, policy: Policy, request: Request) -> None:
        """Compare what ``policy`` is about to be shown.

        Raises :class:`~handoff.errors.Interrupted` if another solver of the clone was shown something else.
        """
        with guarded(policy, "preview", cell.solver):
            preview = policy.preview(request)
            known = {RENDERED: preview.rendered, IDS: preview.ids, COUNT: preview.tokens}
        self._require(task, cell, {INPUT: request.input_digest(), **known})

    def after(self, task: Task, cell: EndpointCell, decision: Decision) -> None:
        """Compare what the solver's first ``decision`` states of its prompt.  Raises as :meth:`before` does."""
        self._require(task, cell, dict(_stated(decision)))

    def finished(self, task: Task, endpoint: Endpoint) -> None:
        """Take into account an endpoint that was finished earlier."""
        if endpoint.steps:
            self.after(task, endpoint.cell, endpoint.steps[0].decision)

    def _require(self, task: Task, cell: EndpointCell, shown: Mapping[str, Any]) -> None:
        others = self._shown.setdefault(cell.cell, {})
        mine = others.setdefault(cell.solver, {})
        for name, value in shown.items():
            if value is None:
                continue
            for other, theirs in [(cell.solver, mine), *others.items()]:
                if self._comparable(name, other, cell.solver) and theirs.get(name, value) != value:
                    raise Interrupted(_difference(task, cell, other, name, theirs[name], value))
            mine[name] = value

    def _comparable(self, name: str, first: str, second: str) -> bool:
        if name == INPUT:
            return True
        equal = self.prompts.get(first) == self.prompts.get(second)
        return equal and (name == RENDERED or self.groups.get(first) == self.groups.get(second))


def _stated(decision: Decision) -> Iterator[tuple[str, Any]]:
    yield INPUT, decision.input_digest
    if decision.generation is not None:
        yield RENDERED, decision.generation.rendered
        yield IDS, decision.prompt_digest
        # A server's count of a prompt that it refused is not one of the whole prompt.
        yield COUNT, None if decision.status == "context_overflow" else decision.prompt_tokens


def _difference(task: Task, cell: EndpointCell, other: str, name: str, theirs: Any, mine: Any) -> str:
    first, second = (f"{value:.12}..." if isinstance(value, str) else str(value) for value in (theirs, mine))
    whom = f"solver {cell.solver} (twice)" if other == cell.solver else f"solvers {other} and {cell.solver}"
    return (
        f"task {task.name}, slot {cell.slot}, reacher {cell.reacher}: {whom} must be shown the same of one clone, but "
        f"the {name} differs ({first} and {second})"
    )
