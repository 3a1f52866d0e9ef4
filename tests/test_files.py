"""Files of users: their text in any encoding, pipes, and what the system refuses."""

from __future__ import annotations

import codecs
import errno
import os
import resource
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from kit.command import invoke, output_of
from kit.refusals import refusal
from kit.runs import play

from handoff import files
from handoff.errors import DataError
from handoff.policies.language.prompts import Template
from handoff.policies.scripted import Actions

RUN = ("run", "sokoban", "-p", "a=noisy:0.5", "--cross", "a", "--tasks", "3", "--slots", "1")
COUNTS = "task,n,c\nfirst,2,1\nsecond,2,2\n"
TABLE = "task,type,seed,reacher,solver,arrived,won\n" + "".join(
    f"{task},easy,{seed},{reacher},{solver},1,{(task + seed) % 2}\n"
    for task in (1, 2, 3) for seed in (0, 1) for reacher in "ab" for solver in "ab"
)  # fmt: skip
JSONL = '{"task": "first", "n": 2, "c": 1}\n{"task": "second", "n": 2, "c": 2}\n'
STUDY = 'environment = "sokoban"\ncross = ["a"]\n[study]\ntasks = 3\n[policies]\na = "noisy:0.5"\n'


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return play(tmp_path_factory.mktemp("run") / "run", *RUN)


# The text in a file ---------------------------------------------------------------------------------------------------


def _actions(path: Path) -> object:
    policy = Actions(str(path))
    return policy._lines or policy._by_task


#: What is read from users as text: a form of it, and the part of the result that the text decides.
READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "table": (TABLE, lambda path: output_of("estimate", path, "--draws", 100, "--json")),
    "counts": (COUNTS, lambda path: output_of("tax", path, path, "--draws", 10, "--json").replace(path.name, "")),
    "lines": (JSONL, lambda path: output_of("tax", path, path, "--draws", 10, "--json").replace(path.name, "")),
    "actions": ("push left\npush up\n", _actions),
    "actions by task": ('{"first": ["push left", "push up"]}\n', _actions),
    "study": (STUDY, lambda path: output_of("run", "--config", path, "--dry-run", "--json")),
    "template": ("Do it.\n{{ observation }}\n", lambda path: Template.named(str(path)).source.splitlines()),
}


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("change", ["mark", "crlf", "mark and crlf", "cr"])
def test_a_byte_order_mark_and_other_line_endings_change_nothing_of_a_text(
    kind: str, change: str, tmp_path: Path
) -> None:
    if (change, kind) == ("cr", "lines"):
        pytest.skip("JSON lines end in a line feed by definition")
    text, read = READERS[kind]
    path = tmp_path / "file"
    path.write_bytes(text.encode())
    expected = read(path)
    ending = {"mark": "\n", "cr": "\r"}.get(change, "\r\n")
    mark = codecs.BOM_UTF8 if "mark" in change else b""
    path.write_bytes(mark + text.replace("\n", ending).encode())
    assert read(path) == expected


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize(
    ("encode", "says"),
    [
        (lambda text: codecs.BOM_UTF16_LE + text.encode("utf-16-le"), "is not UTF-8 text but UTF-16; save it as UTF-8"),
        (lambda text: codecs.BOM_UTF16_BE + text.encode("utf-16-be"), "is not UTF-8 text but UTF-16; save it as UTF-8"),
        (lambda text: codecs.BOM_UTF32_LE + text.encode("utf-32-le"), "is not UTF-8 text but UTF-32; save it as UTF-8"),
        (lambda text: text.encode("utf-16-le"), "line 1: a NUL character is no text; save it as UTF-8"),
        (lambda text: (text + "# \xe9\n").encode("latin-1"), "is not UTF-8 text (invalid continuation byte at byte"),
    ],
    ids=["utf-16-le", "utf-16-be", "utf-32", "utf-16 without a mark", "latin-1"],
)
def test_text_in_another_encoding_is_refused_with_what_to_do(
    kind: str, encode: Callable[[str], bytes], says: str, tmp_path: Path
) -> None:
    text, read = READERS[kind]
    path = tmp_path / "file"
    path.write_bytes(encode(text))
    with pytest.raises((DataError, AssertionError)) as caught:  # an AssertionError quotes the refusal of a command
        read(path)
    assert says in str(caught.value)


# Pipes ----------------------------------------------------------------------------------------------------------------

INPUTS = {
    "estimate": ("estimate", "PIPE"),
    "tax": ("tax", "PIPE", "PIPE"),
    "config": ("run", "--config", "PIPE"),
    "template": ("run", "sokoban", "--cross", "hf:x", "--template", "PIPE"),
    "actions": ("run", "sokoban", "--cross", "actions:PIPE"),
    "plan": ("plan", "--pilot", "PIPE"),
    "distance": ("distance", "game", "--actions", "PIPE"),
    "compare": ("doctor", "-p", "a=builtin:sft", "--compare", "PIPE"),
}


@pytest.mark.parametrize("command", INPUTS)
def test_a_pipe_that_nobody_writes_to_is_refused_and_not_waited_for(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "WRITER_WAIT", 0.05)
    os.mkfifo(tmp_path / "pipe")
    arguments = [word.replace("PIPE", str(tmp_path / "pipe")) for word in INPUTS[command]]
    assert "it is a pipe that nobody writes to" in refusal(capsys, *arguments)


def test_a_pipe_is_read_to_its_end_however_slowly_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    ready = threading.Event()

    def write() -> None:
        with open(path, "wb", buffering=0) as pipe:
            ready.wait()  # longer than a pipe without a writer may wait
            for letter in b"written slowly":
                pipe.write(bytes([letter]))

    writer = threading.Thread(target=write)
    writer.start()
    monkeypatch.setattr(files.time, "monotonic", iter([0.0, *[1e9] * 10_000]).__next__)
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # the writer opens now
    threading.Timer(0.1, ready.set).start()
    try:
        assert files.read_input(path) == b"written slowly"
    finally:
        os.close(handle)
        writer.join()


def test_a_pipe_of_the_shell_is_a_table_like_any_file(tmp_path: Path) -> None:
    (tmp_path / "counts.csv").write_text(COUNTS)
    command = f"{sys.executable} -m handoff tax <(cat counts.csv) counts.csv --draws 10"
    result = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr


# What the system refuses ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "way"),
    [
        (errno.ENOSPC, "free space there"),
        (errno.EDQUOT, "delete files of yours there"),
        (errno.EROFS, "choose a place on another file system"),
        (errno.EACCES, "choose a path that you may use"),
        (errno.EPERM, "choose a path that you may use"),
        (errno.EMFILE, "raise the limit on open files (ulimit -n)"),
        (errno.ENOMEM, "free memory"),
        (errno.EFBIG, "raise the limit on the size of a file (ulimit -f)"),
        (errno.ENOLCK, "keeps no locks: choose a place on a local disk"),
        (errno.EOPNOTSUPP, "choose a place on a local disk"),
        (errno.ENAMETOOLONG, "choose a shorter path"),
        (errno.ELOOP, "choose the path of the file itself"),
    ],
)
def test_each_refusal_of_the_system_has_the_way_out_that_fits_it(number: int, way: str) -> None:
    words = files.cause(OSError(number, os.strerror(number)))
    assert words.startswith(f"{os.strerror(number)}; ")
    assert way in words


def test_a_refusal_that_says_it_all_gets_no_way_out() -> None:
    assert files.cause(FileNotFoundError(errno.ENOENT, "No such file or directory")) == "No such file or directory"
    assert files.cause(OSError("what a library says")) == "what a library says"
    assert files.cause(OSError()) == "OSError"


def command(*arguments: object) -> str:
    return " ".join([sys.executable, "-m", "handoff", *map(str, arguments), "--workers", "0", "-q"])


def in_mount(options: str, script: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """Run a shell script in ``tmp_path`` with ``mnt``, a small file system that nobody else sees."""
    if shutil.which("unshare") is None:
        pytest.skip("this system has no unshare")
    mount = f"mkdir -p mnt && mount -t tmpfs -o {options} tmpfs mnt"
    flags = "-m" if os.geteuid() == 0 else "-rm"
    probe = subprocess.run(["unshare", flags, "sh", "-c", mount], cwd=tmp_path, capture_output=True, timeout=60)
    if probe.returncode:
        pytest.skip("this machine lets nobody mount a file system")
    script = f"{mount}\n{script}"
    return subprocess.run(
        ["unshare", flags, "sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )


def test_a_finished_run_on_a_read_only_file_system_typed_again_prints_its_results(run: Path, tmp_path: Path) -> None:
    script = f"cp -r {run} mnt/run && mount -o remount,ro mnt && {command(*RUN, '--out', 'mnt/run')}"
    result = in_mount("size=8m", script, tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    expected = output_of(*RUN, "--out", run, "--workers", "0", "-q").replace(str(run), "mnt/run")
    assert result.stdout == expected


@pytest.mark.parametrize(
    ("options", "script", "says"),
    [
        ("size=8m", "mount -o remount,ro mnt", "Read-only file system; choose a place on another file system"),
        ("size=4k", "true", "No space left on device; free space there"),
        ("size=8m", "ulimit -f 1", "File too large; raise the limit on the size of a file (ulimit -f)"),
    ],
    ids=["read-only", "full", "limited"],
)
def test_a_run_folder_that_cannot_be_written_is_told_with_its_cause(
    options: str, script: str, says: str, tmp_path: Path
) -> None:
    result = in_mount(options, f"{script}; {command(*RUN, '--out', 'mnt/run')}", tmp_path)
    assert result.returncode == 2
    assert says in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_path_that_is_too_long_is_told_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = refusal(capsys, *RUN, "--workers", "0", "-q", "--out", str(tmp_path / ("x" * 300)))
    assert "File name too long; choose a shorter path" in told


def test_links_in_a_circle_are_told_as_such(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "study.toml").symlink_to("study.toml")
    told = refusal(capsys, "run", "--config", str(tmp_path / "study.toml"))
    assert "Too many levels of symbolic links; links lead in a circle there" in told


def test_a_library_that_may_not_run_where_it_lies_is_not_an_output_that_cannot_be_written(tmp_path: Path) -> None:
    """The planner's library is copied to the folder of temporary files and loaded from there."""
    arguments = ("run", "alfworld", "--cross", "random", "--tasks", "6", "--slots", "1", "--engine", "native")
    script = f"TMPDIR=$PWD/mnt {command(*arguments, '--out', 'run')}"
    result = in_mount("size=200m,noexec", script, tmp_path)
    assert result.returncode == 3, "the environment's failure"
    assert "failed to map segment from shared object" in result.stderr
    assert "; no program may run from its folder (noexec); set TMPDIR" in result.stderr
    assert "output" not in result.stderr


def test_too_many_open_files_are_told_as_such(tmp_path: Path) -> None:
    """A limit below what the command needs is met at any moment; each time the cause is named."""
    told = set()
    for limit in (5, 8):
        result = subprocess.run(
            [sys.executable, "-m", "handoff", *RUN, "--workers", "0", "-q", "--out", str(tmp_path / f"{limit}")],
            capture_output=True,
            text=True,
            timeout=60,
            preexec_fn=lambda limit=limit: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)),
        )
        if "handoff: " in result.stderr:  # below, Python itself cannot start
            told.add(result.stderr)
            assert "the output" not in result.stderr
    assert any("Too many open files; raise the limit on open files (ulimit -n)" in line for line in told)


@pytest.mark.parametrize("name", ["report", "estimate", "export", "audit"])
def test_records_that_are_gone_beside_a_seal_are_damage_to_every_reader(name: str, run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    (folder / "records.jsonl").unlink()
    result = invoke(name, folder)
    told = result.output + str(result.exception or "")
    assert "records.jsonl is missing, though the run was sealed complete" in " ".join(told.split())
    assert result.exit_code == 1
