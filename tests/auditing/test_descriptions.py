"""What a manifest says of a language model is held against its records, against what ships, and against its form."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from kit.audits import checks, failures
from kit.fault_server import serving
from kit.runs import IdentityChange, RecordChange, forge, records

from handoff.auditing.descriptions import shipped_checkpoint
from handoff.canonical import digest
from handoff.episodes.start import Where
from handoff.policies import ModelOptions, builtin
from handoff.protocols.audit import audit_run
from handoff.protocols.frontier import FRONTIER
from handoff.protocols.frontier.config import FrontierConfig

ALFWORLD = Path(__file__).resolve().parents[1] / "data" / "version_0_1_0" / "alfworld"
CONFIG = FrontierConfig(split="test", reachers=("b",), solvers=("a",), tasks=3, slots=1, reach_budget=12)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served") / "run"
    with serving() as server:
        specs = {"a": f"openai:{server.url}#m", "b": "noisy:0.1"}
        options = {"a": ModelOptions(max_prompt_tokens=50_000)}
        FRONTIER.prepare("sokoban", {}, CONFIG, specs, options).run(folder, Where(0))
    return folder


def exchange_digests(identity: Any) -> None:
    rl, sft = identity["policies"]["rl"], identity["policies"]["sft"]
    rl["digests"], sft["digests"] = sft["digests"], rl["digests"]


def change_rl(**values: Any) -> IdentityChange:
    return lambda identity: identity["policies"]["rl"].update(values)


def engine_of_rl(**values: Any) -> IdentityChange:
    return lambda identity: identity["policies"]["rl"]["engine"].update(values)


def prompt_of_rl(**values: Any) -> IdentityChange:
    return lambda identity: identity["policies"]["rl"]["prompt"].update(values)


def sampling_of_rl(**values: Any) -> IdentityChange:
    return lambda identity: identity["policies"]["rl"]["sampling"].update(values)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (exchange_digests, "the digest of its weights is not that of the checkpoint rl that ships"),
        (lambda i: i["policies"]["rl"]["digests"].update(tokenizer="0" * 64), "the digest of its tokenizer is not"),
        (lambda i: i["policies"]["rl"]["digests"].update(config="0" * 64), "the digest of its config is not"),
        (lambda i: i["policies"]["rl"]["digests"].pop("weights"), "digests is without weights"),
        (lambda i: i["policies"]["rl"]["digests"].update(weights="none"), "the digests of its checkpoint are none"),
        (change_rl(spec="builtin:mine", checkpoint="mine"), "no checkpoint that ships is named 'mine'"),
        (change_rl(checkpoint="sft"), "its spec is 'builtin:rl', but its checkpoint is 'sft'"),
        (change_rl(tokens="rendered prompt only"), "its tokens are stated as"),
        (lambda i: i["policies"]["rl"]["sampling"].update(max_prompt_tokens=3), "beyond the limit of 3"),
        (lambda i: i["policies"]["rl"]["sampling"].update(max_new_tokens=1), "where 1 are stated"),
        (lambda i: i["policies"]["rl"]["sampling"].update(max_new_tokens=9), "its flags are scored"),
        (lambda i: i["policies"]["rl"]["sampling"].update(constrain=False), "has the flags scored"),
        (lambda i: i["policies"]["rl"]["engine"].update(context=50), "new tokens, where"),
        (engine_of_rl(context=1_000_000), "has context 1000000, but the checkpoint that ships has 512 places"),
        (engine_of_rl(context=None), "has context None, but the checkpoint that ships has 512 places"),
        (engine_of_rl(name="vllm"), "its engine has name 'vllm'"),
        (engine_of_rl(attention="flash"), "its engine has attention 'flash'"),
        (engine_of_rl(dtype="float8"), "its engine has dtype 'float8'"),
        (engine_of_rl(device=["x"]), "its engine has device ['x']"),
        (engine_of_rl(torch="9" * 1001), "its engine has torch '999"),
        (engine_of_rl(rows=True), "its engine has rows True"),
        (engine_of_rl(rows=65_537), "its engine has rows 65537"),
        (change_rl(guarantee="every token is proven optimal"), "its guarantee is stated as 'every token is proven"),
        (change_rl(spec="builtin:rl@main", revision="main"), "yet it has the revision 'main'"),
        (change_rl(rewrites={"thinking": [1]}), "but its prompts show none as messages"),
        (change_rl(now="2020-01-01T00:00:00"), "show the time, which its template does not read"),
        (prompt_of_rl(now="2020-01-01T00:00:00"), "show the time, which its template does not read"),
        (prompt_of_rl(form="chat"), "a chat template, which its checkpoint does not have"),
        (prompt_of_rl(template="turns"), "its template is called turns, as one of the toolkit's is"),
        (sampling_of_rl(token_limit_field="max_completion_tokens"), "token_limit_field 'max_completion_tokens'"),
    ],
)  # fmt: skip
def test_a_builtin_checkpoint_is_described_as_it_ships(tmp_path: Path, change: IdentityChange, says: str) -> None:
    assert failures(ALFWORLD) == {}
    problems = failures(forge(ALFWORLD, tmp_path / "run", identity=change))
    assert set(problems) - {"prompts"} == {"policies"}
    assert any(says in problem for problem in problems["policies"]), problems["policies"][:5]


def test_no_filter_refuses_for_a_checkpoint_in_this_process(tmp_path: Path) -> None:
    def refuse(key: list[str], body: Any) -> None:
        for step in body["steps"]:
            step["decision"].update(status="refused", action=None, text="", flags=[])
            step["decision"]["generation"]["finish"] = "content_filter"

    problems = failures(forge(ALFWORLD, tmp_path / "run", refuse))["policies"]
    assert any("ended by 'content_filter', which its engine never says" in problem for problem in problems)


def test_the_digests_of_what_ships_are_those_that_its_makers_noted() -> None:
    for name in builtin.names():
        noted = json.loads((builtin.folder() / name / "manifest.json").read_text())
        shipped = shipped_checkpoint(name)
        assert shipped is not None
        assert shipped.digests["weights"] == digest({"model.safetensors": noted["weights_sha256"]})
    assert shipped_checkpoint("nobody") is None


def test_no_library_of_models_is_imported_for_it() -> None:
    import subprocess

    script = (
        "import sys, handoff; assert handoff.audit(sys.argv[1], replay=False).passed; print('torch' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", script, str(ALFWORLD)], capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"


def sampling(**values: Any) -> IdentityChange:
    return lambda identity: identity["policies"]["a"]["sampling"].update(values)


def prompt(**values: Any) -> IdentityChange:
    return lambda identity: identity["policies"]["a"]["prompt"].update(values)


def engine(**values: Any) -> IdentityChange:
    return lambda identity: identity["policies"]["a"]["engine"].update(values)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda i: i["policies"]["a"]["sampling"].clear(), "its sampling is without constrain, max_new_tokens"),
        (sampling(temperature="hot"), "temperature 'hot'"),
        (sampling(temperature=-1), "temperature must be at least 0"),
        (sampling(temperature=9999), "at most 1,000"),
        (sampling(temperature=True), "temperature True"),
        (sampling(top_p=0), "top_p must be above 0"),
        (sampling(top_p=1.5), "top_p must be"),
        (sampling(top_k=-1), "top_k must be"),
        (sampling(max_new_tokens=0), "max_new_tokens must be"),
        (sampling(max_prompt_tokens=2.5), "max_prompt_tokens 2.5"),
        (sampling(stop="</action>"), "stop '</action>'"),
        (sampling(constrain=1), "constrain 1"),
        (sampling(luck=7), "its sampling has 'luck', which no run of this version writes"),
        (sampling(constrain=True), "its action rule is another one"),
        (prompt(history=-1), "a part of another type, or out of its range"),
        (prompt(history=10**30), "a part of another type, or out of its range"),
        (prompt(history=True), "a part of another type, or out of its range"),
        (prompt(template="alfworld-compact"), "its template is called alfworld-compact"),
        (prompt(source="{{ observation }}"), "its template is called default"),
        (sampling(token_limit_field="max_tokens"), "has the token_limit_field 'max_tokens'"),
        (engine(version={"x": 1}), "its engine has version {'x': 1}"),
        (engine(version=None), "its engine is 'vllm', with the version None"),
        (engine(root=5), "its engine has root 5"),
        (engine(root="x" * 10**6), "its engine has root 'xxx"),
        (engine(max_model_len="many"), "its engine has max_model_len 'many'"),
        (engine(max_model_len=10**200), "its engine has max_model_len 1000"),
        (engine(context=0), "its engine has context 0"),
        (lambda i: i["policies"]["a"].update(guarantee="bitwise"), "its guarantee is stated as 'bitwise'"),
        (prompt(form="song"), "a part of another type"),
        (prompt(mood="kind"), "its prompt has 'mood'"),
        (prompt(format="json"), "its prompt asks for 'json', but its action rule is 'tagged'"),
        (lambda i: i["policies"]["a"]["actions"].update(strict=1), "its action rule is"),
        (lambda i: i["policies"]["a"].update(tokens="some"), "its tokens are stated as 'some'"),
        (lambda i: i["policies"]["a"].update(tokens="rendered prompt only"), "contradict each other"),
        (lambda i: i["policies"]["a"].update(engine="vllm"), "its engine is stated as 'vllm'"),
        (lambda i: i["policies"]["a"]["engine"].update(speed="high"), "its engine has 'speed'"),
        (lambda i: i["policies"]["a"].update(model="gpt"), "its spec is 'openai:#m', but its model is 'gpt'"),
        (lambda i: i["policies"]["a"].update(now="yesterday"), "show the time 'yesterday'"),
        (lambda i: i["policies"]["a"].update(rewrites={"thinking": [0]}), "is stated to rewrite"),
        (lambda i: i["policies"]["a"].update(quality="best"), "its description has 'quality'"),
        (lambda i: i["policies"]["a"].pop("guarantee"), "its description is without guarantee"),
        (sampling(max_prompt_tokens=40), "beyond the limit of 40"),
        (sampling(max_new_tokens=2), "where 2 are stated"),
        (sampling(max_new_tokens=100_000), "its flags are none"),
    ],
)  # fmt: skip
def test_a_models_description_is_a_structure_that_its_records_keep_to(
    served: Path, tmp_path: Path, change: IdentityChange, says: str
) -> None:
    problems = failures(forge(served, tmp_path / "run", identity=change))
    assert any(says in problem for problem in problems["policies"]), problems


def decision(solver: bool, **values: Any) -> RecordChange:
    """Changes all decisions of the solver, or of the reacher; values of ``generation`` go into it."""

    def change(key: list[str], body: Any) -> None:
        for step in body["steps"] if ("solver" in body) == solver else []:
            generation = step["decision"]["generation"]
            for name, value in values.items():
                if generation is not None and name in generation:
                    generation[name] = value
                else:
                    step["decision"][name] = value

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (decision(True, tokens=-5), "has -5 generated tokens"),
        (decision(True, tokens=999_999), "beyond its limit of 512"),
        (decision(True, tokens=None), "has no token ids of its reply"),
        (decision(True, digest=None), "has no token ids of its reply"),
        (decision(True, digest="not a digest"), "of its tokens, which is none"),
        (decision(True, rendered="not a digest"), "the rendered prompt's digest 'not a digest'"),
        (decision(True, prompt_digest="not a digest"), "has the prompt digest 'not a digest', which is none"),
        (decision(True, prompt_digest="A" * 64), "which is none"),
        (decision(True, prompt_tokens=-1), "has -1 prompt tokens"),
        (decision(True, prompt_tokens=60_000), "beyond the limit of 50000"),
        (decision(True, finish="banana"), "has the unknown finish reason 'banana'"),
        (decision(True, finish=None), "has no finish reason"),
        (decision(True, max_tokens=0), "has the limit of 0 generated tokens"),
        (decision(True, max_tokens=600), "at most 600 new tokens, where 512 are stated"),
        (decision(True, max_tokens=100), "its flags are none"),
        (decision(True, flags=["clamped"]), "its flags are clamped"),
        (decision(True, flags=["great"]), "has the flag 'great', which its policy never writes"),
        (decision(True, flags=["multi"]), "it has the flags multi, which its text does not have"),
        (decision(True, flags=["scored"]), "it has the flags scored, which its text does not have"),
        (decision(True, stop="\n"), "which is no stop string of its policy"),
        (decision(True, status="context_overflow"), "yet something was generated"),
        (decision(True, input_digest="0"), "has the input digest '0', which is none"),
        (decision(False, flags=["great"]), "has the flag 'great', which its policy never writes"),
        (decision(False, flags=["no_plan", "no_plan"]), "has a flag twice"),
        (decision(False, prompt_tokens=3), "a policy without a model has a prompt"),
        (decision(False, status="refused by nobody"), "has the unknown status"),
        (decision(False, action=" "), "has an action without words"),
    ],
)  # fmt: skip
def test_a_decision_holds_what_its_policy_can_have_written(
    served: Path, tmp_path: Path, change: RecordChange, says: str
) -> None:
    problems = failures(forge(served, tmp_path / "run", change))
    assert any(says in problem for problem in problems["policies"]), problems["policies"][:5]


def overflow(tokens: int) -> RecordChange:
    """The solver's last decisions did not fit, with so many prompt tokens."""

    def change(key: list[str], body: Any) -> None:
        if body.get("solver") and body["steps"]:
            step = body["steps"][-1]["decision"]
            step.update(status="context_overflow", action=None, text="", flags=[], prompt_tokens=tokens)
            step["generation"] = {**dict.fromkeys(step["generation"]), "rendered": step["generation"]["rendered"]}

    return change


def test_a_context_that_the_options_set_is_stated_and_held(tmp_path: Path) -> None:
    """A prompt of 1000 tokens or more leaves no room in a context of 1000."""
    config = FrontierConfig(split="test", reachers=("a",), solvers=("b",), tasks=3, slots=1, reach_budget=4)
    with serving() as server:
        specs = {"a": f"openai:{server.url}#m", "b": "expert"}
        options = {"a": ModelOptions(max_prompt_tokens=50_000, context=1000)}
        FRONTIER.prepare("sokoban", {}, config, specs, options).run(tmp_path / "run", Where(0))
    decisions = [step["decision"] for _, body in records(tmp_path / "run") for step in body["steps"]]
    counts = [one for one in decisions if one["generation"] is not None]
    assert {one["status"] == "context_overflow" for one in counts} == {one["prompt_tokens"] >= 1000 for one in counts}
    assert failures(tmp_path / "run") == {}

    def wider(identity: Any) -> None:
        assert identity["policies"]["a"]["engine"].pop("context") == 1000

    problems = failures(forge(tmp_path / "run", tmp_path / "wider", identity=wider))
    assert problems, "no reply was cut to its room any more"


def test_prompts_that_fit_and_prompts_that_do_not_are_parted_by_their_length(served: Path, tmp_path: Path) -> None:
    problems = failures(forge(served, tmp_path / "run", overflow(10)))
    assert any("tokens was answered, and one of 10 did not fit" in problem for problem in problems["policies"])
    beyond = failures(forge(served, tmp_path / "beyond", overflow(50_001))).get("policies", [])
    assert not any("did not fit" in problem or "overflow" in problem for problem in beyond)


def test_a_temperature_that_few_servers_take_is_no_fault_and_gets_a_note(served: Path, tmp_path: Path) -> None:
    folder = forge(served, tmp_path / "run", identity=sampling(temperature=99))
    assert failures(folder) == {}
    assert checks(served)["policies"].notes == []
    assert checks(folder)["policies"].notes == [
        "policy a: its temperature 99 is above 2; replies do not show what it was"
    ]


@pytest.mark.parametrize("now", [None, "2020-02-02T02:02:02"])
def test_the_time_that_prompts_show_is_part_of_the_description_and_of_the_prompts(
    tmp_path: Path, now: str | None
) -> None:
    template = tmp_path / "dated.jinja"
    template.write_text("{{ strftime_now('%Y') }} {{ observation }} <action>{{ admissible[0] }}</action>")
    config = FrontierConfig(split="test", reachers=("a",), solvers=("b",), tasks=3, slots=1, reach_budget=2)
    with serving() as server:
        specs = {"a": f"openai:{server.url}#m", "b": "expert"}
        options = {"a": ModelOptions(max_prompt_tokens=50_000, template=str(template), now=now)}
        FRONTIER.prepare("sokoban", {}, config, specs, options).run(tmp_path / "run", Where(0))
    assert audit_run(tmp_path / "run", replay=False, templates=[str(template)]).passed

    def later(identity: Any) -> None:
        described = identity["policies"]["a"]
        (described if now is None else described["prompt"])["now"] = "1999-01-01T00:00:00"

    audit = audit_run(forge(tmp_path / "run", tmp_path / "later", identity=later), None, replay=False,
                      templates=[str(template)])  # fmt: skip
    assert [check.name for check in audit.checks if check.blocks] == ["prompts"]
