"""The report of a verified-frontier run."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class _Shim:
    def plan_lines(self, identity: Any, folder: Path) -> list[str]:
        from handoff.report.terminal import plan_lines

        return plan_lines(identity, folder)

    def show_result(self, console: Any, run: Any) -> None:
        from handoff.report.terminal import show_study

        show_study(console, run)

    def document(self, run: Any, options: Any = None, external: Any = None) -> Any:
        from handoff.report.study.document import document

        return document(run, options, external)

    def show(self, console: Any, document: Any) -> None:
        from handoff.report.terminal import show_report

        show_report(console, document)

    def write(self, run: Any, document: Any, path: Any) -> Any:
        from handoff.report.study import page

        return page.write(run, document, path)


REPORT = _Shim()
