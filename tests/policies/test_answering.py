"""Who answers behind a server: the model's fingerprint, its name, and the server's system fingerprint."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kit.audits import failures
from kit.command import invoke, output_of
from kit.fault_server import Model, answer, serving
from kit.refusals import refusal
from kit.runs import forge, record_bytes, rewrite_identity

from handoff.canonical import digest
from handoff.errors import UsageError
from handoff.policies import ModelOptions, Policy
from handoff.policies.bindings import make
from handoff.policies.language.fingerprint import PROMPTS, Fingerprint
from handoff.policies.openai import client

DIALECTS = ("vllm", "plain")
LIMITS = ("--max-prompt-tokens", "50000", "--patience", "2")


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "FIRST_WAIT", 0.02)


def first_weights(prompt: str, seed: int) -> tuple[str, str]:
    text, finish = answer(prompt, seed)
    return text or "well", finish


def other_weights(prompt: str, seed: int) -> tuple[str, str]:
    text, finish = first_weights(prompt, seed)
    return f"well, {text}", finish


@pytest.fixture(params=DIALECTS)
def server(request: pytest.FixtureRequest) -> Iterator[Model]:
    with serving(dialect=request.param) as model:
        model.reply = first_weights
        yield model


def command(url: str, *more: object) -> list[str]:
    words = (
        *("run", "sokoban", "-p", f"a=openai:{url}#m", "-p", "b=noisy:0.3", "--cross", "a,b", "--tasks", "6"),
        *("--slots", "1", "--budget", "6", "--workers", "0", "-q", *LIMITS, *more),
    )
    return [str(word) for word in words]


def identity(folder: Path) -> Any:
    return json.loads((folder / "manifest.json").read_bytes())["identity"]


def interrupted(server: Model, folder: Path) -> bytes:
    """The records of a run whose server went away after some answers, in ``folder``."""
    start = server.posts
    server.plan = lambda number: "refuse" if number > start + 24 else None
    assert invoke(*command(server.url, "--out", folder)).exception.exit_code == 3  # type: ignore[union-attr]
    server.plan = lambda number: None
    return record_bytes(folder)


def remarks(*arguments: str) -> str:
    """The remarks of a run that ends well, on one line."""
    result = invoke(*(word for word in arguments if word != "-q"))
    assert result.exit_code == 0, result.output
    return " ".join(result.stderr.split())


def introduced(*urls: str, options: ModelOptions | None = None) -> Policy:
    policy = make(f"openai:{','.join(urls)}#m", options)
    asyncio.run(policy.introduce())
    return policy


def test_the_fingerprint_is_the_digests_of_the_greedy_replies_to_three_fixed_prompts(server: Model) -> None:
    described = introduced(server.url).describe()
    asked = [body for body in server.answered if body["max_tokens"] == 16]
    replies = []
    for prompt in PROMPTS:
        if server.dialect == "vllm":
            replies.append(digest(list(first_weights(prompt, 0)[0].encode())))
        else:
            replies.append(digest(["", "", first_weights(f"<user>{prompt}\n<assistant>", 0)[0]]))
    assert described["fingerprint"] == {
        "of": "token ids" if server.dialect == "vllm" else "text",
        "replies": replies,
    }
    assert len(asked) == 6
    assert {(body["temperature"], body["seed"]) for body in asked} == {(0.0, 0)}


def test_with_other_weights_under_the_same_url_and_name_a_run_does_not_go_on_and_loses_nothing(
    server: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = interrupted(server, tmp_path / "run")
    files = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    server.reply = other_weights
    line = refusal(capsys, *command(server.url, "--out", tmp_path / "run"))
    assert f"{tmp_path / 'run'} cannot go on: policy a: another model" in line
    assert f"answers at {server.url} under the name m: 3 of 3 greedy replies differ" in line
    assert "or choose another --out" in line
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == files
    server.reply = first_weights
    output_of(*command(server.url, "--out", tmp_path / "run"))
    output_of(*command(server.url, "--out", tmp_path / "whole"))
    assert record_bytes(tmp_path / "run") == record_bytes(tmp_path / "whole")
    assert record_bytes(tmp_path / "run").startswith(done)


def test_the_same_command_finds_its_folder_again_and_refuses_other_weights_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with serving() as server:
        server.reply = first_weights
        output_of(*command(server.url))
        (folder,) = (tmp_path / "runs").iterdir()
        before = identity(folder)["policies"]["a"]["fingerprint"]["replies"][0][:12]
        server.reply = other_weights
        line = refusal(capsys, *command(server.url))
        now = digest(list(other_weights(PROMPTS[0], 0)[0].encode()))[:12]
        assert f"{folder.name} cannot go on" in line
        assert f"digests of reply 1: {before}... and {now}..." in line
        assert [path.name for path in (tmp_path / "runs").iterdir()] == [folder.name]


def test_servers_of_one_policy_with_different_weights_are_refused() -> None:
    with serving() as first, serving() as second:
        second.reply = lambda prompt, seed: (other_weights if prompt == PROMPTS[1] else first_weights)(prompt, seed)
        first.reply = first_weights
        with pytest.raises(UsageError, match="1 of 3 greedy replies differ") as caught:
            introduced(first.url, second.url)
        assert first.url in str(caught.value)
        assert second.url in str(caught.value)


def noisy(prompts: tuple[str, ...], weights: Callable[[str, int], tuple[str, str]]) -> Callable[..., tuple[str, str]]:
    """The replies of a server that never says the same twice to ``prompts``."""
    counts = iter(range(1000))
    return lambda prompt, seed: (f"reply {next(counts)}", "stop") if prompt in prompts else weights(prompt, seed)


def test_a_reply_that_is_not_the_same_twice_is_not_compared_and_the_manifest_and_a_remark_say_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving() as server:
        server.reply = noisy(PROMPTS[:1], first_weights)
        assert "policy a: asked twice, the server gave equal greedy replies to 2 of 3 prompts" in remarks(
            *command(server.url, "--out", tmp_path / "some")
        )
        some = identity(tmp_path / "some")["policies"]["a"]["fingerprint"]["replies"]
        assert [reply is None for reply in some] == [True, False, False]
        server.reply = noisy(PROMPTS[:1], other_weights)
        assert "2 of 2 greedy replies differ" in refusal(capsys, *command(server.url, "--out", tmp_path / "some"))
        server.reply = noisy(PROMPTS, first_weights)
        interrupted(server, tmp_path / "none")
        server.reply = noisy(PROMPTS, other_weights)
        assert "policy a: no greedy reply can be compared" in remarks(*command(server.url, "--out", tmp_path / "none"))


def test_a_server_that_refuses_the_prompts_of_the_fingerprint_is_used_without_one() -> None:
    with serving() as server:
        server.max_model_len = 60
        policy = introduced(server.url)
    assert policy.describe()["fingerprint"] == {"of": "nothing", "replies": [None, None, None]}
    assert "no change of its model would be noticed" in " ".join(policy.remarks())


def test_a_fingerprint_in_a_manifest_that_is_malformed_compares_nothing() -> None:
    for form in (None, [], {"of": 3, "replies": []}, {"of": "text", "replies": ["a"]}, {"replies": [1, 2, 3]}):
        assert Fingerprint.from_json(form).of == "nothing"


def test_a_run_of_a_version_without_fingerprints_goes_on_with_its_manifest_and_a_remark(
    server: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    output_of(*command(server.url))
    (folder,) = (tmp_path / "runs").iterdir()
    whole = record_bytes(folder).splitlines()

    def forget(stated: Any) -> None:
        del stated["policies"]["a"]["fingerprint"]

    for path in folder.glob("*"):
        if path.name != "manifest.json":
            path.unlink()
    rewrite_identity(folder, forget)
    manifest = (folder / "manifest.json").read_bytes()
    assert "policy a: begun by a version that took no fingerprint" in remarks(*command(server.url))
    assert (folder / "manifest.json").read_bytes() == manifest
    bodies = [[json.loads(line)["body"] for line in lines] for lines in (whole, record_bytes(folder).splitlines())]
    assert bodies[0] == bodies[1]


def test_an_alias_is_stated_in_the_manifest_and_the_plain_name_is_not(server: Model, tmp_path: Path) -> None:
    for name, stated in (("m", None), ("m-2024-08-06", "m-2024-08-06"), ("/srv/weights/m2", "m2")):
        server.says = {"model": name}
        assert introduced(server.url).describe().get("answers_as") == stated


def test_a_model_that_answers_under_two_names_at_the_start_is_refused(server: Model) -> None:
    with serving(dialect=server.dialect) as second:
        second.reply = first_weights
        server.says, second.says = {"model": "m-1"}, {"model": "m-2"}
        with pytest.raises(UsageError, match=r"m is answered as m-1 and, by .*, as m-2: a policy is one model"):
            introduced(server.url, second.url)


def test_another_name_within_a_run_stops_it_and_the_same_name_lets_it_go_on(
    server: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.says = {"model": "m-1"}

    def switch(number: int) -> None:
        server.says = {"model": "m-1" if number < 25 else "m-2\x1b[31m"}

    server.plan = switch
    line = refusal(capsys, *command(server.url, "--out", tmp_path / "run"), code=3)
    assert f"{server.url} answers as m-2\\x1b[31m now, and answered as m-1 before" in line
    assert "records are owed" in line
    server.plan = lambda number: None
    line = refusal(capsys, *command(server.url, "--out", tmp_path / "run"))
    assert f"policy a: {server.url} answered as m-1 when the run was begun, and answers as m-2" in line
    server.says = {"model": "m-1"}
    output_of(*command(server.url, "--out", tmp_path / "run"))
    output_of(*command(server.url, "--out", tmp_path / "whole"))
    assert record_bytes(tmp_path / "run") == record_bytes(tmp_path / "whole")
    assert identity(tmp_path / "run")["policies"]["a"]["answers_as"] == "m-1"


def test_a_changed_system_fingerprint_is_remarked_on_and_changes_no_record(server: Model, tmp_path: Path) -> None:
    output_of(*command(server.url, "--out", tmp_path / "silent"))
    server.says = {"system_fingerprint": "fp_1"}
    interrupted(server, tmp_path / "run")
    server.says = {"system_fingerprint": "fp_2"}
    assert "policy a: its servers named 2 system fingerprints (fp_1, fp_2)" in remarks(
        *command(server.url, "--out", tmp_path / "run")
    )
    timings = json.loads((tmp_path / "run" / "timings.json").read_bytes())
    assert timings["system_fingerprints"] == {"a": ["fp_1", "fp_2"]}
    assert record_bytes(tmp_path / "run") == record_bytes(tmp_path / "silent")


@pytest.mark.parametrize(
    ("facts", "problem"),
    [
        ({"fingerprint": {"of": "the moon", "replies": [None, None, None]}}, "its fingerprint is none"),
        ({"fingerprint": {"of": "text", "replies": ["ab", None, None]}}, "its fingerprint is none"),
        ({"fingerprint": {"of": "text", "replies": [None, None]}}, "its fingerprint is none"),
        ({"answers_as": "m"}, "it is stated to answer as 'm'"),
        ({"answers_as": 3}, "it is stated to answer as 3"),
        ({"texts": "decoded after the prompt"}, "its texts are stated as"),
    ],
)
def test_an_audit_refuses_observations_that_no_run_makes(facts: dict[str, Any], problem: str, tmp_path: Path) -> None:
    with serving() as server:
        output_of(*command(server.url, "--out", tmp_path / "run"))
    assert failures(tmp_path / "run") == {}
    forged = forge(tmp_path / "run", tmp_path / "forged", identity=lambda stated: stated["policies"]["a"].update(facts))
    assert any(problem in text for text in failures(forged)["policies"])


def test_names_in_answers_are_made_safe_and_short() -> None:
    with serving() as server:
        server.says = {"model": "\x1b[31m" + "m" * 1000, "system_fingerprint": "fp\n"}
        policy = introduced(server.url)
    name = policy.describe()["answers_as"]
    assert (name[:8], len(name)) == ("\\x1b[31m", 200)
    assert policy.system_fingerprints() == ["fp\\n"]


def test_doctor_shows_the_fingerprint_and_the_name(server: Model) -> None:
    server.says = {"model": "m-2024-08-06"}
    arguments = ("doctor", "-p", f"a=openai:{server.url}#m", "--requests", "2", *LIMITS)
    shown = invoke(*arguments).stdout
    kept = introduced(server.url).describe()["fingerprint"]
    assert "answers_as: m-2024-08-06" in shown
    assert f"model's fingerprint: of {kept['of']}: {', '.join(reply[:12] for reply in kept['replies'])}" in shown
    (form,) = json.loads(invoke(*arguments, "--json").stdout)
    assert form["facts"]["fingerprint"] == kept
