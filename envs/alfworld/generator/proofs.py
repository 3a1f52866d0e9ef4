"""Proofs of games: worker processes replay each plan on the native engine."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING

from handoff.children import Children
from handoff.envs.alfworld.games.recipe import Recipe
from handoff.errors import EnvironmentFault, Interrupted, UsageError

if TYPE_CHECKING:
    from handoff.envs.alfworld.native.engine import NativeEngine

_PER_POOL = 200  # games per set of worker processes: each loaded game leaks memory inside textworld


def prove(recipe: Recipe, engine: NativeEngine) -> None:
    """Replay the plan on the native engine.

    Raises :class:`~handoff.errors.EnvironmentFault` unless every action is admissible and exactly the last one wins.
    """
    record = engine.reset(recipe.game())
    if record.won:
        raise EnvironmentFault(f"game {recipe.name} is won at reset")
    for number, action in enumerate(recipe.plan, 1):
        if action not in record.admissible:
            raise EnvironmentFault(f"game {recipe.name}: action {number} of its plan, {action!r}, is not admissible")
        record = engine.step(action)
        if record.won != (number == len(recipe.plan)):
            state = "won" if record.won else "not won"
            raise EnvironmentFault(f"game {recipe.name} is {state} after action {number} of {len(recipe.plan)}")


_engine: NativeEngine | None = None


def _prove_in_worker(recipe: Recipe) -> Recipe:
    global _engine
    if _engine is None:
        # Without the variable an import of alfworld creates a cache folder.
        os.environ.setdefault("ALFWORLD_DATA", tempfile.gettempdir())
        from handoff.envs.alfworld.native.engine import NativeEngine

        _engine = NativeEngine()
    prove(recipe, _engine)
    return recipe


def proven(recipes: Iterable[Recipe], workers: int) -> Iterator[Recipe]:
    """The recipes in order, each after its proof."""
    if workers < 1:
        raise UsageError(f"workers must be at least 1, not {workers}")
    pending = iter(recipes)
    while batch := list(itertools.islice(pending, _PER_POOL)):
        with Children(min(workers, len(batch))) as pool:
            try:
                proofs = [pool.submit(_prove_in_worker, recipe) for recipe in batch]
                for proof in proofs:
                    yield proof.result()
            except BrokenProcessPool as error:
                raise Interrupted("a process that proves games died; the same command resumes the work") from error
            except BaseException:
                pool.end()
                raise
