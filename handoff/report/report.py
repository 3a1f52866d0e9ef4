"""The report of a protocol, as the command line uses it.

A protocol's report derives from :class:`Report` and says what its document and its content are; terminal and page
follow from the content.  The protocol names the instance, such as ``handoff.report.study:REPORT``.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import attrs
from rich.console import Console

from handoff.estimation.method import Intervals
from handoff.report import html, terminal
from handoff.report.format import Json
from handoff.report.sheet import Content
from handoff.text import command, shell_word


@attrs.frozen
class Options:
    """How intervals are made and which contrasts are shown."""

    intervals: Intervals = Intervals()
    #: Checkpoints from the weakest to the strongest; the run's order by default.
    order: Sequence[str] | None = None
    #: Reacher budgets of Table 7; by default 8, 16 and 48, as far as they were observed.
    budgets: Sequence[int] | None = None
    #: Also what lies beside the plain intervals (:mod:`handoff.estimation.more`), where the protocol has it.
    more: bool = False


class HasFolder(Protocol):
    """A run that was read back."""

    @property
    def folder(self) -> Path: ...


class HasJson(Protocol):
    """A typed document."""

    def to_json(self) -> Json: ...


S = TypeVar("S", bound=HasFolder)
D = TypeVar("D", bound=HasJson)


class Report(abc.ABC, Generic[S, D]):
    """The report of one protocol, of runs ``S`` and documents ``D``."""

    #: Default file name of the page in the run folder; its twin has the suffix ``.json``.
    page_name: ClassVar[str] = "report.html"

    @abc.abstractmethod
    def document(self, study: S, options: Options, external: S | None = None) -> D:
        """Every number of the report.  Raises :class:`~handoff.errors.UsageError` for options that do not fit."""

    @abc.abstractmethod
    def content(self, document: D) -> Content:
        """The same numbers in sheets, figures and sentences."""

    def show(self, console: Console, document: D) -> None:
        """The report on the terminal."""
        terminal.show(console, self.content(document))

    def page(self, study: S, document: D) -> str:
        """The report as HTML text."""
        return html.render(self.content(document), document.to_json(), name=self.page_name)

    def write(self, study: S, document: D, path: Path | None = None) -> tuple[Path, Path]:
        """Write the page to ``path`` (into the run folder by default) and its twin beside it; returns both paths.

        Raises as :func:`handoff.report.html.write` does.
        """
        target = study.folder if path is None else path
        return html.write(self.page(study, document), document.to_json(), target, self.page_name)

    def plan_lines(self, identity: Mapping[str, Any], folder: Path) -> list[str]:
        """What a run with this identity is going to do, one statement per line."""
        tasks, split = len(identity["tasks"]), identity["protocol"].get("split")
        return [f"{identity['environment']['name']}, split {split}: {tasks} tasks", f"run folder: {shell_word(folder)}"]

    def next_commands(self, study: S) -> Mapping[str, str]:
        """What to type after a run, under a word for what it is for."""
        return {
            "look at it": command("handoff", "report", study.folder),
            "check it": command("handoff", "audit", study.folder),
        }

    def show_result(self, console: Console, study: S) -> None:
        """What a run prints at its end."""
        self.show(console, self.document(study, Options()))
