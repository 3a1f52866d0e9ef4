"""How intervals are made: one value for every function that makes some."""

from __future__ import annotations

from typing import Any

import attrs

from handoff.settings import setting

DEFAULT = "rescaled"
METHODS = (DEFAULT, "paper")


@attrs.frozen
class Intervals:
    """How bootstrap intervals are made.

    Raises :class:`~handoff.errors.UsageError` for an unknown method or a number out of range.
    """

    #: One of ``METHODS`` (see :mod:`handoff.estimation.bootstrap`); ``default`` becomes the default one.
    method: str = setting(
        f"Kind of interval; the default is {DEFAULT}, the paper's is the ordinary percentile one.",
        kind=str, name="interval", default="default", choices=("default", *METHODS), group="intervals",
    )  # fmt: skip
    draws: int = setting(
        "Bootstrap draws.", kind=int, default=100_000, least=100, most=1_000_000, group="intervals"
    )  # fmt: skip
    seed: int = setting("Seed of the draws.", kind=int, default=0, least=0, most=2**63 - 1, group="intervals")
    level: float = setting(
        "Level of the intervals.", kind=float, default=0.95, least=0, most=1, open=True, group="intervals"
    )

    def __attrs_post_init__(self) -> None:
        if self.method == "default":
            object.__setattr__(self, "method", DEFAULT)

    @property
    def tails(self) -> tuple[float, float]:
        """The shares of values below either end of an equal-tailed interval."""
        return (1 - self.level) / 2, (1 + self.level) / 2

    def to_json(self) -> dict[str, Any]:
        return {"interval": self.method, "draws": self.draws, "seed": self.seed, "level": self.level}
