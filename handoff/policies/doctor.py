"""A self-test: is a policy as deterministic as its run will claim?

It asks the same requests one at a time, all at once, in reverse order, and with half of them left out; then it asks the
policy made afresh.  It counts decisions that are equal in full: text, token ids, status, action.  A server cannot be
restarted from here: its answers can be kept and compared after somebody has restarted it.

It also says what the model's chat template takes from earlier replies, where that is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs

from handoff import files, signals
from handoff.canonical import canonical, digest, parse
from handoff.errors import DataError, UsageError
from handoff.policies import Policy, Request, Turn, introduce
from handoff.policies.guard import activate, ask, close, description, guarded
from handoff.policies.language.fit import Prompting
from handoff.records import Decision, Record, Task, to_json
from handoff.seeds import derive

#: The time that prompts show here, so that answers that were kept can be compared on another day.
NOW = "2000-01-01T12:00:00"


@attrs.frozen
class Agreement:
    """How many decisions were the same as when asked one at a time."""

    #: The way of asking.
    name: str
    equal: int
    total: int
    #: The first difference, in words.
    first: str | None = None

    @property
    def passed(self) -> bool:
        return self.equal == self.total


@attrs.frozen
class Diagnosis:
    """The self-test of one policy."""

    name: str
    #: The policy's description without its prompt.
    facts: dict[str, Any]
    agreements: tuple[Agreement, ...]
    #: Number of decisions by status.
    statuses: dict[str, int]
    #: Digest of the decisions that were asked for one at a time.
    fingerprint: str
    #: What is known of the chat template (:meth:`handoff.policies.language.model.Speaker.chat_facts`).
    chat: dict[str, Any] = attrs.Factory(dict)
    #: What a user should know before a run, each as the rest of a sentence.
    cautions: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return all(agreement.passed for agreement in self.agreements)

    def to_json(self) -> dict[str, Any]:
        return {
            "policy": self.name,
            "passed": self.passed,
            "facts": self.facts,
            "comparisons": [attrs.asdict(agreement) for agreement in self.agreements],
            "statuses": self.statuses,
            "fingerprint": self.fingerprint,
            **({"chat_template": self.chat} if self.chat else {}),
            **({"cautions": list(self.cautions)} if self.cautions else {}),
        }


def requests(count: int) -> list[Request]:
    """``count`` requests of different lengths and seeds, from an invented episode."""
    task = Task("0" * 64, "doctor", "doctor", "doctor")
    actions = ("look", "go to desk 1", "go to bed 1", "open drawer 1", "take mug 1 from desk 1")

    def record(place: int) -> Record:
        text = f"You are in room {place}. You see a desk 1, a bed 1 and a drawer {place}."
        return Record(text, actions, 0.0, False, False)

    batch = []
    for index in range(count):
        length = index % 7
        history = tuple(
            Turn(action, record(step + 1), f"<think>go on</think><action>{action}</action>")
            for step, action in enumerate((actions * 2)[:length])
        )
        batch.append(Request(task, derive("doctor", index), record(0), history, 20 - length, slot=index))
    return batch


def examine(
    name: str, policy: Policy, again: Callable[[], Policy] | None, count: int, keep: Path | None, compare: Path | None
) -> Diagnosis:
    """Ask ``policy`` for ``count`` decisions in every way.

    ``again`` makes the policy afresh (``None``: it cannot be).  The answers are written to ``keep``, and compared with
    those in ``compare``.  Raises :class:`~handoff.errors.UsageError` for files that cannot be read or written.
    """
    if count < 2:
        raise UsageError(f"at least 2 requests are needed to compare anything, not {count}")
    expected = None if compare is None else _read(compare)
    if expected is not None and len(expected) != count:
        raise UsageError(f"{compare} holds {len(expected)} answers; ask for as many (--requests {len(expected)})")
    if keep is not None and keep.exists():
        _read(keep)  # nothing but earlier answers is written over
    batch = requests(count)
    _prepare(policy, name)
    alone = [ask(policy, [request], name)[0] for request in batch]
    half = alone[: len(alone) // 2]
    agreements = [
        _compare("all at once", alone, ask(policy, batch, name)),
        _compare("in reverse order", alone, ask(policy, batch[::-1], name)[::-1]),
        _compare("half of them", half, ask(policy, batch[: len(half)], name)),
    ]
    if again is not None:
        close(policy, name)
        fresh = again()
        try:
            _prepare(fresh, name)
            agreements.append(_compare("after a restart", alone, ask(fresh, batch, name)))
        finally:
            close(fresh, name)
    forms = [to_json(decision) for decision in alone]
    if compare is not None and expected is not None:
        agreements.append(_compare(f"kept in {compare.name}", expected, alone))
    if keep is not None:
        try:
            files.write_atomically(keep, canonical({"decisions": forms}) + b"\n")
        except OSError as error:
            raise UsageError(f"cannot write {keep}: {files.cause(error)}") from error
    statuses: dict[str, int] = {}
    for decision in alone:
        statuses[decision.status] = statuses.get(decision.status, 0) + 1
    facts = {key: value for key, value in description(policy, name).items() if key not in ("prompt",)}
    chat = policy.speaker.chat_facts() if isinstance(policy, Prompting) else {}
    # The facts say already what the template rewrites.
    with guarded(policy, "cautions", name):
        cautions = tuple(caution for caution in policy.cautions() if chat.get("in_words", caution) not in caution)
    return Diagnosis(name, facts, tuple(agreements), statuses, digest(forms), chat, cautions)


def _prepare(policy: Policy, name: str) -> None:
    """Get the policy ready to be asked."""
    signals.run(lambda: introduce({name: policy}))
    with guarded(policy, "set_time", name):
        policy.set_time(NOW)
    activate(policy, name)


def _compare(name: str, expected: Sequence[Any], decisions: Sequence[Decision]) -> Agreement:
    pairs = [
        (left if isinstance(left, dict) else to_json(left), to_json(right))
        for left, right in zip(expected, decisions, strict=True)
    ]
    different = [(index, left, right) for index, (left, right) in enumerate(pairs) if left != right]
    first = None
    if different:
        index, left, right = different[0]
        field = next(key for key in right if left.get(key) != right[key])
        first = f"request {index + 1}: {field} {left.get(field)!r:.120} became {right[field]!r:.120}"
    return Agreement(name, len(pairs) - len(different), len(pairs), first)


def _read(path: Path) -> list[dict[str, Any]]:
    try:
        form = parse(files.read_text(path))
        decisions = form["decisions"]
        if not all(isinstance(entry, dict) for entry in decisions):
            raise ValueError("not decisions")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {files.cause(error)}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path} was not written by handoff doctor --keep ({error})") from None
    return list(decisions)
