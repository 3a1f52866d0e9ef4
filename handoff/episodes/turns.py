"""The one loop of every episode: decide, step, remember."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from handoff.episodes.batching import Batcher
from handoff.episodes.host import Ask, View
from handoff.episodes.pool import Episode
from handoff.policies.policy import Request, Turn
from handoff.records import Decision, Record, Step, Task


@attrs.frozen
class Situation:
    """What stays the same while one policy acts in one episode."""

    task: Task
    slot: int
    #: The record after reset.
    reset: Record
    #: Actions that the policy has.
    budget: int
    #: The seed of the decision at a position, counted from 0.
    seed: Callable[[int], int]
    #: What all decisions are sampled at; ``None``: the policy's own temperature.
    temperature: float | None = None

    def request(self, position: int, history: tuple[Turn, ...], view: View) -> Request:
        return Request(
            task=self.task,
            seed=self.seed(position),
            reset=self.reset,
            history=history,
            remaining=self.budget - position,
            plan=view.plan,
            slot=self.slot,
            temperature=self.temperature,
        )


async def act(
    episode: Episode,
    batcher: Batcher,
    situation: Situation,
    history: tuple[Turn, ...],
    view: View,
    ask: Ask,
    ended: Callable[[View], bool],
) -> tuple[tuple[Step, ...], View]:
    """Act from ``view`` until ``ended`` or the budget is spent.  Returns the steps and the last view.

    ``history`` are the turns before, by another policy perhaps; ``ask`` says what to ask of each new state.
    """
    steps: list[Step] = []
    while not ended(view) and len(steps) < situation.budget:
        request = situation.request(len(steps), history, view)
        decision, view = await decide_and_step(episode, request, batcher, view, ask)
        steps.append(Step(decision, view.record, view.certificate, view.distance))
        history += (Turn.of(steps[-1]),)
    return tuple(steps), view


async def decide_and_step(
    episode: Episode, request: Request, batcher: Batcher, view: View, ask: Ask
) -> tuple[Decision, View]:
    """One decision and its action.  A decision without an action spends the step and leaves the environment alone."""
    decision = await batcher.decide(request)
    if not decision.action:
        return decision, view
    return decision, await episode.step(decision.action, ask)


def is_over(view: View) -> bool:
    """Whether the episode has ended, by success or otherwise."""
    return view.record.won or view.record.done
