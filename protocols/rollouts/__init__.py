"""N independent rollouts per task: everything about them, and nothing of it elsewhere."""

from handoff.protocols.rollouts.protocol import ROLLOUTS

__all__ = ["ROLLOUTS"]
