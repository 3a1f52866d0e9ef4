"""PTGS against its closed forms, and on simulated prompts with known success rates."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handoff.errors import DataError, UsageError
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

rates = st.floats(0, 1)
targets = st.floats(0.01, 0.99)


@given(targets, st.floats(1, 3), st.floats(0.1, 2))
def test_the_temperature_passes_through_its_three_points(target, tau, reference):
    assert temperature_at(0, target, tau, reference) == pytest.approx(tau * reference)
    assert temperature_at(target, target, tau, reference) == pytest.approx(reference)
    assert temperature_at(1, target, tau, reference) == pytest.approx(reference / tau)


@given(rates, st.floats(1, 3))
def test_with_a_target_of_one_half_the_rule_is_the_symmetric_one(p, tau):
    assert temperature_at(p, 0.5, tau) == pytest.approx(tau ** (1 - 2 * p))


@given(rates, rates, targets)
def test_harder_prompts_are_never_cooler(p, q, target):
    low, high = sorted((p, q))
    assert tempering(low, target) >= tempering(high, target)
    assert -1 <= tempering(p, target) <= 1


def test_the_temperature_is_a_power_and_not_a_product():
    # h(0.3) = (0.5 - 0.3)/0.5 = 0.4; T = 1.5^0.4
    assert tempering(0.3, 0.5) == pytest.approx(0.4)
    assert temperature_at(0.3, 0.5, 1.5) == pytest.approx(1.5**0.4)
    # Above a target of 1/4: h(0.7) = -(0.7 - 0.25)/0.75 = -0.6
    assert temperature_at(0.7, 0.25, 1.5) == pytest.approx(1.5**-0.6)


def test_the_prior_has_mass_two_and_is_centred_on_the_target():
    prior = Posterior.of(0, 0, 0.25)
    assert (prior.a, prior.b) == (0.5, 1.5)
    assert prior.mean == 0.25
    assert Posterior.of(2, 2, 0.5) == Posterior(3, 3)  # the walk-through's second step


def test_discounted_counts_follow_the_recursion():
    sampler = Sampler(schedule=Schedule(0.5, 0.5, 0), gamma=0.9)
    sampler.update("x", 2, 4)
    assert sampler.posterior("x") == Posterior(1 + 2, 1 + 2)
    sampler.update("x", 3, 4)
    # s~ = 0.9 x 2 + 3 = 4.8, f~ = 0.9 x 2 + 1 = 2.8
    found = sampler.posterior("x")
    assert (found.a, found.b) == pytest.approx((5.8, 3.8))
    assert sampler.posterior("y") == Posterior(1, 1)


def test_the_target_grows_by_a_constant_factor_and_then_stays():
    schedule = Schedule(0.25, 0.5, 200)
    values = [schedule.at(step) for step in range(260)]
    assert values[0] == 0.25
    assert values[100] == pytest.approx((0.25 * 0.5) ** 0.5)
    assert values[200] == values[259] == 0.5
    factors = [b / a for a, b in itertools.pairwise(values[:201])]
    assert factors == pytest.approx([2 ** (1 / 200)] * 200)


def test_thompson_draws_follow_the_posterior():
    sampler = Sampler(schedule=Schedule(0.5, 0.5, 0), seed=3)
    sampler.update("x", 6, 8)
    posterior = sampler.posterior("x")  # Beta(7, 3): mean 0.7, variance 21/(100 x 11)
    draws = [sampler.temperature("x").drawn for _ in range(4000)]
    assert np.mean(draws) == pytest.approx(posterior.mean, abs=4 * (21 / 1100 / 4000) ** 0.5)
    assert np.var(draws) == pytest.approx(21 / 1100, rel=0.1)
    choice = sampler.temperature("x")
    assert choice.temperature == pytest.approx(temperature_at(choice.drawn, 0.5, 1.5))
    assert choice.mean == posterior.mean


def test_draws_do_not_depend_on_the_order_in_which_prompts_are_asked_for():
    one, other = Sampler(seed=1), Sampler(seed=1)
    first = {name: one.temperature(name) for name in ("a", "b", "c")}
    second = {name: other.temperature(name) for name in ("c", "a", "b")}
    assert first == second
    assert len({choice.drawn for choice in first.values()}) == 3
    assert Sampler(seed=2).temperature("a") != first["a"]


def test_a_state_goes_through_json_and_goes_on_with_the_same_draws():
    sampler = Sampler(1.4, schedule=Schedule(0.2, 0.6, 30), gamma=0.9, reference=0.7, seed=11)
    for step in range(5):
        sampler.temperature("x")
        sampler.update("x", step % 3, 4)
        sampler.advance()
    again = Sampler.from_json(json.loads(json.dumps(sampler.to_json(), allow_nan=False)))
    assert again.to_json() == sampler.to_json()
    assert [again.temperature(p) for p in "xyx"] == [sampler.temperature(p) for p in "xyx"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda state: state.pop("tau"),
        lambda state: state.update(format=2),
        lambda state: state.update(tau="1.5"),
        lambda state: state.update(step=1.5),
        lambda state: state.update(schedule={"begin": 0.1}),
        lambda state: state.update(gamma=float("inf")),
        lambda state: state.update(gamma=2.0),
        lambda state: state["prompts"]["x"].update(successes=-1),
        lambda state: state["prompts"]["x"].update(asked=0.5),
        lambda state: state["prompts"].update(y=3),
    ],
)
def test_a_damaged_state_is_refused_in_one_sentence(damage):
    sampler = Sampler()
    sampler.update("x", 1, 4)
    state = json.loads(json.dumps(sampler.to_json()))
    damage(state)
    with pytest.raises(DataError, match="sampler"):
        Sampler.from_json(state)


@pytest.mark.parametrize(
    "call",
    [
        lambda: Sampler(0.9),
        lambda: Sampler(gamma=1.1),
        lambda: Sampler(reference=0),
        lambda: Schedule(0.0),
        lambda: Schedule(0.5, 1.0),
        lambda: Schedule(steps=-1),
        lambda: Sampler().update("x", 5, 4),
        lambda: Sampler().update("x", 0, 0),
        lambda: tempering(1.2, 0.5),
        lambda: pilot_temperature(5, 4, 0),
        lambda: Split(8, 8),
    ],
)
def test_parameters_out_of_range_are_refused(call):
    with pytest.raises(UsageError):
        call()


def test_the_test_time_form_has_one_posterior_and_no_memory():
    choice = pilot_temperature(96, 128, seed=4, tau=1.5, target=0.5, reference=0.5)
    assert choice.mean == pytest.approx(97 / 130)
    assert choice.temperature == pytest.approx(0.5 * 1.5 ** (1 - 2 * choice.drawn))
    assert pilot_temperature(96, 128, seed=4, reference=0.5) == choice
    assert Split(256, 128).scored == 128
    # No pilots at all: the prior alone.
    assert pilot_temperature(0, 0, seed=4).mean == 0.5


def simulate(tempered, seed, steps=60, prompts=40, n=16):
    """A frozen policy whose success on a hard prompt rises with the temperature and on an easy one falls: logit q =
    logit p0 + (1 - 2 p0) x 2 log T.  Returns (share of zero-success groups, posterior means, true rates at T = 1)."""
    rng = np.random.default_rng(seed)
    p0 = rng.beta(0.5, 1.0, prompts).clip(0.002, 0.998)
    sampler = Sampler(1.5, schedule=Schedule(0.25, 0.5, steps), seed=seed)
    zero = groups = 0
    for _ in range(steps):
        for i in rng.choice(prompts, 8, replace=False):
            temperature = sampler.temperature(f"p{i}").temperature if tempered else 1.0
            logit = np.log(p0[i] / (1 - p0[i])) + (1 - 2 * p0[i]) * 2 * np.log(temperature)
            wins = int(rng.binomial(n, 1 / (1 + np.exp(-logit))))
            sampler.update(f"p{i}", wins, n)
            zero, groups = zero + (wins == 0), groups + 1
        sampler.advance()
    seen = [i for i in range(prompts) if f"p{i}" in sampler.to_json()["prompts"]]
    return zero / groups, np.array([sampler.posterior(f"p{i}").mean for i in seen]), p0[seen]


def test_on_simulated_prompts_fewer_groups_are_without_success_and_the_posterior_tracks_the_truth():
    plain, tempered, correlations = [], [], []
    for seed in range(8):
        plain.append(simulate(False, seed)[0])
        share, means, truth = simulate(True, seed)
        tempered.append(share)
        correlations.append(np.corrcoef(means, truth)[0, 1])
    assert np.mean(tempered) < np.mean(plain)
    assert sum(t < p for t, p in zip(tempered, plain, strict=True)) >= 7
    assert min(correlations) > 0.85


@pytest.mark.parametrize("reference", [1e-7, 1e-300, 5e-324])
def test_no_temperature_is_rounded_to_zero(reference):
    passes = EstimateThenSample(pilots=3, target=0.5, tau=1.5, references={"a": reference})
    for successes in range(4):
        assert 0 < passes.temperature("a", successes, 0) <= max(1.5 * reference, 5e-324)
