"""Checks whether an adapter keeps the contract of :class:`handoff.environment.Environment`."""
