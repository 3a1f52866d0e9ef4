"""Paired seed schedules.

A seed is a hash of (run seed, task, seed slot, purpose, position) and never of a checkpoint's name: that is what pairs
the arms.  Two reachers draw the same seeds at the same step of the same slot, and so do two solvers at the same
position after the handoff.
"""

from __future__ import annotations

import hashlib

import attrs

from handoff.canonical import canonical

REACH = "reach"
SOLVE = "solve"
ROLLOUT = "rollout"


def derive(*parts: str | int) -> int:
    """A seed in [0, 2**63) from ``parts``: the first 63 bits of the sha256 of their canonical JSON.

    Equal parts give equal seeds on every platform and in every process.
    """
    return int.from_bytes(hashlib.sha256(canonical(list(parts))).digest()[:8], "big") >> 1


@attrs.frozen
class SeedSchedule:
    """All seeds of a run that was started with ``run_seed``."""

    run_seed: int

    def reset(self, task: str, slot: int) -> int:
        """Seed that the environment is reset with, on every visit of this (task, slot), replays included."""
        return derive(self.run_seed, task, slot, "reset", 0)

    def decision(self, task: str, slot: int, purpose: str, position: int) -> int:
        """Seed of one decision.

        ``position`` counts from 0 at reset for ``purpose`` REACH and from 0 at the handoff for SOLVE.
        """
        return derive(self.run_seed, task, slot, purpose, position)

    def temperature(self, task: str) -> int:
        """Seed of the draw that sets the temperature of ``task``'s scored rollouts (PTGS at test time)."""
        return derive(self.run_seed, task, 0, "temperature", 0)
