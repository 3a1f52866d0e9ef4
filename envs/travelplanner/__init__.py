"""TravelPlanner: six look-up tools, a plan of days as the answer, and two evaluators."""

from handoff.envs.travelplanner.adapter import TravelPlannerEnvironment

__all__ = ["TravelPlannerEnvironment"]
