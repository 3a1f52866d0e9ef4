"""The page in a real browser: nothing goes wrong, filters work, figures are there and fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kit import chromium, paper_tables, report_runs

from handoff.estimation.method import Intervals
from handoff.protocols.frontier import study
from handoff.report.report import Options
from handoff.report.study import REPORT
from handoff.report.study import document as numbers

FIGURES = {
    "fig-effects", "fig-interaction", "fig-gain", "fig-arrival", "fig-reach-solve", "fig-stages", "fig-won-only",
    "fig-types", "fig-prediction", "fig-budgets", "fig-failures",
}  # fmt: skip


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    here = study.load(report_runs.write(folder / "run", paper_tables.unseen(), said="<think>look</think><b>look</b>"))
    there = report_runs.write(folder / "external", paper_tables.seen(), prefix="seen ", split="seen")
    document = numbers.document(here, Options(Intervals(draws=2000)), study.load(there))
    return REPORT.write(here, document, folder / "page.html")[0]


@pytest.fixture
def tab(browser: chromium.Page, written: Path) -> chromium.Page:
    browser.show(written, 1280)
    return browser


def choose(tab: chromium.Page, select: str, text: str) -> None:
    tab.run(
        f"""(() => {{
          const select = document.getElementById("{select}");
          const option = [...select.options].find((one) => one.text.startsWith({text!r}));
          select.value = option.value;
          select.dispatchEvent(new Event("change", {{ bubbles: true }}));
        }})()"""
    )


def listed(tab: chromium.Page) -> list[str]:
    found: list[str] = tab.run("[...document.querySelectorAll('#list .ep')].map((row) => row.textContent)")
    return found


def count(tab: chromium.Page) -> str:
    return str(tab.run("document.getElementById('f-count').value"))


def test_the_page_opens_from_disk_without_a_problem_and_asks_for_nothing_else(
    tab: chromium.Page, written: Path
) -> None:
    tab.check_alone(written)


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_figure_is_there_and_inside_the_window(
    tab: chromium.Page, written: Path, width: int, scheme: str
) -> None:
    tab.show(written, width, scheme=scheme)
    tab.check_figures(FIGURES, width)


def test_letters_of_figures_stay_readable_on_a_narrow_screen(tab: chromium.Page, written: Path) -> None:
    tab.show(written, 400)
    smallest = tab.run(
        """Math.min(...[...document.querySelectorAll("figure svg text")].map((text) =>
          parseFloat(getComputedStyle(text).fontSize) * text.ownerSVGElement.getScreenCTM().a))"""
    )
    assert smallest >= 9.5


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_lines_stand_out_from_the_paper(tab: chromium.Page, written: Path, scheme: str) -> None:
    tab.show(written, 1280, scheme=scheme)
    colours: dict[str, Any] = tab.run(
        """(() => {
          const style = getComputedStyle(document.documentElement);
          const names = ["paper", "ink", "soft", "accent", "good", "bad", "warn", "c0", "c1", "c2", "c3", "c4", "c5"];
          return Object.fromEntries(names.map((name) => [name, style.getPropertyValue("--" + name).trim()]));
        })()"""
    )

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(name: str) -> float:
        pair = sorted((luminance(colours[name]), luminance(colours["paper"])))
        return (pair[1] + 0.05) / (pair[0] + 0.05)

    # WCAG 2: 4.5 for text, 3 for graphics.
    for name in ("ink", "soft", "accent", "good", "bad", "warn"):
        assert contrast(name) >= 4.5, name
    for name in ("c0", "c1", "c2", "c3", "c4", "c5"):
        assert contrast(name) >= 3.0, name


def test_checkpoints_differ_by_marker_and_line_and_not_only_by_colour(tab: chromium.Page) -> None:
    shapes = tab.run(
        "[...document.querySelectorAll('#fig-arrival .m')].map((mark) => [mark.getAttribute('class'), mark.tagName])"
    )
    kinds = {tuple(pair) for pair in shapes}
    assert len({colour for colour, _ in kinds}) == len({shape for _, shape in kinds}) == 2
    dashes = tab.run(
        "[...document.querySelectorAll('#fig-arrival path.l')].map((line) => getComputedStyle(line).strokeDasharray)"
    )
    assert len(set(dashes)) == 2


def test_filters_narrow_the_list_by_reacher_type_and_outcome(tab: chromium.Page) -> None:
    assert count(tab) == "240 of 240 trajectories"
    choose(tab, "f-reacher", "sft")
    assert count(tab) == "120 of 240 trajectories"
    choose(tab, "f-outcome", "arrived (")
    assert count(tab) == "16 of 240 trajectories"
    assert len(listed(tab)) == 16
    assert all("arrives at 5" in row for row in listed(tab))
    choose(tab, "f-outcome", "won by rl only")
    assert count(tab) == "8 of 240 trajectories"  # 15 wins of RL, 7 of them SFT's too
    choose(tab, "f-reacher", "rl")
    choose(tab, "f-outcome", "did not arrive (")
    assert count(tab) == "21 of 240 trajectories"
    assert all("loop" in row for row in listed(tab))
    choose(tab, "f-outcome", "any outcome")
    choose(tab, "f-type", "type 3")
    assert count(tab) == "20 of 240 trajectories"
    tab.run("document.getElementById('f-task').value = 'no such task'")
    tab.run("document.getElementById('f-task').dispatchEvent(new Event('input'))")
    assert count(tab) == "0 of 240 trajectories"
    assert listed(tab) == ["No trajectory matches."]
    assert tab.problems == []


def test_the_list_grows_when_asked(tab: chromium.Page) -> None:
    assert len(listed(tab)) == 60
    tab.run("document.getElementById('more').click()")
    assert len(listed(tab)) == 120


def test_an_episode_shows_prefix_certificate_and_both_solvers_from_the_same_clone(tab: chromium.Page) -> None:
    choose(tab, "f-reacher", "rl")
    choose(tab, "f-outcome", "won by rl only")
    tab.run("document.querySelector('#list .ep').click()")
    text = tab.run("document.getElementById('episode').innerText")
    assert "Your task is to: put a pen in the drawer." in text
    assert "arrived after 5 actions" in text
    assert "exactly 2 actions from success" in text
    assert "3 of length 1, 9 of length 2" in text
    assert "go to desk 1 → take pen 1" in text
    assert "Every solver was shown the same input." in text
    panels = tab.run("[...document.querySelectorAll('#episode .solvers .panel')].map((panel) => panel.innerText)")
    assert len(panels) == 2
    assert panels[0].startswith("solver sft")
    assert "did not win" in panels[0]
    assert panels[1].startswith("solver rl")
    assert "did not win" not in panels[1]
    assert "clone checked: 6 records equal" in panels[1]
    sides = tab.run(
        "[...document.querySelectorAll('#episode .solvers .panel')].map((panel) => panel.getBoundingClientRect().top)"
    )
    assert sides[0] == sides[1], "side by side"


def test_words_of_a_policy_are_shown_as_text(tab: chromium.Page) -> None:
    assert tab.run("document.querySelectorAll('#episode b').length") == 0
    said = tab.run("document.querySelector('#episode details pre').textContent")
    assert said == "<think>look</think><b>look</b>"


def test_an_episode_has_an_address(tab: chromium.Page, written: Path) -> None:
    tab.run("document.querySelectorAll('#list .ep')[3].click()")
    address = tab.run("location.hash")
    name = tab.run("document.querySelector('#episode h3').textContent")
    tab.open(written, chromium.READY, fragment=address)
    assert tab.run("document.querySelector('#episode h3').textContent") == name
    assert tab.run("document.querySelector('#list .ep[aria-selected=true] .name').textContent") == name


def test_the_page_of_an_unfinished_run_has_counts_and_episodes(browser: chromium.Page, tmp_path: Path) -> None:
    part = report_runs.table(["a", "b"], ["a", "b"], lambda w, t, s: True, lambda w, r, t, s: r == 1, ["x"] * 4)
    loaded = study.load(report_runs.write(tmp_path / "run", part, done=31))  # the last trajectory has one endpoint yet
    browser.show(REPORT.write(loaded, numbers.document(loaded), tmp_path / "page.html")[0], 400)
    assert browser.problems == []
    assert "are owed" in browser.run("document.querySelector('.verdict').innerText")
    assert count(browser) == "11 of 11 trajectories"
    assert browser.run("document.documentElement.scrollWidth") == 400


def test_hostile_text_runs_nothing(browser: chromium.Page, tmp_path: Path) -> None:
    bad = "</script><img src=x onerror=\"document.title='owned'\"><svg/onload=document.title='owned'>"
    part = report_runs.table([bad, "b"], [bad, "b"], lambda w, t, s: t != 1, lambda w, r, t, s: r == 1, [bad] * 4)
    folder = report_runs.write(
        tmp_path / "run", part, said=bad, start=bad, split=bad, policies={bad: {bad: bad}, "b": {}}, prefix=bad
    )
    loaded = study.load(folder)
    document = numbers.document(loaded, Options(Intervals(draws=500)))
    browser.show(REPORT.write(loaded, document, tmp_path / "page.html")[0], 400)
    browser.run("document.querySelector('#list .ep').click()")
    assert browser.problems == []
    assert "owned" not in browser.run("document.title")[:40]
    assert browser.run("document.querySelectorAll('img').length") == 0
    assert not [address for address in browser.requests if not address.startswith(("file:", "about:", "data:,"))]
    assert browser.run("document.documentElement.scrollWidth") == 400


# The pane and the list ------------------------------------------------------------------------------------------------


def pane(tab: chromium.Page) -> str:
    """The episode in the pane, or the remark in its place."""
    return str(tab.run("document.querySelector('#episode h3, #episode .note').textContent"))


def selected(tab: chromium.Page) -> int | None:
    """The episode that the list marks."""
    number = tab.run("document.querySelector('#list .ep[aria-selected=true]')?.dataset.episode")
    return None if number is None else int(number)


def episodes(tab: chromium.Page) -> list[int]:
    numbers: list[str] = tab.run("[...document.querySelectorAll('#list .ep')].map((row) => row.dataset.episode)")
    return list(map(int, numbers))


def step(tab: chromium.Page, name: str) -> bool:
    """Press an arrow of the pane; whether it could be pressed."""
    button = f"document.querySelector('.step-nav [aria-label={name}]')"
    able = not tab.run(f"{button}.disabled")
    tab.run(f"{button}.click()")
    return able


def test_after_a_filter_the_pane_shows_an_episode_of_the_list(tab: chromium.Page) -> None:
    first = selected(tab)
    choose(tab, "f-reacher", "rl")
    choose(tab, "f-outcome", "did not arrive (")
    assert selected(tab) in episodes(tab)
    assert selected(tab) != first
    assert "reacher rl" in tab.run("document.querySelector('#episode .chips').textContent")
    assert "did not arrive" in tab.run("document.querySelector('#episode .chips').textContent")


def test_an_episode_that_the_filter_keeps_stays_in_the_pane(tab: chromium.Page) -> None:
    choose(tab, "f-outcome", "won by rl only")
    chosen = episodes(tab)[3]
    tab.run("document.querySelectorAll('#list .ep')[3].click()")
    choose(tab, "f-outcome", "arrived (")
    assert selected(tab) == chosen
    assert len(episodes(tab)) > 8


def test_the_arrows_walk_through_the_filtered_list_and_end_with_it(tab: chromium.Page) -> None:
    tab.run("document.querySelectorAll('#list .ep')[5].click()")
    choose(tab, "f-reacher", "sft")
    choose(tab, "f-outcome", "won by rl only")
    numbers = episodes(tab)
    tab.run("document.querySelectorAll('#list .ep')[0].click()")
    assert not step(tab, "previous")
    walked = [selected(tab)]
    while step(tab, "next"):
        walked.append(selected(tab))
        assert len(walked) <= len(numbers)
    assert walked == numbers


def test_a_filter_without_a_match_empties_the_pane(tab: chromium.Page) -> None:
    tab.run("document.getElementById('f-task').value = 'no such task'")
    tab.run("document.getElementById('f-task').dispatchEvent(new Event('input'))")
    assert pane(tab) == "No trajectory matches the filters."
    tab.run("document.getElementById('f-task').value = ''")
    tab.run("document.getElementById('f-task').dispatchEvent(new Event('input'))")
    assert selected(tab) in episodes(tab)
    assert tab.problems == []


def test_the_arrow_reaches_beyond_the_rows_that_the_list_shows_at_first(tab: chromium.Page) -> None:
    assert len(episodes(tab)) == 60
    tab.run("document.querySelectorAll('#list .ep')[59].click()")
    assert step(tab, "next")
    assert len(episodes(tab)) == 120
    assert selected(tab) == episodes(tab)[60]


def test_a_changed_address_shows_its_episode_and_lifts_filters_that_hide_it(tab: chromium.Page) -> None:
    tab.run("location.hash = '#episode-7'")
    tab.wait("document.querySelector('#list .ep[aria-selected=true]').dataset.episode === '7'")
    choose(tab, "f-outcome", "did not arrive (")
    hidden = int(tab.run("location.hash.slice(9)"))
    assert hidden == selected(tab), "the address follows the pane"
    arrived = next(number for number in range(240) if number not in episodes(tab))
    tab.run(f"location.hash = '#episode-{arrived}'")
    tab.wait(f"document.querySelector('#list .ep[aria-selected=true]')?.dataset.episode === '{arrived}'")
    assert count(tab) == "240 of 240 trajectories"
    tab.run("location.hash = '#episode-99999'")
    assert selected(tab) == arrived
    assert tab.problems == []


# Three checkpoints ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, names = tmp_path_factory.mktemp("three"), ("base", "sft", "rl")
    table = report_runs.table(
        names, names,
        lambda w, t, s: w > 0 or (s == 0 and t % 2 == 0),
        lambda w, r, t, s: r == 2 or (t == 0 and s == 0),
        ["look_at_obj_in_light"] * 8 + ["pick_and_place_simple"] * 8,
    )  # fmt: skip
    loaded = study.load(report_runs.write(folder / "run", table))
    return REPORT.write(loaded, numbers.document(loaded, Options(Intervals(draws=500))), folder / "page.html")[0]


def edge(tab: chromium.Page) -> list[float]:
    """The mean lightness of the last 4 pixels of the first table's box, and of as many in its middle, at a blank
    height of its head."""
    tab.run("document.querySelector('.table').scrollIntoView({ behavior: 'instant', block: 'center' })")
    shot = tab.call("Page.captureScreenshot", format="png")["data"]
    lightness: list[float] = tab.run(
        f"""(async () => {{
          const image = new Image();
          image.src = "data:image/png;base64,{shot}";
          await image.decode();
          const canvas = document.createElement("canvas");
          [canvas.width, canvas.height] = [image.width, image.height];
          const context = canvas.getContext("2d");
          context.drawImage(image, 0, 0);
          const box = document.querySelector(".table").getBoundingClientRect();
          const light = (x) => {{
            const pixels = context.getImageData(x, box.bottom - 6, 4, 1).data;
            return pixels.filter((_, at) => at % 4 < 3).reduce((sum, one) => sum + one, 0) / 12;
          }};
          return [light(box.right - 5), light(box.left + box.width / 2)];
        }})()"""
    )
    return lightness


@pytest.mark.parametrize("width", [400, 800, 1280])
def test_a_table_that_is_wider_than_its_box_scrolls_in_it_under_a_shadow(
    browser: chromium.Page, three: Path, width: int
) -> None:
    browser.show(three, width)
    assert browser.run("document.documentElement.scrollWidth") == width
    tables = browser.run("[...document.querySelectorAll('.table')].map((one) => [one.scrollWidth, one.clientWidth])")
    cut = [pair for pair in tables if pair[0] > pair[1]]
    if width > 400:
        assert cut == [], "there is room for the whole of every table"
        return
    assert cut
    at_edge, middle = edge(browser)
    assert at_edge < middle - 15, "the shadow says that there is more"
    inside = browser.run(
        """(() => {
          const box = document.querySelector(".table");
          box.scrollLeft = box.scrollWidth;
          const cell = [...box.querySelectorAll("tbody tr:first-child td")].at(-1);
          return cell.getBoundingClientRect().right <= box.getBoundingClientRect().right + 1;
        })()"""
    )
    assert inside
    at_edge, middle = edge(browser)
    assert abs(at_edge - middle) < 5, "at the end there is no more"
