"""Which solvers get the same prompt from the same history, found out before a run.

Checkpoints of two families have other chat templates and tokenizers, and a study may give its solvers templates of
their own.  Then equal histories end in different token ids.  That is a design to be declared, not an error: the
manifest names the solvers by groups, and an audit holds equal histories for all and equal prompts within a group.  A
difference that is not declared fails.

Every solver is shown the same few requests.  What it makes of them is compared as far as it is known: the rendered
prompt, and of short histories the token ids or their number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from handoff.canonical import digest
from handoff.errors import DataError
from handoff.policies.guard import description, guarded
from handoff.policies.policy import Policy, Preview, Request, Served, Turn
from handoff.records import Record, Task

#: Names of solvers by group; empty: all get the same prompts.
Groups = tuple[tuple[str, ...], ...]

#: Turns of the histories whose token ids are compared; and the most of one that is only rendered.
_SHORT, _LONGEST = (0, 3), 300
_ACTIONS = ("look", "go to desk 1", "take mug 1 from desk 1")


async def prompt_groups(
    solvers: Mapping[str, Policy], turns: int, sample: Callable[[int], Request] | None = None
) -> Groups:
    """The groups of ``solvers`` (by name), whose histories have at most ``turns`` turns.

    ``sample`` makes the requests that are compared, with as many turns as it is given.  A policy that shows no prompt
    belongs to none.
    """
    make = sample or _request
    if len({id(policy) for policy in solvers.values()}) < 2:
        return ()
    shown = {name: await _previews(name, policy, turns, make) for name, policy in solvers.items()}
    groups: list[list[str]] = []
    for name, previews in shown.items():
        if all(preview == Preview() for preview in previews):
            continue
        group = next((group for group in groups if _agree(shown[group[0]], previews)), None)
        if group is None:
            groups.append([name])
        else:
            group.append(name)
    return tuple(map(tuple, groups)) if len(groups) > 1 else ()


async def _previews(name: str, policy: Policy, turns: int, make: Callable[[int], Request]) -> list[Preview]:
    """What the policy makes of each request, as far as it is known."""
    try:
        with guarded(policy, "preview", name):
            previews = [await policy.ask_preview(make(count)) for count in _SHORT]
            rendered = policy.preview(make(min(turns, _LONGEST))).rendered
        return [*previews, Preview(rendered)]
    except DataError:  # the template cannot show these requests: what it is must do
        return [Preview(digest(description(policy, name).get("prompt")))]
    finally:
        if isinstance(policy, Served):
            await policy.aclose()


def _agree(first: Sequence[Preview], second: Sequence[Preview]) -> bool:
    pairs = [
        pair
        for one, other in zip(first, second, strict=False)
        for pair in zip(attrs.astuple(one), attrs.astuple(other), strict=True)
    ]
    return all(left == right for left, right in pairs if left is not None and right is not None)


def _request(turns: int) -> Request:
    def record(number: int) -> Record:
        text = f"You arrive at desk {number}.\nOn the desk 1, you see a mug 1, and a book {number % 10}."
        return Record(text, _ACTIONS, 0.0, False, False)

    reset = Record("You are in a room. You see a desk 1.\nYour task is to: look around.", _ACTIONS, 0.0, False, False)
    history = []
    for number in range(turns):
        action = _ACTIONS[number % len(_ACTIONS)]
        reply = f"<think>\nThis is step {number + 1}.\n</think>\n\n<action>{action}</action>"
        history.append(Turn(action, record(number), reply))
    return Request(Task("0" * 64, "sample", "sample", "sample"), 0, reset, tuple(history), 2)
