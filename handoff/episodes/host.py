"""The environments of one process, one per open episode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from handoff import frontier
from handoff.environment import Environment, Messages, Planner, Scored
from handoff.guard import adapter
from handoff.guard.watch import Watch
from handoff.records import Certificate, Message, Record, Task
from handoff.replay import replay, require_equal


class WorkerLost(Exception):
    """The worker of an episode is gone, and the environment with it.  The text is one sentence without a period."""


@attrs.frozen
class View:
    """A state as the environment shows it, with the answers to an :class:`Ask`."""

    record: Record
    #: Frontier membership.
    certificate: Certificate | None = None
    #: Actions to success, empty if the environment knows none.
    plan: tuple[str, ...] | None = None
    #: Actions to success, if within the limit.
    distance: int | None = None
    #: The conversation, of an environment that has one.
    messages: tuple[Message, ...] | None = None
    #: What the episode has come to, of an environment that scores it; JSON-safe.
    answer: Any = None


@attrs.frozen
class Ask:
    """Questions about a state beside its record."""

    #: Frontier membership at this depth.
    depth: int | None = None
    #: A plan.
    plan: bool = False
    #: The distance to success, up to this limit.
    distances: int | None = None
    #: The conversation.
    messages: bool = False
    #: What the episode has come to.
    answer: bool = False


class Host:
    """Holds the environments of one process: one per open episode, reused after the episode."""

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any],
        watch: Watch | None = None,
        timeout: float | None = None,
        shared: bool = True,
    ) -> None:
        """As :func:`handoff.guard.adapter.make` takes them."""
        self._name, self._options = name, dict(options)
        self._watch, self._timeout, self._shared = watch or Watch(), timeout, shared
        self._free: list[Environment] = []
        self._episodes: dict[int, tuple[Environment, Task, int, list[str]]] = {}

    def reset(self, episode: int, task: Task, seed: int, ask: Ask) -> View:
        environment = self._take(episode)
        self._episodes[episode] = (environment, task, seed, [])
        return self._view(episode, environment.reset(task, seed), ask)

    def step(self, episode: int, action: str, ask: Ask) -> View:
        environment, _, _, taken = self._held(episode)
        record = environment.step(action)
        taken.append(action)
        return self._view(episode, record, ask)

    def replay(
        self, episode: int, task: Task, seed: int, actions: Sequence[str], recorded: Sequence[Record], ask: Ask
    ) -> View:
        environment = self._take(episode)
        self._episodes[episode] = (environment, task, seed, [action for action in actions if action])
        return self._view(episode, replay(environment, task, seed, actions, recorded)[-1], ask)

    def certify_along(
        self, episode: int, task: Task, seed: int, actions: Sequence[str], recorded: Sequence[Record], ask: Ask
    ) -> list[View]:
        views = [self.replay(episode, task, seed, (), recorded[:1], ask)]
        views += self._along(episode, actions, recorded, 0, ask, views[0])
        return views

    def follow(
        self, episode: int, actions: Sequence[str], recorded: Sequence[Record], taken: int, ask: Ask
    ) -> list[View]:
        # The first action may be none: then its view is that of the state before it, with the answers asked for.
        first = View(recorded[0]) if not actions or actions[0] else self._view(episode, recorded[0], ask)
        return self._along(episode, actions, recorded, taken, ask, first)

    def _along(
        self, episode: int, actions: Sequence[str], recorded: Sequence[Record], taken: int, ask: Ask, view: View
    ) -> list[View]:
        task = self._held(episode)[1]
        views = []
        for step, action in enumerate(actions, start=1):
            if action:
                view = self.step(episode, action, ask)
            require_equal(recorded[step], view.record, task, taken + step)
            views.append(view)
        return views

    def judge(self, episode: int, task: Task, method: str, *arguments: Any) -> Any:
        """What ``method`` of an environment without an episode gives: that of an ability which depends on its arguments
        alone."""
        environment = self._take(episode)
        self._episodes[episode] = (environment, task, 0, [])
        return getattr(environment, method)(*arguments)

    def close(self, episode: int) -> None:
        held = self._episodes.pop(episode, None)
        if held is not None:
            self._free.append(held[0])

    def _held(self, episode: int) -> tuple[Environment, Task, int, list[str]]:
        if episode not in self._episodes:
            raise WorkerLost("an environment worker was started anew in the middle of an episode")
        return self._episodes[episode]

    def _take(self, episode: int) -> Environment:
        self.close(episode)
        if self._free:
            return self._free.pop()
        return adapter.make(self._name, self._options, self._watch, self._timeout, self._shared)

    def _view(self, episode: int, record: Record, ask: Ask) -> View:
        environment, task, seed, taken = self._episodes[episode]
        certificate = plan = distance = None
        if ask.depth is not None:
            certificate = frontier.certify(environment, task, seed, taken, record, ask.depth)
        if ask.plan and not (record.won or record.done):
            plan = environment.plan() if isinstance(environment, Planner) else ()
        if ask.distances is not None:
            distance = frontier.distance(environment, task, seed, taken, record, ask.distances)
        messages = answer = None
        if ask.messages and isinstance(environment, Messages):
            messages = tuple(environment.messages())
        if ask.answer and isinstance(environment, Scored):
            answer = environment.answer()
        return View(record, certificate, plan, distance, messages, answer)
