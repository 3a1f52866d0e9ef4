"""The data model: canonical JSON, digests, strict reading of untrusted JSON."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handoff.canonical import canonical, digest, parse
from handoff.errors import DataError
from handoff.protocols.frontier.records import Clone, Endpoint, Trajectory
from handoff.records import Certificate, Decision, Record, Step, Task, from_json, to_json

RECORD = Record("You see.", ("go", "look"), 0.0, False, False)
DECISION = Decision("go", "go", "parsed", 7, "d" * 64)
CHECK = Certificate(2, True, 2, (3, 8), ("go",), ("go", "look"))
TRAJECTORY = Trajectory("t", 0, "rl", 5, RECORD, CHECK, (Step(DECISION, RECORD, CHECK),), 0, "arrived")
ENDPOINT = Endpoint("t", 0, "rl", "sft", True, True, True, Clone(2, "a", "b"), (Step(DECISION, RECORD),))


@pytest.mark.parametrize("value", [Task("i", "n", "k", "s"), RECORD, DECISION, CHECK, TRAJECTORY, ENDPOINT])
def test_every_record_survives_canonical_json(value: object) -> None:
    form = parse(canonical(to_json(value)))
    assert from_json(type(value), form) == value


def test_canonical_json_is_sorted_compact_ascii() -> None:
    assert canonical({"b": [1, 2.5, None], "a": "é\ud800"}) == b'{"a":"\\u00e9\\ud800","b":[1,2.5,null]}'
    assert digest([]) == hashlib.sha256(b"[]").hexdigest()


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_canonical_json_reads_back_equal(value: object) -> None:
    assert json.loads(canonical(value)) == value


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", '{"a":1,"a":2}', "[" * 100_000, b"\xff", ""])
def test_what_is_not_strict_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse(text)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"won": 1}, "expected bool"),
        ({"score": "0"}, "expected float"),
        ({"observation": None}, "expected str"),
        ({"admissible": "go"}, r"\$\.admissible"),
        ({"admissible": ["go", 3]}, r"\$\.admissible"),
        ({"surplus": 1}, "extra fields"),
    ],
)
def test_a_record_of_another_type_is_refused_with_its_field(change: dict, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        from_json(Record, {**to_json(RECORD), **change}, "line 3")


@pytest.mark.parametrize("form", [None, [], "x", 3, {}])
def test_a_record_that_is_no_object_or_lacks_fields_is_refused(form: object) -> None:
    with pytest.raises(DataError, match="line 3 is not a valid Record"):
        from_json(Record, form, "line 3")  # type: ignore[arg-type]


def test_the_certificate_of_an_arrival_is_that_of_the_state_it_arrived_in() -> None:
    assert TRAJECTORY.certificate() == CHECK
    never = Trajectory("t", 0, "rl", 5, RECORD, CHECK, (), None, "budget")
    with pytest.raises(ValueError, match="did not arrive"):
        never.certificate()
