"""WebShop: pages, rewards and searches beside those of the original, and the shop that ships."""

from __future__ import annotations

import gzip
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from kit.command import invoke, output_of
from kit.shared import shared_path

pytest.importorskip("rapidfuzz", reason="needs the extra webshop")

from handoff.envs.webshop import WebShopEnvironment
from handoff.envs.webshop.generator import SEED, generate
from handoff.envs.webshop.search import Index, quantised, terms
from handoff.envs.webshop.stemmer import stem
from handoff.errors import DataError, UsageError
from handoff.records import Record

ARTIFACTS = Path(__file__).resolve().parents[3] / "artifacts" / "webshop"
#: Goals whose own product with its own options has not the full reward, by the original.
BELOW = [20, 28, 73, 149, 150, 155, 205, 236, 269, 315, 328, 334, 358, 388, 403, 410, 429, 458, 459, 465]


def lines(name: str) -> list[Any]:
    path = shared_path("data/webshop") / name
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]


def data() -> str:
    return str(shared_path("data/webshop"))


def test_all_recorded_pages_are_equal_byte_for_byte() -> None:
    environment, pages = WebShopEnvironment(data=data(), on_unreadable="step"), 0
    tasks = environment.tasks("test")
    for episode in lines("reference_episodes.jsonl.gz"):
        record = environment.reset(tasks[episode["goal"]], 0)
        for page in episode["steps"]:
            if page["action"] is not None:
                record = environment.step(page["action"])
            clicks = [action.removeprefix("click[")[:-1] for action in record.admissible]
            assert record.observation == page["observation"]
            assert (["search"] if page["search_bar"] else []) + clicks == page["clickables"]
            assert bool(record.open_actions) == page["search_bar"]
            assert record.score == pytest.approx(page["reward"], abs=1e-12)
            assert record.done == page["done"]
            pages += 1
    assert pages == 429


def test_all_recorded_rewards_are_equal(tmp_path: Path) -> None:
    recorded = lines("reference_rewards.jsonl.gz")
    rows, out = tmp_path / "rows.jsonl", tmp_path / "scored.jsonl"
    with rows.open("w") as file:
        for row in recorded:
            file.write(json.dumps({key: row[key] for key in ("goal", "asin", "options")}) + "\n")
    assert invoke("score", "webshop", rows, "--data", data(), "--out", out, "-q").exit_code == 0
    scored = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(scored) == len(recorded) == 1926
    for row, expected in zip(scored, recorded, strict=True):
        assert row["reward"] == pytest.approx(expected["reward"], abs=1e-12)
        for name, value in expected["parts"].items():
            assert row["parts"][name] == (value if value is None else pytest.approx(value, abs=1e-12)), name


def test_the_expert_wins_all_goals_but_those_below_the_ceiling() -> None:
    environment = WebShopEnvironment(data=data())
    lost = []
    for number, task in enumerate(environment.tasks("test")):
        record, actions = environment.reset(task, 0), 0
        while not record.done and (plan := environment.plan()):
            record, actions = environment.step(plan[0]), actions + 1
        if not record.won:
            lost.append(number)
        assert actions <= 30
    assert lost == BELOW


def test_the_shipped_shop_is_what_its_seed_gives_and_every_goal_can_be_reached() -> None:
    made = generate(SEED)
    assert {name: (ARTIFACTS / name).read_bytes() for name in made} == made
    environment = WebShopEnvironment()
    tasks = environment.tasks("test")
    assert len(tasks) == 40
    for task in tasks:
        record = environment.reset(task, 0)
        for action in environment.plan():
            record = environment.step(action)
        assert record.won, task.name


def test_a_plan_is_known_from_every_page() -> None:
    environment, generator = WebShopEnvironment(), random.Random(3)
    for task in environment.tasks("test")[:12]:
        record = environment.reset(task, 0)
        for _ in range(12):
            choices = [action for action in record.admissible if action != "click[buy now]"] or ["search[lamp shirt]"]
            record = environment.step(generator.choice(choices))
            state = environment.snapshot()
            for action in environment.plan():
                last = environment.step(action)
            assert last.won
            record = environment.restore(state)


def test_an_unreadable_reply_ends_the_episode_or_costs_a_step() -> None:
    for way, done in (("end", True), ("step", False)):
        environment = WebShopEnvironment(on_unreadable=way)
        environment.reset(environment.tasks("test")[0], 0)
        record = environment.step("I would like a lamp.")
        assert (record.done, record.won, record.score) == (done, False, 0.0)
    environment = WebShopEnvironment()
    environment.reset(environment.tasks("test")[0], 0)
    # The first form counts, in any case, without quotes; what cannot be clicked here does nothing.
    assert environment.step('I say SEARCH["lamp"] and click[buy now]').observation.startswith("Instruction:")
    before = environment.snapshot()
    assert environment.step("click[Buy Now]").problem
    assert environment.step("search[kettle]").problem
    assert environment.snapshot() == before


def test_options_are_kept_over_sub_pages_and_forgotten_elsewhere() -> None:
    environment = WebShopEnvironment(on_unreadable="step")
    task = next(
        task for task in environment.tasks("test") if any("color" in part for part in _instruction(environment, task))
    )
    record = environment.reset(task, 0)
    for action in environment.plan()[:-1]:
        record = environment.step(action)
    whole = environment.snapshot()
    for action in ("click[features]", "click[< prev]"):
        record = environment.step(action)
    assert environment.snapshot() == whole
    for action in ("click[< prev]",):
        record = environment.step(action)
    assert isinstance(record, Record)
    assert environment.snapshot()[6] == ()


def _instruction(environment: WebShopEnvironment, task: Any) -> list[str]:
    return environment.reset(task, 0).observation.split(" ")


@pytest.mark.parametrize(
    ("word", "expected"),
    # From Porter's paper, and two of his later changes (bli, logi).
    [
        ("caresses", "caress"), ("ponies", "poni"), ("cats", "cat"), ("feed", "feed"), ("agreed", "agre"),
        ("plastered", "plaster"), ("motoring", "motor"), ("sing", "sing"), ("conflated", "conflat"), ("hopping", "hop"),
        ("falling", "fall"), ("filing", "file"), ("happy", "happi"), ("sky", "sky"), ("relational", "relat"),
        ("conditional", "condit"), ("rational", "ration"), ("digitizer", "digit"), ("radically", "radic"),
        ("vietnamization", "vietnam"), ("triplicate", "triplic"), ("formalize", "formal"), ("hopefulness", "hope"),
        ("revival", "reviv"), ("adoption", "adopt"), ("probate", "probat"), ("rate", "rate"), ("controll", "control"),
        ("possibly", "possibl"), ("archaeology", "archaeolog"),
    ],
)  # fmt: skip
def test_words_are_stemmed_as_porter_says(word: str, expected: str) -> None:
    assert stem(word) == expected


def test_lengths_are_those_of_one_byte() -> None:
    # Lucene: exact up to 39; 40 to 41 share a code, then 42 to 43, ...
    assert [quantised(length) for length in (0, 23, 24, 39, 40, 41, 42, 55, 56, 59, 60)] == [
        0, 23, 24, 39, 40, 40, 42, 54, 56, 56, 60,
    ]  # fmt: skip


def test_a_search_counts_terms_and_breaks_ties_by_id() -> None:
    index = Index.of([("b", {"lamp": 1}), ("a", {"lamp": 1}), ("c", {"lamp": 2, "oak": 1}), ("d", {"kettl": 1})])
    assert index.search("The LAMPS, of") == ("c", "a", "b")
    assert index.search("oak")[0] == "c"
    assert index.search("the of") == ()
    assert terms("Kettles & lamps-lamps") == ["kettl", "lamp", "lamp"]


def test_the_frontier_is_searched_over_clicks_and_the_adapter_conforms() -> None:
    report = json.loads(output_of("check", "webshop", "--json"))
    assert [result for result in report["results"] if result["status"] == "failed"] == []


def test_a_study_and_rollouts_of_the_shipped_shop_pass_their_audits(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    output_of(
        "run", "webshop", "-p", "a=expert", "-p", "b=noisy:0.4", "--cross", "a,b", "--tasks", 4, "--slots", 2,
        "--type", "Home", "--workers", 0, "-q", "--out", folder,
    )  # fmt: skip
    assert json.loads(output_of("audit", folder, "--json", "-q", "--workers", 0))["passed"]
    rolled = tmp_path / "rolled"
    output_of(
        "rollout", "webshop", "-p", "a=noisy:0.3", "-p", "b=noisy:0.1", "-n", 8, "--budget", 30, "--workers", 0, "-q",
        "--out", rolled,
    )  # fmt: skip
    assert json.loads(output_of("audit", rolled, "--json", "-q", "--workers", 0))["passed"]
    assert "pass@" in output_of("tax", f"{rolled}#a", f"{rolled}#b")


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("products.jsonl", lambda text: "{}\n" + text, "a product lacks 'product'"),
        ("products.jsonl", lambda text: text.split("\n", 1)[0] + "\n", "is not in the catalogue"),
        ("prices.json", lambda text: text.replace(": ", ': "x', 1).replace(",", '",', 1), "not a number"),
        ("goals.json", lambda text: text.replace('"price_upper"', '"price"', 1), "price_upper"),
        ("goals.json", lambda text: text[:50], "not valid JSON"),
        ("title_nouns.json", lambda text: "{}", "no nouns"),
        ("termvectors.tsv", lambda text: "S0\tterm x\n" + text, "not terms with their counts"),
        ("colours.txt", None, "has no file colours.txt"),
    ],
)
def test_a_damaged_catalogue_is_one_sentence_that_names_the_file(
    tmp_path: Path, name: str, change: Any, words: str
) -> None:
    folder = tmp_path / "data"
    shutil.copytree(ARTIFACTS, folder)
    if change is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(change((folder / name).read_text()))
    with pytest.raises(DataError, match=words) as error:
        WebShopEnvironment(data=str(folder)).tasks("test")
    assert str(folder) in str(error.value)


def test_wrong_options_and_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="end, step"):
        WebShopEnvironment(on_unreadable="maybe")
    environment = WebShopEnvironment()
    asin = json.loads((ARTIFACTS / "goals.json").read_text())["goals"][0]["asin"]
    rows: list[dict[str, Any]] = [
        {"goal": 40, "asin": asin, "options": {}}, {"goal": 0, "asin": "x", "options": {}},
        {"goal": 0, "asin": asin, "options": [1]}, {"goal": 0, "asin": asin, "options": {"color": 1}}, {},
    ]  # fmt: skip
    for row in rows:
        with pytest.raises(DataError):
            environment.score_row(row)
    assert environment.score_row({"goal": 0, "asin": asin, "options": {}, "note": 1})["note"] == 1
