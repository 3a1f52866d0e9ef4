"""The boundary between the toolkit and policies, those of plug-ins in particular.

Whatever a policy raises, and whatever else than one valid decision per request it returns, becomes
:class:`~handoff.errors.PolicyFault`: one sentence that names policy, class and method.  Errors of the toolkit (a server
that went away, say) pass.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from handoff.errors import PolicyFault
from handoff.guard.failures import contained
from handoff.guard.host_state import kept_if_alone
from handoff.guard.values import checker, described, json_object
from handoff.policies.form import form_problems
from handoff.policies.policy import Policy, Request
from handoff.records import ACTING, STATUSES, Decision
from handoff.text import printable

_DECISION = checker(Decision)
_ATTRIBUTES = {
    "needs_plan": checker(bool),
    "blocking": checker(bool),
    "exclusive": checker(bool),
    "capacity": checker(int),
    "temperature": checker(float | int | None),
}


def label(policy: Policy, name: str | None = None) -> str:
    """A policy in words, with its ``name`` in the run."""
    kind = printable(f"{type(policy).__module__}.{type(policy).__qualname__}"[:120])
    return f"policy {kind}" if name is None else f"policy {name!r:.60} ({kind})"


@contextlib.contextmanager
def guarded(policy: Policy, method: str, name: str | None = None) -> Iterator[None]:
    """The context in which ``method`` of ``policy`` is called.

    What it changes in this process is put back where calls do not overlap: outside of event loops and threads.
    """
    with contained(PolicyFault, f"{label(policy, name)}: {method}()"), kept_if_alone():
        yield


def require_attributes(policy: Policy, name: str) -> None:
    """Raise :class:`~handoff.errors.PolicyFault` unless the attributes that the toolkit reads have their types."""
    with contained(PolicyFault, f"{label(policy, name)}: reading its attributes"):
        problems = [check(getattr(policy, field), field) for field, check in _ATTRIBUTES.items()]
        wrong = next((one for one in problems if one is not None), None)
        if wrong is None and policy.capacity < 0:
            wrong = f"capacity is {policy.capacity}, not 0 or more"
    if wrong is not None:
        raise PolicyFault(f"{label(policy, name)}: {wrong}")


def description(policy: Policy, name: str | None = None) -> dict[str, Any]:
    """What the policy says of itself, JSON-safe."""
    with guarded(policy, "describe", name):
        described_by = policy.describe()
    try:
        return json_object(described_by)
    except ValueError as error:
        raise PolicyFault(f"{label(policy, name)}: describe() returned what it must not: {error}") from None


def ask(policy: Policy, requests: Sequence[Request], name: str | None = None) -> list[Decision]:
    """One valid decision of the policy per request."""
    with guarded(policy, "decide", name):
        return checked(policy, name, "decide", requests, policy.decide(list(requests)))


def activate(policy: Policy, name: str | None = None) -> None:
    """Get the policy ready to be asked."""
    with guarded(policy, "activate", name):
        policy.activate()


def close(policy: Policy, name: str | None = None) -> str | None:
    """Close the policy; a failure in words: it stops nothing."""
    try:
        with guarded(policy, "close", name):
            policy.close()
    except PolicyFault as error:
        return str(error)
    return None


def checked(
    policy: Policy, name: str | None, method: str, requests: Sequence[Request], decisions: Any
) -> list[Decision]:
    """``decisions``, which ``method`` returned for ``requests``.

    Raises :class:`~handoff.errors.PolicyFault` unless each is a valid decision on its request.
    """
    wrong = _problem(requests, decisions)
    if wrong is not None:
        raise PolicyFault(f"{label(policy, name)}: {method}() {wrong}")
    return list(decisions)


def _problem(requests: Sequence[Request], decisions: Any) -> str | None:
    if type(decisions) not in (list, tuple):
        return f"returned {described(decisions)}, not a list of decisions"
    if len(decisions) != len(requests):
        return f"gave {len(decisions)} decisions for {len(requests)} requests"
    for request, decision in zip(requests, decisions, strict=True):
        wrong = _DECISION(decision, "it") or _contradiction(request, decision)
        if wrong is not None:
            return f"returned a decision that must not be (task {printable(request.task.name[:80])}): {wrong}"
    return None


def _contradiction(request: Request, decision: Decision) -> str | None:
    """What is wrong with a decision whose fields have the right types."""
    action, status = decision.action, decision.status
    if status not in STATUSES:
        return f"its status is {status!r:.60}, not one of {', '.join(STATUSES)}"
    if decision.seed != request.seed:
        return f"its seed is {decision.seed}, not the request's {request.seed}"
    if decision.input_digest != request.input_digest():
        return "its input_digest is not that of the request"
    if status in ACTING and (status == "parsed") != (action in request.offer):
        return f"its status is {status}, with the action {described(action)}"
    form = next(form_problems(decision), None)
    return None if form is None else f"it {form}"
