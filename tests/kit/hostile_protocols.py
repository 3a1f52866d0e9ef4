"""Protocols that misbehave in one method each; else they roll out as ``rollouts`` does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from kit.hostile import exiting, raising, returning

from handoff.protocols.rollouts.config import RolloutsConfig
from handoff.protocols.rollouts.protocol import RolloutsProtocol
from handoff.protocols.rollouts.records import ROLLOUT, Rollout
from handoff.protocols.rollouts.study import RolloutStudy
from handoff.records import from_json
from handoff.runs.folder import read_records
from handoff.runs.run import read_head


class Odd(RolloutsProtocol):
    name: ClassVar[str] = "odd"
    report_at: ClassVar[str] = "handoff.report.plain:REPORT"

    def load(self, folder: Path) -> RolloutStudy:
        head: dict[str, Any] = read_head(folder, self.name, RolloutsConfig)
        rollouts = [from_json(Rollout, line.body) for line in read_records(folder, head["manifest"])]
        return RolloutStudy(**head, rollouts={rollout.cell: rollout for rollout in rollouts})


def odd(name: str, method: str, trick: Callable[..., Any], asynchronous: bool) -> Odd:
    async def later(self: Odd, *arguments: Any) -> Any:
        return trick(*arguments)

    def now(self: Odd, *arguments: Any) -> Any:
        return trick(*arguments)

    return type(name, (Odd,), {"__module__": __name__, "name": name, method: later if asynchronous else now})()


def unplanned(config: object, tasks: object, policies: object, running: Any) -> dict[str, float]:
    running.store.finish((ROLLOUT, "nowhere"), {})
    return {}


#: Name -> (method, trick, what the sentence says), for a run.
IN_RUN: Mapping[str, tuple[str, Callable[..., Any], str]] = {
    "odd-plays": ("play", raising(ValueError("boom")), "play() raised ValueError: boom (hostile.py, line "),
    "odd-exits": ("play", exiting, "play() raised SystemExit: 0"),
    "odd-stops": ("play", returning({}), "play() returned before every planned record was finished"),
    "odd-times": ("play", returning(None), "play() raised ValueError: it is None, not a mapping"),
    "odd-adds": ("play", unplanned, "the protocol finished the record 'rollout/nowhere', which is not in its plan"),
}
#: The same, before a run.
BEFORE: Mapping[str, tuple[str, Callable[..., Any], str]] = {
    "odd-plans": ("plan", raising(KeyError("x")), "plan() raised KeyError: 'x'"),
    "odd-lists": ("plan", returning([["a"]]), "key 1 is a list, not a tuple"),
    "odd-counts": ("plan", returning([("a", 1)]), "key 1[1] is 1, not a str"),
    "odd-repeats": ("plan", returning([("a",), ("a",)]), "the key 'a' occurs twice"),
    "odd-asks-numbers": ("policies", returning([5]), "it[0] is 5, not a str"),
    "odd-renames": (
        "to_json",
        returning({"name": "frontier"}),
        "its key 'name' is 'frontier', but the protocol's name",
    ),
    "odd-is-nameless": ("to_json", returning({}), "its key 'name' is None, but the protocol's name"),
    "odd-configures": ("configure", exiting, "configure() raised SystemExit: 0"),
    "odd-settles": ("settle", raising(TypeError("x")), "settle() raised TypeError: x"),
    "odd-states": ("to_json", returning({"a": {1}}), "to_json() raised ValueError: it is not JSON-safe"),
}
#: The same, of commands that read a finished run: method, trick, sentence, command.
READING: Mapping[str, tuple[str, Callable[..., Any], str, str]] = {
    "odd-loads": ("load", raising(IndexError("x")), "load() raised IndexError: x", "report"),
    "odd-runs": ("load", returning({}), "load() returned what it must not: it is a dict, not a Run", "report"),
    "odd-sums": ("summary", exiting, "summary() raised SystemExit: 0", "report"),
    "odd-tables": ("tables", raising(ValueError("x")), "tables() raised ValueError: x", "export"),
    "odd-rows": ("tables", returning({"a": [1]}), "it is not a mapping from names to ExportTable", "export"),
    "odd-sizes": ("size", returning("many"), "size() returned what it must not: it is 'many', not an int", "audit"),
    "odd-weighs": ("size", raising(ValueError("x")), "size() raised ValueError: x", "audit"),
    "odd-checks": ("check", exiting, "check() raised SystemExit: 0", "audit"),
    "odd-certifies": ("certify", raising(ValueError("x")), "certify() raised ValueError: x", "audit"),
}
#: The same, of a run that goes on.
GOING_ON: Mapping[str, tuple[str, Callable[..., Any], str]] = {
    "odd-contradicts": ("contradiction", raising(ValueError("x")), "contradiction() raised ValueError: x"),
    "odd-denies": ("contradiction", returning(5), "contradiction() returned what it must not: it is 5"),
}
PROTOCOLS = {
    name: odd(name, method, trick, asynchronous=method in ("play", "certify") and trick not in (exiting,))
    for name, (method, trick, *_) in {**IN_RUN, **BEFORE, **READING, **GOING_ON}.items()
}
CALM = Odd()
globals().update({name.replace("-", "_"): protocol for name, protocol in PROTOCOLS.items()})


def install(folder: Path) -> None:
    """Write a distribution with all these protocols into ``folder``, which is to be on the path."""
    info = folder / "odd-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1.0\n")
    lines = [f"{name} = kit.hostile_protocols:{name.replace('-', '_')}" for name in PROTOCOLS]
    (info / "entry_points.txt").write_text(
        "[handoff.protocols]\nodd = kit.hostile_protocols:CALM\n" + "\n".join(lines) + "\n"
    )
