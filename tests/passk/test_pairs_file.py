"""A study of pairs as a TOML file."""

from __future__ import annotations

from pathlib import Path

import pytest

from handoff.errors import DataError, UsageError
from handoff.passk.pairs_file import PairEntry, read_pairs_file


def written(folder: Path, text: str) -> Path:
    path = folder / "pairs.toml"
    path.write_text(text)
    return path


def test_a_study_of_pairs_names_its_policies_relative_to_its_folder(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        budget = 16
        [[pair]]
        name = "7B"
        family = "F"
        benchmark = "W"
        base = "runs/one#base"
        post = "post.csv"
        [[pair]]
        base = "/elsewhere/base.csv"
        post = ["a.csv", "b.csv"]
        [[pair]]
        base = "base.csv"
        post = { ppo = ["1.csv", "2.csv"], ptgs = "3.csv" }
        """,
    )
    found = read_pairs_file(path)
    here = str(tmp_path)
    assert found.budget == 16
    assert found.entries == (
        PairEntry(f"{here}/runs/one#base", f"{here}/post.csv", "7B", "F", "W"),
        PairEntry("/elsewhere/base.csv", f"{here}/a.csv", several=True),
        PairEntry("/elsewhere/base.csv", f"{here}/b.csv", several=True),
        PairEntry(f"{here}/base.csv", f"{here}/1.csv", recipe="ppo", several=True),
        PairEntry(f"{here}/base.csv", f"{here}/2.csv", recipe="ppo", several=True),
        PairEntry(f"{here}/base.csv", f"{here}/3.csv", recipe="ptgs", several=True),
    )


PAIR = '[[pair]]\nbase = "b"\npost = "p"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no pairs; write a table [[pair]] with base and post for each"),
        ("pair = 3\n", "has no pairs"),
        ("pair = []\n", "has no pairs"),
        ("pair = [1]\n", "has no pairs"),
        ("[pair]\nbase = 'b'\npost = 'p'\n", "has no pairs"),
        ("pairs = 1\n" + PAIR, "'pairs' is not known (did you mean 'pair'?)"),
        ("budget = 1\n" + PAIR, "budget must be a whole number of at least 2, not 1"),
        ("budget = true\n" + PAIR, "budget must be a whole number of at least 2, not True"),
        ('budget = "8"\n' + PAIR, "budget must be a whole number of at least 2, not '8'"),
        (PAIR + 'benchmrk = "x"\n', "pair 1: 'benchmrk' is not known (did you mean 'benchmark'?)"),
        (PAIR + '[[pair]]\nbase = "b"\n', "pair 2 needs post, the path of its counts or RUN#POLICY"),
        (PAIR + '[[pair]]\npost = "b"\n', "pair 2 needs base"),
        (PAIR + "name = 7\n", "pair 1: name is 7, not a name"),
        (PAIR + 'name = ""\n', "pair 1: name is '', not a name"),
        (PAIR + 'family = "a\\u202eb"\n', "pair 1: family is 'a\\u202eb', not a name"),
        ('[[pair]]\nbase = ["b"]\npost = "p"\n', "pair 1: base is ['b'], not a name"),
        ('[[pair]]\nbase = "b"\npost = []\n', "pair 1: post is empty"),
        ('[[pair]]\nbase = "b"\npost = {}\n', "pair 1: post is empty"),
        ('[[pair]]\nbase = "b"\npost = [["p"]]\n', "pair 1: post is ['p'], not a name"),
        ('[[pair]]\nbase = "b"\npost = {x = {y = "z"}}\n', "pair 1: post is {'y': 'z'}, not a name"),
        ('[[pair]]\nbase = "b"\npost = {"" = "z"}\n', "pair 1: a recipe is '', not a name"),
        ("[[pair]\n", "is not valid TOML"),
        (PAIR + 'base = "c"\n', "is not valid TOML"),
        ("x = " + "[" * 5000, "is not valid TOML"),
    ],
)
def test_a_malformed_study_is_refused_in_one_sentence_with_the_key(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(DataError) as raised:
        read_pairs_file(path)
    assert message in str(raised.value)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_study_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read .*none\.toml: No such file"):
        read_pairs_file(tmp_path / "none.toml")
    path = tmp_path / "pairs.toml"
    path.write_bytes(PAIR.encode("utf-16"))
    with pytest.raises(DataError, match="is not UTF-8 text"):
        read_pairs_file(path)
    path.write_text("﻿" + PAIR.replace("\n", "\r"))
    assert len(read_pairs_file(path).entries) == 1
