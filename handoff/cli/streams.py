"""The three standard streams in any condition: closed, a pipe that nobody reads, a full disk, an old terminal."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import Any

import click

from handoff.errors import brief
from handoff.text import printable

#: The file name in an error of standard output, which the system leaves empty.
OUTPUT = "the output"


class _Output(io.FileIO):
    """Standard output, whose errors say that they are its own: others without a file name are not."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            error.filename = OUTPUT
            raise


def prepare() -> None:
    """Make the standard streams fit to be written to.

    One that was closed (``>&-``) becomes the null device, before a file that is opened gets its number; a character
    that the terminal does not have is written as an escape; an error of standard output is known as one.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free, which is this one.
            opened = os.open(os.devnull, os.O_RDWR)
            assert opened == number, f"{name} is closed, and {opened} was opened in its place"
            os.set_inheritable(number, True)  # as any standard stream: a worker must not start without
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout is sys.__stdout__:
        sys.stdout = _named(sys.stdout)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # not something that a caller put there
            stream.reconfigure(errors="backslashreplace")


def _named(stream: io.TextIOWrapper) -> io.TextIOWrapper:
    """The same stream over :class:`_Output`."""
    stream.flush()
    raw = _Output(stream.fileno(), "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        stream.encoding,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def complain(text: str) -> None:
    """One sentence on standard error, as far as there is one."""
    with contextlib.suppress(OSError):
        click.echo(f"handoff: {brief(printable(text))}", err=True)


def abandon() -> None:
    """Give up standard output: what it still holds goes to the null device."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
