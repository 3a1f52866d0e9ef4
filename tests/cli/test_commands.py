"""Commands that the toolkit proposes, and texts for other tools: typed or opened, they do what they say."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import subprocess
import sys
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import pytest
from kit import report_runs
from kit.command import handoff, handoff_without, invoke, output_of

from handoff.cli import COMMANDS
from handoff.errors import MissingExtra, install_command
from handoff.protocols.export import ExportTable, export
from handoff.text import command, csv_text, from_csv, shell_word

ROOT = Path(__file__).resolve().parents[2]
RUN = ("run", "sokoban", "-p", "a=noisy:0.5", "--cross", "a", "--tasks", "3", "--slots", "1", "--workers", "0", "-q")
ROLLOUT = ("rollout", "sokoban", "-p", "a=noisy:0.5", "-p", "b b=noisy:0.2", "--tasks", "3", "-n", "2", "-q")
#: What a word of a command may hold.
WORDS = [
    "plain",
    "a b",
    "it's",
    "$HOME",
    "a;b",
    "#x",
    "run#a",
    "-n",
    "é",
    "back\\slash",
    "new\nline",
    "\x1b[31m",
    "*",
    "",
]
NOT_TEXT = os.fsdecode(b"f\xff0")


def typed(text: str) -> list[str]:
    """The words that bash makes of a command."""
    script = f"for word in {text}; do printf '%s\\0' \"$word\"; done"
    result = subprocess.run(["bash", "-c", script], capture_output=True, timeout=60, check=True)
    return [os.fsdecode(word) for word in result.stdout.split(b"\0")[:-1]]


# A command typed as it is printed -------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "ascii"])
def test_a_printed_word_is_read_by_a_shell_as_what_it_was(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", open(os.devnull, "w", encoding=encoding))  # noqa: SIM115
    words = [*WORDS, NOT_TEXT, f"é{NOT_TEXT}'"]
    printed = command(*words)
    printed.encode(encoding)
    assert printed.isprintable()
    assert typed(printed) == words


def test_a_plain_path_is_printed_as_it_is() -> None:
    assert shell_word(Path("runs/sokoban-0123456789")) == "runs/sokoban-0123456789"


def proposed(output: str) -> dict[str, str]:
    """The commands at the end of a run by what they are for."""
    return dict(re.findall(r"^(look at it|check it|compare): +(handoff .*)$", output, re.MULTILINE))


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize(
    ("arguments", "names"),
    [(RUN, ["look at it", "check it"]), (ROLLOUT, ["compare", "look at it", "check it"])],
    ids=["run", "rollout"],
)
def test_what_a_run_proposes_at_its_end_works_as_it_is_typed(
    arguments: tuple[str, ...], names: list[str], encoding: str, tmp_path: Path
) -> None:
    folder = tmp_path / "it's é; $x"
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    result = handoff(*arguments, "--out", folder, env=environment, encoding=encoding)
    assert result.returncode == 0, result.stderr
    assert "?" not in result.stdout
    commands = proposed(result.stdout)
    assert list(commands) == names
    for text in commands.values():
        name, *rest = typed(text)[1:]
        extra = {"report": ["--draws", "100"], "tax": ["--draws", "10"], "audit": ["--records-only"]}[name]
        again = invoke(name, *rest, *extra)
        assert again.exit_code == 0, again.output


def test_a_run_of_one_policy_proposes_no_comparison(tmp_path: Path) -> None:
    output = output_of("rollout", "sokoban", "-p", "a=random", "--tasks", "3", "-n", "2", "-q", "--out", tmp_path / "r")
    assert list(proposed(output)) == ["look at it", "check it"]


def test_a_policy_with_a_blank_in_its_name_is_bound_by_the_words_that_the_refusal_prints() -> None:
    result = invoke("run", "sokoban", "--cross", "my policy")
    told = str(result.exception)
    (word,) = shlex.split(told.rpartition("bind it by -p ")[2])
    assert word == "my policy=SPEC"


# Libraries that are missing -------------------------------------------------------------------------------------------


def test_a_missing_library_is_told_by_the_name_that_was_typed_with_a_command_that_works_from_here(
    tmp_path: Path,
) -> None:
    place = "." if Path.cwd() == ROOT else str(ROOT)
    result = handoff_without("torch", "run", "alfworld", "--cross", "sft", "--tasks", "6")
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("handoff: policy sft (builtin:sft) needs torch and transformers (")
    assert line.endswith(f"install it: pip install -e {shlex.quote(f'{place}[hf]')}")
    assert (ROOT / "pyproject.toml").is_file()


def test_in_the_source_tree_the_command_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert install_command("hf") == "pip install -e '.[hf]'"


@pytest.mark.parametrize("extra", ["hf", "vllm", "ray", "graph", "report"])
def test_an_installed_toolkit_names_the_libraries_of_the_extra_with_their_limits(
    extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tomllib

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    stated = [f'{requirement}; extra == "{name}"' for name, listed in extras.items() for requirement in listed]
    monkeypatch.setattr(metadata, "requires", lambda name: ["attrs>=23.2", *stated])
    assert shlex.split(install_command(extra, tmp_path)) == ["pip", "install", *extras[extra]]


def test_a_distribution_without_metadata_still_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", absent)
    assert "[hf]" in str(MissingExtra("torch", "hf", "gone").of("policy x"))
    assert install_command("hf", tmp_path) == "pip install 'checkpoint-handoff[hf]'"


# Names in texts -------------------------------------------------------------------------------------------------------


def texts() -> list[Path]:
    code = [path for folder in ("handoff", "protocols", "envs") for path in (ROOT / folder).rglob("*.py")]
    return [*code, ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]


def test_every_dotted_name_of_the_toolkit_in_a_text_exists() -> None:
    """In a docstring, a message or a document.  An entry point's group is no such name."""
    groups = {"handoff.commands", "handoff.environments", "handoff.policies", "handoff.protocols"}
    logs_and_placeholders = {"handoff.setting", "handoff.ray", "handoff.cli.NAME"}
    missing = []
    for path in texts():
        for name in re.findall(r"(?<![\w./-])handoff(?:\.[A-Za-z_]\w*)+", path.read_text("utf-8")):
            if name not in groups | logs_and_placeholders and not _resolves(name):
                missing.append(f"{path.relative_to(ROOT)}: {name}")
    assert missing == []


def _resolves(name: str) -> bool:
    head, *rest = name.split(".")
    value: Any = import_module(head)
    for position, part in enumerate(rest, start=1):
        if hasattr(value, part):
            value = getattr(value, part)
            continue
        if part in getattr(value, "__annotations__", ()) or part in getattr(value, "__slots__", ()):
            return True
        try:
            value = import_module(".".join([head, *rest[:position]]))
        except ImportError:
            return False
    return True


def test_every_command_of_the_toolkit_in_a_message_exists() -> None:
    known = {*COMMANDS, "games", "distance"}
    unknown = []
    for path in texts():
        for name in re.findall(r"`{1,2}handoff ([a-z]+)", path.read_text("utf-8")):
            if name not in known:
                unknown.append(f"{path.relative_to(ROOT)}: {name}")
    assert unknown == []


# Tables for spreadsheets ----------------------------------------------------------------------------------------------

FORMULAS = ["=1+1", "+1", "-2", "@SUM(A1)", "\t=1", "\r=1", "'=1", "''=1"]
HARMLESS = ["plain", "'quoted'", "a=b", "", "'", "1-2", "é", "two\nlines", "a\tb"]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_text_that_a_spreadsheet_would_compute_gets_an_apostrophe_which_reading_takes_away(text: str) -> None:
    written = csv_text(text)
    if "\r" not in text:
        assert written == f"'{text}"
        assert from_csv(written) == text
    assert written[0] not in "=+-@\t\r"


@pytest.mark.parametrize("text", HARMLESS)
def test_any_other_text_is_written_as_it_is(text: str) -> None:
    assert csv_text(text) == from_csv(text) == text


@pytest.mark.parametrize(
    ("text", "shown"), [("\x1b[2J", "\\x1b[2J"), ("a\rb", "a\\rb"), ("\x9b", "\\x9b"), ("\ud800", "\\ud800")]
)
def test_controls_are_written_as_escapes(text: str, shown: str) -> None:
    assert csv_text(text) == shown


def test_an_exported_table_holds_safe_texts_and_plain_numbers(tmp_path: Path) -> None:
    rows = [{"name": "=cmd()", "value": -1.5, "count": -3}, {"name": "\x1b[31mred", "value": None, "count": 0}]
    table = ExportTable({"name": str, "value": float, "count": int}, rows)
    export(tmp_path, {"table": table}, tmp_path / "out", ["csv", "jsonl"])
    with open(tmp_path / "out" / "table.csv", newline="") as file:
        assert list(csv.reader(file)) == [
            ["name", "value", "count"], ["'=cmd()", "-1.5", "-3"], ["\\x1b[31mred", "", "0"],
        ]  # fmt: skip
    exact = [json.loads(line) for line in (tmp_path / "out" / "table.jsonl").read_text().splitlines()]
    assert exact == rows


def test_an_export_of_names_that_look_like_formulas_is_read_back_as_the_run(tmp_path: Path) -> None:
    names = ("-rl", "=sft")
    table = report_runs.table(
        names, names, lambda w, t, s: (w + t + s) % 2 == 0, lambda w, r, t, s: r == 0, ["+a"] * 3 + ["@b"] * 3
    )
    run = report_runs.write(tmp_path / "run", table)
    output_of("export", run, "--out", tmp_path / "out", "--format", "csv")
    ours, theirs = (
        json.loads(output_of("estimate", path, "--draws", "200", "--budgets", "8", "--order", "-rl,=sft", "--json"))
        for path in (run, tmp_path / "out" / "endpoints.csv")
    )
    assert ours["estimates"] == theirs["estimates"]
