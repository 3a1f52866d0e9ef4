"""Compares the compiled certificates with textworld itself, and with the planner library's state ids.

    python benchmarks/certificates.py --data DIR [--quick]

*Native.*  Per game four states: at reset, two actions before success, one action before it, one after random actions.
textworld makes the depth-2 certificate: for every first action it resets the environment, replays the prefix and the
action, and reads the record (success, admissible actions).  The environment's planner library then takes every
admissible second action, with `check_goal` after it and `set_state_id` back; this leaves out only the derivation of the
text, which takes nine tenths of a native step and does not affect success.  By full reset and replay each state would
take about half an hour.

*Library.*  Along random walks the facts, admissible actions, success and depth-2 certificate of every state must equal
the planner library's.

The last line is one JSON object: `states` and `games` of the native comparison with its `differences`,
`library_states` and `library_differences`.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

from alfworld_sample import mixed_action, parser, sample
from planner_library import PlannerLibrary

from handoff.envs.alfworld.compiled.dynamics import Dynamics
from handoff.envs.alfworld.games.files import Game
from handoff.envs.alfworld.native.engine import NativeEngine
from handoff.records import Certificate, Record

DEPTH = 2


class NativeSearch:
    """Depth-2 certificates on textworld."""

    def __init__(self) -> None:
        self._engine = NativeEngine()

    def _replay(self, game: Game, actions: Sequence[str]) -> Record:
        record = self._engine.reset(game)
        for action in actions:
            record = self._engine.step(action)
        return record

    def _second_actions(self, admissible: Sequence[str]) -> list[str]:
        """The actions that win from the environment's current state."""
        environment: Any = self._engine._env.unwrapped
        library = environment._pddl_state.downward_lib
        grounded = dict[str, Any]()
        for text, ground in zip(environment.state["_valid_commands"], environment.state["_valid_actions"], strict=True):
            grounded.setdefault(text, ground)
        assert sorted(grounded) == list(admissible)
        here = library.get_state_id()
        wins = []
        for action in admissible:
            operator = environment._pddl_state._operators[grounded[action].id]
            effects = (type(self)._atom() * operator.nb_effect_atoms)()
            library.apply_operator(operator.id, effects)
            if library.check_goal():
                wins.append(action)
            library.set_state_id(here)
        return wins

    @staticmethod
    def _atom() -> Any:
        import fast_downward

        return fast_downward.Atom

    def certify(self, game: Game, prefix: Sequence[str]) -> Certificate:
        root = self._replay(game, prefix)
        if root.won:
            return Certificate(DEPTH, False, 0, ())
        first: list[str] = []
        pairs: list[tuple[str, str]] = []
        seconds = 0
        for action in root.admissible:
            record = self._replay(game, [*prefix, action])
            if record.won:
                first.append(action)
            else:
                seconds += len(record.admissible)
                pairs += [(action, second) for second in self._second_actions(record.admissible)]
        number = len(root.admissible)
        if first:
            return Certificate(DEPTH, False, 1, (number,), tuple(sorted(first)), (min(first),))
        if pairs:
            bridges = tuple(sorted({one for one, _ in pairs}))
            return Certificate(DEPTH, True, 2, (number, seconds), bridges, min(pairs))
        return Certificate(DEPTH, False, None, (number, seconds))


def prefixes(dynamics: Dynamics, rng: random.Random) -> list[tuple[str, ...]]:
    """The prefixes of the four states."""
    plan = dynamics.plan(dynamics.initial)
    state, wandered = dynamics.initial, []
    for _ in range(2):
        wandered.append(rng.choice(dynamics.admissible(state)))
        state = dynamics.apply(state, wandered[-1])
    return [(), plan[:-2], plan[:-1], tuple(wandered)]


def compare_library(game: Game, dynamics: Dynamics, states: int, rng: random.Random) -> tuple[int, list[str]]:
    """(states compared, the differing ones)."""
    library = PlannerLibrary(game.domain, game.problem, dynamics)
    changing = set(dynamics.task.facts)
    state, differing = dynamics.initial, []
    for number in range(states):
        facts = {fact for i, fact in enumerate(dynamics.task.facts) if state >> i & 1}
        same = (
            facts == library.facts() & changing
            and dynamics.admissible(state) == library.admissible()
            and dynamics.won(state) == library.won()
            and dynamics.certify(state, DEPTH) == library.certify(DEPTH)
        )
        if not same:
            differing.append(f"state {number} of the walk")
        action = mixed_action(rng, dynamics.admissible(state), dynamics.plan(state), 0.3)
        state = dynamics.apply(state, action)
        library.apply_action(action)
    return states, differing


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--per-type", type=int, default=2, help="games of each task type (default: 2)")
    options.add_argument("--walk", type=int, default=170, help="states per game against the library (default: 170)")
    arguments = options.parse_args()
    per_type, walk = (1, 20) if arguments.quick else (arguments.per_type, arguments.walk)
    native = NativeSearch()
    states = games = differences = library_states = library_differences = 0
    distances: Counter[str] = Counter()
    for number, (task, game) in enumerate(sample(arguments.data, per_type, seed=7)):
        rng = random.Random(number)
        dynamics = Dynamics.compile(game.domain, game.grammar, game.problem)
        games += 1
        for prefix in prefixes(dynamics, rng)[: 2 if arguments.quick else None]:
            state = dynamics.initial
            for action in prefix:
                state = dynamics.apply(state, action)
            mine, theirs = dynamics.certify(state, DEPTH), native.certify(game, prefix)
            states += 1
            distances[str(theirs.distance)] += 1
            if mine != theirs:
                differences += 1
                print(f"{task.name} after {prefix}: {mine} against native {theirs}", flush=True)
        seen, differing = compare_library(game, dynamics, walk, rng)
        library_states += seen
        library_differences += len(differing)
        for state_name in differing:
            print(f"{task.name}: {state_name} differs from the planner library", flush=True)
        print(f"{task.name.split('/')[0][:60]:60} {states} native, {library_states} library states", flush=True)
    print(
        json.dumps(
            {
                "states": states,
                "games": games,
                "differences": differences,
                "native_distances": dict(sorted(distances.items())),
                "library_states": library_states,
                "library_differences": library_differences,
            }
        )
    )
    return 1 if differences or library_differences else 0


if __name__ == "__main__":
    sys.exit(main())
