"""The time that prompts show: pinned for a run, the same after a resume, and told to servers as far as they take it."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from kit import fault_server
from kit.checkpoints import CHAT, make
from kit.command import invoke
from kit.fault_server import serving
from kit.interrupting import interrupt
from kit.runs import record_bytes

from handoff.episodes.start import Where
from handoff.errors import Interrupted, StoreError, UsageError
from handoff.policies import ModelOptions, Policy, Request
from handoff.policies import make as make_policy
from handoff.policies.language import fingerprint
from handoff.protocols import protocol
from handoff.protocols.audit import audit_run
from handoff.protocols.frontier import FRONTIER
from handoff.protocols.frontier.config import FrontierConfig
from handoff.records import Record, Task
from handoff.runs.launch import Prepared

FIRST, LATER = "2026-07-30T12:00:00", "2026-08-01T12:00:00"
CONFIG = FrontierConfig(
    split="test", reachers=("a", "b"), solvers=("a", "b"), tasks=6, slots=1, reach_budget=4, run_seed=3
)
REQUEST = Request(Task("0" * 64, "t", "t", "s"), 5, Record("You see a room.", ("look", "go"), 0.0, False, False), (), 3)


@pytest.fixture
def dated(tmp_path: Path) -> Path:
    """A template that shows the time to the second."""
    path = tmp_path / "dated.jinja"
    path.write_text(
        "It is {{ strftime_now('%d %b %Y %H:%M:%S') }}.\n{{ observation }}\nCommands that you can use now:\n"
        "{% for command in admissible %}\n- {{ command }}\n{% endfor %}\n"
    )
    return path


def prepared(url: str, template: Path | str, now: str | None = None) -> Prepared:
    options = ModelOptions(
        template=str(template), max_prompt_tokens=50_000, now=now, concurrency=1, patience=5.0, timeout=5.0
    )
    return FRONTIER.prepare("sokoban", {}, CONFIG, {"a": f"openai:{url}#m", "b": "expert"}, {"a": options})


def stated(folder: Path) -> Any:
    return json.loads((folder / "manifest.json").read_bytes())["identity"]["policies"]["a"]


def prompts_hold(folder: Path, template: Path) -> None:
    """The audit renders the prompts again, and they are those of the records."""
    audit = audit_run(folder, where=Where(0), replay=False, templates=[str(template)])
    prompts = next(check for check in audit.checks if check.name == "prompts")
    assert (prompts.failures, [note for note in prompts.notes if "not rendered" in note]) == ([], [])
    assert prompts.count > 10


def test_two_times_give_two_sets_of_prompts_and_one_time_the_same_bytes(dated: Path, tmp_path: Path) -> None:
    with serving(dialect="plain") as server:
        for name, now in (("first", FIRST), ("again", FIRST), ("later", LATER)):
            server.answered.clear()
            prepared(server.url, dated, now).run(tmp_path / name, Where(0))
            shown = "It is 30 Jul 2026 12:00:00." if now == FIRST else "It is 01 Aug 2026 12:00:00."
            prompts = {body["messages"][0]["content"] for body in server.answered} - {*fingerprint.PROMPTS}
            assert len(prompts) > 10
            assert all(prompt.startswith(shown) for prompt in prompts)
    assert record_bytes(tmp_path / "first") == record_bytes(tmp_path / "again")
    assert record_bytes(tmp_path / "first") != record_bytes(tmp_path / "later")
    assert stated(tmp_path / "first")["prompt"]["now"] == FIRST
    prompts_hold(tmp_path / "first", dated)


def test_a_run_that_goes_on_on_another_day_shows_the_time_of_its_start(
    dated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(dialect="plain") as server:
        monkeypatch.setattr(protocol, "present", lambda: FIRST)
        whole = prepared(server.url, dated)
        whole.run(tmp_path / "whole", Where(0))
        part = prepared(server.url, dated)
        interrupt([part.policies["b"]], after=5)
        with pytest.raises(Interrupted):
            part.run(tmp_path / "part", Where(0))
        monkeypatch.setattr(protocol, "present", lambda: LATER)
        rest = prepared(server.url, dated)
        assert rest.default_folder == whole.default_folder, "the same command goes on in the same folder"
        rest.run(tmp_path / "part", Where(0))
        assert record_bytes(tmp_path / "part") == record_bytes(tmp_path / "whole")
        assert stated(tmp_path / "part")["now"] == FIRST
        assert "now" not in stated(tmp_path / "part")["prompt"]
        with pytest.raises(StoreError, match=r"these keys differ: policies\.a\.prompt\.now"):
            prepared(server.url, dated, LATER).run(tmp_path / "part", Where(0))
    prompts_hold(tmp_path / "part", dated)


def test_a_manifest_states_a_time_only_where_a_template_reads_the_clock() -> None:
    with serving(dialect="plain") as server:
        plain, pinned = prepared(server.url, "default"), prepared(server.url, "default", FIRST)
    described = plain.identity["policies"]["a"]
    assert "now" not in {*described, *described["prompt"]}
    assert pinned.identity == plain.identity


@pytest.mark.parametrize("text", ["tomorrow", "2026-13-01", "12:00", ""])
def test_what_is_no_time_is_refused_in_one_sentence(text: str) -> None:
    result = invoke("run", "sokoban", "-p", "a=hf:x", "--cross", "a", "--now", text)
    assert isinstance(result.exception, UsageError)
    assert "write --now as a date and time" in str(result.exception)


def test_a_date_alone_is_its_midnight_and_a_zone_is_kept() -> None:
    assert ModelOptions(now="2026-07-30").now == "2026-07-30T00:00:00"
    assert ModelOptions(now="2026-07-30T12:00+02:00").now == "2026-07-30T12:00:00+02:00"


def test_the_chat_template_of_a_checkpoint_shows_the_pinned_time(tmp_path: Path) -> None:
    folder = make(tmp_path / "dated", 1, layers=1)
    (folder / "chat_template.jinja").write_text("It is {{ strftime_now('%d %b %Y') }}. " + CHAT)
    texts = []
    for now in (FIRST, LATER):
        policy: Any = make_policy(f"hf:{folder}", ModelOptions(dtype="float32"))
        asyncio.run(policy.introduce())
        policy.set_time(now)
        assert policy.describe()["now"] == now
        texts.append(policy.encoder.tokenizer.decode(policy.encoder.ids(policy.speaker.render(REQUEST))))
        assert policy.preview(REQUEST).tokens == len(policy.encoder.ids(policy.speaker.render(REQUEST)))
    assert [text[:20] for text in texts] == ["It is 30 Jul 2026. <", "It is 01 Aug 2026. <"]
    assert texts[0][20:] == texts[1][20:]


def shows_date(messages: list[dict[str, str]], date_string: str | None = None) -> str:
    """A chat template in the manner of Llama's."""
    return f"Today: {date_string or datetime.now().strftime('%d %b %Y')}\n{fault_server.chat(messages)}"


def introduced(url: str, template: str = "default") -> Policy:
    options = ModelOptions(max_prompt_tokens=50_000, template=template, patience=5.0)
    policy = make_policy(f"openai:{url}#m", options)
    asyncio.run(policy.introduce())
    policy.set_time(FIRST)
    return policy


def test_a_server_whose_chat_template_takes_a_date_is_told_the_time_of_the_run() -> None:
    with serving() as server:
        server.chat = shows_date
        policy = introduced(server.url)
        assert policy.describe()["now"] == FIRST
        assert policy.cautions() == []
        decision = policy.decide([REQUEST])[0]
        body = server.answered[-1]
        assert body["chat_template_kwargs"] == {"date_string": "30 Jul 2026"}
        assert decision.prompt_tokens == len(shows_date(body["messages"], "30 Jul 2026").encode())


def test_a_server_that_cannot_be_told_the_date_is_remarked_on_before_the_run() -> None:
    with serving() as server:
        server.chat = lambda messages, **kwargs: shows_date(messages)
        policy = introduced(server.url)
        assert ["which this server cannot be told" in caution for caution in policy.cautions()] == [True]
        assert policy.describe()["now"] == FIRST
        policy.decide([REQUEST])
        assert "chat_template_kwargs" not in server.answered[-1]


def test_a_server_without_a_clock_is_sent_nothing_more() -> None:
    with serving() as server:
        policy = introduced(server.url)
        assert "now" not in policy.describe()
        policy.decide([REQUEST])
        assert "chat_template_kwargs" not in server.answered[-1]


def drops_thinking(messages: list[dict[str, str]]) -> list[dict[str, str]]:
    return [{**one, "content": one["content"].split("</think>")[-1]} for one in messages]


@pytest.mark.parametrize("template", ["turns", "default"])
def test_a_server_whose_chat_template_drops_thinking_is_remarked_on_where_prompts_show_replies(template: str) -> None:
    with serving() as server:
        assert introduced(server.url, template).cautions() == []
        server.chat = lambda messages: fault_server.chat(drops_thinking(messages))
        policy = introduced(server.url, template)
    dropped = "its chat template leaves out the thinking of every earlier reply"
    assert policy.cautions() == ([dropped] if template == "turns" else [])
    expected = {"thinking": [1, 2, 3]} if template == "turns" else None
    assert policy.describe().get("rewrites") == expected


def test_of_a_server_that_tokenizes_nothing_it_is_said_that_its_template_is_not_known() -> None:
    with serving(dialect="plain") as server:
        assert ["it is not known" in caution for caution in introduced(server.url, "turns").cautions()] == [True]
        assert introduced(server.url, "default").cautions() == []


@pytest.mark.parametrize(
    ("template", "dialect", "said"),
    [
        ("turns", "vllm", "leaves out the thinking of every earlier reply; it shows the time"),
        ("default", "vllm", "not asked: these prompts show no earlier replies; it shows the time"),
        ("turns", "plain", "not known"),
    ],
)
def test_doctor_says_what_the_chat_template_does(template: str, dialect: str, said: str) -> None:
    with serving(dialect=dialect) as server:
        server.chat = lambda messages, **kwargs: shows_date(drops_thinking(messages), **kwargs)
        arguments = ("doctor", "-p", f"a=openai:{server.url}#m", "--template", template, "--requests", "4")
        text = invoke(*arguments).output
        form = json.loads(invoke(*arguments, "--json").stdout)[0]["chat_template"]
    assert f"chat template: {said}\n" in text
    assert form["reads_clock"] == (dialect == "vllm")
    assert form["rewrites"] == ({"thinking": [1, 2, 3]} if (template, dialect) == ("turns", "vllm") else None)


def test_answers_that_doctor_kept_can_be_compared_on_another_day(dated: Path, tmp_path: Path) -> None:
    with serving() as server:
        doctor = ("doctor", "-p", f"a=openai:{server.url}#m", "--template", dated, "--requests", "4")
        assert invoke(*doctor, "--keep", tmp_path / "kept.json").exit_code == 0
        shown = {body["messages"][0]["content"][:25] for body in server.answered if "messages" in body}
        assert "It is 01 Jan 2000 12:00:0" in shown
        assert invoke(*doctor, "--compare", tmp_path / "kept.json").exit_code == 0
