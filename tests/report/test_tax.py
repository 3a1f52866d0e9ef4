"""The tax page: made from two rollout runs of real policies, its sentences and numbers, and in a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from kit import chromium
from kit.command import invoke, output_of
from kit.runs import play

from handoff.cli.tax import page_path
from handoff.errors import StoreError, UsageError
from handoff.passk.comparison import compare
from handoff.passk.counts import Counts
from handoff.passk.early import early_estimate
from handoff.passk.pairs import Pair
from handoff.passk.routing import route
from handoff.protocols.rollouts import study as rollouts_study
from handoff.report.tax import document as tax_numbers
from handoff.report.tax import page
from handoff.report.tax.values import TaxDocument

FIGURES = {
    "fig-pass-at", "fig-pass-hat", "fig-scalability", "fig-tax-by-budget", "fig-parts", "fig-contributions",
    "fig-rates", "fig-trade", "fig-early", "fig-routing",
}  # fmt: skip


def counts(name: str, successes: Sequence[int], n: int = 32) -> Counts:
    return Counts.of(name, [(f"task {i}", n, c) for i, c in enumerate(successes)])


def document(base: Counts, post: Counts, pairs: Sequence[tuple[Counts, Counts]] = (), **given: Any) -> TaxDocument:
    compared = compare(base, post, draws=200, **given)
    named = [Pair(one, other) for one, other in ((base, post), *pairs)]
    early = early_estimate(named, splits=20) if pairs else None
    routed = route(base, post, compared.budget, max(2, compared.budget // 4), pilots=20)
    return tax_numbers.document(base, post, compared, routed, early, pairs)


SPREAD = [i % 9 + 1 for i in range(60)]  # every task solved, rarely
SHARP = [32 if i % 3 else 0 for i in range(60)]  # a task is solved always or never
PAIRS = [(counts(f"b{k}", SPREAD[k:] + SPREAD[:k]), counts(f"p{k}", [max(0, c - k) for c in SPREAD])) for k in (1, 2)]


# From runs of real policies to the page -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two policies, and a run of each of two others."""
    folder = tmp_path_factory.mktemp("runs")
    common = ["-n", "8", "--tasks", "6", "--budget", "12"]
    for run, policies in (
        ("both", ["-p", "base=noisy:0.6", "-p", "post=noisy:0.2"]),
        ("base", ["-p", "base=tempered:1:2"]),
        ("post", ["-p", "post=tempered:0.1:2"]),
    ):
        play(folder / run, "rollout", "sokoban", *policies, *common)
    return folder


@pytest.mark.parametrize("names", [("both#base", "both#post"), ("base", "post")])
def test_two_rollout_runs_on_sokoban_give_the_tax_page_with_their_counts(
    runs: Path, tmp_path: Path, names: tuple[str, str]
) -> None:
    page = tmp_path / "page.html"
    arguments = ["tax", *(f"{runs}/{name}" for name in names), "--draws", "100", "--html", str(page)]
    assert output_of(*arguments).split() == ["wrote", str(page), "wrote", str(page.with_suffix(".json"))]
    numbers = json.loads(page.with_suffix(".json").read_text(), parse_constant=lambda name: pytest.fail(name))
    wins: list[list[int]] = []
    for name, side in zip(names, ("base", "post"), strict=True):
        loaded = rollouts_study.load(f"{runs}/{name.partition('#')[0]}")
        each = [sum(loaded.rollouts[task.id, side, i].won for i in range(8)) for task in loaded.tasks]
        wins.append(each)
        found = numbers["comparison"][side]
        assert found["pass_at_k"][0] == pytest.approx(sum(each) / 48)
        assert found["coverage"]["point"] == pytest.approx(sum(c > 0 for c in each) / 6)
        assert found["pass_hat_k"][7] == pytest.approx(sum(c == 8 for c in each) / 6)
        assert sum(numbers["rates"][side]) == 6
        assert (numbers["rates"][side][0], numbers["rates"][side][-1]) == (each.count(0), each.count(8))
    assert numbers["comparison"]["efficiency_gained"]["point"] == pytest.approx((sum(wins[1]) - sum(wins[0])) / 48)
    text = page.read_text()
    assert "sokoban-test-" in text, "tasks are called by their names"
    told = re.search(r'<p class="verdict">(.*?)</p>', text, re.DOTALL)
    assert told
    assert f"A rollout succeeds in {100 * sum(wins[0]) / 48:.1f}% with base" in told[1]


def test_the_page_of_one_run_goes_into_it_and_the_run_stays_sound(runs: Path) -> None:
    output_of("tax", f"{runs}/both#base", f"{runs}/both#post", "--draws", "50", "--html")
    assert (runs / "both" / "tax.html").exists()
    assert (runs / "both" / "tax.json").exists()
    output_of("audit", runs / "both", "--workers", "0", "-q")
    assert page_path("", Path("a.csv"), Path("b.csv")) == Path()
    assert page_path("", runs / "base", runs / "post") == Path()


def test_of_a_ptgs_run_the_scored_rollouts_are_compared_and_the_page_says_so(runs: Path, tmp_path: Path) -> None:
    arguments = ["-p", "base=tempered:1:2", "-n", "16", "--ptgs", "--tasks", "6", "--budget", "12"]
    play(tmp_path / "ptgs", "rollout", "sokoban", *arguments)
    page = tmp_path / "page.html"
    both = [f"{runs}/base", str(tmp_path / "ptgs")]
    output_of("tax", *both, "--draws", "50", "--html", page)
    numbers = json.loads(page.with_suffix(".json").read_text())
    assert numbers["comparison"]["budget"] == 8
    assert numbers["comparison"]["post"]["rollouts"] == [8, 8]
    assert numbers["names"] == ["base (base)", "base (post)"], "two policies of one name are told apart"
    text = output_of("tax", *both, "--draws", "50", env={"COLUMNS": "200"})
    assert "base (base) → base (post) · 6 tasks" in text
    assert "8 rollouts per task (8 scored rollouts per task after 8 pilots; pilots are not counted)" in page.read_text()


# Sentences and numbers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "post", "start"),
    [
        (SPREAD, SHARP, "There is a sharpening tax: from base to post"),
        (SHARP, SPREAD, "There is none, retries gained: from base to post"),
        (SPREAD, SPREAD[::-1], "Not resolved: from base to post"),
        (SPREAD, [32] * 60, "The sharpening tax is undefined: pass@1 is 1: no attempt fails"),
    ],
)
def test_the_headline_follows_from_the_interval_of_the_tax(base: list[int], post: list[int], start: str) -> None:
    numbers = document(counts("base", base), counts("post", post))
    assert numbers.sentences["verdict"][0].startswith(start)
    low = numbers.comparison.tax_s.low
    if start.startswith("There is a"):
        assert low is not None
        assert low > 0
    assert start.split(":")[0] in page.render(numbers)


def test_the_sentences_state_the_numbers_of_three_tasks_worked_out_by_hand() -> None:
    # K = 2 of n = 2: a task with c = 1 has pass@1 = 1/2 and pass@2 = 1, so its raw scalability is 1/2.
    base = Counts.of("base", [("lost", 2, 1), ("gained", 2, 0), ("both", 2, 1)])
    post = Counts.of("post", [("lost", 2, 0), ("gained", 2, 1), ("both", 2, 2)])
    said = document(base, post).sentences
    assert said["parts"][0] == (
        "Tax_A is the sum of three parts: 0.17 from 1 task that only base solved, −0.17 from 1 task that only "
        "post did, and 0.17 from 1 task that both did."
    )
    assert said["trade"][0].startswith("A rollout succeeds in 33.3% with base and 50.0% with post, +16.7 points [")
    assert "2 rollouts cover 66.7% of the tasks with base and 66.7% with post, 0.0 points" in said["trade"][0]
    assert said["curves"][0].split(". ")[1].startswith("In these counts base's pass@k is greater at no k up to 2")
    assert "2 of 3 are positive, 1 negative and 0 zero" in said["tasks"][0]
    assert (
        "base never solves 33.3% of the tasks and always solves 0.0%; for post these shares are 33.3% and 33.3%"
        in (said["tasks"][1])
    )


def test_the_paper_of_the_equations_is_named_in_full() -> None:
    told = document(counts("base", SPREAD), counts("post", SHARP))
    for text in (page.render(told), " ".join(page.content(told).notes)):
        assert "Equations and tables are numbered as in “Sharpening Tax in Post-Training”." in text


def test_an_interval_without_width_is_flagged() -> None:
    same = counts("base", SPREAD)
    text = page.render(document(same, counts("post", SPREAD), method="paper"))
    assert "<b>0.000</b> <i>all draws alike</i><span>[0.000, 0.000]</span>" in text  # Tax_S of a policy against itself


def test_success_rates_fall_into_their_bins() -> None:
    # 0; 1/32 and 8/32 = 25%; 9/32; 16/32 = 50%; 24/32 = 75%; 25/32 and 31/32; 32/32
    assert tax_numbers.rates(counts("x", [0, 1, 8, 9, 16, 24, 25, 31, 32])) == (1, 2, 2, 1, 2, 1)


def test_the_bands_hold_the_curves_and_the_contributions_average_to_the_tax() -> None:
    numbers = document(counts("base", SPREAD), counts("post", SHARP)).to_json()
    for side in ("base", "post"):
        for which in ("pass_at_k", "pass_hat_k"):
            found = numbers["comparison"][side]
            for point, (low, high) in zip(found[which], found[f"{which}_band"], strict=True):
                assert low - 1e-12 <= point <= high + 1e-12
    each = [row["contribution"] for row in numbers["contributions"]]
    assert sum(each) / len(each) == pytest.approx(numbers["comparison"]["tax_s"]["point"])
    assert each == sorted(each, reverse=True)


def test_further_pairs_are_points_of_the_trade_off_and_of_the_early_estimate() -> None:
    numbers = document(counts("base", SPREAD), counts("post", SHARP), PAIRS)
    assert [row.base for row in numbers.trade] == ["base", "b1", "b2"]
    for row, (base, post) in zip(numbers.trade[1:], PAIRS, strict=True):
        expected = (base.c_T > 0).mean() - (post.c_T > 0).mean()  # pass@K with K = n is whether there is a success
        assert row.coverage_lost.point == pytest.approx(expected)
    text = page.render(numbers)
    # 32 rollouts: 8 for the early tax, and 24 others.
    assert "Tax_S from 8 rollouts against Tax_S at 24 from the others has the rank correlation" in text
    assert text.count("b1 → p1") >= 2


def test_the_twin_is_what_the_command_prints_as_json(tmp_path: Path) -> None:
    files = []
    for one in (counts("base", SPREAD), counts("post", SHARP)):
        rows = "".join(f"{t},{n},{c}\n" for t, n, c in zip(one.tasks, one.n_T, one.c_T, strict=True))
        (tmp_path / f"{one.name}.csv").write_text("task,n,c\n" + rows)
        files.append(str(tmp_path / f"{one.name}.csv"))
    page = tmp_path / "page.html"
    text = output_of("tax", *files, "--draws", "50", "--json", "--html", page)
    twin = json.loads(page.with_suffix(".json").read_text())
    assert json.loads(text) == twin
    embedded = re.search(r'<script type="application/json" id="numbers">(.*?)</script>', page.read_text(), re.DOTALL)
    assert embedded
    assert json.loads(embedded[1]) == twin


def test_no_input_is_written_over(tmp_path: Path) -> None:
    lines = "".join(json.dumps({"task": str(i), "n": 8, "c": i % 3}) + "\n" for i in range(6))
    for name in ("base.json", "post.json"):
        (tmp_path / name).write_text(lines)
    for place in (tmp_path / "base.html", tmp_path / "base.json", tmp_path / "records.html"):
        result = invoke("tax", tmp_path / "base.json", tmp_path / "post.json", "--html", place)
        if place.name == "records.html":
            assert result.exit_code == 0  # records.jsonl is a run's, records.json is nobody's
            continue
        assert isinstance(result.exception, UsageError)
        assert "would write" in str(result.exception)
        assert (tmp_path / "base.json").read_text() == lines
    gone = invoke("tax", tmp_path / "base.json", tmp_path / "post.json", "--html", tmp_path / "no/p.html")
    assert isinstance(gone.exception, StoreError)
    assert "cannot write" in str(gone.exception)


# In the browser -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    numbers = document(counts("base", SPREAD), counts("post", SHARP), PAIRS)
    return page.write(numbers, tmp_path_factory.mktemp("page") / "tax.html")[0]


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_opens_alone_and_every_figure_is_inside_the_window(
    browser: chromium.Page, written: Path, width: int, scheme: str
) -> None:
    browser.show(written, width, scheme=scheme)
    browser.check_alone(written)
    browser.check_figures(FIGURES, width)
    paper = browser.run("getComputedStyle(document.body).backgroundColor")
    assert (sum(int(part) for part in re.findall(r"\d+", paper)) < 200) == (scheme == "dark")


def test_words_in_a_figure_do_not_lie_on_each_other(browser: chromium.Page, written: Path) -> None:
    browser.show(written, 400)
    overlaps = browser.run(
        """[...document.querySelectorAll("figure svg")].flatMap((figure) => {
          const words = [...figure.querySelectorAll("text.soft, text.num")];
          const boxes = words.map((word) => word.getBoundingClientRect());
          const found = [];
          for (let i = 0; i < words.length; i++) for (let j = i + 1; j < words.length; j++) {
            const wide = Math.min(boxes[i].right, boxes[j].right) - Math.max(boxes[i].left, boxes[j].left);
            const high = Math.min(boxes[i].bottom, boxes[j].bottom) - Math.max(boxes[i].top, boxes[j].top);
            if (wide > 1 && high > 3) found.push(`${figure.id}: ${words[i].textContent} | ${words[j].textContent}`);
          }
          return found;
        })"""
    )
    assert overlaps == []


def test_the_curves_stand_where_their_numbers_are(browser: chromium.Page, written: Path) -> None:
    browser.show(written, 1280)
    numbers = json.loads(written.with_suffix(".json").read_text())["comparison"]
    marks = browser.run(
        """[...document.querySelectorAll("#fig-pass-at .m")].filter((mark) => mark.querySelector("title"))
          .map((mark) => mark.querySelector("title").textContent)"""
    )
    for side in ("base", "post"):
        shown = [mark for mark in marks if mark.startswith(f"{side} at k = ")]
        assert len(shown) == 6  # k = 1, 2, 4, 8, 16, 32
        for mark in shown:
            k = int(mark.split("k = ")[1].split(":")[0])
            assert f": {100 * numbers[side]['pass_at_k'][k - 1]:.1f}% [" in mark


@pytest.mark.parametrize(
    ("base", "post", "n"), [([1], [2], 2), ([0, 0], [0, 0], 4), ([4, 4], [4, 4], 4), ([3] * 500, [1] * 500, 5)]
)
def test_the_smallest_the_unsolved_the_perfect_and_the_large_have_a_page(
    browser: chromium.Page, tmp_path: Path, base: list[int], post: list[int], n: int
) -> None:
    numbers = document(counts("base", base, n), counts("post", post, n))
    browser.show(page.write(numbers, tmp_path)[0], 400)
    assert browser.problems == []
    assert browser.run("document.documentElement.scrollWidth") == 400
    assert "NaN" not in (tmp_path / "tax.html").read_text()


def test_hostile_names_run_nothing(browser: chromium.Page, tmp_path: Path) -> None:
    bad = "</script><img src=x onerror=\"document.title='owned'\"><svg/onload=document.title='owned'>"
    rows = [(f"{bad}{i}", 8, i % 4) for i in range(8)]
    numbers = document(Counts.of(bad, rows), Counts.of(f"{bad} post", rows[::-1]))
    browser.show(page.write(numbers, tmp_path)[0], 400)
    assert browser.problems == []
    assert "owned" not in browser.run("document.title")[:60]
    assert browser.run("document.querySelectorAll('img').length") == 0
    assert not [address for address in browser.requests if not address.startswith(("file:", "about:", "data:,"))]
    assert browser.run("document.documentElement.scrollWidth") == 400
