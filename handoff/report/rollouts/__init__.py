"""The report of a rollouts run."""

from handoff.report.rollouts.page import REPORT

__all__ = ["REPORT"]
