"""pass@k and pass^k against exact rational arithmetic, against the published estimator, and by enumeration."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handoff.errors import UsageError
from handoff.passk.curves import (
    mean_pass_at_k,
    mean_pass_hat_k,
    pass_at_k,
    pass_at_k_curves,
    pass_hat_k,
    pass_hat_k_curves,
)


def exact_pass_at_k(n, c, k):
    return 1 - Fraction(comb(n - c, k), comb(n, k))


def exact_pass_hat_k(n, c, k):
    return Fraction(comb(c, k), comb(n, k))


def published(n, c, k):
    """The estimator as printed by Chen et al. (2021), Figure 3."""
    if n - c < k:
        return 1.0
    return 1.0 - np.prod(1.0 - k / np.arange(n - c + 1, n + 1))


GRID = [(n, c, k) for n in range(1, 41) for c in range(n + 1) for k in range(1, n + 1)]


def test_both_equal_exact_rational_arithmetic_on_every_n_up_to_40():
    for n in range(1, 41):
        c = np.arange(n + 1)
        at, hat = (curves(np.full(n + 1, n), c, n) for curves in (pass_at_k_curves, pass_hat_k_curves))
        exact_at = [[float(exact_pass_at_k(n, i, k)) for k in range(1, n + 1)] for i in c]
        exact_hat = [[float(exact_pass_hat_k(n, i, k)) for k in range(1, n + 1)] for i in c]
        np.testing.assert_allclose(at, exact_at, rtol=1e-13)
        np.testing.assert_allclose(hat, exact_hat, rtol=1e-13)
        # Certain success and certain failure are exact, not nearly so.
        assert [[v in (0, 1) for v in row] for row in at] == [[v in (0, 1) for v in row] for row in exact_at]


@given(st.integers(1, 3000).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_both_equal_exact_rational_arithmetic_on_greater_counts(ncK):
    n, c, k = ncK
    assert pass_at_k(n, c, k) == pytest.approx(float(exact_pass_at_k(n, c, k)), rel=1e-11, abs=0)
    assert pass_hat_k(n, c, k) == pytest.approx(float(exact_pass_hat_k(n, c, k)), rel=1e-11, abs=1e-300)


def test_pass_at_k_equals_the_published_estimator():
    for n, c, k in GRID[::7]:
        assert pass_at_k(n, c, k) == pytest.approx(published(n, c, k), abs=1e-12)


def test_both_are_averages_over_all_subsets_of_k_rollouts():
    for n, c in ((5, 2), (6, 1), (7, 6)):
        rollouts = [True] * c + [False] * (n - c)
        for k in range(1, n + 1):
            subsets = list(itertools.combinations(rollouts, k))
            assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, subsets)) / len(subsets))
            assert pass_hat_k(n, c, k) == pytest.approx(sum(map(all, subsets)) / len(subsets))


@pytest.mark.parametrize(
    ("n", "c", "k", "value"),
    [(4, 1, 2, 0.5), (200, 1, 1, 0.005), (100_000, 3, 1000, 0.0297013), (128, 128, 128, 1.0), (128, 0, 128, 0.0)],
)
def test_known_values_of_pass_at_k(n, c, k, value):
    assert pass_at_k(n, c, k) == pytest.approx(value, abs=5e-8)


@pytest.mark.parametrize(("n", "c", "k", "value"), [(4, 3, 2, 0.5), (4, 1, 2, 0.0), (128, 128, 128, 1.0)])
def test_known_values_of_pass_hat_k(n, c, k, value):
    assert pass_hat_k(n, c, k) == value


def test_a_rare_success_among_a_billion_rollouts_loses_no_digits():
    # pass@10 of one success in 10^9 rollouts is exactly 10/10^9.
    assert pass_at_k(10**9, 1, 10) == pytest.approx(1e-8, rel=1e-14)
    assert pass_at_k(10**9, 1, 1) == 1e-9


@pytest.mark.parametrize("function", [pass_at_k, pass_hat_k])
@pytest.mark.parametrize(
    ("n", "c", "k", "message"),
    [
        (2, 0, 5, "k = 5 needs at least as many rollouts, but task 1 of 1 has 0 successes in 2 rollouts"),
        (3, 4, 1, "0 <= c <= n must hold, but task 1 of 1 has 4 successes in 3 rollouts"),
        (3, -1, 1, "0 <= c <= n must hold"),
        (3, 1, 0, "k must be at least 1, not 0"),
    ],
)
def test_what_is_undefined_is_an_error_and_never_a_number(function, n, c, k, message):
    with pytest.raises(UsageError, match=message):
        function(n, c, k)


@pytest.mark.parametrize(
    ("n", "c", "message"),
    [
        ([], [], "there are no tasks"),
        ([4, 4], [1], "2 rollout counts and 1 success counts"),
        ([4.0], [1], "n must be one whole number per task"),
        ([4], [np.nan], "c must be one whole number per task"),
        ([[4]], [[1]], "n must be one whole number per task"),
    ],
)
def test_malformed_counts_are_refused(n, c, message):
    for function in (pass_at_k_curves, mean_pass_hat_k):
        with pytest.raises(UsageError, match=message):
            function(n, c, 1)


def test_the_data_sets_curve_is_the_mean_over_tasks_whatever_their_rollouts():
    rng = np.random.default_rng(3)
    for n in (np.full(5000, 64), rng.integers(64, 70, 5000), rng.integers(64, 100_000, 5000)):
        c = rng.binomial(n, rng.random(5000))
        np.testing.assert_allclose(mean_pass_at_k(n, c, 64), pass_at_k_curves(n, c, 64).mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(mean_pass_hat_k(n, c, 64), pass_hat_k_curves(n, c, 64).mean(axis=0), rtol=1e-12)
        # The same task's curve does not depend on its company.
        assert pass_at_k_curves(n, c, 64)[17].tolist() == pass_at_k_curves(n[17:18], c[17:18], 64)[0].tolist()


def test_curves_rise_for_pass_at_k_and_fall_for_pass_hat_k_and_meet_at_one():
    n = np.full(129, 128)
    at, hat = pass_at_k_curves(n, np.arange(129), 128), pass_hat_k_curves(n, np.arange(129), 128)
    assert (np.diff(at, axis=1) >= 0).all()
    assert (np.diff(hat, axis=1) <= 0).all()
    np.testing.assert_array_equal(at[:, 0], np.arange(129) / 128)
    np.testing.assert_array_equal(hat[:, 0], np.arange(129) / 128)
