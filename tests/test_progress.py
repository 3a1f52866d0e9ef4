"""Progress: times have names, and an estimate is made only of what can be estimated from."""

from __future__ import annotations

import io
import re

import pytest

from handoff.progress import Console, Live, Pace, Plain, duration


class Clock:
    """A clock that tests move."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def paced(total: int, *seconds: float) -> tuple[Pace, Clock]:
    """Units that finish so many seconds after one another."""
    clock = Clock()
    pace = Pace(total, clock)
    for each in seconds:
        clock.now += each
        pace.tick()
    return pace, clock


def test_a_slow_start_is_no_estimate_of_the_whole() -> None:
    """One unit after 10 seconds of loading and 715 to go: by the first unit alone it would be two hours."""
    pace, _ = paced(716, 10)
    assert str(pace) == "elapsed 10 s"


def test_the_time_left_is_that_of_the_units_after_the_first() -> None:
    # After the load of 100 seconds a unit takes 2: 90 of them are left.
    pace, _ = paced(100, 100, *[2] * 9)
    assert pace.left == 180
    assert str(pace) == "elapsed 2 min, about 3 min left"


@pytest.mark.parametrize(
    ("seconds", "known"),
    [([1, 1, 1, 1, 1], False), ([1, 1, 1, 1, 1, 1], True), ([1, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5], False)],
)
def test_an_estimate_waits_for_five_units_and_five_seconds_after_the_first(seconds: list[float], known: bool) -> None:
    pace, _ = paced(100, *seconds)
    assert (pace.left is not None) == known


def test_the_pace_is_that_of_the_last_minute() -> None:
    # 100 units of 10 seconds each, then 120 of one second: the last minute has 60 of these, 80 units are left.
    pace, _ = paced(300, *[10] * 100, *[1] * 120)
    assert pace.left == 80


def test_units_from_before_count_as_done_and_say_nothing_about_the_pace() -> None:
    clock = Clock()
    pace = Pace(100, clock)
    for _ in range(50):
        pace.tick(resumed=True)
    assert pace.left is None
    for _ in range(10):
        clock.now += 3
        pace.tick()
    assert (pace.done, pace.resumed) == (60, 50)
    assert pace.left == 40 * 3


def test_the_time_left_runs_down_between_units_and_never_below_nothing() -> None:
    pace, clock = paced(12, *[2] * 10)
    assert pace.left == 4
    clock.now += 3
    assert pace.left == 1
    clock.now += 30
    assert pace.left == 0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (45.4, "45 s"), (99, "99 s"), (100, "2 min"), (243, "4 min"), (5900, "98 min"), (9000, "2.5 h")],
)
def test_a_duration_is_rounded_as_an_estimate_deserves(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_the_lines_of_a_phase_name_their_times() -> None:
    clock, text = Clock(), io.StringIO()
    plain = Plain(Console(file=text, width=40), every=10, clock=clock)
    with plain.phase("reaching", 40) as tick:
        for _ in range(40):
            clock.now += 3
            tick()
    assert text.getvalue().splitlines() == [
        "reaching: 4/40, elapsed 12 s",
        *(f"reaching: {done}/40, elapsed {duration(3 * done)}, about {duration(3 * (40 - done))} left"
          for done in range(8, 40, 4)),
        "reaching: 40/40 done in 120.0 s",
    ]  # fmt: skip


def test_the_bar_of_a_terminal_names_its_times_too() -> None:
    text = io.StringIO()
    with Live(Console(file=text, force_terminal=True, width=100)).phase("reaching", 2) as tick:
        tick()
        tick()
    assert re.search(r"2/2.* elapsed 0 s", text.getvalue())
