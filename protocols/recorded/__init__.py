"""Recorded-history handoff: what a solver gets is the message history of another policy's episode, cut by a rule."""

from handoff.protocols.recorded.protocol import RECORDED

__all__ = ["RECORDED"]
