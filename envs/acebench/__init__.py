"""ACEBench: replies that are lists of calls, or a fixed phrase, in tasks of one decision."""

from handoff.envs.acebench.adapter import AceBenchEnvironment

__all__ = ["AceBenchEnvironment"]
