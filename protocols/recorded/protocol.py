"""Recorded-history handoff as a :class:`~handoff.protocols.protocol.Protocol`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from handoff import signals
from handoff.auditing.checks import Audit
from handoff.environment import Environment, Formatted, Messages, Scored
from handoff.episodes.pool import Pool
from handoff.errors import UsageError
from handoff.messages.replies import tool_of
from handoff.policies.bindings import bind
from handoff.policies.policy import Policy, Request, Turn
from handoff.progress import Progress
from handoff.protocols.export import ExportTable
from handoff.protocols.frontier.prompt_groups import prompt_groups
from handoff.protocols.protocol import Protocol
from handoff.protocols.recorded import config as configs
from handoff.protocols.recorded import logic
from handoff.protocols.recorded import study as studies
from handoff.protocols.recorded.certify import CLAIMS, certify
from handoff.protocols.recorded.checks import check_records
from handoff.protocols.recorded.config import PLAIN, RecordedConfig
from handoff.protocols.recorded.play import RecordedPlayer
from handoff.protocols.recorded.study import RecordedStudy
from handoff.protocols.recorded.summary import summary
from handoff.protocols.recorded.tables import tables
from handoff.records import Message, Record, Task
from handoff.runs.chain import Key
from handoff.runs.launch import Running


class RecordedProtocol(Protocol[RecordedConfig, RecordedStudy]):
    """Reachers play whole episodes, solvers go on from the recorded message history, cut by a rule."""

    name = studies.NAME
    config = RecordedConfig
    roles = ("reachers", "solvers")
    replays = CLAIMS
    report_at = "handoff.report.recorded:REPORT"

    def bindings(self, values: dict[str, Any]) -> Mapping[str, str]:
        stated = values.get("formatter")
        if not isinstance(stated, str) or "=" not in stated:
            return {}
        name, _, spec = stated.partition("=")
        if not name.strip() or not spec.strip():
            raise UsageError(f"write --formatter NAME=SPEC, such as --formatter judge=hf:./judge (got {stated!r:.60})")
        bound = bind([stated])
        values["formatter"] = next(iter(bound))
        return bound

    def policies(self, config: RecordedConfig) -> list[str]:
        formatter = () if config.formatter is None else (config.formatter,)
        return list(dict.fromkeys([*super().policies(config), *formatter]))

    def suit(self, config: RecordedConfig, environment: Environment) -> RecordedConfig:
        if not isinstance(environment, Messages) or not isinstance(environment, Scored):
            raise UsageError(
                f"the protocol recorded needs an environment whose state is a message list and whose answers are "
                f"scored, which {environment.name} is not; take `handoff run {environment.name}` without --protocol"
            )
        last_request = environment.last_request if config.context is not None else ""
        if isinstance(environment, Formatted):
            formatter = config.formatter or PLAIN
        elif config.formatter not in (None, PLAIN):
            raise UsageError(f"{environment.name} scores answers as they are; leave out --formatter")
        else:
            formatter = None
        return attrs.evolve(config, last_request=last_request, formatter=formatter)

    def settle(self, config: RecordedConfig, policies: Mapping[str, Policy]) -> RecordedConfig:
        solvers = {name: policies[name] for name in config.solvers}
        groups = signals.run(lambda: prompt_groups(solvers, config.decisions, _sample))
        return attrs.evolve(config, prompt_groups=groups)

    def to_json(self, config: RecordedConfig) -> dict[str, Any]:
        form = super().to_json(config)
        for key in ("prompt_groups", "last_request"):
            if not form[key]:
                del form[key]
        return form

    def plan(self, tasks: Sequence[Task], config: RecordedConfig) -> list[Key]:
        return configs.plan(tasks, config)

    def size(self, tasks: Sequence[Task], config: RecordedConfig) -> int:
        return configs.size(tasks, config)

    def repeats(self, config: RecordedConfig) -> tuple[int, str]:
        return config.slots, "seed slots"

    async def play(
        self, config: RecordedConfig, tasks: Sequence[Task], policies: Mapping[str, Policy], running: Running
    ) -> dict[str, float]:
        return await RecordedPlayer(config, tasks, policies, running).play()

    def load(self, folder: Path) -> RecordedStudy:
        return studies.load(folder)

    def contradiction(self, config: RecordedConfig, key: Key, body: Any, body_of: Callable[[Key], Any]) -> str | None:
        return logic.contradiction(config, key, body, body_of)

    def check(self, audit: Audit, run: RecordedStudy, templates: Sequence[str]) -> None:
        check_records(audit, run, templates)

    async def certify(
        self,
        audit: Audit,
        run: RecordedStudy,
        pool: Pool,
        tasks: Mapping[str, Task],
        progress: Progress,
        concurrency: int,
    ) -> None:
        await certify(audit, run, pool, tasks, progress, concurrency)

    def summary(self, run: RecordedStudy) -> dict[str, Any]:
        return summary(run)

    def tables(self, run: RecordedStudy) -> Mapping[str, ExportTable]:
        return tables(run)


def _sample(turns: int) -> Request:
    """A conversation of ``turns`` replies that call a tool."""
    tool = tool_of("Look", "Look at a place.", {"type": "object", "properties": {"place": {"type": "string"}}})
    first = (Message("user", "Find the mug and say where it is."),)
    reset = Record("Find the mug and say where it is.", (), 0.0, False, False, messages=first, tools=(tool,))
    history = []
    for number in range(turns):
        call = f'<tool_call>\n{{"name": "Look", "arguments": {{"place": "desk {number}"}}}}\n</tool_call>'
        reply = f"<think>\nThis is step {number + 1}.\n</think>\n{call}"
        history.append(Turn(reply, Record(f"On desk {number} there is a book.", (), 0.0, False, False), reply))
    return Request(Task("0" * 64, "sample", "sample", "sample"), 0, reset, tuple(history), 2)


RECORDED = RecordedProtocol()
