"""Many games at once, with the interface of gymnasium's vector environments (without gymnasium).

>>> envs = VectorAlfworld(games, num_envs=64, max_steps=50)                                  # doctest: +SKIP
>>> observations, infos = envs.reset(seed=0)                                                 # doctest: +SKIP
>>> observations, rewards, terminations, truncations, infos = envs.step(actions)             # doctest: +SKIP

Observations are tuples of strings; ``infos["admissible"][i]`` are the admissible actions of place ``i``.  An episode
terminates when the game is won (reward 1, else 0) and is truncated after ``max_steps`` steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from handoff.envs.alfworld.compiled.engine import CompiledEpisode, CompiledGame
from handoff.errors import UsageError
from handoff.records import Record

Infos = dict[str, Any]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

AUTORESET = ("next_step", "same_step", "disabled")


class VectorAlfworld:
    """``num_envs`` places that play ``games``.

    ``autoreset`` is gymnasium's.  With ``next_step`` (the default) the step after the end of an episode ignores its
    action, starts the next episode and gives reward 0.  With ``same_step`` the next episode starts at once, and the end
    is in ``infos["final_obs"]`` and ``infos["final_info"]``.  With ``disabled`` the caller resets places by
    ``reset(options={"reset_mask": mask})``.

    Episode ``k`` of place ``i`` plays game ``(i + k * num_envs) % len(games)`` in the order of ``games`` or, with
    ``shuffle``, in an order drawn by the seed of ``reset``.  The games of a place never depend on the other places.
    """

    def __init__(
        self,
        games: Sequence[CompiledGame],
        num_envs: int,
        max_steps: int | None = None,
        autoreset: str = "next_step",
        shuffle: bool = False,
    ) -> None:
        if not games or num_envs < 1:
            raise UsageError("a vector environment needs at least one game and one place")
        if autoreset not in AUTORESET:
            raise UsageError(f"autoreset is one of {', '.join(AUTORESET)}, not {autoreset!r}")
        if max_steps is not None and max_steps < 1:
            raise UsageError(f"max_steps must be at least 1, not {max_steps}")
        self.games = tuple(games)
        self.num_envs = num_envs
        self.max_steps = max_steps
        self.metadata = {"autoreset_mode": autoreset}
        self.closed = False
        self._autoreset, self._shuffle = autoreset, shuffle
        self._order = np.arange(len(self.games))
        self._episodes: list[CompiledEpisode | None] = [None] * num_envs
        self._played = np.full(num_envs, -1)
        self._steps = np.zeros(num_envs, dtype=np.int64)
        self._ended: Bools = np.zeros(num_envs, dtype=np.bool_)

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[tuple[str, ...], Infos]:
        """Start the next episode at every place, or where ``options["reset_mask"]`` (a boolean per place) is true.

        With a ``seed`` every such place starts over at its first episode, and ``shuffle`` draws a new order.
        """
        mask = np.ones(self.num_envs, dtype=np.bool_)
        if options and "reset_mask" in options:
            mask = np.asarray(options["reset_mask"], dtype=np.bool_)
            if mask.shape != (self.num_envs,):
                raise UsageError(f"reset_mask must have one boolean for each of {self.num_envs} places")
        if seed is not None:
            self._played[mask] = -1
            if self._shuffle:
                self._order = np.random.default_rng(seed).permutation(len(self.games))
        for i in np.flatnonzero(mask):
            self._begin(int(i))
        if any(episode is None for episode in self._episodes):
            raise UsageError("the first reset must cover every place")
        return self._observations(), self._infos([self._record(i) for i in range(self.num_envs)])

    def step(self, actions: Sequence[str]) -> tuple[tuple[str, ...], Floats, Bools, Bools, Infos]:
        """Take one action per place.  Returns observations, rewards, terminations, truncations (each one per place) and
        infos."""
        if len(actions) != self.num_envs:
            raise UsageError(f"{len(actions)} actions for {self.num_envs} places")
        rewards = np.zeros(self.num_envs)
        terminations: Bools = np.zeros(self.num_envs, dtype=np.bool_)
        truncations: Bools = np.zeros(self.num_envs, dtype=np.bool_)
        finals: dict[int, Record] = {}
        for i, action in enumerate(actions):
            episode = self._episodes[i]
            if episode is None:
                raise UsageError("step before reset")
            if self._ended[i]:
                if self._autoreset == "disabled":
                    raise UsageError(f"the episode at place {i} has ended: reset it by options={{'reset_mask': ...}}")
                self._begin(i)
                continue
            record = episode.step(action)
            self._steps[i] += 1
            rewards[i] = record.score
            terminations[i] = record.won
            truncations[i] = self.max_steps is not None and self._steps[i] >= self.max_steps and not record.won
            if terminations[i] or truncations[i]:
                self._ended[i] = True
                if self._autoreset == "same_step":
                    finals[i] = record
                    self._begin(i)
        infos = self._infos([self._record(i) for i in range(self.num_envs)])
        if finals:
            present = np.isin(np.arange(self.num_envs), list(finals))
            last = np.empty(self.num_envs, dtype=object)
            for i, record in finals.items():
                last[i] = record.observation
            infos.update(
                {
                    "final_obs": last,
                    "_final_obs": present,
                    "final_info": self._infos([finals.get(i) for i in range(self.num_envs)]),
                    "_final_info": present,
                }
            )
        return self._observations(), rewards, terminations, truncations, infos

    def close(self) -> None:
        """Part of the interface; there is nothing to free."""
        self.closed = True

    def _begin(self, i: int) -> None:
        self._played[i] += 1
        game = self.games[int(self._order[(i + int(self._played[i]) * self.num_envs) % len(self.games)])]
        self._episodes[i] = game.episode()
        self._steps[i] = 0
        self._ended[i] = False

    def _record(self, i: int) -> Record:
        episode = self._episodes[i]
        assert episode is not None
        return episode.record

    def _observations(self) -> tuple[str, ...]:
        return tuple(self._record(i).observation for i in range(self.num_envs))

    def _infos(self, records: Sequence[Record | None]) -> Infos:
        present = np.array([record is not None for record in records])
        admissible = np.empty(self.num_envs, dtype=object)
        won = np.zeros(self.num_envs, dtype=np.bool_)
        for i, record in enumerate(records):
            if record is not None:
                admissible[i] = record.admissible
                won[i] = record.won
        return {"admissible": admissible, "_admissible": present, "won": won, "_won": present}
