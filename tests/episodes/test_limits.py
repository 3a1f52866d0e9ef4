"""Where the system starts no thread and no process, a run ends in one sentence and is never waited for."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from handoff.children import Children, require_threads
from handoff.errors import Interrupted

#: Runs the command in a process that may map so many MiB more than it has once everything is imported.  A thread needs
#: the 8 MiB of its stack, which are set here.
SCRIPT = """
import resource, sys

if __name__ == "__main__":
    import asyncio, concurrent.futures.process, multiprocessing.context
    import handoff.cli.study_command, handoff.envs.sokoban.adapter, handoff.episodes.processes, handoff.progress
    import handoff.protocols.frontier, handoff.report.study
    from handoff.cli import main

    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    limit = used + int(float(sys.argv[1]) * 2**20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    main(sys.argv[2:])
"""
RUN = ("run", "sokoban", "--cross", "a", "-p", "a=random", "--tasks", "3", "--slots", "1", "-q")


def limited(script: Path, more: float, *arguments: object) -> subprocess.CompletedProcess[str]:
    def stack() -> None:
        resource.setrlimit(resource.RLIMIT_STACK, (8 * 2**20, resource.getrlimit(resource.RLIMIT_STACK)[1]))

    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(more), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, preexec_fn=stack)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads how much memory is mapped from /proc")
@pytest.mark.parametrize(("workers", "more"), [(0, 5), (2, 20)])
def test_a_run_that_may_start_no_thread_ends_and_goes_on_with_more_room(
    workers: int, more: float, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    done = limited(tmp_path / "script.py", more, *RUN, "--workers", workers, "--out", out)
    assert done.returncode == 3, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("handoff: this process cannot start a thread (can't start new thread); raise the limits on ")
    if workers:
        assert "; 6 of 6 records are owed. What is finished is kept in " in line
        done = limited(tmp_path / "script.py", 4096, *RUN, "--workers", workers, "--out", out)
        assert done.returncode == 0, done.stderr
        assert json.loads((out / "seal.json").read_bytes())["records"] == 6


def test_a_process_that_cannot_be_started_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    executor = Children(1)

    def refuse(*_: Any, **__: Any) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("multiprocessing.util.spawnv_passfds", refuse)
    monkeypatch.setattr("multiprocessing.popen_spawn_posix.util.spawnv_passfds", refuse)
    with pytest.raises(Interrupted, match=r"cannot start another one .*unavailable.*; raise the limits on "):
        executor.submit(print)
    executor.end()


def test_threads_that_can_be_started_are_gone_again() -> None:
    import threading

    before = threading.active_count()
    require_threads(50)
    assert threading.active_count() == before
