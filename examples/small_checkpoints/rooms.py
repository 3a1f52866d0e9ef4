"""Training games, demonstrations in them, and what a checkpoint is shown: the environment's side of the training.

Games come from ``handoff games generate``'s own drafts of the split ``train``, so their rooms are the 108 training
scenes and never one of the 12 unseen ones.  A game is compiled once and kept on disk (``HANDOFF_CACHE``).
"""

from __future__ import annotations

import functools
import itertools
import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs
from arguments import refuse

from handoff.envs.alfworld import CompiledGame
from handoff.envs.alfworld.games.recipe import Recipe
from handoff.envs.alfworld.generator.drafts import drafts
from handoff.policies import Request, Turn
from handoff.policies.language.prompts import Template
from handoff.records import Record, Task

GAMES_SEED = 2029  # of the drafts

_TASK = Task("0" * 64, "training", "training", "train")  # the template does not show it
_NAMED = re.compile(r"\b([a-z]+) (\d+)\b")


@functools.cache
def _template() -> Template:
    return Template.named("alfworld-compact", form="text", history=None)


@functools.cache
def recipes(count: int) -> list[Recipe]:
    """The first ``count`` training games."""
    return list(itertools.islice(drafts("train", count, GAMES_SEED), count))


@functools.lru_cache(maxsize=32)
def compiled(recipe_number: int, count: int) -> CompiledGame:
    """A training game by its number, compiled."""
    return CompiledGame.of(recipes(count)[recipe_number].game())


class Names:
    """Other numbers for the things of a room: ``cabinet 3`` becomes ``cabinet 7`` wherever it is named.

    The room stays the same room; a model that sees it under many numberings cannot learn it by heart.
    """

    def __init__(self, texts: Sequence[str], rng: random.Random) -> None:
        most: dict[str, int] = {}
        for kind, number in itertools.chain.from_iterable(_NAMED.findall(text) for text in texts):
            most[kind] = max(most.get(kind, 0), int(number))
        self._there: dict[tuple[str, str], str] = {}
        self._back: dict[tuple[str, str], str] = {}
        for kind in sorted(most):
            numbers = [str(number) for number in range(1, most[kind] + 1)]
            for old, new in zip(numbers, rng.sample(numbers, len(numbers)), strict=True):
                self._there[kind, old], self._back[kind, new] = new, old

    def there(self, text: str) -> str:
        """A text of the game in the new numbering."""
        return _NAMED.sub(lambda m: f"{m[1]} {self._there.get((m[1], m[2]), m[2])}", text)

    def back(self, action: str) -> str:
        """An action in the new numbering as the game knows it."""
        return _NAMED.sub(lambda m: f"{m[1]} {self._back.get((m[1], m[2]), m[2])}", action)


@attrs.define
class Demonstration:
    """A game's first text and (action, answer) pairs that win it."""

    reset: str
    steps: list[tuple[str, str]]

    def renamed(self, rng: random.Random) -> Demonstration:
        names = Names([self.reset, *itertools.chain.from_iterable(self.steps)], rng)
        steps = [(names.there(action), names.there(answer)) for action, answer in self.steps]
        return Demonstration(names.there(self.reset), steps)

    def examples(self) -> Iterator[tuple[str, str]]:
        """A (prompt, action) pair for each step."""
        for done, (action, _) in enumerate(self.steps):
            yield prompt(self.reset, self.steps[:done]), action


def prompt(reset: str, steps: Sequence[tuple[str, str]]) -> str:
    """The prompt after (action, answer) pairs."""
    history = tuple(Turn(action, _record(answer)) for action, answer in steps)
    return _template().render(Request(_TASK, 0, _record(reset), history, remaining=1)).text


@functools.lru_cache(maxsize=4096)
def _record(text: str) -> Record:
    return Record(text, (), 0.0, False, False)


def demonstrate(game: CompiledGame, start: int | None = None) -> Demonstration:
    """A shortest solution, from the state ``start`` on, by a planner that knows where everything is.

    Several receptacles can be reached from where one stands, so there are shortest plans that take a thing from a
    place that was never looked at.  Among equally good ``go to`` actions this takes the first one after which the
    things that the next action names are in sight, if there is one.
    """
    state, steps, holds = game.initial if start is None else start, [], set()
    while not game.won(state):
        plan = game.plan(state)
        action = plan[0]
        if action.startswith("go to ") and not _in_sight(game, state, plan, holds):
            left = len(plan) - 1
            for other in game.admissible(state):
                there = game.dynamics.apply(state, other)
                if other.startswith("go to ") and game.distance(there, left) == left:
                    after = game.plan(there)
                    if _in_sight(game, state, (other, *after), holds):
                        action = other
                        break
        state, record = game.step(state, action)
        if action.startswith("take "):
            holds = set(_NAMED.findall(action)[:1])
        steps.append((action, record.observation))
    return Demonstration(game.reset_record.observation, steps)


def _in_sight(game: CompiledGame, state: int, plan: Sequence[str], holds: set[tuple[str, str]]) -> bool:
    visible = set(_NAMED.findall(game.step(state, plan[0])[1].observation))
    return len(plan) < 2 or set(_NAMED.findall(plan[1])) - holds <= visible


def shuffled(game: CompiledGame, rng: random.Random, moves: int = 12) -> int:
    """A state of ``game`` in which some things lie elsewhere, brought about by valid actions.

    Whoever plays on from it is shown the reset text and nothing of these actions: it is another room.
    """
    state = game.initial
    places = [action for action in game.admissible(state) if action.startswith("go to ")]

    def act(action: str) -> bool:
        nonlocal state
        if action not in game.admissible(state):
            return False
        state = game.dynamics.apply(state, action)
        return True

    for _ in range(moves):
        act(rng.choice(places))
        for action in game.admissible(state):
            if action.startswith("open "):
                act(action)
        takes = [action for action in game.admissible(state) if action.startswith("take ")]
        if not takes:
            continue
        before = state
        act(rng.choice(takes))
        for place in rng.sample(places, len(places)):
            act(place)
            opened = next((c for c in game.admissible(state) if c.startswith("open ")), None)
            if opened:
                act(opened)
            puts = [action for action in game.admissible(state) if action.startswith("move ")]
            if puts:
                act(rng.choice(puts))
            if opened:
                act(opened.replace("open ", "close "))
            if puts:
                break
        else:
            state = before  # some things can be put nowhere
    for place in places:  # nothing stays open
        act(place)
        for action in game.admissible(state):
            if action.startswith("close "):
                act(action)
    return game.initial if game.won(state) else state


def read_demonstrations(path: Path) -> list[Demonstration]:
    """What ``demonstrate.py`` wrote.  Ends the script if it is not there whole."""
    demonstrations, number = [], 0
    try:
        for number, text in enumerate(path.read_text("utf-8").splitlines(), start=1):  # noqa: B007 - told below
            line = json.loads(text)
            demonstrations.append(Demonstration(line["reset"], [tuple(step) for step in line["steps"]]))
    except OSError as error:
        refuse(f"cannot read {path}: {error.strerror}; demonstrate.py --out {path.parent} makes it")
    except (ValueError, KeyError, TypeError):
        refuse(f"{path}, line {number}: no demonstration; delete the file and make it again")
    return demonstrations


class Room:
    """One episode of a game, under a numbering of its own."""

    def __init__(self, game: CompiledGame, start: int, rng: random.Random | None = None) -> None:
        self._game = game
        self._state = start
        reset = game.reset_record.observation
        self._names = None if rng is None else Names([reset], rng)
        self.reset = self._there(reset)
        self.steps: list[tuple[str, str]] = []
        self.won = game.won(self._state)

    def prompt(self) -> str:
        """What the policy is shown now."""
        return prompt(self.reset, self.steps)

    def admissible(self) -> list[str]:
        """The admissible actions, sorted."""
        return sorted(self._there(action) for action in self._game.admissible(self._state))

    def step(self, action: str) -> None:
        """Take an action."""
        inner = action if self._names is None else self._names.back(action)
        self._state, record = self._game.step(self._state, inner)
        self.steps.append((action, self._there(record.observation)))
        self.won = record.won

    def follow(self, actions: Sequence[str]) -> None:
        """Take actions of the game's own numbering, such as the first ones of a plan."""
        for action in actions:
            self.step(self._there(action))

    def _there(self, text: str) -> str:
        return text if self._names is None else self._names.there(text)
