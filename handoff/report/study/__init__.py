"""The report of a handoff study."""

from handoff.report.study.page import REPORT

__all__ = ["REPORT"]
