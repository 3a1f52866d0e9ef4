"""What a report says of a difference: no more than its interval does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from kit import report_runs

from handoff.estimation.method import Intervals
from handoff.passk.comparison import compare
from handoff.passk.counts import Counts
from handoff.passk.routing import route
from handoff.protocols.frontier import study
from handoff.protocols.frontier.failures import Failures
from handoff.report import more
from handoff.report.format import PAPER, Measure, told
from handoff.report.report import Options
from handoff.report.study import document as numbers
from handoff.report.study import sentences
from handoff.report.study.values import BudgetGap, BudgetTable, FailureTable, StudyDocument
from handoff.report.tax import document as tax_numbers

#: Words that say which of two is the greater one.
DIRECTIONS = re.compile(
    r"exceeds|stays below|more often|less often|better|worse|more than their|less than their|\bgains?\b|gained|"
    r"there is a sharpening|higher|lower",
    re.IGNORECASE,
)
SIDES = [
    ((0.01, 0.3), 1),
    ((-0.3, -0.01), -1),
    ((-0.156, 0.25), 0),
    ((0.0, 0.3), 0),  # zero is not outside
    ((-0.3, 0.0), 0),
    ((None, None), 0),
]


def reported(folder: Path) -> StudyDocument:
    return numbers.document(study.load(folder), Options(Intervals(draws=500)))


@pytest.mark.parametrize(("ends", "side"), SIDES)
def test_a_direction_is_claimed_only_where_the_interval_lies_on_one_side_of_zero(
    ends: tuple[float | None, float | None], side: int
) -> None:
    assert told(Measure(None, 0.05, *ends), "above", "below", "open") == {1: "above", -1: "below", 0: "open"}[side]


@pytest.mark.parametrize(("ends", "side"), SIDES)
def test_a_reacher_exceeds_another_across_budgets_only_by_the_interval(
    ends: tuple[float | None, float | None], side: int
) -> None:
    gap = BudgetGap(("sft", "rl"), (48, 8), Measure(None, 0.05, *ends))
    (sentence,) = sentences.budgets(BudgetTable((8, 48), (), (gap,)))
    words = {1: "exceeds", -1: "stays below", 0: "is not told apart from"}[side]
    assert sentence.startswith(f"rl with 8 actions {words} sft with 48: +5.0 points")


def test_a_report_of_differences_that_are_not_resolved_claims_no_direction(tmp_path: Path) -> None:
    """Both reachers arrive on half of the slots and both solvers win half of those: by points the second is ahead."""
    table = report_runs.table(
        ("sft", "rl"), ("sft", "rl"),
        lambda w, t, s: (t + s) % 2 == 0 or (w == 1 and t == 0),
        lambda w, r, t, s: (t + 2 * s) % 4 < 2 or (r == 1 and t < 2),
        ["a"] * 4 + ["b"] * 4,
    )  # fmt: skip
    document = reported(report_runs.write(tmp_path / "run", table))
    results = document.results
    assert results is not None
    tables = results.tables
    assert tables.reach_gap is not None
    assert tables.solve_gap is not None
    for gap in (tables.reach_gap.value, tables.solve_gap.value, tables.endpoints.gains[0].value):
        assert gap.point is not None
        assert gap.low is not None
        assert gap.point > 0 >= gap.low
    for name, said in document.sentences.items():
        text = " ".join(said).replace("Not resolved: neither", "neither").replace(PAPER, "")
        claims = DIRECTIONS.findall(text)
        assert not claims, f"{name}: {text}"


def of_four(folder: Path, resolved: bool) -> Path:
    """Four checkpoints in both roles: each wins on what the one before it cannot, or rl alone on one slot more."""
    names = ("base", "sft", "dpo", "rl")
    table = report_runs.table(
        names, names,
        lambda w, t, s: w > s if resolved else (t + s) % 2 == 0 or (w == 3 and t == 0),
        lambda w, r, t, s: r > s if resolved else (t + 2 * s) % 4 < 2 or (r == 3 and t == 3),
        ["a"] * 8 + ["b"] * 8,
    )  # fmt: skip
    return report_runs.write(folder / "run", table)


@pytest.mark.parametrize("order", [None, ["base", "sft", "dpo", "rl"]], ids=["unordered", "ladder"])
def test_what_lies_beside_the_plain_numbers_claims_a_direction_only_where_one_is_resolved(
    order: list[str] | None, tmp_path: Path
) -> None:
    said = {}
    for resolved in (False, True):
        folder = of_four(tmp_path / str(resolved), resolved)
        document = numbers.document(study.load(folder), Options(Intervals(draws=500), order, more=True))
        assert document.more is not None
        said[resolved] = " ".join(more.sentences(document.more)).replace(PAPER, "")
    assert not DIRECTIONS.findall(said[False]), said[False]
    counts = {resolved: [int(n) for n in re.findall(r"(\d+) are resolved", text)] for resolved, text in said.items()}
    assert set(counts[False]) == {0}
    assert all(counts[True])
    if order is not None:
        rungs = [said[resolved].partition("Over the whole ladder")[0] for resolved in (False, True)]
        assert rungs[0].count("not resolved") == 9  # three steps, each in reaching, solving and at the endpoint
        assert rungs[1].count("not resolved") < 9


def test_a_report_of_a_tax_that_is_not_resolved_claims_no_direction() -> None:
    base = Counts.of("base", [(f"{i}", 8, c) for i, c in enumerate([0, 3, 5, 8, 2, 1])])
    post = Counts.of("post", [(f"{i}", 8, c) for i, c in enumerate([3, 0, 6, 8, 1, 2])])
    compared = compare(base, post, draws=500)
    assert compared.tax_s.low is not None
    assert compared.tax_s.high is not None
    assert compared.tax_s.low < 0 < compared.tax_s.high
    document = tax_numbers.document(
        base, post, compared, route(base, post, 8, 2, pilots=5), None, [(base, post), (post, base)]
    )
    assert document.sentences["verdict"][0].startswith("Not resolved")
    assert "Of 3 pairs, 0 gained efficiency and lost coverage, by intervals on one side of zero." in " ".join(
        document.sentences["trade"]
    )
    others = [said for name, said in document.sentences.items() if name != "trade"]
    assert not DIRECTIONS.search(" ".join(map(" ".join, others)))


def test_labels_that_are_equally_frequent_are_all_named() -> None:
    def failing(**labels: int) -> Failures:
        total = sum(labels.values())
        return Failures("rl", total, labels, steps=9, repeats=0.0, revisits=0.0, unchanged=0.5, median_distinct=1.0)

    tied, clear = (failing(loop=count, near_miss=3) for count in (3, 4))
    assert "most often by loop and near miss (3 each), and" in next(sentences.failures(FailureTable((tied,), ())))
    assert "most often by loop (4), and" in next(sentences.failures(FailureTable((clear,), ())))


# Three checkpoints and more ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> StudyDocument:
    """base never arrives with the second slot, and sft and rl always arrive; rl alone wins."""
    names = ("base", "sft", "rl")
    table = report_runs.table(
        names, names,
        lambda w, t, s: w > 0 or (s == 0 and t % 2 == 0),
        lambda w, r, t, s: r == 2 or (t == 0 and s == 0),
        ["a"] * 8 + ["b"] * 8,
    )  # fmt: skip
    return reported(report_runs.write(tmp_path_factory.mktemp("three") / "run", table))


def test_the_verdict_on_three_checkpoints_names_its_pair_and_answers_for_the_others(three: StudyDocument) -> None:
    assert three.sentences["verdict"] == [
        "From both (base → rl): rl reaches the frontier more often, and solves better from identical states.",
        "Of the other 2 pairs, from reaching: base → sft; from solving: sft → rl.",
    ]


def test_the_gaps_of_three_checkpoints_say_whose_they_are(three: StudyDocument) -> None:
    # base arrives with one slot of two on every other task, a quarter; rl always: 75 points.
    assert three.sentences["gaps"][0].startswith("base → rl: Reach gap +75.0 points [")


def test_all_parts_of_the_answer_speak_of_one_pair_where_the_roles_differ(tmp_path: Path) -> None:
    """Three reachers and two solvers: the widest pair of reachers has no pair of solvers."""
    table = report_runs.table(
        ("base", "sft", "rl"), ("base", "sft"),
        lambda w, t, s: w > 0 or (s == 0 and t % 2 == 0),
        lambda w, r, t, s: r == 1 or (t == 0 and s == 0),
        ["a"] * 8 + ["b"] * 8,
    )  # fmt: skip
    document = reported(report_runs.write(tmp_path / "run", table))
    assert document.results is not None
    tables = document.results.tables
    assert tables.reach_gap is not None
    assert tables.solve_gap is not None
    assert tables.interaction is not None
    pairs = {tables.reach_gap.reachers, tables.solve_gap.solvers, tables.interaction.reachers}
    assert pairs == {("base", "sft")}
    assert document.sentences["verdict"][0].startswith("From both (base → sft): sft reaches")


# The tax -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tasks", "upper", "lower"), [(2, 1, 1), (5, 3, 2), (9, 5, 4), (10, 5, 5), (12, 5, 5)])
def test_no_task_is_among_the_highest_and_the_lowest(tasks: int, upper: int, lower: int) -> None:
    base = Counts.of("base", [(f"{i}", 16, 1 + i % 7) for i in range(tasks)])
    post = Counts.of("post", [(f"{i}", 16, (3 * i) % 8) for i in range(tasks)])
    compared = compare(base, post, draws=10)
    highest, lowest = ([row.name for row in rows] for rows in (compared.highest, compared.lowest))
    assert (len(highest), len(lowest)) == (upper, lower)
    assert not {*highest} & {*lowest}
    parts = [row.contribution for row in (*compared.highest, *compared.lowest[::-1])]
    assert parts == sorted(parts, reverse=True)
