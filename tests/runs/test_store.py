"""The run folder: chain, journal, resume, damage."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
from itertools import permutations
from pathlib import Path

import pytest

from handoff import files
from handoff.canonical import canonical, parse
from handoff.errors import StoreError
from handoff.runs.chain import Damage, Lines
from handoff.runs.folder import read_manifest, read_records, read_seal
from handoff.runs.store import Store

PLAN = [("trajectory", "t", str(slot), "rl") for slot in range(4)]
IDENTITY = {"protocol": {"name": "frontier", "depth": 2}, "seeds": {"run": 0}}


def open_store(folder: Path, identity: dict = IDENTITY) -> Store:
    return Store(folder, identity, PLAN, {})


def fill(folder: Path, order: tuple[int, ...] = (0, 1, 2, 3)) -> None:
    with open_store(folder) as store:
        for index in order:
            store.finish(PLAN[index], {"n": index})
        store.complete()


def test_sealed_records_are_the_same_bytes_whatever_finished_first(tmp_path: Path) -> None:
    expected = None
    for number, order in enumerate(permutations(range(4))):
        fill(tmp_path / str(number), order)
        data = (tmp_path / str(number) / "records.jsonl").read_bytes()
        expected = expected or data
        assert data == expected
    keys = [line.key for line in read_records(tmp_path / "0", read_manifest(tmp_path / "0"))]
    assert keys == PLAN


def test_a_finished_record_survives_in_the_journal_before_its_turn_comes(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.finish(PLAN[2], {"n": 2})  # and the process dies here
    assert (tmp_path / "records.jsonl").read_bytes() == b""
    store.close()
    with open_store(tmp_path) as again:
        assert again.body(PLAN[2]) == {"n": 2}
        assert again.owed == 3
        for index in (0, 1, 3):
            again.finish(PLAN[index], {"n": index})
        again.complete()
    fill(tmp_path / "undisturbed")
    assert (tmp_path / "records.jsonl").read_bytes() == (tmp_path / "undisturbed" / "records.jsonl").read_bytes()
    assert not (tmp_path / "journal.jsonl").exists()


@pytest.mark.parametrize("tail", [b"", b"\n", b"\n\n"])
@pytest.mark.parametrize("cut", [2, 7, 40])
def test_a_torn_last_line_is_dropped_with_a_copy_and_done_again(tmp_path: Path, cut: int, tail: bytes) -> None:
    with open_store(tmp_path) as store:
        for index in range(3):
            store.finish(PLAN[index], {"n": index, "text": "é漢"})
    path = tmp_path / "records.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut] + tail)
    with open_store(tmp_path) as store:
        assert store.owed == 2
        assert len(store.dropped) == 1
        for index in range(4):
            store.finish(PLAN[index], {"n": index, "text": "é漢"})
        store.complete()
    copies = list(tmp_path.glob("torn-records-*"))
    assert [copy.read_bytes() for copy in copies] == [whole.splitlines(keepends=True)[2][:-cut] + tail]
    assert path.read_bytes().startswith(whole)
    assert len(list(read_records(tmp_path, read_manifest(tmp_path)))) == 4


def test_a_changed_byte_anywhere_in_a_sealed_run_is_noticed_and_its_line_is_named(tmp_path: Path) -> None:
    fill(tmp_path)
    path = tmp_path / "records.jsonl"
    data = path.read_bytes()
    manifest = read_manifest(tmp_path)
    for position in range(len(data)):
        changed = bytes([data[position] ^ 1])
        path.write_bytes(data[:position] + changed + data[position + 1 :])
        number = data[:position].count(b"\n") + 1
        with pytest.raises(Damage) as caught:
            list(read_records(tmp_path, manifest))
        lines = {f"line {number}", f"line {number + 1}"}  # a changed newline shows on either side of it
        assert any(name in str(caught.value) for name in lines), (position, str(caught.value))
    path.write_bytes(data)
    assert len(list(read_records(tmp_path, manifest))) == 4


def test_deleted_swapped_repeated_and_foreign_lines_are_told_apart(tmp_path: Path) -> None:
    fill(tmp_path / "run")
    with Store(tmp_path / "other", {**IDENTITY, "seeds": {"run": 1}}, PLAN, {}) as store:
        for index in range(4):
            store.finish(PLAN[index], {"n": index})
        store.complete()
    path = tmp_path / "run" / "records.jsonl"
    manifest = read_manifest(tmp_path / "run")
    lines = path.read_bytes().splitlines(keepends=True)
    foreign = (tmp_path / "other" / "records.jsonl").read_bytes().splitlines(keepends=True)
    cases = {
        "line 2 is record 2": [lines[0], *lines[2:]],
        "line 1 is record 1": [lines[1], lines[0], *lines[2:]],
        "line 2 is record 0": [lines[0], lines[0], *lines[1:]],
        "line 3 does not follow": [*lines[:2], foreign[2], lines[3]],
        "line 1 does not follow": [foreign[0], *lines[1:]],
    }
    for message, content in cases.items():
        path.write_bytes(b"".join(content))
        with pytest.raises(Damage, match=message):
            list(read_records(tmp_path / "run", manifest))
        with pytest.raises(Damage, match=message):
            open_store(tmp_path / "run")


def test_a_deleted_last_line_of_a_complete_run_contradicts_the_seal(tmp_path: Path) -> None:
    fill(tmp_path)
    path = tmp_path / "records.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    with pytest.raises(Damage, match="lines were deleted or changed"):
        open_store(tmp_path)


def test_another_configuration_is_refused_and_the_differing_keys_are_named(tmp_path: Path) -> None:
    fill(tmp_path)
    other = {"protocol": {"name": "frontier", "depth": 3}, "seeds": {"run": 0}, "extra": 1}
    with pytest.raises(StoreError, match=r"these keys differ: extra, protocol\.depth"):
        open_store(tmp_path, other)


def test_a_changed_manifest_is_noticed(tmp_path: Path) -> None:
    fill(tmp_path)
    path = tmp_path / "manifest.json"
    manifest = json.loads(path.read_bytes())
    manifest["identity"]["protocol"]["depth"] = 3
    path.write_bytes(canonical(manifest))
    with pytest.raises(Damage, match="was changed"):
        open_store(tmp_path)


def test_a_second_writer_is_refused_while_readers_read(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.finish(PLAN[0], {"n": 0})
        with pytest.raises(StoreError, match="another process writes"):
            open_store(tmp_path)
        assert len(list(read_records(tmp_path, read_manifest(tmp_path)))) == 1
        assert read_seal(tmp_path) is None
        store.finish(PLAN[1], {"n": 1})
    open_store(tmp_path).close()  # free again


@pytest.mark.parametrize(
    ("number", "way"),
    [
        (errno.ENOLCK, "the file system keeps no locks: choose a place on a local disk"),
        (errno.EOPNOTSUPP, "the file system cannot do this: choose a place on a local disk"),
        (errno.EDQUOT, "delete files of yours there"),
    ],
)
def test_a_lock_that_the_file_system_does_not_give_is_told_as_such(
    number: int, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The failure is put in the place of the system's call: no such file system is at hand."""

    def refuse(*arguments: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(StoreError, match=f"{os.strerror(number)}; {way}") as caught:
        open_store(tmp_path)
    assert "free space" not in str(caught.value)


def test_a_sealed_run_is_read_without_a_lock_by_any_number(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / "lock").unlink()
    with open_store(tmp_path) as first, open_store(tmp_path) as second:
        assert (first.owed, second.owed) == (0, 0)
        first.complete()
    assert not (tmp_path / "lock").exists()


def test_a_journal_that_a_crash_left_after_the_seal_goes_at_the_next_run(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / "journal.jsonl").write_bytes(b"")
    with open_store(tmp_path) as store:
        store.complete()
    assert not (tmp_path / "journal.jsonl").exists()


def test_a_seal_over_a_part_of_the_plan_is_damage(tmp_path: Path) -> None:
    fill(tmp_path)
    with pytest.raises(Damage, match="was sealed with 4 of the 5 records of its plan"):
        Store(tmp_path, IDENTITY, [*PLAN, ("trajectory", "t", "4", "rl")], {})


def test_a_folder_that_is_no_run_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(StoreError, match="is not empty and is not a run folder"):
        open_store(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "mine"
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_full_disk_is_one_sentence_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A real full disk: /dev/full accepts no byte.
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    store = open_store(tmp_path)
    store.finish(PLAN[0], {"n": 0})
    store._records.close()
    store._records = open("/dev/full", "ab", buffering=0)  # noqa: SIM115
    with pytest.raises(StoreError, match="No space left on device") as caught:
        store.finish(PLAN[1], {"n": 1})
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.value.__cause__.errno == errno.ENOSPC
    store.close()
    with open_store(tmp_path) as again:
        assert again.body(PLAN[0]) == {"n": 0}
        for index in range(4):
            again.finish(PLAN[index], {"n": index})
        again.complete()
    fill(tmp_path / "undisturbed")
    assert (tmp_path / "records.jsonl").read_bytes() == (tmp_path / "undisturbed" / "records.jsonl").read_bytes()


def test_an_atomic_write_leaves_the_old_file_when_it_fails(tmp_path: Path) -> None:
    path = tmp_path / "seal.json"
    files.write_atomically(path, b"old")
    with pytest.raises(TypeError):
        files.write_atomically(path, "not bytes")  # type: ignore[arg-type]
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("name", ["manifest.json", "records.jsonl", "journal.jsonl", "timings.json", "lock"])
def test_no_file_of_a_folder_that_is_continued_is_written_through_a_link(name: str, tmp_path: Path) -> None:
    with open_store(tmp_path / "run") as store:
        store.finish(PLAN[2], {"n": 2})
    outside = tmp_path / "outside"
    file = tmp_path / "run" / name
    outside.write_bytes(file.read_bytes() if file.exists() else b"")
    file.unlink(missing_ok=True)
    file.symlink_to(outside)
    before = outside.read_bytes()
    with pytest.raises(StoreError, match=f"{name} is a link that came with the run"):
        open_store(tmp_path / "run")
    assert outside.read_bytes() == before


@pytest.mark.parametrize("name", ["records.jsonl", "journal.jsonl"])
def test_no_record_is_added_to_a_file_that_has_a_second_name(name: str, tmp_path: Path) -> None:
    with open_store(tmp_path / "run") as store:
        store.finish(PLAN[2], {"n": 2})
    outside = tmp_path / "outside"
    outside.hardlink_to(tmp_path / "run" / name)
    with open(outside, "ab") as file:
        file.write(b"torn")
    before = outside.read_bytes()
    with pytest.raises(StoreError, match=f"{name} has a second name elsewhere"):
        open_store(tmp_path / "run")
    assert outside.read_bytes() == before


def test_a_run_folder_that_was_removed_is_said_to_be_gone(tmp_path: Path) -> None:
    with open_store(tmp_path / "run") as store:
        for key in PLAN:
            store.finish(key, {"n": 1})
        shutil.rmtree(tmp_path / "run")
        with pytest.raises(StoreError, match="somebody removed it, and all its records are gone"):
            store.complete()


@pytest.mark.parametrize("value", ["1e400", "1" + "0" * 400, "-1e400", "1e308", "-5", "true", '"1"', "null"])
def test_a_time_that_is_none_is_left_out_of_the_sum_and_the_run_ends(value: str, tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        (tmp_path / "timings.json").write_text(f'{{"reach":{value}}}\n')
        store.note_timings({"reach": 1.5})
    assert json.loads((tmp_path / "timings.json").read_bytes()) == {"reach": 1.5}


@pytest.mark.parametrize("number", ["1e400", "-1e400", "1" + "0" * 400, "NaN", "Infinity"])
def test_no_number_is_read_that_canonical_json_cannot_write_or_a_float_cannot_hold(number: str) -> None:
    with pytest.raises(ValueError, match=r"beyond|not JSON"):
        parse(f"[{number}]")


@pytest.mark.parametrize("number", ["1e308", "-0.0", "9007199254740993", "1" + "0" * 299])
def test_every_number_within_floats_is_read_as_json_has_it(number: str) -> None:
    assert parse(number) == json.loads(number)


@pytest.mark.parametrize(
    ("data", "whole", "rest"),
    [
        (b"", [], b""),
        (b"{}\n[]\n", [b"{}", b"[]"], b""),
        (b"{}\n[", [b"{}"], b"["),
        (b"{}\n[\n", [b"{}"], b"[\n"),
        (b"{}\n\n \n", [b"{}"], b"\n \n"),
        (b"{}\n[\n\n1", [b"{}"], b"[\n\n1"),
        (b"\n\n", [], b"\n\n"),
        (b"\n{}\n", [b"", b"{}"], b""),
        (b"{}\n\n\n[]\n", [b"{}", b"", b"", b"[]"], b""),
        (b"[\n{}\n", [b"[", b"{}"], b""),
    ],
)
def test_whole_lines_are_parted_from_a_torn_end(tmp_path: Path, data: bytes, whole: list[bytes], rest: bytes) -> None:
    (tmp_path / "lines").write_bytes(data)
    lines = Lines(tmp_path / "lines")
    assert (list(lines), lines.rest) == (whole, rest)


def test_a_file_of_more_blank_lines_than_a_crash_leaves_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes(b"{}\n" + b"\n" * 2**17)
    with pytest.raises(Damage, match="longer than any record"):
        list(Lines(tmp_path / "lines"))


@pytest.mark.parametrize("name", ["manifest.json", "records.jsonl", "journal.jsonl", "seal.json", "timings.json"])
def test_a_file_of_twenty_gigabytes_is_one_sentence_and_never_in_memory(tmp_path: Path, name: str) -> None:
    """A hole in a file has no bytes on disk and as many as its maker likes in memory."""
    with open_store(tmp_path) as store:
        for key in PLAN:
            store.finish(key, {})
        store.complete() if name == "seal.json" else None
    with open(tmp_path / name, "ab") as file:
        file.truncate(20 * 2**30)
    if name == "timings.json":  # outside every digest: replaced
        with open_store(tmp_path) as store:
            store.note_timings({"reach": 1.0})
        assert parse((tmp_path / name).read_bytes()) == {"reach": 1.0}
        return
    sentence = "longer than any record" if name.endswith(".jsonl") else "has 21,474,836,480 bytes; at most"
    with pytest.raises(StoreError, match=sentence):
        open_store(tmp_path)
    if name == "records.jsonl":
        with pytest.raises(StoreError, match=sentence):
            list(read_records(tmp_path, read_manifest(tmp_path)))
