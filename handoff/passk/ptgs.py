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

import math
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from handoff.errors import DataError, UsageError
from handoff.seeds import derive
from handoff.settings import require

PRIOR_MASS = 2.0

#: Bounds of the parameters, as of :class:`handoff.settings.Setting`.
TAU: Mapping[str, Any] = {"least": 1, "most": 1000}
TARGET: Mapping[str, Any] = {"least": 0, "most": 1, "open": True}
PILOTS: Mapping[str, Any] = {"least": 1, "most": 1_000_000}
REFERENCE: Mapping[str, Any] = {"least": 0, "open": True}
SEED: Mapping[str, Any] = {"least": 0, "most": 2**63 - 1}


def _plain(value: Any) -> Any:
    """A scalar of NumPy as Python's own, which JSON can hold."""
    return value.item() if isinstance(value, np.generic) else value


def tempering(p: float, target: float) -> float:
    """h(p): decreasing, h(0) = 1, h(target) = 0, h(1) = -1; for ``target`` = 1/2 it is 1 - 2p."""
    require("the success rate", p, least=0, most=1)
    require("the target success rate", target, **TARGET)
    return (target - p) / target if p <= target else -(p - target) / (1 - target)


def temperature_at(p: float, target: float, tau: float, reference: float = 1.0) -> float:
    """T_x of a prompt with drawn success rate ``p`` (Eq. 4), in [``reference`` / ``tau``, ``tau`` ``reference``]."""
    require("tau", tau, **TAU)
    require("the reference temperature", reference, **REFERENCE)
    return float(reference * tau ** tempering(p, target))


@attrs.frozen
class Posterior:
    """Beta(``a``, ``b``) over a prompt's success rate."""

    a: float
    b: float

    def __attrs_post_init__(self) -> None:
        require("a", self.a, least=0, open=True)
        require("b", self.b, least=0, open=True)

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

    start: float = attrs.field(default=0.25, converter=_plain)
    end: float = attrs.field(default=0.5, converter=_plain)
    steps: int = attrs.field(default=200, converter=_plain)

    def __attrs_post_init__(self) -> None:
        require("the target success rate", self.start, **TARGET)
        require("the target success rate", self.end, **TARGET)
        require("the number of steps", self.steps, int, least=0)

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
        require("gamma", gamma, least=0, most=1)
        require("tau", tau, **TAU)
        require("the reference temperature", reference, **REFERENCE)
        require("the seed", seed, int, **SEED)
        if not isinstance(schedule, Schedule | None):
            raise UsageError(f"the schedule is a Schedule, not {schedule!r:.60}")
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
        require("the number of rollouts", n, int, **PILOTS)
        require("the number of successes", successes, int)
        if not 0 <= successes <= n:
            raise UsageError(f"{successes} successes in {n} rollouts: 0 <= successes <= n and 1 <= n must hold")
        counts = self._prompts.setdefault(prompt, _Prompt())
        counts.successes = self.gamma * counts.successes + int(successes)
        counts.failures = self.gamma * counts.failures + int(n - successes)

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
    require("the number of pilot rollouts", pilots, int, least=0, most=PILOTS["most"])
    require("the number of successes", successes, int)
    require("the seed", seed, int, **SEED)
    require("the target success rate", target, **TARGET)
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
        require("the number of rollouts", self.total, int)
        require("the number of pilot rollouts", self.pilots, int)
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
        require("the number of pilot rollouts", self.pilots, int, **PILOTS)
        require("the target success rate", self.target, **TARGET)
        require("tau", self.tau, **TAU)
        for name, reference in self.references.items():
            if type(reference) not in (int, float) or not 0 < reference < np.inf:
                raise UsageError(f"policy {name!r} needs a temperature above 0 to be tempered, not {reference!r:.40}")

    def temperature(self, policy: str, successes: int, seed: int) -> float:
        """T_x of ``policy``'s scored rollouts of a task whose pilots had ``successes``.

        It has 6 decimals, so that records, requests and the audit state the same number.  One that is too small for 6
        decimals keeps its digits, for no temperature is 0."""
        reference = self.references[policy]
        choice = pilot_temperature(successes, self.pilots, seed, tau=self.tau, target=self.target, reference=reference)
        return round(choice.temperature, 6) or choice.temperature or math.ulp(0.0)


def _number(value: Any) -> Any:
    if type(value) not in (int, float) or not np.isfinite(value):
        raise TypeError(f"expected a number, found {value!r:.40}")
    return value


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"expected a whole number, found {value!r:.40}")
    return value
