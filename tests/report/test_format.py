"""Numbers as text: an interval with a width is never printed as one without."""

from __future__ import annotations

import attrs
import pytest

from handoff.estimation.bootstrap import Estimate
from handoff.estimation.estimands import estimand
from handoff.report.format import (
    Measure,
    decimal_with_interval,
    gap_with_interval,
    interval,
    points_with_interval,
    rate_with_interval,
)
from handoff.report.sheet import gap, mean, measure, quantity, rate


def of(point: float, low: float, high: float) -> Measure:
    return Measure(None, point, low, high)


def test_an_interval_of_tenths_of_a_point_keeps_one_digit() -> None:
    assert interval(of(0.242, 0.1333, 0.35)) == "[13.3, 35.0]"
    assert interval(of(0.0, -0.001, 0.0)) == "[−0.1, 0.0]"


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ((-0.0004, 0.0004), "[−0.04, 0.04]"),
        ((-0.00001, 0.00001), "[−0.001, 0.001]"),
        ((0.99981, 0.99984), "[99.981, 99.984]"),
    ],
)
def test_ends_that_would_read_alike_have_the_digits_that_tell_them_apart(ends: tuple[float, float], text: str) -> None:
    assert interval(of(ends[1], *ends)) == text


def test_an_interval_without_a_width_has_no_more_digits() -> None:
    assert interval(of(0.0, 0.0, 0.0)) == "[0.0, 0.0]"
    assert interval(Measure(None, 0.0)) == ""


def test_a_point_has_the_digits_of_its_interval_in_sentences_and_cells() -> None:
    narrow = of(0.99982, 0.99981, 0.99984)
    assert rate_with_interval(narrow) == "99.982% [99.981, 99.984]"
    assert points_with_interval(narrow) == "+99.982 [99.981, 99.984]"
    assert gap_with_interval(narrow) == "+99.982 points [99.981, 99.984]"
    assert decimal_with_interval(of(0.00012, 0.00011, 0.00014)) == "0.00012 [0.00011, 0.00014]"
    assert [make(narrow).text for make in (rate, gap)] == ["99.982%", "+99.982"]
    assert mean(of(7.01, 7.0, 7.02)).text == "7.01"
    assert quantity(of(7.01, 7.0, 7.02), 1).text == "7.01"


def test_a_remark_on_an_interval_of_few_states_is_printed_beside_it() -> None:
    lost = "300 of 1,000 draws (30.00%) have an empty denominator, more than 1%: the interval is Student's t alone"
    one = estimand("solver_effect", reacher="sft", a="sft", b="rl")
    made = Estimate(one, 0.5, 0.1, 0.9, (), interval="student", notes=("only one task of type a", lost))
    assert gap(measure(made)).note == lost
    assert gap(measure(attrs.evolve(made, notes=()))).note is None
