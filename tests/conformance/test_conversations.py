"""The conformance suite on environments whose state is a conversation, whole and broken."""

from __future__ import annotations

import attrs
import pytest
from kit import talking

from handoff.conformance.suite import check_class
from handoff.records import BLANK, Record, Task, fills

OF_FRONTIERS = {"snapshots", "frontier", "distance", "outcomes", "reference"}


@pytest.mark.parametrize(
    ("cls", "skipped"),
    [(talking.PlainSums, {"open-actions", "formatted", "rows"}), (talking.Sums, {"open-actions", "rows"})],
)
def test_a_conversation_that_keeps_its_contract_passes(cls: type[talking.PlainSums], skipped: set[str]) -> None:
    report = check_class(cls)
    assert [result for result in report.results if result.status == "failed"] == []
    assert {result.check for result in report.results if result.status == "skipped"} == OF_FRONTIERS | skipped


@pytest.mark.parametrize("cls", talking.BROKEN, ids=lambda cls: cls.__name__)
def test_each_fault_of_a_conversation_is_found_and_comes_with_advice(cls: type[talking.PlainSums]) -> None:
    results = {result.check: result for result in check_class(cls, name=cls.name).results}
    found = results[talking.BROKEN[cls]]
    assert found.status == "failed"
    assert found.advice


class Searching(talking.PlainSums):
    """A box to search in, and nothing else."""

    opens = (f"search[{BLANK}]",)

    def reset(self, task: Task, seed: int) -> Record:
        return attrs.evolve(super().reset(task, seed), open_actions=self.opens)


class TwoBlanks(Searching):
    opens = (f"from {BLANK} to {BLANK}",)


def test_an_open_action_has_one_blank() -> None:
    results = {result.check: result for result in check_class(Searching).results}
    assert results["open-actions"].status == "passed"
    results = {result.check: result for result in check_class(TwoBlanks).results}
    assert results["open-actions"].status == "failed"


@pytest.mark.parametrize(
    ("action", "accepted"),
    [
        ("search[red shoes]", True), ("search[]", False), ("search[ ]", False), ("search[a\nb]", False),
        ("Search[a]", False), ("search[a", False), ("search[a] now", False), ("search[a]]", True),
    ],
)  # fmt: skip
def test_an_open_action_accepts_a_text_of_one_line_in_the_place_of_its_blank(action: str, accepted: bool) -> None:
    assert fills(action, f"search[{BLANK}]") is accepted
    record = Record("", ("buy",), 0.0, False, False, open_actions=(f"search[{BLANK}]",))
    assert (action in record.offer()) is accepted
    assert "buy" in record.offer()
    assert "anything" in record.offer(free=True)
