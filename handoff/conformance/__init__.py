"""Does an adapter keep the contract of :class:`handoff.environment.Environment`?"""
