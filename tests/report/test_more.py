"""What lies beside the plain intervals is one step away, and says no more than its intervals do."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import attrs
import pytest
from kit import paper_tables, report_runs
from kit.command import handoff, output_of

from handoff.estimation.method import Intervals
from handoff.estimation.more import More, more
from handoff.estimation.simultaneous import Member
from handoff.protocols.frontier import study
from handoff.protocols.frontier.search import search_totals
from handoff.report import more as sheets
from handoff.report.format import Measure
from handoff.report.sheet import gap, of_type

FAST = ("--draws", "500")
NAMES = ("base", "sft", "rl")


@pytest.fixture(scope="module")
def unseen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report_runs.write(tmp_path_factory.mktemp("unseen") / "run", paper_tables.unseen())


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three checkpoints, each better than the last on more of the slots."""
    table = report_runs.table(
        NAMES, NAMES, lambda w, t, s: (3 * t + 5 * s) % 7 < 2 * w + 2,
        lambda w, r, t, s: (5 * t + 3 * s) % 7 < 2 * r + 2, ["a"] * 8 + ["b"] * 8, 3,
    )  # fmt: skip
    return report_runs.write(tmp_path_factory.mktemp("three") / "run", table)


@pytest.mark.parametrize("command", ["report", "estimate"])
def test_more_adds_its_tables_and_one_key_and_leaves_the_rest_as_it_is(command: str, unseen: Path) -> None:
    plain, beside = (output_of(command, unseen, *FAST, *some) for some in ((), ("--more",)))
    assert "Intervals that hold together" not in plain
    for title in ("Intervals that hold together", "split in three orders", "both reachers arrive", "how many times"):
        assert title in beside
    assert all(words in beside for words in ("+34.6", "−10.4", "+30.2", "6.19"))
    before, after = (json.loads(output_of(command, unseen, *FAST, "--json", *some)) for some in ((), ("--more",)))
    assert {key for key in after if key not in before} == {"more"}
    assert {key: entry for key, entry in after.items() if key != "more"} == before


def test_more_is_of_one_table(unseen: Path) -> None:
    result = handoff("estimate", f"a={unseen}", f"b={unseen}", "--more", *FAST)
    assert (result.returncode, "one table" in result.stderr) == (2, True)


def test_the_page_has_it_folded_and_its_twin_has_the_numbers(three: Path, tmp_path: Path) -> None:
    output_of("report", three, *FAST, "--html", tmp_path / "page.html")
    page, twin = (tmp_path / f"page.{suffix}" for suffix in ("html", "json"))
    section = page.read_text(encoding="utf-8").split('<section id="beside">')[1].split("</section>")[0]
    assert section.strip().startswith('<details class="folded"><summary>')
    assert 'id="fig-ranking"' in section
    assert json.loads(twin.read_text(encoding="utf-8"))["more"]["ranking"][0]["name"] == "rl"


def test_a_ladders_sentence_names_every_rung_and_its_step(three: Path) -> None:
    words = " ".join(output_of("report", three, *FAST, "--more", "--order", "base,sft,rl").split())
    assert "Step by step, sft over base: reaching " in words
    assert "; rl over sft: reaching " in words
    assert "the trend per rung is" in words
    assert "Checkpoints ranked" not in words
    assert "Checkpoints ranked" in output_of("report", three, *FAST, "--more")


PAPER = "Reach or Solve? Deep Diving into Agentic RL Gains with Checkpoint Handoffs"


def test_a_report_says_once_whose_tables_and_equations_it_counts(unseen: Path) -> None:
    words = " ".join(output_of("report", unseen, *FAST).split())
    assert words.count(PAPER) == 1


def test_a_paper_is_named_in_full_where_its_equation_is() -> None:
    numbers = more(paper_tables.unseen(), intervals=Intervals(draws=200))
    (sheet,) = [one for one in sheets.sheets(numbers) if "Eq." in one.title]
    assert PAPER in sheet.title


# Sentences follow their intervals.

SIDES = [
    ((0.01, 0.3), "better"),
    ((-0.3, -0.01), "worse"),
    ((-0.1, 0.2), None),
    ((0.0, 0.3), None),
    ((None, None), None),
]


def beside(ends: tuple[float | None, float | None], order: tuple[str, ...] | None) -> More:
    """Three checkpoints whose simultaneous intervals all have these ends."""
    table = report_runs.table(
        NAMES, NAMES, lambda w, t, s: t % 3 <= w, lambda w, r, t, s: (t + s) % 3 <= r, ["a"] * 9, 2
    )  # fmt: skip
    numbers = more(table, order, Intervals(draws=200))

    def forced(one: Member) -> Member:
        return attrs.evolve(one, low=ends[0], high=ends[1], plain=attrs.evolve(one.plain, point=0.1))

    families = tuple(attrs.evolve(f, members=tuple(map(forced, f.members))) for f in numbers.families)
    ladder = numbers.ladder and attrs.evolve(
        numbers.ladder,
        steps=tuple(
            attrs.evolve(step, **{name: forced(getattr(step, name)) for name in ("reach", "completion", "endpoint")})
            for step in numbers.ladder.steps
        ),
    )
    return attrs.evolve(numbers, families=families, ladder=ladder)


@pytest.mark.parametrize(("ends", "word"), SIDES)
def test_a_step_is_better_or_worse_only_where_its_interval_lies_on_one_side_of_zero(
    ends: tuple[float | None, float | None], word: str | None
) -> None:
    steps = sheets.sentences(beside(ends, NAMES))[0]
    assert set(re.findall("better|worse|not resolved", steps)) == {word or "not resolved"}


@pytest.mark.parametrize(("ends", "word"), SIDES)
def test_a_pairwise_difference_is_resolved_only_where_its_interval_lies_on_one_side_of_zero(
    ends: tuple[float | None, float | None], word: str | None
) -> None:
    first, *others = sheets.sentences(beside(ends, None))
    none = "No pairwise difference between the checkpoints is resolved: their order here may be chance."
    assert (first == none) == (word is None)
    counts = [re.findall(r"Of the (\d+) .*, (\d+) (?:is|are) resolved", text) for text in others]
    for ((given, resolved),) in filter(None, counts):
        assert resolved == (given if word else "0")


# Types.


def test_a_type_whose_interval_holds_every_value_is_not_printed_and_stays_in_the_numbers() -> None:
    everything, something = (Measure(None, 0.2, low, 2.0) for low in (-2.0, -1.9))
    hidden = of_type(gap(everything), everything, 4.0)
    assert (hidden.text, hidden.interval) == ("–", "")
    assert "too few tasks of this type" in (hidden.note or "")
    assert of_type(gap(something), something, 4.0) == gap(something)


# The search.


def test_report_audit_and_export_state_the_totals_of_the_search(unseen: Path, tmp_path: Path) -> None:
    """115 accepted states, each searched with 3 first and 9 second actions; 104 x 49 + 21 x 49 + 115 x 6 in all."""
    totals = search_totals(study.load(unseen))
    assert (totals.accepted.states, totals.accepted.tried) == (115, (345, 1035))
    assert (totals.checked.states, totals.checked.tried) == (6815, (20445, 61335))
    words = "115 states: 345 first actions, 1,035 second actions"
    assert words in output_of("report", unseen, *FAST, "--more")
    audit = json.loads(handoff("audit", str(unseen), "--records-only", "--json").stdout)
    notes = [note for check in audit["checks"] for note in check["notes"]]
    assert any(words in note for note in notes)
    output_of("export", unseen, "--out", tmp_path, "--format", "csv")
    with open(tmp_path / "searches.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    accepted = [sum(int(row["tried"]) for row in rows if row["accepted"] == "1" and row["length"] == at) for at in "12"]
    assert accepted == [345, 1035]
