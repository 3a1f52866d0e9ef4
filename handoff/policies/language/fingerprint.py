"""The behavioural fingerprint of a model that is reached over a network: its greedy replies to a few fixed prompts.

A name and a URL do not say which weights answer.  The fingerprint does, as far as two models differ in what they say:
it is taken when a policy is introduced, stated in the manifest, and compared among the servers of a policy and at every
resume.

Every prompt is asked twice, together with the others and alone.  A reply that was not the same both times, or that is
empty, tells nothing about the model and is not compared.  Weights in this process need no fingerprint: the digest of
their files says more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import attrs

from handoff.canonical import digest
from handoff.policies.language.model import Output

#: They resemble what a policy is asked, because checkpoints of one family say the same to everything else.
PROMPTS = (
    "You are in a kitchen. You see a mug 1. Your task is to: cool it. Think, then write one <action>...</action>.",
    "The numbers are 3, 1 and 2. Name them in order, then tell a story about each of them.",
    "go to shelf 2\nYou see a book 1 and a lamp 3.\ntake book 1 from shelf 2\n",
)
#: What replies are known by: token ids where a server gives them, else the text.
KINDS = IDS, TEXT = ("token ids", "text")
#: New tokens of a reply.
TOKENS = 16
SEED = 0


@attrs.frozen
class Fingerprint:
    """Digests of the greedy replies to :data:`PROMPTS`."""

    #: What the digests are of: one of :data:`KINDS`, or "nothing" where the server answers none of the prompts.
    of: str
    #: By prompt; ``None``: the server gave two different replies, or an empty one.
    replies: tuple[str | None, ...]

    def to_json(self) -> dict[str, Any]:
        return {"of": self.of, "replies": list(self.replies)}

    @classmethod
    def from_json(cls, form: Any) -> Fingerprint:
        """The fingerprint in a manifest; one that is malformed is of nothing."""
        form = form if isinstance(form, Mapping) else {}
        of, replies = form.get("of"), form.get("replies")
        if not isinstance(of, str) or not isinstance(replies, list) or len(replies) != len(PROMPTS):
            return NOTHING
        return cls(of, tuple(reply if isinstance(reply, str) else None for reply in replies))

    def common(self, other: Fingerprint) -> list[int]:
        """Numbers, from 1, of the prompts whose replies can be compared with those of ``other``."""
        if self.of != other.of:
            return []
        pairs = enumerate(zip(self.replies, other.replies, strict=True), start=1)
        return [number for number, pair in pairs if None not in pair]

    def differing(self, other: Fingerprint) -> list[int]:
        """Those of :meth:`common` whose replies differ."""
        return [number for number in self.common(other) if self.replies[number - 1] != other.replies[number - 1]]

    def difference(self, other: Fingerprint) -> str | None:
        """In what the model behind ``other`` differs, in words; ``None``: in nothing that can be compared."""
        if self.of != other.of:
            return f"the first gives {self.of} to compare, the other {other.of}"
        numbers = self.differing(other)
        if not numbers:
            return None
        number, count = numbers[0], len(self.common(other))
        first, second = (str(one.replies[number - 1])[:12] for one in (self, other))
        digests = f"digests of reply {number}: {first}... and {second}..."
        return f"{len(numbers)} of {count} greedy replies differ ({digests})"

    def limits(self) -> str | None:
        """What the fingerprint does not tell, in words; ``None``: every reply can be compared."""
        if self.of == NOTHING.of:
            return "the server does not answer the prompts of the fingerprint: no change of its model would be noticed"
        compared = sum(reply is not None for reply in self.replies)
        if compared == len(self.replies):
            return None
        return (
            f"asked twice, the server gave equal greedy replies to {compared} of {len(self.replies)} prompts: "
            "only by these would a change of its model be noticed"
        )


NOTHING = Fingerprint("nothing", (None,) * len(PROMPTS))


def in_common(fingerprints: Sequence[Fingerprint]) -> Fingerprint:
    """The replies that all of ``fingerprints``, between which is no difference, can be compared by."""
    columns = zip(*(one.replies for one in fingerprints), strict=True)
    return Fingerprint(fingerprints[0].of, tuple(None if None in column else column[0] for column in columns))


async def take(ask: Callable[[str], Awaitable[Output | None]]) -> Fingerprint:
    """The fingerprint of the model behind ``ask``, which sends one prompt with greedy sampling; ``None``: the server
    refuses it."""
    together = await asyncio.gather(*(ask(prompt) for prompt in PROMPTS))
    alone = [await ask(prompt) for prompt in PROMPTS]
    outputs = [output for output in (*together, *alone) if output is not None]
    kinds = {_kind(output) for output in outputs}
    if len(outputs) < 2 * len(PROMPTS) or len(kinds) > 1:
        return NOTHING
    pairs = zip(outputs[: len(PROMPTS)], outputs[len(PROMPTS) :], strict=True)
    digests = [(_digest(first), _digest(second)) for first, second in pairs]
    return Fingerprint(kinds.pop(), tuple(first if first == second else None for first, second in digests))


def _kind(output: Output) -> str:
    return TEXT if output.ids is None else IDS


def _digest(output: Output) -> str | None:
    """Digest of a reply; ``None``: it is empty."""
    if output.ids is not None:
        return output.ids.digest() if len(output.ids) else None
    said = [output.reasoning or "", output.refusal or "", output.text]
    return digest(said) if any(said) else None
