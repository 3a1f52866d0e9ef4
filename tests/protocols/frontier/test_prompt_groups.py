"""Solvers that get different prompts from equal histories: found out before a run, declared, audited as declared."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
from kit.audits import checks
from kit.command import invoke, output_of
from kit.fault_server import chat, serving
from kit.runs import first, forge, record_bytes, rewrite_identity

from handoff.episodes.start import Where
from handoff.errors import StoreError, UsageError
from handoff.policies import ModelOptions
from handoff.protocols.frontier import FRONTIER
from handoff.protocols.frontier.config import FrontierConfig

CONFIG = FrontierConfig(split="test", reachers=("n",), solvers=("a", "b"), tasks=6, slots=1, reach_budget=12)
OPTIONS = ModelOptions(max_prompt_tokens=50_000, patience=60.0)


def other_family(messages: list[dict[str, str]]) -> str:
    return f"<begin>{chat(messages)}"


@contextmanager
def two_servers(
    dialect: str = "vllm", second: Callable[..., str] = chat
) -> Iterator[Callable[..., tuple[Path, list[str]]]]:
    """Plays a study whose solvers a and c are behind one server, and b behind another with the chat template
    ``second``."""
    with serving(dialect=dialect) as one, serving(dialect=dialect) as other:
        other.chat = second

        def play(
            folder: Path, config: FrontierConfig = CONFIG, options: dict[str, ModelOptions] | None = None
        ) -> tuple[Path, list[str]]:
            urls = {"a": one.url, "b": other.url, "c": one.url}
            specs = {name: f"openai:{urls[name]}#m" for name in config.solvers}
            models = dict.fromkeys(config.solvers, OPTIONS) | (options or {})
            prepared = FRONTIER.prepare("sokoban", {}, config, {**specs, "n": "noisy:0.1"}, models)
            return folder, prepared.run(folder, Where(0))

        yield play


def groups(folder: Path) -> Any:
    return json.loads((folder / "manifest.json").read_bytes())["identity"]["protocol"].get("prompt_groups")


@pytest.mark.parametrize("dialect", ["vllm", "plain"])
def test_two_families_of_models_are_declared_and_their_audit_holds_equal_histories(
    dialect: str, tmp_path: Path
) -> None:
    with two_servers(dialect, other_family) as play:
        folder, _ = play(tmp_path / "run")
    assert groups(folder) == [["a"], ["b"]]
    check = checks(folder)["prompts"]
    assert check.passed
    assert "solvers get different prompts from equal histories (a | b)" in " ".join(check.notes)
    assert checks(folder)["inputs"].passed


def test_solvers_of_one_family_are_declared_nowhere(tmp_path: Path) -> None:
    with two_servers() as play:
        folder, _ = play(tmp_path / "run")
    assert groups(folder) is None
    assert checks(folder)["prompts"].passed


def test_a_difference_that_is_not_declared_fails(tmp_path: Path) -> None:
    with two_servers(second=other_family) as play:
        folder, _ = play(tmp_path / "run")
    forged = forge(folder, tmp_path / "forged", identity=lambda stated: stated["protocol"].pop("prompt_groups"))
    assert any("its solvers got different prompt token ids" in text for text in checks(forged)["prompts"].failures)


def test_within_a_declared_group_prompts_are_equal(tmp_path: Path) -> None:
    config = attrs.evolve(CONFIG, solvers=("a", "b", "c"))
    with two_servers(second=other_family) as play:
        folder, _ = play(tmp_path / "run", config)
    assert groups(folder) == [["a", "c"], ["b"]]
    assert checks(folder)["prompts"].passed

    def change(key: list[str], body: Any) -> bool:
        if key[0] != "endpoint" or key[-1] != "c" or not body["steps"]:
            return False
        body["steps"][0]["decision"]["prompt_digest"] = "0" * 64
        return True

    forged = forge(folder, tmp_path / "forged", first(change))
    assert any("its solvers got different prompt token ids" in text for text in checks(forged)["prompts"].failures)


@pytest.mark.parametrize(
    ("option", "declared"),
    [
        ({"system": "Be brief."}, True),
        ({"history": 11}, True),  # a solver sees up to 12 turns
        ({"history": 12}, False),  # as all
        ({"temperature": 0.9}, False),
    ],
)
def test_options_that_change_prompts_are_declared_and_others_are_not(
    option: dict[str, Any], declared: bool, tmp_path: Path
) -> None:
    every = attrs.evolve(OPTIONS, history=None)
    with two_servers() as play:
        folder, _ = play(tmp_path / "run", options={"a": every, "b": attrs.evolve(every, **option)})
    assert groups(folder) == ([["a"], ["b"]] if declared else None)
    assert checks(folder)["prompts"].passed


def test_equal_templates_are_rendered_equally_on_all_sides(tmp_path: Path) -> None:
    with two_servers(second=other_family) as play:
        folder, _ = play(tmp_path / "run")

    def change(key: list[str], body: Any) -> bool:
        if key[0] != "endpoint" or key[-1] != "b" or not body["steps"]:
            return False
        body["steps"][0]["decision"]["generation"]["rendered"] = "0" * 64
        return True

    forged = forge(folder, tmp_path / "forged", first(change))
    assert any("its solvers got different rendered prompts" in text for text in checks(forged)["prompts"].failures)


def test_a_declaration_without_a_difference_in_template_or_tokenizer_fails(tmp_path: Path) -> None:
    with two_servers() as play:
        folder, _ = play(tmp_path / "run")

    def declare(stated: Any) -> None:
        stated["protocol"]["prompt_groups"] = [["a"], ["b"]]
        for name in ("a", "b"):
            stated["policies"][name]["digests"] = {"tokenizer": "1" * 64}

    failures = checks(forge(folder, tmp_path / "forged", identity=declare))["prompts"].failures
    assert any("declared to get different prompts, but have the same template" in text for text in failures)


@pytest.mark.parametrize("wrong", [[["a", "b"]], [["a"], ["a"]], [["a"], ["x"]]])
def test_groups_that_are_none_are_refused(wrong: list[list[str]]) -> None:
    with pytest.raises(UsageError, match="no groups of the solvers a, b"):
        attrs.evolve(CONFIG, prompt_groups=tuple(map(tuple, wrong)))


def test_a_run_of_a_version_that_declared_nothing_goes_on_with_a_remark(tmp_path: Path) -> None:
    with two_servers(second=other_family) as play:
        folder, _ = play(tmp_path / "run")
        whole = record_bytes(folder)
        for path in folder.glob("*"):
            if path.name != "manifest.json":
                path.unlink()
        rewrite_identity(folder, lambda stated: stated["protocol"].pop("prompt_groups"))
        manifest = (folder / "manifest.json").read_bytes()
        _, remarks = play(folder)
        assert 'the prompt_groups are [["a"],["b"]], which the run does not declare' in " ".join(remarks)
        assert (folder / "manifest.json").read_bytes() == manifest
        bodies = [[json.loads(line)["body"] for line in data.splitlines()] for data in (whole, record_bytes(folder))]
        assert bodies[0] == bodies[1]


def test_other_groups_than_the_declared_ones_are_refused(tmp_path: Path) -> None:
    with two_servers(second=other_family) as play:
        folder, _ = play(tmp_path / "run")
    with two_servers() as play, pytest.raises(StoreError, match=r"its prompt_groups were \[\[.* and are null"):
        play(folder)


def test_the_plan_says_that_solvers_get_different_prompts_before_the_run_starts(tmp_path: Path) -> None:
    with serving() as one, serving() as other:
        other.chat = other_family
        arguments = (
            *("run", "sokoban", "-p", f"a=openai:{one.url}#m", "-p", f"b=openai:{other.url}#m", "-p", "n=noisy:0.1"),
            *("--reacher", "n", "--solver", "a", "--solver", "b", "--tasks", "3", "--slots", "1", "--workers", "0"),
            *("--max-prompt-tokens", "50000", "--out", tmp_path / "run"),
        )
        said = "solvers get different prompts from equal histories, by template or tokenizer: a | b"
        assert said in " ".join(output_of(*arguments, "--dry-run").split())
        assert json.loads(output_of(*arguments, "--dry-run", "--json"))["protocol"]["prompt_groups"] == [["a"], ["b"]]
        result = invoke(*arguments)
        assert result.exit_code == 0
        assert said in " ".join(result.stderr.split())
