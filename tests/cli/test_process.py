"""The command as a process: its working folder, its threads, and packages that end it."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from kit.command import handoff
from kit.installed import ROOT


def package(folder: Path, code: str) -> dict[str, str]:
    """Install a package with the command ``odd``, whose module is ``code``; variables under which it is there."""
    information = folder / "odd-1.0.dist-info"
    information.mkdir(parents=True)
    (folder / "odd.py").write_text(code)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[handoff.commands]\nodd = odd:odd\n")
    return {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "COLUMNS": "200"}


THREAD = """
import threading, time, click
@click.command()
def odd():
    for _ in range(200):
        threading.Thread(target=time.sleep, args=(300,)).start()
    click.echo("done")
"""
HOSTILE = """
class Odd(Exception):
    def __str__(self):
        raise SystemExit(0)
raise Odd
"""


def test_a_thread_that_never_ends_does_not_keep_the_command(tmp_path: Path) -> None:
    ended = handoff("odd", env=package(tmp_path, THREAD), timeout=60)
    assert (ended.returncode, ended.stdout) == (0, "done\n")
    assert ended.stderr == (
        "handoff: the work is done; the thread 'Thread-1 (sleep)' of a plug-in (and 199 more) still runs and is ended\n"
    )


@pytest.mark.parametrize("code", ["raise SystemExit(0)", "raise KeyboardInterrupt", "raise BaseException", HOSTILE])
def test_the_help_names_a_command_that_cannot_be_imported_and_shows_the_rest(code: str, tmp_path: Path) -> None:
    ended = handoff("--help", env=package(tmp_path, code), timeout=60)
    assert ended.returncode == 0
    assert "the command 'odd' cannot be loaded" in ended.stdout
    assert "Check everything about a run again." in ended.stdout


@pytest.mark.parametrize("command", ["check sokoban", "envs"])
def test_a_working_folder_that_was_removed_is_named_as_the_cause(command: str, tmp_path: Path) -> None:
    script = 'cd "$1" && rmdir "$1" && shift && exec "$@"'
    folder = tmp_path / "gone"
    folder.mkdir()
    arguments = ["sh", "-c", script, "sh", str(folder), sys.executable, "-m", "handoff", *command.split()]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(arguments, capture_output=True, text=True, timeout=60, env=environment)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.splitlines()[-1] == "handoff: the working folder was removed; change to another one"


@pytest.mark.parametrize(("given", "threads"), [(None, "1"), ("3", "3")])
def test_the_linear_algebra_has_one_thread_unless_the_user_says_another_number(
    given: str | None, threads: str, tmp_path: Path
) -> None:
    code = 'import os, click\n@click.command()\ndef odd(): click.echo(os.environ["OPENBLAS_NUM_THREADS"])\n'
    environment = package(tmp_path, code)
    environment.pop("OPENBLAS_NUM_THREADS", None)
    if given is not None:
        environment["OPENBLAS_NUM_THREADS"] = given
    assert handoff("odd", env=environment, timeout=60).stdout == f"{threads}\n"


@pytest.mark.parametrize(("arguments", "code"), [(("check", "sokoban"), 2), (("--help",), 0)])
def test_memory_in_which_the_libraries_would_try_for_ever_is_named_before_they_are_loaded(
    arguments: tuple[str, ...], code: int, tmp_path: Path
) -> None:
    """At 160 to 180 MB the import of scipy never ends, and no signal ends it."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (170_000 * 1024,) * 2)

    ended = handoff(*arguments, cwd=tmp_path, timeout=60, preexec_fn=limit)
    sentence = "handoff: too little memory may be used: the libraries need 160 MiB more; raise the limit (ulimit -v)\n"
    assert (ended.returncode, ended.stderr) == (code, sentence if code else "")


@pytest.mark.parametrize("words", ["x.so: failed to map segment from shared object", "x.so: cannot allocate memory"])
def test_a_library_that_finds_no_room_is_one_sentence(words: str, tmp_path: Path) -> None:
    script = (
        "import sys, builtins; load = builtins.__import__\n"
        "def without(name, *rest, **more):\n"
        f"    if name == 'scipy': raise ImportError({words!r})\n"
        "    return load(name, *rest, **more)\n"
        "builtins.__import__ = without\n"
        "from handoff.cli import main; sys.argv[0] = 'handoff'; main(['estimate', 'none.csv'])\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"handoff: a library cannot be loaded ({words}): raise the limit on memory")
    assert len(ended.stderr.splitlines()) == 1
