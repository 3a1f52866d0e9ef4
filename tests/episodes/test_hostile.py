"""Whatever an adapter or a plug-in's policy does ends in one sentence that names it, with what is owed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit import hostile
from kit.command import handoff
from kit.installed import ROOT
from kit.runs import records

from handoff import run
from handoff.cli import main
from handoff.episodes import processes
from handoff.errors import EnvironmentFault
from handoff.guard import watch
from handoff.guard.watch import TimedOut, alarm

RUN = ("run", "--cross", "a", "--slots", "2", "--tasks", "3", "-q", "-p")
EXPERT, RANDOM = "a=expert", "a=random"


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    hostile.install(folder)
    return folder


@pytest.fixture(autouse=True)
def adapters(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All hostile adapters and policies are installed, and none has played a trick yet."""
    monkeypatch.syspath_prepend(site)
    monkeypatch.setattr(hostile.Hostile, "mended", False)
    monkeypatch.setattr(hostile.Hostile, "calls", 0)
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    yield
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers


def ended(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit code and both outputs of a command in this process."""
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    shown = capsys.readouterr()
    code = caught.value.code
    assert isinstance(code, int)
    return code, shown.out, shown.err


def outside(site: Path) -> dict[str, str]:
    """Variables under which a new process has the hostile adapters and policies."""
    places = (site, Path(hostile.__file__).parents[1], ROOT)
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, places))}


def sentence(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 3) -> str:
    """The one line on standard error, which nothing can steer a terminal with, of a command that ends in ``code``."""
    ending, out, err = ended(capsys, *arguments)
    assert (ending, out) == (code, ""), err
    (line,) = err.splitlines()
    assert line.startswith("handoff: ")
    assert line.isprintable(), ascii(line)
    return line


def require_resumed(capsys: pytest.CaptureFixture[str], site: Path, folder: Path, *arguments: object) -> None:
    """The mended adapter ends the run that the hostile one began, with the records of one that was never hostile."""
    before = [(folder / name).read_bytes() for name in ("records.jsonl", "journal.jsonl")]
    assert any(before), "nothing was finished"
    hostile.Hostile.mended = True
    code, _, err = ended(capsys, *arguments)
    assert code == 0, err
    assert (folder / "records.jsonl").read_bytes().startswith(before[0])
    calm = site / "calm"
    if not calm.exists():
        assert ended(capsys, arguments[0], "calm", *arguments[2:-1], calm)[0] == 0
    assert records(folder) == records(calm)


@pytest.mark.parametrize("name", hostile.IN_RUN)
def test_what_a_method_does_in_a_run_is_one_sentence_and_the_mended_adapter_goes_on(
    name: str, site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    method, _, words = hostile.IN_RUN[name]
    more = ("--distances", "3") if method == "distance" else ()
    arguments = (*RUN[:1], name, *RUN[1:], EXPERT, *more, "--workers", "0", "--out", tmp_path / "run")
    line = sentence(capsys, *arguments)
    assert line.startswith(f"handoff: environment {name!r}, task start-")
    assert f": {method}(" in line or method == "outcomes"
    assert words in line
    assert " of 12 records are owed. What is finished is kept in " in line
    if method in ("step", "plan"):
        require_resumed(capsys, site, tmp_path / "run", *arguments)


@pytest.mark.parametrize("name", hostile.BEFORE)
def test_what_a_method_does_before_a_run_is_one_sentence_and_nothing_is_written(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = sentence(capsys, "run", name, *RUN[1:], RANDOM, "--workers", "0", "--out", tmp_path / "run")
    assert line.startswith(f"handoff: environment {name!r}: ")
    assert hostile.BEFORE[name][2] in line
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("misnamed", "its class attribute `name` is 'somebody else'"),
        ("no-splits", "its class attribute splits is a set, not a tuple"),
    ],
)
def test_a_class_attribute_of_a_wrong_type_is_one_sentence(
    name: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = sentence(capsys, "run", name, *RUN[1:], RANDOM, "--workers", "0", "--out", tmp_path / "run")
    assert line.startswith(f"handoff: environment {name!r}: {words}")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("step-exits", "task start-2: step() raised SystemExit: 0"),
        ("interrupts", "step() raised KeyboardInterrupt"),
        ("step-subclasses-text", "observation is a kit.hostile.Text, not a str"),
        ("dies", "environment worker 0 ended unexpectedly (killed, or out of memory); environment 'dies', task start-"),
    ],
)
def test_a_worker_process_ends_in_the_same_sentence(
    name: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = sentence(capsys, "run", name, *RUN[1:], EXPERT, "--workers", "1", "--out", tmp_path / "run")
    assert words.replace("start-2", "start-") in line.replace("start-0", "start-").replace("start-1", "start-").replace(
        "start-2", "start-"
    )
    assert " of 12 records are owed" in line


@pytest.mark.parametrize(
    ("name", "workers"), [("hangs", 0), ("hangs", 1), ("stubborn", 0), ("stubborn", 1), ("deaf", 0)]
)
def test_a_call_that_takes_longer_than_it_may_is_the_environments_failure(
    name: str, workers: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = (
        "run",
        name,
        *RUN[1:],
        EXPERT,
        "--step-timeout",
        "0.5",
        "--workers",
        workers,
        "--out",
        tmp_path / "run",
    )
    line = sentence(capsys, *arguments)
    assert f"environment {name!r}, task start-" in line
    assert ": step() has not returned for 0.5 s (--step-timeout); " in line
    assert " of 12 records are owed" in line
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_bytes())
    assert manifest["host"]["step_timeout"] == 0.5


def test_a_listing_that_never_ends_is_ended_before_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = sentence(capsys, "run", "lists", *RUN[1:], RANDOM, "--step-timeout", "0.3", "--out", tmp_path / "run")
    assert line == "handoff: environment 'lists': tasks('default') has not returned for 0.3 s (--step-timeout)"
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("workers", [0, 1])
def test_a_call_that_is_waited_for_is_told_of_in_a_quiet_run_too(
    workers: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "PATIENCE", 0.2)
    arguments = ("run", "hangs", *RUN[1:], EXPERT, "--step-timeout", "1.5", "--workers", workers)
    code, _, err = ended(capsys, *arguments, "--out", tmp_path / "run")
    first, last = err.splitlines()
    assert code == 3
    assert first.startswith("handoff: environment 'hangs', task start-")
    assert first.endswith(": step() has not returned for 0 s")
    assert ": step() has not returned for 1.5 s (--step-timeout)" in last


def test_without_the_option_the_manifest_says_nothing_of_a_timeout(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(capsys, "run", "calm", *RUN[1:], RANDOM, "--workers", "0", "--out", tmp_path / "run")[0] == 0
    assert "step_timeout" not in (tmp_path / "run" / "manifest.json").read_text()


def test_a_failure_in_close_is_a_remark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*RUN[1:], RANDOM, "--workers", "0", "--out", tmp_path / "run"]
    arguments.remove("-q")
    code, _, err = ended(capsys, "run", "closes-badly", *arguments)
    assert code == 0
    assert "close() raised RuntimeError: stuck door" in " ".join(err.split())
    code, out, _ = ended(capsys, "audit", tmp_path / "run", "--workers", "0", "--json", "-q")
    assert code == 0
    (check,) = [check for check in json.loads(out)["checks"] if check["name"] == "environment"]
    assert any("close() raised RuntimeError: stuck door" in note for note in check["notes"])


@pytest.mark.parametrize("workers", [0, 1])
def test_what_an_adapter_prints_does_not_reach_standard_output(
    workers: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = ("run", "chatty", *RUN[1:], EXPERT, "--json", "--workers", workers, "--out", tmp_path / "run")
    code, out, err = ended(capfd, *arguments)
    assert code == 0
    assert json.loads(out)["folder"] == str(tmp_path / "run")
    assert "tasks!" in err
    assert "step!" in err


@pytest.mark.parametrize("workers", [0, 1])
def test_records_that_an_adapter_changes_afterwards_stay_as_they_were_given(
    workers: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("calm", "keeper"):
        arguments = ("run", name, *RUN[1:], EXPERT, "--workers", workers, "--out", tmp_path / name)
        assert ended(capsys, *arguments)[0] == 0
    changed = [folder.joinpath("records.jsonl").read_text().count("changed") for folder in tmp_path.iterdir()]
    assert changed == [0, 0]
    assert ended(capsys, "audit", tmp_path / "keeper", "--workers", "0", "-q")[0] == 0


def test_a_policy_that_closes_the_streams_ends_with_a_sentence_or_a_run_that_passes(site: Path, tmp_path: Path) -> None:
    """In a process with streams to close."""
    environment = outside(site)
    arguments = ("run", "calm", *RUN[1:], "a=bad-shuts", "--workers", "0", "--out", tmp_path / "run")
    done = handoff(*arguments, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert handoff("audit", tmp_path / "run", "--workers", "0", "-q", env=environment, timeout=120).returncode == 0


@pytest.mark.parametrize(
    ("name", "policy", "words"),
    [
        ("calm", "bad-shuts-and-fails", "policy 'a' (kit.hostile.Bad_shuts_and_fails): decide() raised ValueError: "),
        ("shuts-and-fails", "expert", "environment 'shuts-and-fails', task start-"),
    ],
)
def test_a_failure_is_told_by_a_command_whose_streams_a_plug_in_closed(
    name: str, policy: str, words: str, site: Path, tmp_path: Path
) -> None:
    arguments = ("run", name, *RUN[1:], f"a={policy}", "--workers", "0", "--out", tmp_path / "run")
    done = handoff(*arguments, env=outside(site), timeout=120)
    assert (done.returncode, done.stdout) == (3, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"handoff: {words}")
    assert "raised ValueError: boom" in line
    assert " of 12 records are owed" in line


def test_the_threads_of_an_adapter_are_named_once_and_do_not_keep_the_command(site: Path, tmp_path: Path) -> None:
    arguments = ("run", "spins", *RUN[1:], EXPERT, "--workers", "0", "--out", tmp_path / "run")
    done = handoff(*arguments, env=outside(site), timeout=120)
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith("handoff: the work is done; the thread 'Thread-")
    assert line.endswith(f" of a plug-in ({hostile.__file__}) (and 2 more) still runs and is ended")


def test_a_worker_that_a_thread_of_its_adapter_keeps_is_killed_with_a_remark(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "MOST_WAIT", 0.5)
    before = set(multiprocessing.active_children())
    arguments = [*RUN[1:], EXPERT, "--workers", "2", "--out", tmp_path / "run"]
    arguments.remove("-q")
    code, _, err = ended(capfd, "run", "spins", *arguments)
    assert code == 0
    words = " ".join(err.split())
    assert words.count("environment 'spins' left a thread that does not end: its worker processes (") == 1
    assert set(multiprocessing.active_children()) == before


def test_a_run_whose_folder_an_adapter_removes_says_that_its_records_are_gone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    monkeypatch.setattr(hostile.Removes, "folder", folder)
    arguments = ("run", "removes", *RUN[1:], EXPERT, "--workers", "0", "--out", folder)
    assert sentence(capsys, *arguments, code=2) == (
        f"handoff: cannot write run folder {folder}: somebody removed it, and all its records are gone. "
        "Type the same command again to start anew"
    )
    monkeypatch.setattr(hostile.Removes, "folder", None)
    assert ended(capsys, *arguments)[0] == 0


def test_a_step_that_swallows_the_time_out_is_late_where_an_event_loop_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hostile.Deaf, "seconds", 0.4)

    async def notebook() -> None:
        run("deaf", policies={"a": "expert"}, cross=["a"], tasks=3, workers=0, step_timeout=0.1, out=tmp_path / "run")

    with pytest.raises(EnvironmentFault, match=r"step\(\) has not returned for 0.1 s \(--step-timeout\)"):
        asyncio.run(asyncio.wait_for(notebook(), timeout=60))


@pytest.mark.parametrize("data", ["x" * 5000, "a b/../c", "gs://bucket/games"])
def test_a_text_that_is_no_path_is_kept_as_it_was_given(
    data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = (*RUN[1:], EXPERT, "--env-option", f"data={data}", "--workers", "0", "--out", tmp_path / "run")
    code, _, err = ended(capsys, "run", "named", *arguments)
    assert code == 0, err
    assert json.loads((tmp_path / "run" / "manifest.json").read_bytes())["host"]["options"]["data"] == data


def test_an_adapter_that_changes_its_host_moves_no_file_and_no_mask(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "moves.txt").write_text("right\nright\nright\n")
    monkeypatch.setattr(hostile.Mover, "elsewhere", str(elsewhere))
    monkeypatch.chdir(tmp_path)
    limit, argv = sys.getrecursionlimit(), sys.argv
    try:
        policy = "a=actions:moves.txt"
        code, _, err = ended(capsys, "run", "mover", *RUN[1:], policy, "--workers", "0", "--out", "run")
        assert code == 0, err
        assert ended(capsys, "audit", "run", "--workers", "0", "-q")[0] == 0
        assert ended(capsys, "run", "mover", *RUN[1:], policy, "--workers", "0")[0] == 0
    finally:
        sys.argv = argv
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "moves.txt", "run", "runs"]
    assert list(elsewhere.iterdir()) == []
    mask = os.umask(0o022)
    os.umask(mask)
    assert (tmp_path / "run" / "records.jsonl").stat().st_mode & 0o777 == 0o666 & ~mask
    assert (sys.getrecursionlimit(), os.getcwd()) == (limit, str(tmp_path))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("raises", "decide() raised ValueError: \\x1b[31mred\\x1b[0m"),
        ("exits", "decide() raised SystemExit: 0"),
        ("blocks", "decide() raised SystemExit: 0"),
        ("cancels", "decide() raised CancelledError"),
        ("nothing", "decide() returned None, not a list of decisions"),
        ("generator", "decide() returned a generator, not a list of decisions"),
        ("mute", "decide() raised Mute"),
        ("clears", "decide() gave 0 decisions for 4 requests"),
        ("few", "decide() gave 0 decisions for 4 requests"),
        ("texts", "it is 'right', not a Decision"),
        ("status", "its status is 'splendid', not one of parsed, "),
        ("seed", "its seed is 1, not the request's "),
        ("digest", "its input_digest is not that of the request"),
        ("action", "its status is parsed, with the action 'fly'"),
        ("number", "prompt_tokens is 1.5, not an int"),
        ("flags", "flags is a list, not a tuple"),
        ("activates", "activate() raised SystemExit: 0"),
    ],
)
def test_what_a_plug_ins_policy_does_in_a_run_is_one_sentence(
    name: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--workers", "0", "--out", tmp_path / "run")
    line = sentence(capsys, "run", "calm", *RUN[1:], f"a=bad-{name}", *arguments)
    assert line.startswith(f"handoff: policy 'a' (kit.hostile.Bad_{name}): ")
    assert words in line
    assert " of 12 records are owed. What is finished is kept in " in line


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("leftover", "SystemExit: 0"),
        ("cancels-all", "CancelledError"),
        ("stops", "LoopStopped: it stopped the event loop"),
    ],
)
def test_what_a_plug_ins_policy_does_outside_of_its_calls_is_one_sentence(
    name: str, words: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--workers", "0", "--out", tmp_path / "run")
    code, out, err = ended(capfd, "run", "calm", *RUN[1:], f"a=bad-{name}", *arguments)
    line = err.splitlines()[-1]
    assert (code, out) == (3, "")
    assert line.startswith(f"handoff: code of a plug-in ended it ({words}); ")
    assert " of 12 records are owed. What is finished is kept in " in line


def test_a_policy_that_changes_its_host_leaves_output_and_files_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--json", "--workers", "0", "--out", tmp_path / "run")
    code, out, err = ended(capsys, "run", "calm", *RUN[1:], "a=bad-moves", *arguments)
    assert code == 0
    assert json.loads(out)["folder"] == str(tmp_path / "run")
    assert "HELLO" in err
    assert all(path.stat().st_mode & 0o400 for path in (tmp_path / "run").iterdir())


def test_a_request_that_ends_the_program_when_it_is_read_is_a_wrong_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = sentence(capsys, "run", "asks-mutely", *RUN[1:], EXPERT, "--out", tmp_path / "run", code=2)
    assert line == "handoff: MuteRequest"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("introduces", "introduce() raised SystemExit: 0"),
        ("describes", "describe() raised SystemExit: 0"),
        ("described", "describe() returned what it must not: it is not JSON-safe (ValueError"),
        ("capacity", "capacity is 'many', not an int"),
    ],
)
def test_what_a_plug_ins_policy_does_before_a_run_is_one_sentence_and_nothing_is_written(
    name: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = sentence(
        capsys, "run", "calm", *RUN[1:], f"a=bad-{name}", "--workers", "0", "--out", tmp_path / "run"
    )  # fmt: skip
    assert line.startswith(f"handoff: policy 'a' (kit.hostile.Bad_{name}): {words}")
    assert not (tmp_path / "run").exists()


def test_a_policy_that_fails_after_its_last_decision_loses_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [*RUN[1:], "a=bad-closes", "--workers", "0", "--out", tmp_path / "run"]
    arguments.remove("-q")
    code, _, err = ended(capsys, "run", "calm", *arguments)
    assert code == 0
    assert "close() raised RuntimeError: open" in " ".join(err.split())
    line = sentence(
        capsys, "rollout", "calm", "-p", "a=bad-releases", "-n", "1", "-q", "--workers", "0", "--out", tmp_path / "b"
    )
    assert "release() raised RuntimeError: held" in line
    assert "; 0 of 3 records are owed" in line


@pytest.mark.parametrize("name", ["step-exits", "step-paints", "tasks-exit", "constructor-exits", "plan-is-a-set"])
def test_check_reports_what_a_hostile_adapter_does(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = ended(capsys, "check", name)
    assert (code, err) == (1, "")
    assert "\x1b" not in out
    assert "failed" in out


def test_check_ends_a_call_that_never_returns(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ended(capsys, "check", "lists", "--step-timeout", "0.2", "--json")
    assert code == 1
    details = [result["detail"] for result in json.loads(out)["results"] if result["status"] == "failed"]
    assert any("a call had not returned after 0.2 s (--step-timeout)" in detail for detail in details)


def test_doctor_says_what_a_plug_ins_policy_does(capsys: pytest.CaptureFixture[str]) -> None:
    line = sentence(capsys, "doctor", "-p", "a=bad-exits")
    assert line.startswith("handoff: policy 'a' (kit.hostile.Bad_exits): decide() raised SystemExit: 0")


@pytest.mark.parametrize(
    ("name", "code", "command"),
    [("step-raises", 3, "run"), ("reset-refuses", 1, "run"), ("reset-refuses", 1, "rollout")],
)
def test_an_audit_ends_where_the_adapter_fails_and_fails_where_a_task_is_refused(
    name: str, code: int, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile.Hostile.mended = True
    size = RUN[1:] if command == "run" else ("-n", "2", "--tasks", "3", "-q", "-p")
    arguments = (command, name, *size, EXPERT, "--workers", "0", "--out", tmp_path / "run")
    assert ended(capsys, *arguments)[0] == 0
    hostile.Hostile.mended = False
    audit = ("audit", tmp_path / "run", "--workers", "0", "-q")
    if code == 3:
        assert f"environment {name!r}, task start-" in sentence(capsys, *audit)
        return
    ending, out, _ = ended(capsys, *audit, "--json")
    assert ending == 1
    (check,) = [check for check in json.loads(out)["checks"] if check["name"] == "replay"]
    assert all("reset() refused the task: the game is gone" in failure for failure in check["failures"])
    assert check["failures"]


def test_an_audit_whose_adapter_ends_the_program_when_its_error_is_read_does_not_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile.Hostile.mended = True
    assert ended(capsys, "run", "step-is-mute", *RUN[1:], EXPERT, "--workers", "0", "--out", tmp_path / "run")[0] == 0
    hostile.Hostile.mended = False
    assert "step() raised Mute" in sentence(capsys, "audit", tmp_path / "run", "--workers", "0", "-q")


@pytest.mark.parametrize("name", ["mute", "mute-fault"])
def test_a_doctor_whose_policy_ends_the_program_when_its_error_is_read_does_not_pass(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sentence(capsys, "doctor", "-p", f"a=bad-{name}", code=2 if name == "mute-fault" else 3)


def swallows() -> None:
    """A call whose code swallows the time-out and returns later."""
    with contextlib.suppress(BaseException):
        time.sleep(0.3)


@pytest.mark.parametrize("loop", [False, True], ids=["main thread", "below an event loop"])
def test_a_call_that_swallows_the_time_out_is_still_late(loop: bool) -> None:
    def late() -> None:
        with pytest.raises(TimedOut), alarm(0.1):
            swallows()

    async def below() -> None:
        await asyncio.wait_for(asyncio.to_thread(late), timeout=60)

    if loop:
        asyncio.run(below())
    else:
        late()
