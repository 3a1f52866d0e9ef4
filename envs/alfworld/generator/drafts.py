"""Drafts of games: task types in turn, scenes in a shuffled order, objects and receptacles as varied as possible.

A draft depends on (split, seed) and the games before it, never on the number of games: a longer list begins with a
shorter one.  Drafts are quick; their proof on the native engine is slow and separate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

import attrs

from handoff.envs.alfworld.games.files import TASK_TYPES
from handoff.envs.alfworld.games.recipe import Recipe
from handoff.envs.alfworld.generator import wheel
from handoff.envs.alfworld.generator.placement import Wish, may_hold, out_of_reach, place, single, starts
from handoff.envs.alfworld.generator.planning import plan
from handoff.envs.alfworld.generator.problem import Goal
from handoff.envs.alfworld.generator.scenes import (
    SEEN_SCENES,
    UNSEEN_SCENES,
    Location,
    Scene,
    pickupable_types,
    room_of,
    scene,
)
from handoff.envs.dice import Dice
from handoff.errors import UsageError
from handoff.seeds import derive

SPLIT_SCENES = {"train": SEEN_SCENES, "valid_seen": SEEN_SCENES, "valid_unseen": UNSEEN_SCENES}

#: Receptacle types that are targets in the release.
_TARGETS = frozenset({
    "ArmChair", "Bed", "Cabinet", "Cart", "CoffeeMachine", "CoffeeTable", "CounterTop", "Desk", "DiningTable", "Drawer",
    "Dresser", "Fridge", "GarbageCan", "Microwave", "Ottoman", "Safe", "Shelf", "SideTable", "Sofa", "StoveBurner",
    "Toilet", "ToiletPaperHanger",
})  # fmt: skip
#: The targets with room for one object only.
_NARROW = frozenset({"CoffeeMachine", "StoveBurner", "ToiletPaperHanger"})
#: Task type -> (property of the object, receptacle type of the treatment).
_TREATMENT = {
    "pick_clean_then_place_in_recep": ("Cleanable", "SinkBasin"),
    "pick_heat_then_place_in_recep": ("Heatable", "Microwave"),
    "pick_cool_then_place_in_recep": ("Coolable", "Fridge"),
}


@attrs.frozen
class SceneGoal:
    """One task in one scene."""

    goal: Goal
    scene: int


@lru_cache(maxsize=2048)
def scene_goals(kind: str, number: int) -> tuple[SceneGoal, ...]:
    """All tasks of a type in scene ``number``, sorted."""
    if room_of(number) not in wheel.constants()["GOALS_VALID"][kind]:
        return ()
    room = scene(number)
    things = [t for t in room.types if t in pickupable_types() and not out_of_reach(t)]
    if kind == "look_at_obj_in_light":
        lamps = [f for f in room.fixtures if f.type == "DeskLamp" and f.within is not None]
        pairs = [(t, "DeskLamp") for t in things if lamps and _startable(t, room)]
    else:
        pairs = [(t, r) for t in things for r in sorted({r.type for r in room.receptacles}) if _fits(kind, t, r, room)]
    return tuple(SceneGoal(Goal(kind, thing, target), number) for thing, target in pairs)


def _startable(thing: str, room: Scene, avoid: frozenset[str] = frozenset()) -> bool:
    return any(starts(thing, r.type) and r.type not in avoid for r in room.receptacles)


def _fits(kind: str, thing: str, target: str, room: Scene) -> bool:
    if target not in _TARGETS or thing not in may_hold(target):
        return False
    if kind == "pick_two_obj_and_place" and (target in _NARROW or single(thing)):
        return False
    if kind in _TREATMENT:
        property_, appliance = _TREATMENT[kind]
        if thing not in wheel.constants()["VAL_ACTION_OBJECTS"][property_]:
            return False
        if target == appliance or appliance not in {r.type for r in room.receptacles}:
            return False
    return _startable(thing, room, _avoid(kind, target))


def _avoid(kind: str, target: str) -> frozenset[str]:
    """Receptacle types where the object must not lie at the start: there the task would begin (half) done."""
    if kind in ("pick_and_place_simple", "pick_two_obj_and_place"):
        return frozenset({target})
    return frozenset({"Fridge"} if kind == "pick_cool_then_place_in_recep" else ())


def reserved(task: SceneGoal) -> bool:
    """Whether a task in a scene is reserved for ``valid_seen``: about one in six is.  The others are for ``train``, so
    no training game, of any seed, shares task and scene with a game of the seen split."""
    goal = task.goal
    return derive("alfworld reserved task", goal.type, goal.thing, goal.target, task.scene) % 6 == 0


def allowed(split: str, task: SceneGoal) -> bool:
    """Whether a task in a scene belongs to a split."""
    return split == "valid_unseen" or reserved(task) == (split == "valid_seen")


def drafts(split: str, count: int, seed: int) -> Iterator[Recipe]:
    """``count`` games of ``split`` with their plans, not yet proven on the native engine.

    Raises :class:`~handoff.errors.UsageError` for an unknown split.
    """
    if split not in SPLIT_SCENES:
        raise UsageError(f"there is no split {split!r}; the splits are {', '.join(SPLIT_SCENES)}")
    drafter = _Drafter(split, seed)
    for index in range(count):
        yield drafter.draft(index)


class _Drafter:
    def __init__(self, split: str, seed: int) -> None:
        self.split, self.seed = split, seed
        self.used: Counter[SceneGoal] = Counter()
        self.used_thing: Counter[tuple[str, str]] = Counter()
        self.used_target: Counter[tuple[str, str]] = Counter()
        self.scenes: dict[str, list[int]] = {}
        for kind in TASK_TYPES:
            numbers = [n for n in SPLIT_SCENES[split] if any(allowed(split, task) for task in scene_goals(kind, n))]
            self.scenes[kind] = Dice("alfworld scenes", split, seed, kind).shuffled(numbers)

    def draft(self, index: int) -> Recipe:
        kind = TASK_TYPES[index % len(TASK_TYPES)]
        order = self.scenes[kind]
        number = order[index // len(TASK_TYPES) % len(order)]
        dice = Dice("alfworld game", self.split, self.seed, index)
        tasks = dice.shuffled(task for task in scene_goals(kind, number) if allowed(self.split, task))
        for task in sorted(tasks, key=self._uses):
            recipe = self._build(task, index, dice)
            if recipe is not None:
                goal = task.goal
                self.used[task] += 1
                self.used_thing[kind, goal.thing] += 1
                self.used_target[kind, goal.target] += 1
                return recipe
        raise AssertionError(f"no game of type {kind} can be made in scene {number}")

    def _uses(self, task: SceneGoal) -> tuple[int, int]:
        goal = task.goal
        return self.used[task], self.used_thing[goal.type, goal.thing] + self.used_target[goal.type, goal.target]

    def _build(self, task: SceneGoal, index: int, dice: Dice) -> Recipe | None:
        goal, room = task.goal, scene(task.scene)
        wish = Wish(goal.thing, 2 if goal.type == "pick_two_obj_and_place" else 1, _avoid(goal.type, goal.target))
        try:
            placement = place(room, wish, dice)
        except ValueError:
            return None
        trial = f"trial_G{self.seed}_{self.split.removeprefix('valid_')}_{index:06d}"
        recipe = Recipe(
            id="",
            name=f"{goal.type}-{goal.thing}-None-{goal.target}-{task.scene}/{trial}",
            type=goal.type,
            thing=goal.thing,
            target=goal.target,
            sentence=dice.pick(goal.sentences()),
            scene=task.scene,
            start=_start(room, dice),
            held=dict(sorted(placement.held.items())),
            floor=placement.floor,
            inside=placement.inside,
            plan=(),
        )
        problem = recipe.rebuild().problem
        actions = plan(problem, goal.type, goal.thing, goal.target)
        if not actions:
            return None
        return attrs.evolve(recipe, id=recipe.rebuild().id, plan=actions)


def _start(room: Scene, dice: Dice) -> Location:
    """A location in the middle of the room: not one from which the agent uses a receptacle."""
    busy = {r.location for r in room.receptacles}
    while True:
        x, z = dice.pick(room.points)
        start = (x, z, dice.below(4), 30)
        if start not in busy:
            return start
