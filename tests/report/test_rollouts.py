"""The report of a rollouts run, and the report that a protocol makes from sheets."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest
from kit import chromium
from kit.command import invoke, output_of
from kit.runs import play
from rich.console import Console

from handoff.errors import UsageError
from handoff.protocols.rollouts import study
from handoff.report import html, plain, terminal
from handoff.report.format import Measure
from handoff.report.plots import Mark, forest
from handoff.report.report import Options, Report
from handoff.report.rollouts import REPORT
from handoff.report.sheet import Content, Section, Sheet, SheetCell, SheetRow


def rolled(folder: Path, *more: str) -> Path:
    arguments = ["-p", "base=tempered:1:2", "-p", "post=tempered:0.1:2", "--tasks", "6", "--budget", "12"]
    return play(folder, "rollout", "sokoban", *arguments, *more)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rolled(tmp_path_factory.mktemp("rollouts") / "run", "-n", "8")


@pytest.fixture(scope="module")
def ptgs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rolled(tmp_path_factory.mktemp("ptgs") / "run", "-n", "8", "--ptgs", "--pilot", "4")


def report(*arguments: Any) -> str:
    return output_of("report", *arguments, env={"COLUMNS": "200"})


def percent(part: int, of: int) -> str:
    return f"{100 * part / of:.1f}%"


def test_the_terminal_counts_policies_types_and_tasks(run: Path) -> None:
    loaded, text = study.load(run), report(run)
    for name in ("base", "post"):
        won = {
            task.id: [r.won for r in loaded.rollouts.values() if (r.task, r.policy) == (task.id, name)]
            for task in loaded.tasks
        }
        total, covered = sum(map(sum, won.values())), sum(map(any, won.values()))
        assert f"{name} succeeds in {percent(total, 48)} of its rollouts" in text
        # All 8 rollouts cover a task if one succeeds.
        assert (
            f"solves {percent(covered, 6)} of the tasks within 8 rollouts and {percent(6 - covered, 6)} never" in text
        )
        assert re.search(rf"│ {name} +│ +{total}/48 │", text)
        for type in {task.type for task in loaded.tasks}:
            part = [count for task in loaded.tasks if task.type == type for count in won[task.id]]
            row = next(line for line in text.splitlines() if line.startswith(f"│ {type} "))
            assert f"{percent(sum(part), len(part))} ({sum(part)}/{len(part)})" in row
        for task in loaded.tasks:
            row = next(line for line in text.splitlines() if line.startswith(f"│ {task.name} "))
            assert f"{sum(won[task.id])}/8" in row
    assert "PTGS" not in text


def test_the_page_has_the_curves_and_its_twin_is_the_json_of_the_command(run: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert report(run, "--html", page).split() == ["wrote", str(page), "wrote", str(page.with_suffix(".json"))]
    twin = json.loads(page.with_suffix(".json").read_text())
    assert twin == json.loads(report(run, "--json"))
    text = page.read_text()
    embedded = re.search(r'<script type="application/json" id="numbers">(.*?)</script>', text, re.DOTALL)
    assert embedded
    assert json.loads(embedded[1]) == twin
    for one in twin["policies"]:
        for k, rate in one["pass_at_k"].items():
            assert f"<title>{one['policy']} at k = {k}: {100 * rate:.1f}%</title>" in text
    assert set(re.findall(r'<svg id="([\w-]+)"', text)) == {"fig-pass-at", "fig-pass-hat", "fig-types"}
    assert "sokoban-test-" in text, "tasks are called by their names"


def test_a_ptgs_run_shows_pilots_and_temperatures(ptgs: Path) -> None:
    loaded, text = study.load(ptgs), report(ptgs)
    assert "of 8 rollouts per task the first 4 are pilots and not scored" in text
    pilots = sum(r.won for r in loaded.rollouts.values() if r.policy == "base" and r.index < 4)
    assert f"{pilots}/24" in text
    for task in loaded.tasks:
        row = next(line for line in text.splitlines() if line.startswith(f"│ {task.name} "))
        assert f"T {loaded.temperatures('base')[task.id]:.3g}" in row


def test_a_prediction_from_rollouts_is_refused(run: Path) -> None:
    result = invoke("report", run, "--external", run)
    assert isinstance(result.exception, UsageError)
    assert "needs a handoff study" in str(result.exception)


def test_owed_rollouts_are_counted_and_nothing_else(run: Path) -> None:
    loaded = study.load(run)
    part = attrs.evolve(loaded, rollouts=dict(list(loaded.rollouts.items())[:40]), sealed=False)
    document = REPORT.document(part, Options())
    content = REPORT.content(document)
    assert content.verdict.startswith("56 of 96 rollouts are owed")
    assert not content.sections
    assert document.to_json() == {"complete": False, "planned": 96, "owed": 56}
    assert "56 of 96 rollouts are owed" in REPORT.page(part, document)


def test_long_lists_of_tasks_end_early_on_the_terminal_and_not_on_the_page() -> None:
    rows = tuple(SheetRow(f"task {i}", (SheetCell("1/2"),)) for i in range(50))
    content = Content(
        "Which?", "t", "k", "v", sections=[Section("s", "S", "S", (), [Sheet("T", ("a", "b"), rows, most=40)])]
    )
    text = printed(content)
    assert "task 39" in text
    assert "task 40" not in text
    assert "and 10 more rows" in text
    assert "task 49" in html.render(content, {}, name="page.html")


# A report of another protocol.


@attrs.frozen
class Tosses:
    """How many of ``of`` coins show heads."""

    heads: int
    of: int

    def to_json(self) -> dict[str, Any]:
        return attrs.asdict(self)


@attrs.frozen
class Coins:
    folder: Path
    shown: Sequence[bool]


class CoinReport(Report[Coins, Tosses]):
    def document(self, study: Coins, options: Options, external: Coins | None = None) -> Tosses:
        return Tosses(sum(study.shown), len(study.shown))

    def content(self, document: Tosses) -> Content:
        rate = Measure(None, document.heads / document.of, 0.2, 0.8, document.heads, document.of)
        sheet = Sheet("Heads", ("side", "coins"), (SheetRow("<b>heads</b>", (SheetCell(str(document.heads)),)),))
        figure = forest([("", [Mark("heads", rate, 0)])], str, (0, 100)).figure("fig-heads", "Heads", "Heads.")
        section = Section("heads", "Heads & tails", "Heads", ["A sentence."], [sheet], [figure])
        return Content("Heads?", "coins", "Coins", f"{document.heads} heads.", sections=[section])


def printed(content: Content) -> str:
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    terminal.show(console, content)
    return console.export_text()


def test_a_protocol_makes_terminal_page_and_twin_from_its_sheets(tmp_path: Path) -> None:
    coins = Coins(tmp_path, [True, True, False])
    document = CoinReport().document(coins, Options())
    text = printed(CoinReport().content(document))
    assert "2 heads." in text
    assert "<b>heads</b>" in text
    page, twin = CoinReport().write(coins, document)
    assert (page.name, twin.name) == ("report.html", "report.json")
    assert json.loads(twin.read_text()) == {"heads": 2, "of": 3}
    markup = page.read_text()
    assert "&lt;b&gt;heads&lt;/b&gt;" in markup
    assert "Heads &amp; tails" in markup
    assert 'id="fig-heads"' in markup
    assert 'data-name="report.json"' in markup


def test_a_protocol_without_a_report_has_its_records_counted(run: Path) -> None:
    loaded = study.load(run)
    document = plain.REPORT.document(loaded, Options())
    text = printed(plain.REPORT.content(document))
    assert re.search(r"│ rollout +│ 96 ", text)
    assert "96 records, none owed." in text
    assert "Records by kind" in plain.REPORT.page(loaded, document)


# In the browser.


@pytest.mark.parametrize("width", [1280, 400])
def test_the_page_of_rollouts_opens_alone_and_fits(
    browser: chromium.Page, ptgs: Path, width: int, tmp_path: Path
) -> None:
    loaded = study.load(ptgs)
    page, _ = REPORT.write(loaded, REPORT.document(loaded, Options()), tmp_path / "page.html")
    browser.show(page, width)
    browser.check_alone(page)
    assert browser.run("document.documentElement.scrollWidth") == width
    assert browser.run("[...document.querySelectorAll('section')].map((part) => part.id)") == [
        "policies", "ptgs", "types", "tasks", "method",
    ]  # fmt: skip
