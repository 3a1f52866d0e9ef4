"""Signals on the command line: one sentence, exit code 3, no process left, and nothing of a run lost."""

from __future__ import annotations

import os
import random
import shlex
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from kit.command import hear_the_terminal, start
from kit.runs import record_bytes

RUN = shlex.split("run sokoban -p rl=noisy:0.3 --cross rl --tasks 12 --slots 16 -q --workers 2")


def started(*arguments: str) -> subprocess.Popen[str]:
    """The command in a process group of its own, with the signals of a shell in the foreground."""

    def own() -> None:
        os.setsid()
        hear_the_terminal()

    return start(*arguments, preexec_fn=own)


def importing(child: subprocess.Popen[str]) -> bool:
    """Whether the command line stands: its first module in C that Python did not come with is mapped."""
    return child.poll() is not None or "_multiarray_umath" in Path(f"/proc/{child.pid}/maps").read_text()


def working(folder: Path) -> bool:
    path = folder / "records.jsonl"
    return path.exists() and path.stat().st_size > 0


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 300
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.002)


def stopped(child: subprocess.Popen[str], number: signal.Signals, group: bool) -> str:
    """Send the signal, to the command alone or to its whole group; the last line of its errors."""
    processes = psutil.Process(child.pid).children(recursive=True)
    if group:
        os.killpg(child.pid, number)
    else:
        child.send_signal(number)
    _, errors = child.communicate(timeout=300)
    assert child.returncode == 3, errors
    assert "Traceback" not in errors
    assert "resource_tracker" not in errors
    assert not psutil.wait_procs(processes, timeout=30)[1], "a process was left behind"
    (last,) = errors.strip().splitlines()
    return last


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    assert started(*RUN, "--out", str(folder)).wait(timeout=900) == 0
    return record_bytes(folder)


@pytest.mark.parametrize(
    ("number", "group"), [(signal.SIGINT, True), (signal.SIGTERM, False), (signal.SIGTERM, True), (signal.SIGHUP, True)]
)
def test_a_signal_in_the_middle_of_a_run_is_one_sentence_and_the_run_can_be_resumed(
    number: signal.Signals, group: bool, tmp_path: Path, undisturbed: bytes
) -> None:
    folder = tmp_path / "run"
    child = started(*RUN, "--out", str(folder))
    until(lambda: working(folder) or child.poll() is not None)
    last = stopped(child, number, group)
    assert "384 records are owed" in last
    assert "type the same command to go on" in last
    if not group or number is not signal.SIGTERM:  # which may end a worker before its parent
        assert ("by the user" if number is signal.SIGINT else f"by {number.name}") in last
    assert started(*RUN, "--out", str(folder)).wait(timeout=900) == 0
    assert record_bytes(folder) == undisturbed


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_modules_are_imported_is_one_sentence(number: signal.Signals, tmp_path: Path) -> None:
    child = started(*RUN, "--out", str(tmp_path / "run"))
    until(lambda: importing(child))
    assert stopped(child, number, group=True).startswith("handoff: stopped by ")


@pytest.mark.slow
def test_signals_at_any_moment_of_the_start_leave_a_run_that_ends_in_the_same_bytes(
    tmp_path: Path, undisturbed: bytes
) -> None:
    generator = random.Random(7)
    folder = tmp_path / "run"
    for _ in range(8):
        child = started(*RUN, "--out", str(folder))
        until(lambda child=child: importing(child))
        time.sleep(generator.random() * 3)
        if child.poll() is not None:
            assert child.returncode == 0, child.stderr
            continue
        stopped(child, signal.SIGINT, group=True)
    assert started(*RUN, "--out", str(folder)).wait(timeout=900) == 0
    assert record_bytes(folder) == undisturbed


def test_ctrl_c_while_games_are_made_ends_its_workers_quietly(tmp_path: Path) -> None:
    child = started("games", "generate", "-n", "200", "--workers", "2", "--out", str(tmp_path / "games"), "-q")
    until(lambda: child.poll() is not None or any((tmp_path / "games").rglob("game.tw-pddl")))
    assert stopped(child, signal.SIGINT, group=True) == "handoff: stopped by the user"


def test_a_command_that_is_told_to_ignore_a_signal_ignores_it(tmp_path: Path, undisturbed: bytes) -> None:
    folder = tmp_path / "run"
    as_nohup_does = {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)}
    child = start(*RUN, "--out", folder, stdout=None, stderr=None, **as_nohup_does)
    until(lambda: working(folder) or child.poll() is not None)
    child.send_signal(signal.SIGHUP)
    assert child.wait(timeout=900) == 0
    assert record_bytes(folder) == undisturbed
