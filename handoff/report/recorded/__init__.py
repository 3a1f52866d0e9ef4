"""The report of a recorded-history run."""

from handoff.report.recorded.page import REPORT

__all__ = ["REPORT"]
