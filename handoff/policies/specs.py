"""A policy spec, such as ``noisy:0.3`` or ``hf:./checkpoint``, parsed once."""

from __future__ import annotations

import attrs


@attrs.frozen
class Spec:
    """A policy spec: a kind, and an argument after a colon."""

    kind: str
    #: ``None``: there is no colon.
    argument: str | None
    text: str

    @classmethod
    def parse(cls, text: str) -> Spec:
        kind, colon, argument = text.partition(":")
        return cls(kind, argument if colon else None, text)
