"""A reacher's episode and a solver's turn in an environment whose state is a message list."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from handoff.canonical import canonical, digest
from handoff.episodes.batching import Batcher
from handoff.episodes.host import Ask, View
from handoff.episodes.pool import Episode
from handoff.episodes.turns import Situation, decide_and_step, is_over
from handoff.errors import ReplayMismatch
from handoff.messages.history import conversation
from handoff.policies.language.fit import Prompting
from handoff.policies.policy import Request, Turn
from handoff.protocols.frontier.inputs import EqualInputs
from handoff.protocols.frontier.records import Cell, EndpointCell
from handoff.protocols.recorded.config import RecordedConfig
from handoff.protocols.recorded.records import Continuation, History, Rebuilt, calls_in
from handoff.records import Message, Record, Step, Task, to_json
from handoff.replay import records_digest
from handoff.seeds import REACH, SeedSchedule

#: The remark of a decision whose text holds calls that the server should have read.
MARKUP = "unparsed_markup"
_SEEDS = 2**63


def messages_json(messages: Sequence[Message]) -> list[object]:
    """The canonical form of a message list, by which two are compared byte for byte."""
    return [to_json(message) for message in messages]


def closed(history: Sequence[Turn], reset: Record, request: str) -> tuple[Record, tuple[Turn, ...]]:
    """Reset record and history with the last message replaced by ``request``, for a last reply."""
    last = (Message("user", request),)
    if not history:
        return attrs.evolve(reset, messages=(*reset.messages[:-1], *last)), ()
    turn = history[-1]
    return reset, (*history[:-1], attrs.evolve(turn, record=attrs.evolve(turn.record, messages=last)))


def seed_after(history: History, cut: int, config: RecordedConfig) -> int:
    """The seed of the decision that was cut off: the first of a solver's consecutive seeds."""
    if cut < len(history.steps):
        return history.steps[cut].decision.seed
    return SeedSchedule(config.run_seed).decision(history.task, history.slot, REACH, cut)


def seed_at(first: int, position: int) -> int:
    """The seed of a solver's decision: s, s + 1, s + 2, ..."""
    return (first + position) % _SEEDS


async def reach(episode: Episode, task: Task, cell: Cell, batcher: Batcher, config: RecordedConfig) -> History:
    """A reacher's whole episode."""
    seeds = SeedSchedule(config.run_seed)
    ask = Ask(plan=batcher.policy.needs_plan)
    reset_seed = seeds.reset(task.id, cell.slot)
    view = await episode.reset(task, reset_seed, ask)
    situation = Situation(
        task,
        cell.slot,
        view.record,
        config.decisions,
        lambda position: seeds.decision(task.id, cell.slot, REACH, position),
    )
    steps: list[Step] = []
    history: tuple[Turn, ...] = ()
    closing, outcome = False, "ended" if is_over(view) else None
    while outcome is None:
        request = situation.request(len(steps), history, view)
        if await _is_full(batcher, request, config):
            if not config.last_request:
                outcome = "context"
                break
            closing = True
            reset, turns = closed(history, situation.reset, config.last_request)
            request = attrs.evolve(request, reset=reset, history=turns)
        decision, view = await decide_and_step(episode, request, batcher, view, ask)
        steps.append(Step(decision, view.record))
        history += (Turn.of(steps[-1]),)
        outcome = reach_outcome(steps, closing, config)
    return History(task.id, cell.slot, cell.reacher, reset_seed, situation.reset, tuple(steps), outcome, closing)


def reach_outcome(steps: Sequence[Step], closing: bool, config: RecordedConfig) -> str | None:
    """Why a reacher's episode ends after ``steps``, if it does."""
    last = steps[-1]
    if last.record.done or last.record.won:
        return "ended"
    if MARKUP in last.decision.flags:
        return "markup"
    if closing or last.decision.status == "context_overflow":
        return "context"
    if len(steps) >= config.decisions:
        return "decisions"
    return "calls" if calls_in(steps) >= config.calls else None


async def _is_full(batcher: Batcher, request: Request, config: RecordedConfig) -> bool:
    """Whether the prompt has more tokens than the limit, where the policy can count them."""
    policy = batcher.policy
    if config.context is None or not isinstance(policy, Prompting):
        return False
    tokens = await policy.count(request)
    return tokens is not None and tokens > config.context


@attrs.frozen
class Handover:
    """What is handed over: the history before the cut, and what a solver is shown of it."""

    cut: int
    steps: tuple[Step, ...]
    #: Of the reset, as the solver is shown it.
    reset: Record
    turns: tuple[Turn, ...]

    @classmethod
    def of(cls, history: History, config: RecordedConfig) -> Handover | None:
        """``None``: the trajectory never comes to the cut."""
        cut = config.rule.place(history)
        if cut is None:
            return None
        steps = history.steps[:cut]
        turns = tuple(Turn.of(step) for step in steps)
        reset = history.reset
        if history.closing and cut == len(history.steps) - 1:
            reset, turns = closed(turns, reset, config.last_request)
        return cls(cut, steps, reset, turns)

    def messages(self) -> tuple[Message, ...]:
        """The message list that a solver gets."""
        return conversation(self.reset, ((turn.action, turn.record) for turn in self.turns))

    def requests(self, task: Task, end: Continuation, config: RecordedConfig) -> list[Request]:
        """The request of each decision of a continuation, from the records."""
        budget, turns, requests = config.budget_after(self.cut), list(self.turns), []
        for position, step in enumerate(end.steps):
            requests.append(
                Request(task, step.decision.seed, self.reset, tuple(turns), budget - position, slot=end.slot)
            )
            turns.append(Turn.of(step))
        return requests


async def solve(
    episode: Episode,
    task: Task,
    history: History,
    row: EndpointCell,
    batcher: Batcher,
    config: RecordedConfig,
    inputs: EqualInputs,
) -> Continuation:
    """A solver's turn from the rebuilt history.

    Raises :class:`~handoff.errors.ReplayMismatch` if the history cannot be rebuilt byte for byte, and
    :class:`~handoff.errors.Interrupted` if the solver is shown something else than another solver.
    """
    given = Handover.of(history, config)
    if given is None:
        return Continuation(*row, cut=None, outcome="unreached")
    ask = Ask(plan=batcher.policy.needs_plan, messages=True, answer=True)
    view, rebuilt = await rebuild(episode, task, history, given.cut, ask)
    first, budget = seed_after(history, given.cut, config), config.budget_after(given.cut)
    situation = Situation(task, row.slot, given.reset, budget, lambda position: seed_at(first, position))
    turns, steps, outcome = given.turns, list[Step](), None
    request = situation.request(0, turns, view)
    rebuilt = attrs.evolve(
        rebuilt,
        messages_digest=digest(messages_json(given.messages())),
        messages=len(given.messages()),
        input_digest=request.input_digest(),
    )
    inputs.before(task, row, batcher.policy, request)
    while outcome is None:
        request = situation.request(len(steps), turns, view)
        decision, view = await decide_and_step(episode, request, batcher, view, ask)
        steps.append(Step(decision, view.record))
        turns += (Turn.of(steps[-1]),)
        outcome = solve_outcome(steps, budget, config)
    inputs.after(task, row, steps[0].decision)
    answer = view.answer if outcome == "ended" else None
    return Continuation(*row, cut=given.cut, outcome=outcome, rebuilt=rebuilt, steps=tuple(steps), answer=answer)


def solve_outcome(steps: Sequence[Step], budget: int, config: RecordedConfig) -> str | None:
    """Why a solver's turn ends after ``steps``, if it does: answers, invalid actions and context limits absorb.

    After a cut before a turn of the user the native rules hold, under which an invalid action costs its decision.
    """
    last = steps[-1]
    if last.record.done or last.record.won:
        return "ended"
    if MARKUP in last.decision.flags:
        return "markup"
    if last.decision.status == "context_overflow":
        return "context"
    if not config.rule.of_turns and (not last.decision.action or last.record.problem):
        return "invalid"
    return "budget" if len(steps) >= budget else None


async def rebuild(episode: Episode, task: Task, history: History, cut: int, ask: Ask) -> tuple[View, Rebuilt]:
    """Reset the task and replay the replies before the cut: every record equal, and the message list byte for byte.

    Raises :class:`~handoff.errors.ReplayMismatch` at the first difference.
    """
    recorded = history.records()[: cut + 1]
    actions = [step.decision.action or "" for step in history.steps[:cut]]
    view = await episode.replay(task, history.reset_seed, actions, recorded, ask)
    expected = conversation(history.reset, zip(actions, recorded[1:], strict=True))
    require_same_messages(task, expected, view.messages)
    count, form = len(expected), digest(messages_json(expected))
    return view, Rebuilt(len(recorded), records_digest(recorded), count, form, "")


def require_same_messages(task: Task, recorded: Sequence[Message], rebuilt: Sequence[Message] | None) -> None:
    """Raise :class:`~handoff.errors.ReplayMismatch` unless the two lists are equal byte for byte in canonical JSON."""
    if rebuilt is not None and canonical(messages_json(recorded)) == canonical(messages_json(rebuilt)):
        return
    theirs = rebuilt or ()
    place = next((i for i, (a, b) in enumerate(zip(recorded, theirs, strict=False)) if a != b), len(theirs))
    raise ReplayMismatch(
        f"task {task.name or task.id}: message {place + 1} of the rebuilt list is not the recorded one "
        f"({len(recorded)} were recorded, {len(theirs)} rebuilt)"
    )
