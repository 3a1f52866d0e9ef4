"""The report of many pairs: from files and runs by the command to the terminal, the page and its JSON twin."""

from __future__ import annotations

import json
import re
from pathlib import Path

import attrs
import numpy as np
import pytest
from kit import chromium
from kit.command import output_of
from kit.refusals import refusal
from kit.runs import play

from handoff.errors import UsageError
from handoff.passk.counts import Counts
from handoff.passk.pairs import Pair
from handoff.report.pairs import document as many
from handoff.report.pairs import page, sentences
from handoff.report.pairs.values import PairsDocument

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "tax" / "pairs.toml"
FIGURES = {"fig-taxes", "fig-pass-at", "fig-pass-hat", "fig-trade", "fig-recovered", "fig-early", "fig-routing"}


def counts(name: str, rates: float, sharp: bool, seed: int, n: int = 16, tasks: int = 24) -> Counts:
    rng = np.random.default_rng(seed)
    p = rng.beta(2 * rates, 2 * (1 - rates), tasks)
    p = (rng.random(tasks) < p).astype(float) if sharp else p
    return Counts.of(name, [(f"task {i}", n, int(c)) for i, c in enumerate(rng.binomial(n, p))])


def study() -> list[Pair]:
    """Two benchmarks, two families, and two recipes of each base."""
    pairs = []
    for b, benchmark in enumerate(("Shop", "Lake")):
        for f, family in enumerate(("A", "B")):
            base = counts(f"base-{family}", 0.2 + 0.1 * f, False, 10 * b + f)
            for r, recipe in enumerate(("ppo", "ptgs")):
                post = counts(f"{recipe}-{family}", 0.4, True, 100 * r + 10 * b + f)
                pairs.append(Pair(base, post, f"{family} {recipe}", family, benchmark, recipe))
    return pairs


@pytest.fixture(scope="module")
def numbers() -> PairsDocument:
    return many.document(study()[::-1], draws=100, more=True)


def write(folder: Path, one: Counts, name: str | None = None) -> str:
    path = folder / f"{name or one.name}.csv"
    rows = "".join(f"{t},{n},{c}\n" for t, n, c in zip(one.tasks, one.n_T, one.c_T, strict=True))
    path.write_text("task,n,c\n" + rows)
    return str(path)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    return {
        name: write(tmp_path, counts(name, 0.3, sharp, seed))
        for seed, (name, sharp) in enumerate({"b1": False, "b2": False, "p1": True, "p2": True, "p3": True}.items())
    }


# The command ----------------------------------------------------------------------------------------------------------


def names_of(text: str) -> list[tuple[str, str]]:
    told = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} in the JSON"))
    return [(row["base"], row["post"]) for row in told["pairs"]]


def test_several_policies_after_one_are_compared_with_it(files: dict[str, str]) -> None:
    text = output_of("tax", files["b1"], files["p1"], files["p2"], files["p3"], "--draws", "20", "--json")
    assert names_of(text) == [("b1", "p1"), ("b1", "p2"), ("b1", "p3")]
    assert json.loads(text)["means"]["bases"] == 1
    assert json.loads(text)["means"]["spread"] == "post-trained policies"


def test_pairs_are_written_with_an_equals_sign_and_option_pair_adds_some(files: dict[str, str]) -> None:
    joined = [f"{files['b1']}={files['p1']}", f"{files['b2']}={files['p2']}"]
    more = ["--pair", files["b1"], files["p3"], "--draws", "20", "--json"]
    text = output_of("tax", *joined, *more)
    assert names_of(text) == [("b1", "p1"), ("b2", "p2"), ("b1", "p3")]
    assert json.loads(text)["means"]["bases"] == 2


def test_one_pair_is_compared_in_detail_however_it_is_written(files: dict[str, str], tmp_path: Path) -> None:
    plain = output_of("tax", files["b1"], files["p1"], "--draws", "20", "--json")
    assert output_of("tax", f"{files['b1']}={files['p1']}", "--draws", "20", "--json") == plain
    toml = tmp_path / "one.toml"
    toml.write_text('budget = 8\n[[pair]]\nbase = "b1.csv"\npost = "p1.csv"\n')
    told = json.loads(output_of("tax", toml, "--draws", "20", "--json"))
    assert told["comparison"]["budget"] == 8
    with pytest.raises(UsageError, match="needs at least two; compare one pair with: handoff tax BASE POST"):
        many.document(study()[:1])


def test_a_file_whose_name_has_an_equals_sign_is_a_file(files: dict[str, str], tmp_path: Path) -> None:
    odd = write(tmp_path, counts("x", 0.3, True, 9), "lr=3")
    told = json.loads(output_of("tax", files["b1"], odd, "--draws", "20", "--json"))
    assert told["names"] == ["b1", "lr=3"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["b1.csv"], "b1.csv alone is no pair: write BASE POST, BASE=POST, or a study of pairs (.toml)"),
        (["b1.csv=p1.csv", "p2.csv"], "write BASE POST, or each pair as BASE=POST (got 'p2.csv' among pairs)"),
        (["b1.csv=p1.csv", "=p2.csv"], "(got '=p2.csv' among pairs)"),
        (["b1.csv=p1.csv", "b2.csv="], "(got 'b2.csv=' among pairs)"),
        (["b1.csv=p1.csv", "b1.csv=p1.csv"], "the pair b1 → p1 occurs twice"),
        (["b1.csv=none.csv", "b2.csv=p2.csv"], "cannot read none.csv: No such file"),
        (["b1.csv", "p1.csv", "p2.csv", "--budget", "17"], "fewest rollouts of a task (16, in b1 → p1), not 17"),
        (["b1.csv", "p1.csv", "p2.csv", "--budget", "1"], "must be between 2 and the fewest rollouts"),
        (["b1.csv", "p1.csv", "p2.csv", "--extremes", "3"], "--extremes lists tasks of one pair"),
        (["b1.csv", "p1.csv", "p2.csv", "--pilot", "17"], "routing needs 1 < pilot <= budget"),
        (["none.toml"], "cannot read none.toml: No such file"),
        (["pairs.toml", "b1.csv"], "pairs.toml is a study of pairs: name it alone"),
        (["pairs.toml", "--pair", "b1.csv", "p1.csv"], "pairs.toml is a study of pairs: name it alone"),
        (["pairs.toml"], "pairs.toml has no pairs"),
        (["b1.csv", "p1.csv", "p2.csv", "--html", "b1.html"], None),
        (["b1.csv", "p1.csv", "p2.csv", "--html", "pairs.toml"], "exists, and handoff did not write it"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: list[str],
    says: str | None,
    files: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pairs.toml").write_text("")
    if says is None:
        assert output_of("tax", *arguments, "--draws", "10").split() == ["wrote", "b1.html", "wrote", "b1.json"]
    else:
        assert says in refusal(capsys, "tax", *arguments, "--draws", "10")


def test_no_input_of_a_study_is_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(("b", "p", "q")):
        one = counts(name, 0.3, False, seed)
        rows = zip(one.tasks, one.n_T.tolist(), one.c_T.tolist(), strict=True)
        Path(f"{name}.json").write_text("".join(json.dumps({"task": t, "n": n, "c": c}) + "\n" for t, n, c in rows))
    before = Path("p.json").read_text()
    Path("pairs.toml").write_text('[[pair]]\nbase = "b.json"\npost = ["p.json", "q.json"]\n')
    assert "would write" in refusal(capsys, "tax", "pairs.toml", "--draws", "5", "--html", "p.html")
    assert Path("p.json").read_text() == before


def test_policies_of_one_name_are_told_apart_by_their_paths(tmp_path: Path) -> None:
    paths = []
    for seed, folder in enumerate(("x", "y")):
        (tmp_path / folder).mkdir()
        for name, sharp in (("base", False), ("post", True)):
            paths.append(write(tmp_path / folder, counts(name, 0.3, sharp, 2 * seed + sharp)))
    told = names_of(output_of("tax", f"{paths[0]}={paths[1]}", f"{paths[2]}={paths[3]}", "--draws", "10", "--json"))
    assert told == [(f"base ({paths[0]})", f"post ({paths[1]})"), (f"base ({paths[2]})", f"post ({paths[3]})")]


def test_runs_of_real_policies_share_one_base(tmp_path: Path) -> None:
    run = tmp_path / "run"
    specs = {"base": "noisy:0.6", "one": "noisy:0.2", "two": "noisy:0.4"}
    bound = [word for name, spec in specs.items() for word in ("-p", f"{name}={spec}")]
    play(run, "rollout", "sokoban", *bound, "-n", "4", "--tasks", "6", "--budget", "8")
    names = [f"{run}#{name}" for name in specs]
    text = output_of("tax", *names, "--draws", "20", env={"COLUMNS": "200"})
    assert "2 pairs of 1 base · K = 4 rollouts" in text
    assert "Lost, then solved: of the tasks that base solves with 4 rollouts" in text


def test_the_example_has_twelve_pairs_of_four_bases(tmp_path: Path) -> None:
    place = tmp_path / "tax.html"
    text = output_of("tax", EXAMPLE, "--draws", "50", "--json", "--html", place)
    told, twin = json.loads(text), json.loads(place.with_suffix(".json").read_text())
    assert told == twin
    assert (told["budget"], len(told["pairs"]), told["means"]["bases"]) == (32, 12, 4)
    assert [row["name"] for row in told["pairs"]][:3] == ["habit 2, cold", "habit 2, cool", "habit 2, ptgs"]
    assert {(one["kind"], one["name"], one["pairs"]) for one in told["signs"]} == {
        ("all", "", 12), ("family", "weak habits", 6), ("family", "strong habits", 6),
        ("benchmark", "Sokoban", 6), ("benchmark", "FrozenLake", 6),
    }  # fmt: skip
    (row,) = (
        row for row in told["lost_then_solved"]
        if (row["base"], row["loser"], row["solver"]) == ("sokoban-3-base", "cold", "ptgs")
    )  # fmt: skip
    lost = solved = 0
    rows = [
        dict(line.rsplit(",32,") for line in (EXAMPLE.parent / f"sokoban-3-{name}.csv").read_text().split()[1:])
        for name in ("base", "cold", "ptgs")
    ]
    for task in rows[0]:
        if rows[0][task] != "0" and rows[1][task] == "0":
            lost, solved = lost + 1, solved + (rows[2][task] != "0")
    assert (row["lost"], row["solved"]) == (lost, solved)


def test_more_shows_routing_with_intervals(files: dict[str, str]) -> None:
    both = [files["b1"], files["p1"], "--draws", "20"]
    assert "routed" not in json.loads(output_of("tax", *both, "--json"))
    told = json.loads(output_of("tax", *both, "--json", "--more"))["routed"]
    assert told["over_post"]["low"] < told["over_post"]["point"] < told["over_post"]["high"]
    assert "and less that of other rules in points" in output_of("tax", *both, "--more", env={"COLUMNS": "200"})
    three = [files["b1"], files["p1"], files["p2"], "--draws", "20"]
    assert "routing" not in json.loads(output_of("tax", *three, "--json"))["pairs"][0]
    for option in (["--more"], ["--pilot", "3"]):
        assert json.loads(output_of("tax", *three, "--json", *option))["pairs"][0]["routing"]["tax"]["high"] <= 1


# Sentences and numbers ------------------------------------------------------------------------------------------------


def test_pairs_are_ordered_by_benchmark_and_family(numbers: PairsDocument) -> None:
    labels = [(row.benchmark, row.family) for row in numbers.pairs]
    assert labels == [("Lake", "B")] * 2 + [("Lake", "A")] * 2 + [("Shop", "B")] * 2 + [("Shop", "A")] * 2


def test_the_verdict_states_signs_the_mean_tax_by_its_interval_and_the_crossover(numbers: PairsDocument) -> None:
    tax, every = numbers.means.tax_s, numbers.signs[0].tax_s
    assert tax.low is not None
    assert tax.high is not None
    said = " ".join(numbers.sentences["verdict"])
    assert said.startswith(f"Tax_S is above zero in {every.positive} of 8 pairs ({every.above} resolved)")
    assert ("not resolved" in said) == (tax.low <= 0 <= tax.high)
    assert numbers.means.crossing.k is not None
    assert f"k = {numbers.means.crossing.k} [" in said


@pytest.mark.parametrize(
    ("ends", "words"),
    [((0.01, 0.2), ": above zero."), ((-0.2, -0.01), ": below zero."), ((-0.1, 0.2), ": not resolved"),
     ((0.0, 0.2), ": not resolved"), ((None, None), ", without an interval")],
)  # fmt: skip
def test_the_mean_tax_has_a_direction_only_by_its_interval(
    numbers: PairsDocument, ends: tuple[float | None, float | None], words: str
) -> None:
    tax = attrs.evolve(numbers.means.tax_s, point=0.05, low=ends[0], high=ends[1])
    said = list(sentences.verdict(attrs.evolve(numbers, means=attrs.evolve(numbers.means, tax_s=tax))))
    assert words in said[1]


def test_a_crossover_beyond_the_budget_is_said() -> None:
    pairs = [
        Pair(*(Counts.of(name, [(f"t{i}", 4, c) for i in range(30)]) for name, c in ((f"b{j}", 0), (f"p{j}", 1))))
        for j in range(3)
    ]
    told = many.document(pairs, draws=10)
    assert told.sentences["verdict"][-1] == "The bases' mean pass@k is greater at no k up to 4."
    assert "never" in page.render(told)


def test_the_twin_is_what_the_page_holds(numbers: PairsDocument, tmp_path: Path) -> None:
    place, twin = page.write(numbers, tmp_path)
    text = place.read_text()
    embedded = re.search(r'<script type="application/json" id="numbers">(.*?)</script>', text, re.DOTALL)
    assert embedded
    assert json.loads(embedded[1]) == json.loads(twin.read_text()) == json.loads(json.dumps(numbers.to_json()))
    assert "Lost, then solved" in text


# In the browser -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1280, 400])
def test_the_page_opens_alone_and_every_figure_is_inside_the_window(
    browser: chromium.Page, numbers: PairsDocument, tmp_path: Path, width: int
) -> None:
    place = page.write(numbers, tmp_path)[0]
    browser.show(place, width)
    browser.check_alone(place)
    browser.check_figures(FIGURES, width)


def test_hostile_names_of_families_and_benchmarks_run_nothing(browser: chromium.Page, tmp_path: Path) -> None:
    bad = "</script><img src=x onerror=\"document.title='owned'\"><svg/onload=document.title='owned'>"
    pairs = [
        Pair(pair.base, pair.post, bad + pair.name, bad, bad + pair.benchmark, bad + pair.recipe) for pair in study()
    ]
    browser.show(page.write(many.document(pairs, draws=10), tmp_path)[0], 400)
    assert browser.problems == []
    assert "owned" not in browser.run("document.title")[:60]
    assert browser.run("document.querySelectorAll('img').length") == 0
    assert browser.run("document.documentElement.scrollWidth") == 400
