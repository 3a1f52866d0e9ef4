"""Token ids as canonical JSON: they are counted, compared, sent and digested, and for none of it need they be numbers.

A prompt has a thousand of them and a server writes them as JSON already, in the canonical form.  Taking them out of an
answer as they stand is many times cheaper than making a list of numbers of them and JSON of the list.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property

import attrs


@attrs.frozen
class TokenIds:
    """``text`` is the canonical JSON array of the ids."""

    text: bytes

    @classmethod
    def of(cls, ids: Sequence[int]) -> TokenIds:
        return cls(f"[{','.join(map(str, ids))}]".encode())

    def __len__(self) -> int:
        return self._count

    @cached_property
    def _count(self) -> int:
        return self.text.count(b",") + 1 if len(self.text) > 2 else 0

    def digest(self) -> str:
        """What :func:`handoff.canonical.digest` gives for the list of the ids."""
        return hashlib.sha256(self.text).hexdigest()
