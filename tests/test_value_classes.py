"""Values made from Python are refused where the command line refuses them: NaN, infinity, truth values and more."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
import numpy as np
import pytest

from handoff.conformance.subject import Settings
from handoff.episodes.start import Where
from handoff.errors import UsageError
from handoff.estimation.method import Intervals
from handoff.passk.comparison import compare
from handoff.passk.counts import Counts
from handoff.passk.ptgs import (
    EstimateThenSample,
    Posterior,
    Sampler,
    Schedule,
    Split,
    pilot_temperature,
    temperature_at,
    tempering,
)
from handoff.passk.routing import route
from handoff.planning.population import from_guesses
from handoff.policies import ModelOptions
from handoff.protocols.frontier.config import FrontierConfig
from handoff.protocols.rollouts.config import PtgsSettings, RolloutsConfig
from handoff.settings import require, settings

COUNTS = Counts.of("a", [("x", 4, 1), ("y", 4, 3)])
DESIGN = from_guesses({"a": 0.5}, {("a", "b"): 0.5})

#: A function of one number, its name, and one number that is out of its range (``None``: all are in it).
NUMBERS: list[tuple[str, Callable[[Any], object], Any]] = [
    ("Sampler.tau", lambda value: Sampler(value), 0.5),
    ("Sampler.tau above", lambda value: Sampler(value), 1000.5),
    ("Sampler.gamma", lambda value: Sampler(gamma=value), 1.5),
    ("Sampler.reference", lambda value: Sampler(reference=value), 0.0),
    ("Sampler.seed", lambda value: Sampler(seed=value), -1),
    ("Sampler.update", lambda value: Sampler().update("x", 0, value), 0),
    ("Sampler.update successes", lambda value: Sampler().update("x", value, 4), 5),
    ("Schedule.start", lambda value: Schedule(start=value), 0.0),
    ("Schedule.end", lambda value: Schedule(end=value), 1.0),
    ("Schedule.steps", lambda value: Schedule(steps=value), -1),
    ("Posterior.a", lambda value: Posterior(value, 1.0), 0.0),
    ("Posterior.b", lambda value: Posterior(1.0, value), -1.0),
    ("tempering.p", lambda value: tempering(value, 0.5), 1.5),
    ("tempering.target", lambda value: tempering(0.5, value), 0.0),
    ("temperature_at.tau", lambda value: temperature_at(0.5, 0.5, value), 0.5),
    ("temperature_at.reference", lambda value: temperature_at(0.5, 0.5, 2.0, value), -1.0),
    ("pilot_temperature.tau", lambda value: pilot_temperature(1, 2, 0, tau=value), 0.5),
    ("pilot_temperature.reference", lambda value: pilot_temperature(1, 2, 0, reference=value), 0.0),
    ("pilot_temperature.target", lambda value: pilot_temperature(1, 2, 0, target=value), 1.0),
    ("pilot_temperature.seed", lambda value: pilot_temperature(1, 2, value), -1),
    ("pilot_temperature.successes", lambda value: pilot_temperature(value, 2, 0), 3),
    ("Split.total", lambda value: Split(value, 1), 1),
    ("Split.pilots", lambda value: Split(4, value), 4),
    ("EstimateThenSample.pilots", lambda value: EstimateThenSample(value), 0),
    ("EstimateThenSample.tau", lambda value: EstimateThenSample(1, tau=value), 0.5),
    ("EstimateThenSample.target", lambda value: EstimateThenSample(1, target=value), 0.0),
    ("EstimateThenSample.references", lambda value: EstimateThenSample(1, references={"a": value}), 0.0),
    ("compare.level", lambda value: compare(COUNTS, COUNTS, level=value), 1.0),
    ("compare.draws", lambda value: compare(COUNTS, COUNTS, draws=value), 0),
    ("compare.seed", lambda value: compare(COUNTS, COUNTS, seed=value), -1),
    ("route.pilot", lambda value: route(COUNTS, COUNTS, pilot=value), 5),
    ("route.seed", lambda value: route(COUNTS, COUNTS, pilot=2, seed=value), -1),
    ("Design.slots", lambda value: attrs.evolve(DESIGN, slots=value), 0),
    ("Design.tasks_G", lambda value: attrs.evolve(DESIGN, tasks_G=(value,) * 6), 0),
    ("Design.pairing", lambda value: attrs.evolve(DESIGN, pairing=value), 1.5),
    ("Design.link", lambda value: attrs.evolve(DESIGN, link=value), -1.5),
    ("Design.reach_sd", lambda value: attrs.evolve(DESIGN, reach_sd=value), -0.5),
    ("Design.solve_sd", lambda value: attrs.evolve(DESIGN, solve_sd=value), -0.5),
    ("Settings.tasks", lambda value: Settings(tasks=value), 0),
    ("Settings.steps", lambda value: Settings(steps=value), 0),
    ("Settings.depth", lambda value: Settings(depth=value), 0),
    ("Settings.seed", lambda value: Settings(seed=value), -1),
]
CONFIGURATIONS: list[tuple[type, dict[str, Any]]] = [
    (Intervals, {}),
    (Where, {}),
    (ModelOptions, {}),
    (PtgsSettings, {}),
    (FrontierConfig, {"split": "test", "reachers": ("a",), "solvers": ("a",)}),
    (RolloutsConfig, {"split": "test", "policies": ("a",)}),
]
STATED = [
    (f"{cls.__name__}.{one.field}", partial(lambda cls, others, field, value: cls(**others, **{field: value}), cls, {
        key: value for key, value in others.items() if key != one.field}, one.field))
    for cls, others in CONFIGURATIONS
    for one in settings(cls)
    if one.kind in (int, float) and not one.repeats
]  # fmt: skip
NO_NUMBERS = [math.nan, math.inf, -math.inf, True, "1", [1], np.float64("nan"), np.bool_(True)]


@pytest.mark.parametrize(("name", "make", "outside"), NUMBERS, ids=[name for name, *_ in NUMBERS])
def test_a_function_of_numbers_refuses_what_is_none(name: str, make: Callable[[Any], object], outside: Any) -> None:
    for value in (*NO_NUMBERS, outside):
        with pytest.raises(UsageError):
            make(value)


@pytest.mark.parametrize(("name", "make"), STATED, ids=[name for name, _ in STATED])
def test_a_setting_refuses_what_is_no_number(name: str, make: Callable[[Any], object]) -> None:
    for value in NO_NUMBERS:
        with pytest.raises(UsageError):
            make(value)


def test_what_was_made_is_json_and_goes_on_the_same() -> None:
    sampler = Sampler(np.float32(1.5), schedule=Schedule(np.float64(0.25), 0.5, np.int64(3)), seed=np.int64(7))  # type: ignore[arg-type]
    sampler.update("x", np.int64(1), np.int64(4))  # type: ignore[arg-type]
    state = json.loads(json.dumps(sampler.to_json(), allow_nan=False))
    assert Sampler.from_json(state).temperature("x") == sampler.temperature("x")


def test_an_open_range_without_an_end_excludes_infinity() -> None:
    require("x", 1e300, least=0, open=True)
    for value in (math.inf, 0, 0.0):
        with pytest.raises(UsageError, match=r"^x must be more than 0, not "):
            require("x", value, least=0, open=True)
    with pytest.raises(UsageError, match=r"^x must be finite, not nan"):
        require("x", math.nan)


def test_the_command_line_and_python_state_one_bound() -> None:
    bounds = {one.field: (one.least, one.most) for one in settings(PtgsSettings)}
    assert bounds["tau"] == (1, 1000)
    assert EstimateThenSample(1, tau=1000.0).tau == 1000.0
    with pytest.raises(UsageError, match=r"tau must be at least 1 and at most 1,000, not 1000\.5"):
        EstimateThenSample(1, tau=1000.5)
