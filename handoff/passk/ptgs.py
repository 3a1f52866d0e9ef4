"""Posterior-tempered group sampling: a rollout temperature per prompt from its estimated difficulty.

The success rate of prompt x has the posterior Beta(2 p~ + s~, 2 (1 - p~) + f~): a prior of mass 2 centred on the target
success rate p~, and discounted counts s~ <- gamma s~ + s, f~ <- gamma f~ + (n - s).  Before a rollout group a p^ is
drawn from it (Thompson sampling), and the group is sampled at

    T_x = T_ref tau^h(p^),   h(p) = (p~ - p)/p~ for p <= p~,  -(p - p~)/(1 - p~) above     (Eq. 4)

so that T(0) = tau T_ref, T(p~) = T_ref and T(1) = T_ref / tau.  (The source's walk-through multiplies, T = tau h; it
is a power.)  The log-probabilities in a policy ratio must be taken at the same temperature, so ``temperature`` returns
what to record beside the group.

:class:`Sampler` is what a trainer calls; nothing here needs a deep-learning library.  Draws depend on (seed, prompt,
how often the prompt was asked for), never on the order in which prompts are asked for.  :func:`pilot_temperature` is
the test-time form: one posterior from m pilot rollouts, nothing carried over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from handoff.errors import DataError, UsageError
from handoff.seeds import derive

PRIOR_MASS = 2.0


def tempering(p: float, target: float) -> float:
    """h(p): decreasing, h(0) = 1, h(target) = 0, h(1) = -1; for ``target`` = 1/2 it is 1 - 2p."""
    _require("a success rate", p, 0.0, 1.0)
    _require_open("the target success rate", target)
    return (target - p) / target if p <= target else -(p - target) / (1 - target)


def temperature_at(p: float, target: float, tau: float, reference: float = 1.0) -> float:
    """T_x of a prompt with drawn success rate ``p`` (Eq. 4), in [``reference`` / ``tau``, ``tau`` ``reference``]."""
    if tau < 1 or reference <= 0:
        raise UsageError(
            f"tau must be at least 1 and the reference temperature positive, not {tau:g} and {reference:g}"
        )
    return float(reference * tau ** tempering(p, target))


@attrs.frozen
class Posterior:
    """Beta(``a``, ``b``) over a prompt's success rate."""

    a: float
    b: float

    @classmethod
    def of(cls, successes: float, failures: float, target: float) -> Posterior:
        """With the prior of mass 2 centred on ``target``."""
        return cls(PRIOR_MASS * target + successes, PRIOR_MASS * (1 - target) + failures)

    @property
    def mean(self) -> float:
        return self.a / (self.a + self.b)

    def draw(self, rng: np.random.Generator) -> float:
        """A Thompson sample."""
        return float(rng.beta(self.a, self.b))


@attrs.frozen
class Schedule:
    """p~ from ``start`` to ``end``, growing by a constant factor per step over ``steps`` steps, then constant."""

    start: float = 0.25
    end: float = 0.5
    steps: int = 200

    def __attrs_post_init__(self) -> None:
        _require_open("the target success rate", self.start)
        _require_open("the target success rate", self.end)
        if self.steps < 0:
            raise UsageError(f"a schedule has 0 steps or more, not {self.steps}")

    def at(self, step: int) -> float:
        """p~ at ``step``, counted from 0: ``start`` (``end`` / ``start``)^(``step`` / ``steps``)."""
        if step >= self.steps:
            return self.end
        return float(self.start * (self.end / self.start) ** (max(step, 0) / self.steps))


@attrs.frozen
class GroupTemperature:
    """A group's temperature and its origin."""

    temperature: float
    #: p^, the Thompson sample.
    drawn: float
    #: Mean of the posterior that it was drawn from.
    mean: float
    #: p~
    target: float


@attrs.define
class _Prompt:
    successes: float = 0.0
    failures: float = 0.0
    asked: int = 0


class Sampler:
    """Temperatures for a trainer's rollout groups.

    For each group: ``choice = sampler.temperature(prompt)``, sample n rollouts at ``choice.temperature`` (and take
    log-probabilities at it), then ``sampler.update(prompt, successes, n)``.  Once a step: ``sampler.advance()``.
    Raises :class:`~handoff.errors.UsageError` for parameters out of range.
    """

    FORMAT = 1

    def __init__(
        self,
        tau: float = 1.5,
        *,
        schedule: Schedule | None = None,
        gamma: float = 0.95,
        reference: float = 1.0,
        seed: int = 0,
    ) -> None:
        _require("gamma", gamma, 0.0, 1.0)
        temperature_at(0.0, 0.5, tau, reference)
        self.tau, self.gamma, self.reference, self.seed = float(tau), float(gamma), float(reference), int(seed)
        self.schedule = schedule or Schedule()
        self.step = 0
        self._prompts: dict[str, _Prompt] = {}

    @property
    def target(self) -> float:
        """p~ at the current step."""
        return self.schedule.at(self.step)

    def posterior(self, prompt: str) -> Posterior:
        """The current posterior of ``prompt``; a prompt never seen has the prior."""
        counts = self._prompts.get(prompt, _Prompt())
        return Posterior.of(counts.successes, counts.failures, self.target)

    def temperature(self, prompt: str) -> GroupTemperature:
        """The temperature of the next rollout group of ``prompt``; draws anew at every call."""
        posterior, target = self.posterior(prompt), self.target
        counts = self._prompts.setdefault(prompt, _Prompt())
        rng = np.random.Generator(np.random.PCG64(derive(self.seed, "ptgs", prompt, counts.asked)))
        counts.asked += 1
        drawn = posterior.draw(rng)
        return GroupTemperature(temperature_at(drawn, target, self.tau, self.reference), drawn, posterior.mean, target)

    def update(self, prompt: str, successes: int, n: int) -> None:
        """Count a group: s~ <- gamma s~ + ``successes``, f~ <- gamma f~ + (``n`` - ``successes``)."""
        if not 0 <= successes <= n or n < 1:
            raise UsageError(f"{successes} successes in {n} rollouts: 0 <= successes <= n and 1 <= n must hold")
        counts = self._prompts.setdefault(prompt, _Prompt())
        counts.successes = self.gamma * counts.successes + successes
        counts.failures = self.gamma * counts.failures + (n - successes)

    def advance(self) -> None:
        """Go to the next training step of the schedule."""
        self.step += 1

    def to_json(self) -> dict[str, Any]:
        """The whole state, JSON-safe; :meth:`from_json` goes on with the same draws."""
        return {
            "format": self.FORMAT,
            "tau": self.tau,
            "gamma": self.gamma,
            "reference": self.reference,
            "seed": self.seed,
            "schedule": attrs.asdict(self.schedule),
            "step": self.step,
            "prompts": {name: attrs.asdict(counts) for name, counts in sorted(self._prompts.items())},
        }

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> Sampler:
        """Rebuild a sampler.  Raises :class:`~handoff.errors.DataError` if ``state`` is not one's state."""
        try:
            if state["format"] != cls.FORMAT:
                raise DataError(f"the sampler's state has format {state['format']!r}; this version reads {cls.FORMAT}")
            sampler = cls(
                _number(state["tau"]),
                schedule=Schedule(**{key: _number(value) for key, value in state["schedule"].items()}),
                gamma=_number(state["gamma"]),
                reference=_number(state["reference"]),
                seed=_whole(state["seed"]),
            )
            sampler.step = _whole(state["step"])
            for name, counts in state["prompts"].items():
                prompt = _Prompt(**{key: _number(value) for key, value in counts.items()})
                _whole(prompt.asked)
                if min(prompt.successes, prompt.failures, prompt.asked) < 0:
                    raise DataError(f"the sampler's state has a negative count for prompt {name!r}")
                sampler._prompts[name] = prompt
        except DataError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise DataError(f"this is not the state of a sampler: {type(error).__name__}: {error}") from error
        return sampler


def pilot_temperature(
    successes: int,
    pilots: int,
    seed: int,
    *,
    tau: float = 1.5,
    target: float = 0.5,
    reference: float = 1.0,
) -> GroupTemperature:
    """The test-time form: the temperature of a prompt's scored rollouts, from its pilot rollouts at ``reference``.

    The posterior is Beta(2 p~ + s, 2 (1 - p~) + m - s); there is no forgetting, no schedule, and nothing is carried
    over.  Only the rollouts made at the returned temperature may be scored.
    """
    if not 0 <= successes <= pilots:
        raise UsageError(f"{successes} successes in {pilots} pilot rollouts: 0 <= successes <= pilots must hold")
    posterior = Posterior.of(successes, pilots - successes, target)
    drawn = posterior.draw(np.random.Generator(np.random.PCG64(seed)))
    return GroupTemperature(temperature_at(drawn, target, tau, reference), drawn, posterior.mean, target)


@attrs.frozen
class Split:
    """A budget of ``total`` rollouts per prompt: ``pilots`` at the reference temperature, the rest scored."""

    total: int
    pilots: int

    def __attrs_post_init__(self) -> None:
        if not 0 <= self.pilots < self.total:
            raise UsageError(
                f"of {self.total} rollouts {self.pilots} cannot be pilots: at least one must be left to be scored"
            )

    @property
    def scored(self) -> int:
        return self.total - self.pilots


@attrs.frozen
class EstimateThenSample:
    """The test-time protocol: a task's pilots are sampled at T_ref; the later rollouts, which alone are scored, at T_x.

    T_x comes from the posterior of this task's pilots alone: nothing is carried over to another task or policy.
    Raises :class:`~handoff.errors.UsageError` for a parameter out of range.
    """

    pilots: int
    tau: float = 1.5
    target: float = 0.5
    #: T_ref of each policy, by its name.
    references: Mapping[str, float] = attrs.Factory(dict)

    def __attrs_post_init__(self) -> None:
        if self.pilots < 1:
            raise UsageError(f"there must be at least 1 pilot rollout, not {self.pilots}")
        _require_open("the target success rate", self.target)
        if not (self.tau >= 1 and np.isfinite(self.tau)):
            raise UsageError(f"tau must be at least 1, not {self.tau:g}")
        for name, reference in self.references.items():
            if not (reference > 0 and np.isfinite(reference)):
                raise UsageError(f"policy {name!r} needs a temperature above 0 to be tempered, not {reference:g}")

    def temperature(self, policy: str, successes: int, seed: int) -> float:
        """T_x of ``policy``'s scored rollouts of a task whose pilots had ``successes``.

        It has 6 decimals, so that records, requests and the audit state the same number."""
        reference = self.references[policy]
        choice = pilot_temperature(successes, self.pilots, seed, tau=self.tau, target=self.target, reference=reference)
        return round(choice.temperature, 6)


def _number(value: Any) -> Any:
    if type(value) not in (int, float) or not np.isfinite(value):
        raise TypeError(f"expected a number, found {value!r:.40}")
    return value


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"expected a whole number, found {value!r:.40}")
    return value


def _require(what: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise UsageError(f"{what} must lie between {low:g} and {high:g}, not {value:g}")


def _require_open(what: str, value: float) -> None:
    if not 0 < value < 1:
        raise UsageError(f"{what} must lie strictly between 0 and 1, not {value:g}")
