"""Studies as TOML files: what is read, what is refused, what counts more."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from kit.command import handoff
from kit.fault_server import serving

from handoff.errors import DataError, UsageError
from handoff.policies import ModelOptions
from handoff.protocols import study_file
from handoff.protocols.frontier import FRONTIER, study
from handoff.runs.folder import read_manifest

FULL = """
environment = "sokoban"
cross = ["sft", "rl"]

[study]
split = "test"
tasks = 6
slots = 2
budget = 7
depth = 2
seed = 11

[environment_options]
data = "boards"

[models]
temperature = 0.7
max_prompt_tokens = 50000
history = "all"

[policies]
sft = "noisy:0.5"

[policies.rl]
spec = "openai:URL#m"
temperature = 1
template = "mine.jinja"
stop = ["x"]
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "study.toml"
    path.write_text(text)
    return path


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "mine.jinja").write_text("{{ observation }}")
    stated = study_file.load(write(tmp_path, FULL), FRONTIER)
    assert stated.environment == "sokoban"
    assert stated.roles == {"reachers": ("sft", "rl"), "solvers": ("sft", "rl")}
    assert stated.study == {"split": "test", "tasks": 6, "slots": 2, "reach_budget": 7, "depth": 2, "run_seed": 11}
    assert stated.environment_options == {"data": str(tmp_path / "boards")}
    assert stated.bindings == {"sft": "noisy:0.5", "rl": "openai:URL#m"}
    assert stated.remark()["text"] == FULL
    options = study_file.model_options({"sft": "random", "rl": "random"}, stated, {"top_p": 0.9})
    assert options["sft"] == ModelOptions(temperature=0.7, max_prompt_tokens=50000, history=None, top_p=0.9)
    assert options["rl"] == ModelOptions(
        temperature=1, max_prompt_tokens=50000, history=None, top_p=0.9, stop=("x",),
        template=str(tmp_path / "mine.jinja"),
    )  # fmt: skip
    assert study_file.model_options({"rl": "random"}, stated, {"temperature": 0.0})["rl"].temperature == 0.0


def test_the_defaults_are_the_papers() -> None:
    options = ModelOptions()
    assert (options.temperature, options.top_p, options.max_new_tokens, options.max_prompt_tokens) == (
        0.4,
        1,
        512,
        4096,
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("environment = ", "not valid TOML"),
        ("enviroment = 'x'", "enviroment is not known \\(did you mean 'environment'\\?\\)"),
        ("[study]\ntask = 3", "study.task is not known \\(did you mean 'tasks'\\?\\)"),
        ("[study]\ntasks = '3'", 'study.tasks must be a whole number or "all"'),
        ("[study]\ntasks = true", 'study.tasks must be a whole number or "all", not True'),
        ("cross = ['a']\nsolvers = ['a']", "either cross, or reachers and solvers"),
        ("cross = [1]", "cross must be a list of strings"),
        ("[policies.a]\ntemperature = 1", "policies.a needs a spec"),
        ("[policies.a]\nspec = 'random'\ntemprature = 1", "policies.a.temprature is not known"),
        ("[models]\napi_key = 'sk-123'", "models.api_key is not known"),
        ("[models]\nhistory = 'some'", 'models.history must be a whole number or "all"'),
        ("[models]\nstrict = 1", "models.strict must be true or false, not 1"),
        ("[environment_options]\ntrust_games = true", "trust_games is for the command line"),
        ("a" * 10 + "=" + "[" * 100_000, "not valid TOML"),
        ("[policies]\n'' = 'random'", "policies: a policy's name is not empty"),
        ("[policies]\n' a' = 'random'", "policies: a policy's name is not empty and has no blank at its ends"),
        ("[policies]\n'a,b' = 'random'", "holds no slash, comma or unprintable character"),
        ('[policies]\n"a\\u001b" = "random"', "holds no slash, comma or unprintable character"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_naming_the_key(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        study_file.load(write(tmp_path, text), FRONTIER)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("enviroment = 'x'", "enviroment is not known \\(did you mean 'environment'\\?\\)"),
        ("[study]\ntaskz = 3", "study.taskz is not known \\(did you mean 'tasks'\\?\\)"),
        ("[polices]\na = 'random'", "polices is not known \\(did you mean 'policies'\\?\\)"),
    ],
)
def test_a_file_of_any_protocol_is_held_against_the_keys_of_all(tmp_path: Path, text: str, message: str) -> None:
    """``handoff doctor`` reads the policies of a file without knowing its protocol."""
    with pytest.raises(DataError, match=message):
        study_file.load(write(tmp_path, text))
    told = handoff("doctor", "--config", tmp_path / "study.toml", cwd=tmp_path)
    assert told.returncode == 2
    assert re.search(message, told.stderr)


@pytest.mark.parametrize("roles", ["cross = ['a']", "reachers = ['a']\nsolvers = ['a']", "policies.a = 'random'"])
def test_a_file_of_any_protocol_may_name_the_roles_of_each(tmp_path: Path, roles: str) -> None:
    text = f"environment = 'sokoban'\n{roles}\nstudy.slots = 2\nstudy.tasks = 3"
    assert study_file.load(write(tmp_path, text)).environment == "sokoban"
    path = write(tmp_path, "environment = 'sokoban'\nstudy.rollouts = 8")
    assert study_file.load(path).environment == "sokoban"


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        study_file.load(tmp_path / "none.toml", FRONTIER)
    (tmp_path / "bad.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="is not UTF-8 text but UTF-16; save it as UTF-8"):
        study_file.load(tmp_path / "bad.toml", FRONTIER)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": -1}, "temperature must be at least 0"),
        ({"temperature": float("nan")}, "temperature must be at least 0"),
        ({"top_p": 0}, "top p must be above 0"),
        ({"max_new_tokens": 0}, "max new tokens must be at least 1"),
        ({"dtype": "int8"}, "dtype is one of auto, float32"),
        ({"action_format": "xml"}, "action format is one of"),
        ({"constrain": True, "action_format": "json"}, "its action format is choice, not json"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ModelOptions(**options)


def test_a_study_runs_from_its_file_and_the_manifest_keeps_it(tmp_path: Path) -> None:
    (tmp_path / "mine.jinja").write_text("{{ observation }} Commands that you can use now:\n- {{ admissible[0] }}\n")
    with serving() as server:
        text = FULL.replace("URL", server.url).replace('data = "boards"', "")
        path = write(tmp_path, text)
        arguments = ["run", "--config", str(path), "--workers", "0", "-q", "--slots", "1", "--out", str(tmp_path / "r")]
        result = handoff(*arguments, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
    loaded = study.load(tmp_path / "r")
    assert (loaded.slots, loaded.config.reach_budget, loaded.config.run_seed) == (1, 7, 11)
    assert loaded.policies["rl"]["sampling"]["temperature"] == 1
    assert loaded.policies["rl"]["prompt"]["template"] == "mine.jinja"
    assert read_manifest(tmp_path / "r")["host"]["config"]["text"] == text
    audited = json.loads(handoff("audit", str(tmp_path / "r"), "--records-only", "--json", cwd=tmp_path).stdout)
    prompts = next(check for check in audited["checks"] if check["name"] == "prompts")
    assert audited["passed"]
    assert "give its file by --template" in prompts["notes"][0]
    given = ("--template", str(tmp_path / "mine.jinja"))
    audited = json.loads(handoff("audit", str(tmp_path / "r"), "--records-only", "--json", *given, cwd=tmp_path).stdout)
    again = next(check for check in audited["checks"] if check["name"] == "prompts")
    assert audited["passed"]
    assert again["notes"] == []
    assert again["count"] > prompts["count"]


def test_bad_requests_about_models_get_one_sentence_and_exit_code_2(tmp_path: Path) -> None:
    cases = [
        (["--cross", "hf:./nowhere"], "there is no such folder"),
        (["--cross", "openai:"], "needs an argument"),
        (["--cross", "openai:nonsense"], "write a server's URL"),
        (["--cross", "random", "--config", "none.toml"], "cannot read"),
        (["--cross", "random", "--temperature", "-1"], "is not in the range; ask for at least 0"),
    ]
    for arguments, message in cases:
        result = handoff("run", "sokoban", *arguments, cwd=tmp_path)
        assert result.returncode == 2, arguments
        lines = result.stderr.strip().splitlines()
        assert message in lines[-1] or "needs torch" in lines[-1] or "need torch" in lines[-1], result.stderr
        assert len(lines) == 1
    assert list(tmp_path.iterdir()) == []
    assert "name an environment" in handoff("run", "--cross", "random", cwd=tmp_path).stderr


def test_a_study_of_all_tasks(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text('environment = "frozenlake"\n[study]\ntasks = "all"\n')
    assert study_file.load(path, FRONTIER).study["tasks"] is None
    path.write_text('environment = "frozenlake"\n[study]\ntasks = "every"\n')
    with pytest.raises(DataError, match="a whole number or"):
        study_file.load(path, FRONTIER)
