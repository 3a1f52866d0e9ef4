"""The report: the paper's tables from a run folder alone, the page and its twin, and two runs side by side."""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from kit import paper_tables, report_runs
from kit.command import handoff, output_of
from rich.console import Console

from handoff.errors import StoreError, UsageError
from handoff.estimation.method import Intervals
from handoff.protocols.frontier import study
from handoff.report.format import Measure
from handoff.report.report import Options
from handoff.report.study import REPORT, comparison, episodes, figures, sentences
from handoff.report.study import document as numbers
from handoff.report.study.values import ReacherGap, SolverGap, StudyDocument

FAST = Options(Intervals(draws=2000))


def printed(document: StudyDocument) -> str:
    console = Console(width=1000, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    REPORT.show(console, document)
    return console.export_text()


@pytest.fixture(scope="module")
def unseen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The paper's unseen split.  Arrivals come so that the mean actions are the paper's: of SFT (104 x 48 + 16 x 18) /
    120 = 44.0, of RL (21 x 48 + 39 x 12 + 60 x 11) / 120 = 17.8."""

    def arrives(reacher: int, number: int) -> int:
        return 18 if reacher == 0 else 12 if number < 39 else 11

    return report_runs.write(tmp_path_factory.mktemp("unseen") / "run", paper_tables.unseen(), arrives=arrives)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The paper's seen split: 57 of RL's 98 arrivals within 8 actions, since 57/120 - 19/120 = 31.7 points."""

    def arrives(reacher: int, number: int) -> int:
        return 30 if reacher == 0 else 8 if number < 57 else 20

    folder = tmp_path_factory.mktemp("seen") / "run"
    return report_runs.write(folder, paper_tables.seen(), arrives=arrives, split="seen", prefix="seen ")


@pytest.fixture(scope="module")
def typed(unseen: Path, seen: Path) -> StudyDocument:
    return numbers.document(study.load(unseen), FAST, study.load(seen))


@pytest.fixture(scope="module")
def document(typed: StudyDocument) -> dict[str, Any]:
    return typed.to_json()


def rows(document: StudyDocument, *path: str) -> list[dict[str, Any]]:
    found: Any = document.to_json()["tables"]
    for part in path:
        found = found[part]
    assert isinstance(found, list)
    return found


def test_the_terminal_prints_the_papers_unseen_tables_from_a_run_folder_alone(unseen: Path) -> None:
    result = handoff("report", str(unseen), "--draws", "2000")
    assert result.returncode == 0, result.stderr
    table_1 = result.stdout.split("Table 1.")[1].split("Table 2a.")[0]
    for shown in ("5.8% (7/120)", "12.5% (15/120)", "48.3% (58/120)", "79.2% (95/120)", "+6.7", "+30.8", "+24.2"):
        assert shown in table_1, shown
    assert "+25.9" in table_1
    assert "−1.7" in table_1
    assert "−12.6" in table_1
    assert "−36.8" in table_1
    table_2 = result.stdout.split("Table 2a.")[1].split("Table 3.")[0]
    for shown in ("13.3% (16/120)", "82.5% (99/120)", "44.0", "17.8", "43.8% (7/16)", "93.8% (15/16)"):
        assert shown in table_2, shown
    for shown in ("58.6% (58/99)", "96.0% (95/99)", "56.5% (65/115)", "95.7% (110/115)", "+50.0", "+37.4", "+39.1"):
        assert shown in table_2, shown
    table_3 = result.stdout.split("Table 3.")[1].split("Table 6a.")[0]
    for shown in ("72.2% (83/115)", "97.4% (112/115)", "78.3% (65/83)", "98.2% (110/112)", "+25.2", "+19.9"):
        assert shown in table_3, shown
    assert re.search(r"rl, not sft +│ +45 ", table_3)
    assert re.search(r"sft, not rl +│ +0 ", table_3)
    for name in ("Table 6a.", "Table 6b.", "Table 6c.", "Table 7."):
        assert name in result.stdout


def test_the_seen_split_has_the_papers_budget_contrast_and_gaps(seen: Path) -> None:
    text = printed(numbers.document(study.load(seen), FAST))
    assert re.search(r"rl at 8 − sft at 48 +│ +\+31\.7 \[", text)
    assert "Reach gap of +65.8 points" in text
    assert "same-state Solve gap of +26.5 points" in text
    assert "interaction of +17.5 points" in text
    assert "+17.5 of it is the arrival term and 0.0 the state term" in text
    assert "41 are won by rl only and 10 by sft only" in text
    assert "rl with 8 actions exceeds sft with 48: +31.7 points" in text


def test_the_first_sentences_say_where_the_gain_comes_from(document: dict[str, Any]) -> None:
    said = document["sentences"]
    assert said["verdict"] == [
        "From both: rl reaches the frontier more often, and solves better from identical states."
    ]
    assert "Reach gap +69.2 points [" in said["gaps"][0]
    assert "same-state Solve gap +39.1 points [" in said["gaps"][0]
    assert "interaction +24.2 points [" in said["gaps"][0]
    # 79.2 - 5.8 = 73.3 (88 of 120) = 6.7 (8) + 42.5 (51) + 24.2 (29).
    assert "from 5.8% to 79.2%, +73.3 points" in said["gain"][0].replace("goes from", "from")
    assert "the solver alone brings +6.7, the reacher alone +42.5, and both together +24.2 more" in said["gain"][0]


@pytest.mark.parametrize(
    ("reach", "solve", "start"),
    [
        ((0.1, 0.3), (0.1, 0.2), "From both"),
        ((0.1, 0.3), (-0.1, 0.2), "From reaching"),
        ((-0.1, 0.3), (0.1, 0.2), "From solving"),
        ((-0.1, 0.3), (-0.1, 0.2), "Not resolved"),
        ((-0.3, -0.1), (0.1, 0.2), "Not a plain gain: rl reaches the frontier less often and solves better"),
        ((None, None), (0.1, 0.2), "From solving"),
    ],
)
def test_the_verdict_goes_by_the_intervals(reach: Any, solve: Any, start: str) -> None:
    gaps = [Measure(None, None, *ends) for ends in (reach, solve)]
    pair = ("sft", "rl")
    assert sentences.verdict(ReacherGap(pair, gaps[0]), SolverGap(pair, gaps[1]), 0.95).startswith(start)


def test_the_prediction_is_the_mean_over_types_of_gap_times_gap(
    document: dict[str, Any], unseen: Path, seen: Path
) -> None:
    here, there = study.load(unseen), study.load(seen)
    products = []
    for type in sorted({task.type for task in here.tasks}):
        mine = {task.id for task in here.tasks if task.type == type}
        other = {task.id for task in there.tasks if task.type == type}
        arrived = {
            name: sum(run.arrived for run in here.trajectories.values() if run.task in mine and run.reacher == name)
            for name in ("sft", "rl")
        }
        states = sum(run.arrived for run in there.trajectories.values() if run.task in other)
        won = {
            name: sum(end.won for end in there.endpoints.values() if end.task in other and end.solver == name)
            for name in ("sft", "rl")
        }
        products.append((arrived["rl"] - arrived["sft"]) / 20 * (won["rl"] - won["sft"]) / states)
    whole = document["tables"]["types"]["prediction"]["whole"]
    assert whole["predicted"]["point"] == pytest.approx(sum(products) / 6)
    assert whole["observed"]["point"] == pytest.approx(29 / 120)
    assert whole["residual"]["point"] == pytest.approx(29 / 120 - sum(products) / 6)


def test_one_reacher_and_one_solver_print_what_they_can_and_name_what_they_lack(tmp_path: Path) -> None:
    one = report_runs.table(["a"], ["b"], lambda w, t, s: s == 0, lambda w, r, t, s: t > 1, ["x", "x", "y", "y"])
    loaded = study.load(report_runs.write(tmp_path / "run", one))
    document = numbers.document(loaded, FAST)
    text = printed(document)
    assert "a Reach gap needs a second reacher, a Solve gap a second solver, and the interaction (Eq. 4) both" in text
    assert "50.0% (4/8)" in text  # Reach: 4 of 8 trajectories
    assert "25.0% (2/8)" in text  # endpoint
    assert "50.0% (2/4)" in text  # Solve
    assert "interaction I" not in text
    assert "needs a second reacher" in REPORT.page(loaded, document)


@pytest.mark.parametrize(
    ("reachers", "solvers", "needs"),
    [(["a"], ["a", "b"], "need a second reacher"), (["a", "b"], ["a"], "need a second solver")],
)
def test_a_crossing_without_a_second_in_one_role_says_so(
    tmp_path: Path, reachers: list[str], solvers: list[str], needs: str
) -> None:
    half = report_runs.table(reachers, solvers, lambda w, t, s: True, lambda w, r, t, s: r == 1, ["x"] * 4)
    loaded = study.load(report_runs.write(tmp_path / "run", half))
    document = numbers.document(loaded, FAST)
    assert needs in printed(document)
    assert needs in REPORT.page(loaded, document)


def test_three_checkpoints_have_every_contrast_and_the_widest_leads(tmp_path: Path) -> None:
    ladder = report_runs.table(
        ["base", "sft", "rl"],
        ["base", "sft", "rl"],
        lambda w, t, s: (t + s) % 3 <= w,
        lambda w, r, t, s: (t + 2 * s) % 4 <= r,
        ["x"] * 6 + ["y"] * 6,
    )
    loaded = study.load(report_runs.write(tmp_path / "run", ladder))
    document = numbers.document(loaded, FAST)
    pairs = [row["reachers"] for row in rows(document, "endpoints", "interactions")]
    assert pairs == [["base", "rl"], ["base", "sft"], ["sft", "rl"]]
    assert rows(document, "reach", "gaps")[0]["reachers"] == ["base", "rl"]
    turned = numbers.document(loaded, Options(Intervals(draws=2000), order=("rl", "sft", "base")))
    assert rows(turned, "reach", "gaps")[0]["reachers"] == ["rl", "base"]
    assert document.results is not None
    figures_of = figures.figures(document.run, document.results)
    assert figures_of["interaction"][0].svg.count("<title>reacher ") == 9
    assert "base → rl" in printed(document)
    REPORT.page(loaded, document)


@pytest.mark.parametrize("arrives", [False, True])
def test_a_run_in_which_nobody_or_everybody_arrives_has_a_report(tmp_path: Path, arrives: bool) -> None:
    flat = report_runs.table(
        ["a", "b"], ["a", "b"], lambda w, t, s: arrives, lambda w, r, t, s: arrives, ["x"] * 3 + ["y"] * 3
    )
    loaded = study.load(report_runs.write(tmp_path / "run", flat))
    document = numbers.document(loaded, FAST)
    solve = rows(document, "solve", "cells")[0]["value"]
    if arrives:
        assert solve["point"] == 1.0
    else:
        assert solve["point"] is None
        assert "denominator" in solve["note"]
    assert "Not resolved" in printed(document)
    assert "NaN" not in json.dumps(document.to_json())
    assert 'id="fig-arrival"' in REPORT.page(loaded, document)


def test_an_incomplete_run_shows_counts_and_what_is_owed_and_no_interval(tmp_path: Path) -> None:
    part = report_runs.table(["a", "b"], ["a", "b"], lambda w, t, s: True, lambda w, r, t, s: r == 1, ["x"] * 4)
    folder = report_runs.write(tmp_path / "run", part, done=30)  # 10 trajectories of 16, 20 endpoints of 32
    result = handoff("report", str(folder))
    assert result.returncode == 0, result.stderr
    told = " ".join(result.stdout.split())
    assert "10 of 16 trajectories and 20 of 32 endpoints are done; 6 and 12 are owed" in told
    assert "[" not in told.replace("[/", "")
    loaded = study.load(folder)
    document = numbers.document(loaded)
    assert document.to_json()["intervals"] is None
    assert document.to_json()["estimates"] == []
    shown = REPORT.page(loaded, document)
    assert "6 and 12 are owed" in shown
    assert "<figure>" not in shown


def test_the_page_and_its_twin_are_written_beside_each_other(unseen: Path, seen: Path, tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    result = handoff("report", str(unseen), "--html", str(target), "--external", str(seen), "--draws", "2000")
    assert result.returncode == 0, result.stderr
    twin = json.loads((tmp_path / "page.json").read_text())
    assert twin["complete"] is True
    assert {one["key"] for one in twin["estimates"]} >= {"reach(reacher=sft)", "interaction(a=sft, b=rl, c=sft, d=rl)"}
    text = target.read_text()
    embedded = re.search(r'<script type="application/json" id="numbers">(.*?)</script>', text, re.S)
    assert embedded is not None
    assert json.loads(embedded.group(1)) == twin


def visible(text: str) -> str:
    text = re.sub(r"<(script|style|noscript)\b.*?</\1>", " ", text, flags=re.S)
    return html.unescape(re.sub(r"<[^>]*>", " ", text))


def test_every_number_with_a_decimal_on_the_page_is_in_its_twin(
    unseen: Path, typed: StudyDocument, document: dict[str, Any]
) -> None:
    known: set[str] = set()

    def walk(form: Any) -> None:
        if isinstance(form, dict):
            for part in form.values():
                walk(part)
        elif isinstance(form, list):
            for part in form:
                walk(part)
        elif isinstance(form, int | float) and not isinstance(form, bool):
            known.update(f"{abs(scale * form):.1f}" for scale in (1, 100))

    walk({key: part for key, part in document.items() if key != "sentences"})
    failed = document["failures"]["reachers"]
    known |= {f"{100 * count / one['trajectories']:.1f}" for one in failed for count in one["labels"].values()}
    states = document["tables"]["stages"]["states"]
    for gap in document["tables"]["stages"]["gaps"]:
        known |= {f"{100 * gap[key] / states:.1f}" for key in ("won_by_both", "won_by_neither")}
    text = visible(REPORT.page(study.load(unseen), typed))
    text = text.replace("toolkit 0.1.0", "")
    found = set(re.findall(r"(?<![\d.])\d+\.\d(?!\d)", text))
    assert len(found) > 80
    assert found <= known, found - known


def test_the_page_asks_for_nothing_and_lets_nothing_in(unseen: Path, typed: StudyDocument) -> None:
    text = REPORT.page(study.load(unseen), typed)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert html.unescape(policy.group(1)).startswith("default-src 'none'")
    assert "unsafe" not in policy.group(1)
    assert re.findall(r"https?://[^\s\"'<]+", text) == ["http://www.w3.org/2000/svg"]  # a name, not an address to load
    assert not re.search(r"\s(?:src|srcset|action|style|on\w+)=", re.sub(r"<script>.*?</script>", "", text, flags=re.S))
    assert "@import" not in text
    assert "url(" not in text


HOSTILE = "\"><script>alert(1)</script><!--'&{{7*7}}"


def test_text_of_the_run_is_never_markup(tmp_path: Path) -> None:
    bad = report_runs.table(
        [HOSTILE, "b"], [HOSTILE, "b"], lambda w, t, s: w == 1 or s == 0, lambda w, r, t, s: r == 1, [HOSTILE] * 6
    )
    folder = report_runs.write(
        tmp_path / "run",
        bad,
        environment={"name": HOSTILE, "[bold]": HOSTILE},
        policies={HOSTILE: {HOSTILE: HOSTILE}, "b": {"spec": "</script><script>alert(2)</script>"}},
        split=HOSTILE,
        said=HOSTILE + "\ud800",
        start=HOSTILE,
    )
    loaded = study.load(folder)
    document = numbers.document(loaded, FAST)
    text = REPORT.page(loaded, document)
    assert "<script>alert" not in text
    assert "49" not in re.findall(r"alert\(1\).{0,40}", visible(text))[0]
    assert text.count("<script") == 3
    assert text.count("</script>") == 3
    written, twin = REPORT.write(loaded, document, tmp_path / "page.html")
    assert json.loads(twin.read_text())["run"]["split"] == HOSTILE
    assert written.read_bytes().decode()  # lone surrogates do not reach the file
    assert HOSTILE in printed(document).replace("\n", "")


def test_the_twin_never_takes_the_place_of_a_runs_own_file(unseen: Path) -> None:
    before = (unseen / "manifest.json").read_bytes()
    result = handoff("report", str(unseen), "--html", str(unseen / "manifest.html"), "--draws", "200")
    assert result.returncode == 2
    assert "choose a name such as report.html" in result.stderr
    assert (unseen / "manifest.json").read_bytes() == before
    assert handoff("report", str(unseen), "--html", str(unseen / "x.json"), "--draws", "200").returncode == 2


def test_a_page_in_the_run_folder_leaves_the_run_as_it_was(tmp_path: Path) -> None:
    part = report_runs.table(["a"], ["b"], lambda w, t, s: True, lambda w, r, t, s: True, ["x"] * 3)
    folder = report_runs.write(tmp_path / "run", part)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert handoff("report", str(folder), "--html", "--draws", "200").returncode == 0
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == {"report.html", "report.json"}
    assert study.load(folder).sealed


def test_the_page_is_the_same_bytes_twice(unseen: Path, seen: Path, typed: StudyDocument) -> None:
    loaded = study.load(unseen)
    assert REPORT.page(loaded, typed) == REPORT.page(loaded, numbers.document(loaded, FAST, study.load(seen)))


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--interval", "magic"), "'magic' is not one of"),
        (("--budgets", "8,99"), "budget 99 is outside what was observed"),
        (("--budgets", "eight"), "write --budgets as whole numbers"),
        (("--order", "sft,dpo"), "no checkpoint is named 'dpo'"),
        (("--draws", "5"), "not in the range"),
        (("--external", "."), "is not a run folder"),
    ],
)
def test_a_wrong_request_is_one_sentence(unseen: Path, more: tuple[str, ...], says: str) -> None:
    result = handoff("report", str(unseen), *more)
    assert result.returncode == 2
    assert says in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr


def test_an_external_run_that_shares_a_task_is_refused(unseen: Path) -> None:
    result = handoff("report", str(unseen), "--external", str(unseen), "--draws", "200")
    assert result.returncode == 2
    assert "share 30 tasks" in result.stderr


def corrupt(path: Path, old: bytes, new: bytes) -> None:
    raw = path.read_bytes()
    assert old in raw
    path.write_bytes(raw.replace(old, new, 1))


def test_a_damaged_run_is_one_sentence(tmp_path: Path) -> None:
    part = report_runs.table(["a"], ["b"], lambda w, t, s: True, lambda w, r, t, s: True, ["x"] * 3)
    folder = report_runs.write(tmp_path / "run", part)
    corrupt(folder / "records.jsonl", b"shelf 1", b"shelf 7")
    result = handoff("report", str(folder), "--html")
    assert result.returncode == 2
    assert "line 1 was changed" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert not (folder / "report.html").exists()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"arrival": 99}, "arrives after 99 actions, but it has 5"),
        ({"arrival": 2}, "arrives at a state that has no certificate"),
        ({"slot": 7}, "is not in the run's plan"),
        ({"reacher": "z"}, "is not in the run's plan"),
    ],
)
def test_a_record_that_contradicts_the_run_is_refused(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    import attrs

    part = report_runs.table(["a"], ["b"], lambda w, t, s: True, lambda w, r, t, s: True, ["x"] * 3)
    loaded = study.load(report_runs.write(tmp_path / "run", part))
    key, run = next(iter(loaded.trajectories.items()))

    def show() -> None:
        changed = {**loaded.trajectories, key: attrs.evolve(run, **changes)}
        numbers.document(attrs.evolve(loaded, trajectories=changed), FAST)

    with pytest.raises(ValueError, match=re.escape(says)):  # by the record itself, or by the study
        show()


# The episodes that the browser shows.


def unpacked(packed: episodes.Packed) -> dict[str, Any]:
    form: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(packed.data)))
    return form


def test_the_packed_episodes_say_what_the_records_say(unseen: Path) -> None:
    loaded = study.load(unseen)
    form = unpacked(episodes.pack(loaded))
    strings = form["strings"]
    assert len(strings) == len(set(strings))
    assert len(form["episodes"]) == 240
    for episode in form["episodes"]:
        task, reacher = loaded.tasks[episode["t"]], form["reachers"][episode["w"]]
        run = loaded.trajectories[task.id, episode["s"], reacher]
        assert strings[episode["r"]] == run.reset.observation
        assert [strings[s[0]] for s in episode["x"]] == [s.decision.action for s in run.steps]
        assert [strings[s[1]] for s in episode["x"]] == [s.record.observation for s in run.steps]
        assert episode.get("a") == run.arrival
        if run.arrived:
            assert [strings[n] for n in episode["c"]["bridges"]] == list(run.certificate().bridges)
            assert episode["c"]["tried"] == [3, 9]
            for end in episode["e"]:
                found = loaded.endpoints[task.id, episode["s"], reacher, form["solvers"][end["r"]]]
                assert end["won"] == found.won
                assert end["b"] == found.bridge
        else:
            assert episode["f"] == "loop"  # every fourth observation comes again


def test_too_many_words_are_cut_and_the_page_says_so(tmp_path: Path) -> None:
    import random

    rng = random.Random(4)
    words = " ".join(str(rng.random()) for _ in range(60))  # does not compress
    part = report_runs.table(["a"], ["b"], lambda w, t, s: True, lambda w, r, t, s: True, ["x"] * 3, slots=4)
    loaded = study.load(report_runs.write(tmp_path / "run", part, said=words))
    whole = episodes.pack(loaded)
    assert whole.remarks == ()
    assert words in unpacked(whole)["strings"]
    cut = episodes.pack(loaded, room=len(whole.data) - 1)
    assert "cut after 600 characters" in cut.remarks[0]
    assert len(cut.data) < len(whole.data)


def test_episodes_without_room_are_left_out_by_seed_slot_and_the_page_says_so(unseen: Path) -> None:
    loaded = study.load(unseen)
    few = episodes.pack(loaded, room=len(episodes.pack(loaded).data) // 2)
    shown = unpacked(few)["episodes"]
    assert len(shown) == few.shown < few.total == 240
    assert few.remarks[-1].startswith(f"{few.shown} trajectories of 240 are shown")
    # 60 trajectories a slot: a slot is only begun when the one before it is all there.
    assert [episode["s"] for episode in shown] == [number // 60 for number in range(few.shown)]


# Two runs side by side.


def by_name(compared: dict[str, Any], name: str, **told: str) -> dict[str, Any]:
    return next(row for row in compared["rows"] if row["name"] == name)


def test_runs_of_the_same_tasks_have_paired_differences(tmp_path: Path) -> None:
    types = ["x"] * 6 + ["y"] * 6
    before = report_runs.table(
        ["a", "b"], ["a", "b"], lambda w, t, s: (t + s) % 4 <= w, lambda w, r, t, s: r == 1, types
    )
    after = report_runs.table(
        ["a", "b"], ["a", "b"], lambda w, t, s: (t + s) % 4 <= 2 * w, lambda w, r, t, s: r == 1, types
    )
    runs = [report_runs.write(tmp_path / name, one) for name, one in (("one", before), ("two", after))]
    compared = comparison.compare(*map(study.load, runs), FAST).to_json()
    assert compared["pairing"] == "paired"
    assert compared["differing"] == []
    gap = next(row for row in compared["rows"] if row["name"] == "reach_gap")
    # Reach of b: 2 of 4 positions before, 3 of 4 after; of a, 1 of 4 in both.
    assert (gap["first"]["point"], gap["second"]["point"]) == (0.25, 0.5)
    assert gap["difference"]["point"] == 0.25
    assert gap["difference"]["low"] <= 0.25 <= gap["difference"]["high"]


def test_runs_without_a_common_task_have_independent_differences(unseen: Path, seen: Path) -> None:
    compared = comparison.compare(study.load(seen), study.load(unseen), FAST).to_json()
    assert compared["pairing"] == "independent"
    assert [row["key"] for row in compared["differing"]] == ["protocol.split", "tasks"]
    interaction = by_name(compared, "interaction")
    assert interaction["difference"]["point"] == pytest.approx(29 / 120 - 21 / 120)
    # Independent variances add: the difference is less sure than either.
    widths = {run: interaction[run]["high"] - interaction[run]["low"] for run in ("first", "second", "difference")}
    assert widths["difference"] > max(widths["first"], widths["second"])


def test_runs_that_share_some_tasks_have_differences_without_intervals(tmp_path: Path) -> None:
    def some(types: list[str]) -> Any:
        return report_runs.table(
            ["a", "b"], ["a", "b"], lambda w, t, s: w == 1 or s == 0, lambda w, r, t, s: r == 1, types
        )

    runs = [report_runs.write(tmp_path / "one", some(["x"] * 4)), report_runs.write(tmp_path / "two", some(["x"] * 6))]
    compared = comparison.compare(*map(study.load, runs), FAST).to_json()
    assert compared["pairing"] == "neither"
    difference = by_name(compared, "reach")["difference"]
    assert difference["point"] is not None
    assert difference["low"] is None
    assert "neither paired nor independent" in difference["note"]


def test_another_version_of_the_environment_is_not_comparable_unless_asked(tmp_path: Path) -> None:
    part = report_runs.table(
        ["a", "b"], ["a", "b"], lambda w, t, s: w == 1 or s == 0, lambda w, r, t, s: r == 1, ["x"] * 4
    )
    one = report_runs.write(tmp_path / "one", part)
    two = report_runs.write(
        tmp_path / "two",
        part,
        environment={"name": "toy", "version": "2"},
        policies={"a": {"spec": "noisy:a"}, "b": {"spec": "noisy:0.9"}},
    )
    compared = comparison.compare(study.load(one), study.load(two), FAST).to_json()
    assert "environment.version 1 and 2" in compared["incomparable"][0]
    assert all(row["difference"] is None for row in compared["rows"])
    assert any(remark.startswith("b is not the same checkpoint") for remark in compared["remarks"])
    anyway = comparison.compare(study.load(one), study.load(two), FAST, anyway=True).to_json()
    assert all(row["difference"] is not None for row in anyway["rows"])
    text = output_of("compare", one, two, "--draws", "200")
    assert "Not comparable" in text
    assert "environment.version" in text


def test_runs_without_a_common_checkpoint_or_unfinished_are_refused(tmp_path: Path) -> None:
    first = report_runs.table(["a"], ["a"], lambda w, t, s: True, lambda w, r, t, s: True, ["x"] * 3)
    second = report_runs.table(["b"], ["b"], lambda w, t, s: True, lambda w, r, t, s: True, ["x"] * 3)
    one, two = report_runs.write(tmp_path / "one", first), report_runs.write(tmp_path / "two", second)
    with pytest.raises(UsageError, match="no checkpoint of one name in one role"):
        comparison.compare(study.load(one), study.load(two), FAST)
    part = report_runs.write(tmp_path / "part", first, done=3)
    with pytest.raises(StoreError, match="is not complete"):
        comparison.compare(study.load(one), study.load(part), FAST)
