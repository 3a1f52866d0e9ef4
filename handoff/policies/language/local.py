"""A language model in this process: a checkpoint with its tokenizer, and an engine under a subclass."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs

from handoff.errors import DataError, UsageError
from handoff.policies.language.chat import probes, rewritten
from handoff.policies.language.checkpoints import Checkpoint, Encoder, find
from handoff.policies.language.model import Input, Output, Speaker
from handoff.policies.language.options import ModelOptions
from handoff.policies.language.tokens import TokenIds
from handoff.policies.policy import Policy, Preview, Request
from handoff.records import Decision

#: Libraries that load tokenizers are not safe to be imported by two threads.
_ONE_AT_A_TIME = threading.Lock()


@attrs.frozen
class Waiting:
    """A request whose prompt fits."""

    request: Request
    model_input: Input
    ids: tuple[int, ...]
    #: Tokens that its reply may have.
    room: int


class Local(Policy):
    """The checkpoint is read by :meth:`introduce` (or by whatever needs it first), its weights are loaded by
    :meth:`activate`."""

    blocking: ClassVar[bool] = True
    exclusive: ClassVar[bool] = True
    kind: ClassVar[str]
    checkpoint: Checkpoint
    encoder: Encoder
    #: Tokens of prompt and reply together; ``None``: nobody states a limit.
    context: int | None

    def __init__(self, argument: str, options: ModelOptions) -> None:
        if options.tools != "text":
            raise UsageError(f"{self.kind}: has no interface for tools of its own; leave out --tools {options.tools}")
        self.options = options
        self.temperature = options.temperature
        self.speaker = Speaker(options)
        self._argument = argument
        self._is_open = False

    async def introduce(self) -> None:
        await asyncio.to_thread(self.open)

    def open(self) -> None:
        """Find the checkpoint, digest its files and load its tokenizer.  May be called twice.

        Raises :class:`~handoff.errors.UsageError` or :class:`~handoff.errors.DataError` if it cannot be used.
        """
        with _ONE_AT_A_TIME:
            if not self._is_open:
                self.checkpoint = find(self._argument)
                self.encoder = Encoder(self.checkpoint)
                self.configure()
                self._examine_chat()
                self._is_open = True

    def _examine_chat(self) -> None:
        """Find out what the checkpoint's chat template depends on, and what it rewrites."""
        speaker, chat = self.speaker, self.encoder.chat
        if chat is not None and self.options.prompt_form == "chat":
            speaker.reads_clock |= chat.reads_clock
            with contextlib.suppress(DataError):  # it takes no such conversation: the prompts will show that
                now = speaker.template.now
                speaker.rewritten = rewritten([self.encoder.rendered(messages, now) for messages in probes()])

    def set_time(self, now: str) -> None:
        self.speaker.set_time(now)

    def resume_from(self, stated: Mapping[str, Any]) -> list[str]:
        return self.speaker.resume_from(stated)

    def cautions(self) -> list[str]:
        return self.speaker.cautions()

    async def count(self, request: Request) -> int | None:
        """Tokens of the prompt for ``request``."""
        return self.preview(request).tokens

    def preview(self, request: Request) -> Preview:
        prompt = self.speaker.render(request)
        ids = TokenIds.of(self.encoder.ids(prompt))
        return Preview(prompt.digest(), ids.digest(), len(ids))

    @abstractmethod
    def configure(self) -> None:
        """Set ``context``, and what else follows from the checkpoint."""

    @abstractmethod
    def engine(self) -> dict[str, Any]:
        """JSON-safe description of the engine."""

    @abstractmethod
    def generate(self, waiting: Sequence[Waiting]) -> list[Output]:
        """One output per request, in order; there is at least one."""

    #: What the engine promises of equal tokens.
    guarantee: ClassVar[str]

    def describe(self) -> Mapping[str, Any]:
        self.open()
        return {
            "spec": f"{self.kind}:{self.checkpoint.place}",
            "kind": self.kind,
            **self.checkpoint.describe(),
            "engine": self.engine(),
            "tokens": "ids",
            "guarantee": self.guarantee,
            **self.speaker.describe(),
        }

    def decide(self, requests: Sequence[Request]) -> list[Decision]:
        self.activate()
        decisions: dict[int, Decision] = {}
        waiting: dict[int, Waiting] = {}
        for place, request in enumerate(requests):
            prompt = self.speaker.render(request)
            ids = self.encoder.ids(prompt)
            model_input = Input(prompt, TokenIds.of(ids))
            room = self.options.room(len(ids), self.context)
            if room is None:
                decisions[place] = self.speaker.overflow(request, model_input)
            else:
                waiting[place] = Waiting(request, model_input, ids, room)
        outputs = self.generate(list(waiting.values())) if waiting else []
        for (place, one), output in zip(waiting.items(), outputs, strict=True):
            decisions[place] = self.speaker.decide(one.request, one.model_input, output, one.room)
        return [decisions[place] for place in range(len(requests))]
