"""Verified-frontier handoff: everything about it, and nothing of it elsewhere."""

from handoff.protocols.frontier.protocol import FRONTIER

__all__ = ["FRONTIER"]
