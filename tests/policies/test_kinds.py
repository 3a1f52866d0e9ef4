"""Specs and kinds of policies, those of other packages included: found by entry point, loaded when they are used."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kit import command
from kit.fault_server import serving

from handoff.auditing.checks import Check
from handoff.episodes.start import Where
from handoff.errors import DataError, Interrupted, UsageError
from handoff.policies import ModelOptions, Policy, Spec, introduce, is_spec, kinds, make, make_policies, own_options
from handoff.policies.bindings import relative_to, resolve
from handoff.protocols import audit, study_file
from handoff.protocols.rollouts import ROLLOUTS
from handoff.protocols.rollouts.config import RolloutsConfig

ROOT = Path(__file__).resolve().parents[2]
MODULE = '''
import handoff.policies as policies


class Nth(policies.Policy):
    """The N-th admissible action, or the first."""

    def __init__(self, argument):
        if argument == "bad":
            raise ValueError("bad is no number")
        self.place = int(argument or 0)

    def decide(self, requests):
        return [policies.scripted(one, self.choice(one.record.admissible)) for one in requests]

    def choice(self, actions):
        return actions[self.place % len(actions)]

    def describe(self):
        return {"kind": "nth", "place": self.place}


class Asked(Nth):
    async def introduce(self):
        self.place = 1


filed = policies.Kind(
    "any name", "filed:FILE", lambda argument, options: Nth(argument), takes_path=True, options=lambda: {"top_k": 7}
)
wrong = policies.Kind("wrong", "wrong", lambda argument, options: "a string", options=lambda: {"top_q": 7})
'''
ENTRIES = """
[handoff.policies]
nth = handoff_nth:Nth
asked = handoff_nth:Asked
filed = handoff_nth:filed
wrong = handoff_nth:wrong
random = handoff_nth:Nth
absent = handoff_nth:Absent
number = handoff_nth:__doc__
leaving = handoff_leaving:Nth
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an installed package that has kinds of policies, on the path of this process."""
    folder = tmp_path / "site"
    info = folder / "handoff_nth-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: handoff-nth\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRIES)
    (folder / "handoff_nth.py").write_text(MODULE)
    (folder / "handoff_leaving.py").write_text("raise SystemExit('good bye')")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "handoff_nth", raising=False)
    return folder


@pytest.mark.parametrize(
    ("text", "kind", "argument"),
    [
        ("random", "random", None),
        ("noisy:0.3", "noisy", "0.3"),
        ("tempered:1:2", "tempered", "1:2"),
        ("openai:http://a:1/v1#m", "openai", "http://a:1/v1#m"),
        ("x:", "x", ""),
    ],
)
def test_a_spec_is_a_kind_and_what_follows_the_first_colon(text: str, kind: str, argument: str | None) -> None:
    assert Spec.parse(text) == Spec(kind, argument, text)


def test_names_of_built_in_language_models_are_no_specs_without_an_argument() -> None:
    assert [is_spec(text) for text in ("random", "noisy", "hf", "hf:x", "sft", "sft:1")] == [
        *(True, True, False, True, False, False),
    ]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("random:1", "policy 'random' takes no argument, but got '1'"),
        ("noisy", r"write noisy:EPS with a probability, such as noisy:0.3 \(got None\)"),
        ("noisy:2", "between 0 and 1, not 2"),
        ("tempered:1:2:3", "write tempered:T or tempered:T:HABIT"),
        ("tempered:x", "write tempered:T or tempered:T:HABIT"),
        ("actions", "write actions:FILE"),
        ("hf", "policy 'hf' needs an argument: hf:FOLDER or hf:OWNER/NAME"),
        ("noisey:0.3", r"no policy kind is named 'noisey' \(did you mean 'noisy'\?\)"),
        ("xyz", r"no policy kind is named 'xyz' \(known: random, expert, noisy"),
    ],
)
def test_a_spec_that_means_nothing_is_refused_with_the_right_form(spec: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make(spec)


def test_a_misspelt_kind_is_named_where_a_policy_was_to_be_bound() -> None:
    with pytest.raises(UsageError, match=r"did you mean 'noisy'\?"):
        resolve(["noisey:0.3"], {})
    with pytest.raises(UsageError, match=r"policy 'rl' is not bound \(bound: sft\); bind it by -p rl=SPEC"):
        resolve(["rl"], {"sft": "random"})


def test_a_subclass_is_called_with_the_argument_or_none(package: Path) -> None:
    assert make("nth:3").describe() == {"kind": "nth", "place": 3}
    assert make("nth").describe() == {"kind": "nth", "place": 0}
    assert is_spec("nth")
    assert is_spec("nth:3")


def test_a_kind_brings_its_options_and_says_whether_its_argument_is_a_path(package: Path) -> None:
    assert own_options("filed:3") == {"top_k": 7}
    assert own_options("nth:3") == own_options("noisy:1") == {}
    models = study_file.model_options({"a": "filed:1", "b": "nth"}, study_file.EMPTY, {"top_p": 0.5})
    assert models == {"a": ModelOptions(top_k=7, top_p=0.5), "b": ModelOptions(top_p=0.5)}
    assert relative_to("filed:./x", Path("/study")) == "filed:/study/x"
    assert relative_to("filed:/x", Path("/study")) == "filed:/x"
    assert relative_to("hf:../x", Path("/study")) == "hf:/study/../x"
    assert relative_to("nth:./x", Path("/study")) == "nth:./x"


def test_a_built_in_kind_counts_more_and_what_the_environment_means_by_a_name_too(package: Path) -> None:
    with pytest.warns(UserWarning, match="'random' is built in; handoff_nth:Nth is ignored"):
        assert make("random").describe() == {"kind": "random"}
    assert resolve(["nth", "filed"], {}, {"nth": "noisy:0.1"}) == {"nth": "noisy:0.1", "filed": "filed"}
    assert resolve(["nth:2"], {}, {"nth": "noisy:0.1"}) == {"nth:2": "nth:2"}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("absent", r"policy kind 'absent' \(entry point handoff_nth:Absent\) cannot be loaded: AttributeError: "),
        ("leaving", r"\(entry point handoff_leaving:Nth\) cannot be loaded: SystemExit: good bye"),
        ("number", r"\(entry point handoff_nth:__doc__\) is neither a handoff.policies.Kind nor a subclass"),
        ("nth:bad", "policy 'nth:bad' fails: ValueError: bad is no number"),
        ("wrong", "policy 'wrong': its plug-in makes a str, not a Policy"),
        ("nht:1", r"no policy kind is named 'nht' \(did you mean 'nth'\?\)"),
    ],
)
def test_a_broken_plug_in_is_one_sentence(package: Path, spec: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make(spec)


def test_options_that_there_are_not_are_one_sentence(package: Path) -> None:
    with pytest.raises(UsageError, match="policy kind 'wrong' sets unknown options: top_q"):
        own_options("wrong")


def handoff(package: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return command.handoff(*arguments, env={**os.environ, "PYTHONPATH": f"{package}{os.pathsep}{ROOT}"})


def test_nothing_of_a_package_is_loaded_before_a_spec_names_its_kind(package: Path) -> None:
    (package / "handoff_nth.py").write_text("raise SystemExit('loaded')")
    run = ("run", "frozenlake", "--tasks", "2", "--slots", "1", "--workers", "0", "--dry-run")
    for arguments in (("--help",), ("run", "--help"), (*run, "--reacher", "expert", "--solver", "noisy:0.5")):
        result = handoff(package, *arguments)
        assert (result.returncode, "loaded" in result.stderr) == (0, False), result.stderr
    result = handoff(package, *run, "--reacher", "expert", "--solver", "nth:1")
    assert result.returncode == 2
    assert result.stderr.strip().splitlines()[-1] == (
        "handoff: policy kind 'nth' (entry point handoff_nth:Nth) cannot be loaded: SystemExit: loaded"
    )


def test_a_run_with_a_plug_in_passes_its_audit_wherever_it_is_installed(package: Path, tmp_path: Path) -> None:
    folder = str(tmp_path / "run")
    result = handoff(
        package, "run", "frozenlake", "-p", "a=nth:2", "-p", "b=asked:0", "--cross", "a,b", "--tasks", "2", "--slots",
        "1", "--budget", "3", "--workers", "0", "-q", "--out", folder,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    for site, unknown in ((package, set[str]()), (tmp_path, {"nth", "asked"})):
        result = handoff(site, "audit", folder, "--json", "--workers", "0")
        assert result.returncode == 0, result.stdout
        check = next(check for check in json.loads(result.stdout)["checks"] if check["name"] == "policies")
        notes = " ".join(check["notes"])
        assert check["passed"]
        assert {name for name in ("nth", "asked") if f"no policy kind is named {name!r}" in notes} == unknown
        assert ("policy b: its description was not held against its spec here: a part" in notes) == (not unknown)


@pytest.mark.parametrize(
    ("facts", "failures", "notes"),
    [
        ({"spec": "nth:2", "kind": "nth", "place": 2}, "", ""),
        ({"spec": "nth:2", "kind": "nth", "place": 3}, "its spec 'nth:2' means {'spec': 'nth:2', 'kind': 'nth'", ""),
        ({"spec": "nth:bad", "kind": "nth", "place": 3}, "", "ValueError: bad is no number"),
        ({"spec": "noisy:bad", "kind": "noisy"}, "write noisy:EPS", ""),
    ],
)
def test_a_description_is_held_against_the_policy_that_its_spec_makes(
    package: Path, tmp_path: Path, facts: dict[str, Any], failures: str, notes: str
) -> None:
    config = RolloutsConfig(split="test", policies=("x",), rollouts=1, tasks=3, budget=2)
    ROLLOUTS.prepare("sokoban", {}, config, {"x": "nth:2"}).run(tmp_path / "run", Where(0))
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_bytes())
    assert manifest["identity"]["policies"]["x"] == {"spec": "nth:2", "kind": "nth", "place": 2}
    check = policies_check(tmp_path / "run", lambda described: described.update(x=facts))
    assert [bool(check.failures), bool(check.notes)] == [bool(failures), bool(notes)]
    assert failures in " ".join(check.failures)
    assert notes in " ".join(check.notes)


def policies_check(folder: Path, change: Callable[[dict[str, Any]], None]) -> Check:
    """The check of policies of a run whose manifest describes them otherwise."""
    from handoff.auditing.policies import check_policies
    from handoff.protocols.rollouts.study import load

    run, result = load(folder), audit.Audit(folder)
    change(run.identity["policies"])  # type: ignore[arg-type]
    check_policies(result, run)
    return result.checks[0]


class Counted(Policy):
    """Counts its introductions, and fails them where it is told to."""

    def __init__(self, error: Exception | None = None) -> None:
        self.count, self.error = 0, error

    async def introduce(self) -> None:
        self.count += 1
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error

    def decide(self, requests: Any) -> Any:
        raise NotImplementedError


def test_each_policy_is_introduced_once_and_the_first_error_is_raised_as_it_is() -> None:
    one, two = Counted(), Counted()
    asyncio.run(introduce([one, two, one]))
    assert (one.count, two.count) == (1, 1)
    cause = OSError("no route")
    error = Interrupted("gone")
    error.__cause__ = cause
    with pytest.raises(Interrupted, match="gone") as caught:
        asyncio.run(introduce([one, Counted(error)]))
    assert caught.value.__cause__ is cause


def test_policies_of_one_model_with_equal_options_are_one() -> None:
    hot = ModelOptions(temperature=1.0)
    with serving() as server:
        spec = f"openai:{server.url}#m"
        policies = make_policies({"a": spec, "b": spec, "c": spec, "d": "random", "e": "random"}, {"c": hot})
    assert policies["a"] is policies["b"]
    assert policies["a"] is not policies["c"]
    assert policies["d"] is not policies["e"]


def test_no_built_in_constructor_reads_a_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="needs torch")
    pytest.importorskip("transformers", reason="needs transformers")
    for module in ("builtin", "hf.policy"):
        __import__(f"handoff.policies.{module}")

    def refuse(argument: str) -> None:
        raise DataError("it was read")

    monkeypatch.setattr("handoff.policies.language.local.find", refuse)
    for spec in ("builtin:sft", "hf:./nowhere"):
        policy = make(spec, ModelOptions(**own_options(spec)))
        with pytest.raises(DataError, match="it was read"):
            asyncio.run(policy.introduce())


def test_every_built_in_kind_states_its_form() -> None:
    for name, kind in kinds.BUILTIN.items():
        assert kind.name == name
        assert kind.form.startswith(name)
        assert kind.is_language_model != (name in kinds.SCRIPTED)
