"""The policy ``stubborn:ACTION``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from handoff.errors import UsageError
from handoff.policies.policy import Policy, Request, scripted
from handoff.records import Decision


class Stubborn(Policy):
    """Takes one action whenever it is admissible, else the first admissible one."""

    def __init__(self, argument: str | None) -> None:
        if not argument:
            raise UsageError("write stubborn:ACTION, such as stubborn:left")
        self.action = argument

    def decide(self, requests: Sequence[Request]) -> list[Decision]:
        return [scripted(request, self._choose(request.record.admissible)) for request in requests]

    def _choose(self, admissible: Sequence[str]) -> str | None:
        return self.action if self.action in admissible else next(iter(admissible), None)

    def describe(self) -> Mapping[str, Any]:
        return {"kind": "stubborn", "action": self.action}
