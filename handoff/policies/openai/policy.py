"""``openai:URL[,URL...]#MODEL``: a model behind an OpenAI-compatible server.

A server with ``/version`` and ``/tokenize`` is a vLLM server, which gives every decision the token ids of prompt and
reply.  One request is enough where the prompt leaves room for all new tokens: the server tokenizes it and answers with
the ids.  Else the prompt is tokenized first, its room in the context computed, and exactly its token ids are sent and
must come back.  Both ways end in the same decision, and which of them is taken depends on the prompt alone.  Any other
server gets the messages: the record then has the digest of the rendered prompt and the server's own count of tokens,
and the server decides what an overflow is.

Of several URLs each episode has one, by a hash of its task and seed slot: the choice does not depend on timing, and all
turns of an episode find its prefix cached.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from handoff.errors import EnvironmentFault, UsageError
from handoff.policies.language import guarantees
from handoff.policies.language.model import MOST_WORDS, Input, Speaker
from handoff.policies.language.options import MOST, ModelOptions
from handoff.policies.language.prompts import Prompt
from handoff.policies.language.tokens import TokenIds
from handoff.policies.openai import answers, fields, schema, served_chat
from handoff.policies.openai.answering import Answering
from handoff.policies.openai.client import Refused, Server
from handoff.policies.openai.refusals import Complaint, Verdict
from handoff.policies.policy import Preview, Request, Served
from handoff.records import Decision
from handoff.seeds import derive

#: Tokens that a chat template may put around a prompt: usually, and at most.
_AROUND, _MOST_AROUND = 100, 4096
#: A text by which it is measured how many tokens a character has, and how many more a prompt's characters may have.
_SAMPLE = (
    "You are in room 12. You see a desk 1, a drawer 3 (closed) and a mug 2.\nAdmissible actions:\n- go to desk 1\n"
)
_MARGIN = 1.25
#: No token has less than a byte, and no character more bytes than these.
_MOST_PER_CHARACTER = 4


@attrs.frozen
class _Card:
    """What a server says of itself and its model."""

    model: str
    #: vLLM's version; ``None``: another server, which does not tokenize.
    version: str | None
    max_model_len: int | None
    #: A hub name says which weights these are; of a path only the last part is kept.
    root: str | None
    #: In a fixed text; 1 for a server that does not tokenize.
    tokens_per_character: float = 1.0

    @property
    def tokenizes(self) -> bool:
        return self.version is not None

    def engine(self) -> dict[str, Any]:
        """As the manifest has it."""
        name = "vllm" if self.tokenizes else None
        return {"name": name, "version": self.version, "max_model_len": self.max_model_len, "root": self.root}


class OpenAIServer(Served):
    """A policy behind one server or several equal ones."""

    def __init__(self, argument: str, options: ModelOptions) -> None:
        """Raises :class:`~handoff.errors.UsageError` for a malformed argument."""
        urls, _, model = argument.partition("#")
        names = [url for url in urls.split(",") if url.strip()]
        if not names:
            raise UsageError("write openai:URL#MODEL, such as openai:http://127.0.0.1:8000/v1#my-model")
        if len(set(names)) != len(names):
            raise UsageError(f"a server is named twice: {urls}")
        self.options = options
        self.temperature = options.temperature
        self.speaker = Speaker(options)
        self.capacity = options.concurrency * len(names)
        self.servers = [
            Server(name, options.concurrency, options.timeout, options.patience, options.api_key_env) for name in names
        ]
        self._wanted = model.strip()
        self._card: _Card | None = None
        self._chat = served_chat.UNKNOWN
        self._answering: Answering

    async def introduce(self) -> None:
        """Ask every server which model it serves, and what that says to the prompts of the fingerprint.

        Raises :class:`~handoff.errors.UsageError` for an unknown model or servers that differ, and
        :class:`~handoff.errors.Interrupted` if a server cannot be reached.
        """
        if self._card is not None:
            return
        try:
            cards = [await _ask_card(server, self._wanted) for server in self.servers]
            for server, card in zip(self.servers[1:], cards[1:], strict=True):
                if card != cards[0]:
                    raise UsageError(
                        f"servers of one policy must be equal, but {server.url} is {card} "
                        f"and {self.servers[0].url} is {cards[0]}"
                    )
            self._at_once_works = cards[0].tokenizes and (
                self.options.prompt_form == "text"
                or all([await _answers_whole(server, cards[0].model) for server in self.servers])
            )
            if cards[0].tokenizes and self.options.prompt_form == "chat":
                replies = self.speaker.template.is_conversation
                self._chat = await served_chat.examine(self.servers[0], cards[0].model, replies)
            answering = Answering(self.servers, cards[0].model, self.options)
            await answering.identify(cards[0].tokenizes)
        finally:
            await self.aclose()
        limits = [limit for limit in (cards[0].max_model_len, self.options.context) if limit]
        self.context = min(limits, default=None)
        self._card, self._answering = cards[0], answering
        self.speaker.reads_clock |= self._chat.reads_clock
        self.speaker.rewritten = self._chat.rewritten

    def resume_from(self, stated: Mapping[str, Any]) -> list[str]:
        return [*self.speaker.resume_from(stated), *self._answering.resume_from(stated)]

    def remarks(self) -> list[str]:
        limits = self._answering.limits() if self._card else None
        return [limits] if limits else []

    def system_fingerprints(self) -> Sequence[str]:
        return sorted(self._answering.systems) if self._card else ()

    @property
    def card(self) -> _Card:
        if self._card is None:
            raise UsageError("a policy behind a server is introduced before it is used: await policy.introduce()")
        return self._card

    def describe(self) -> Mapping[str, Any]:
        card = self.card
        return {
            "spec": f"openai:#{card.model}",  # the URL is no part of what the run is
            "kind": "openai",
            "model": card.model,
            **self._answering.describe(),
            "engine": {**card.engine(), **({"context": self.options.context} if self.options.context else {})},
            "tokens": "ids" if self._has_ids else "rendered prompt only",
            "guarantee": guarantees.SERVER if self._has_ids else guarantees.UNKNOWN_SERVER,
            **self.speaker.describe(),
        }

    @property
    def _has_ids(self) -> bool:
        """Whether decisions have token ids.  The prompt that a server makes of tools is not known."""
        return self.card.tokenizes and self.options.tools == "text"

    def set_time(self, now: str) -> None:
        self.speaker.set_time(now)

    def cautions(self) -> list[str]:
        cautions = self.speaker.cautions()
        if self._chat.reads_clock and not self._chat.takes_date:
            cautions.append(
                "its chat template shows the time, which this server cannot be told: on another day its prompts are "
                "others (serve it with a chat template that does not, vllm serve --chat-template FILE)"
            )
        if self.speaker.template.is_conversation and self.speaker.rewritten is None:
            cautions.append("it is not known whether its chat template shows earlier replies unchanged")
        return cautions

    def preview(self, request: Request) -> Preview:
        return Preview(self.speaker.render(request).digest())

    async def ask_preview(self, request: Request) -> Preview:
        """With the prompt's token ids, or the number that a server counts that does not tokenize."""
        server, prompt = self.servers[0], self.speaker.render(request)
        rendered = prompt.digest()
        if self._chat.restless:  # its ids would differ from themselves
            return Preview(rendered)
        try:
            if prompt.native:
                return Preview(rendered)
            if self.card.tokenizes:
                ids = await self._ids_of(server, prompt)
                return Preview(rendered, ids.digest(), len(ids))
            return Preview(rendered, tokens=await self._answering.count(server, prompt))
        except Refused:
            return Preview(rendered)

    async def decide_one(self, request: Request) -> Decision:
        server = self.servers[0]
        if len(self.servers) > 1:
            server = self.servers[derive(request.task.id, request.slot, "server") % len(self.servers)]
        prompt = self.speaker.render(request)
        try:
            if not self._has_ids:
                return await self._by_text(server, request, prompt)
            decision = await self._at_once(server, request, prompt) if self._suits(prompt) else None
            return decision or await self._by_ids(server, request, prompt)
        except Refused as error:
            raise UsageError(
                f"{server.url} refuses a request for model {self.card.model}: {fields.with_advice(error.complaint)}"
            ) from error

    def _suits(self, prompt: Prompt) -> bool:
        """Whether one request is likely to be enough, by the prompt and by what the introduction measured.

        What was learnt from earlier prompts would make the requests depend on the order in which answers arrive.
        """
        if not self._at_once_works:
            return False
        room = self.options.max_prompt_tokens
        if self.context is not None:
            room = min(room, self.context - self.options.max_new_tokens)
        return prompt.characters * self.card.tokens_per_character * _MARGIN + _AROUND <= room

    async def _at_once(self, server: Server, request: Request, prompt: Prompt) -> Decision | None:
        """The decision by one request: the server tokenizes, generates, and states the ids of both.

        ``None`` if :meth:`_by_ids` would get something else: the prompt leaves too little room, or the server gives no
        token ids here, or has taken the reply apart.
        """
        room = self.options.max_new_tokens
        body = self._body(fields.limit(self.options, prompt.form, room), fields.all_sampling(self.options, request))
        completion: schema.Completion | None
        try:
            if prompt.form == "chat":
                body |= {"add_generation_prompt": True, "add_special_tokens": False, **self._chat.arguments(prompt.now)}
                data = _with(body, "messages", prompt.chat_json())
                completion = await self._answering.ask(
                    server, "chat/completions", data, schema.within(schema.chat_with_ids, room)
                )
            else:
                data = json.dumps(body | {"prompt": prompt.text, "add_special_tokens": True}).encode()
                completion = await self._answering.ask(
                    server, "completions", data, schema.within(schema.completion_with_ids, room)
                )
        except Refused:
            return None  # too long by the server's own count, or an error that will show again
        if completion is None or completion.prompt is None:
            return None
        if self.options.room(len(completion.prompt), self.context) != room:
            return None
        return self.speaker.decide(request, Input(prompt, completion.prompt), completion.output, room)

    async def _ids_of(self, server: Server, prompt: Prompt) -> TokenIds:
        """The token ids that the server makes of ``prompt``."""
        body: dict[str, Any] = {"model": self.card.model}
        if prompt.form == "chat":
            body |= {"messages": prompt.chat(), "add_generation_prompt": True, "add_special_tokens": False}
            body |= self._chat.arguments(prompt.now)
        else:
            body |= {"prompt": prompt.text, "add_special_tokens": True}
        return await server.ask(f"{server.root}/tokenize", json.dumps(body).encode(), answers.tokenized)

    async def count(self, request: Request) -> int | None:
        """Tokens of the prompt for ``request``; ``None``: the server does not tokenize."""
        if not self._has_ids:
            return None
        try:
            return len(await self._ids_of(self.servers[0], self.speaker.render(request)))
        except Refused as error:
            raise UsageError(f"{self.servers[0].url} refuses to tokenize a prompt: {error}") from error

    async def _by_ids(self, server: Server, request: Request, prompt: Prompt) -> Decision:
        """The decision by two requests: the prompt is tokenized, its room computed, and exactly its ids are sent."""
        ids = await self._ids_of(server, prompt)
        model_input = Input(prompt, ids)
        room = self.options.room(len(ids), self.context)
        if room is None:
            return self.speaker.overflow(request, model_input)
        body = self._body(fields.limit(self.options, "text", room), fields.all_sampling(self.options, request))
        data = _with(body, "prompt", ids.text)
        try:
            overflows = self._overflows(len(ids) + room)
            completion = await self._answering.ask(
                server, "completions", data, schema.within(schema.completion_with_ids, room), overflows
            )
        except Refused as error:
            return self._refused(request, model_input, error, room)
        if completion.prompt != ids:
            count = len(completion.prompt or ())
            raise EnvironmentFault(f"{server.url} answered {count} prompt tokens that are not the {len(ids)} sent")
        return self.speaker.decide(request, model_input, completion.output, room)

    async def _by_text(self, server: Server, request: Request, prompt: Prompt) -> Decision:
        room = self.options.max_new_tokens
        body = self._body(fields.limit(self.options, prompt.form, room), fields.sampling(self.options, request))
        most = _MOST_PER_CHARACTER * prompt.characters + _MOST_AROUND
        overflows = self._overflows(most + room)
        try:
            if prompt.native:
                data = json.dumps(body | json.loads(prompt.native) | {"tool_choice": "auto"}).encode()
                completion = await self._answering.ask(
                    server, "chat/completions", data, schema.within(schema.native, room, most), overflows
                )
            elif prompt.form == "chat":
                data = json.dumps(body | {"messages": prompt.chat()}).encode()
                completion = await self._answering.ask(
                    server, "chat/completions", data, schema.within(schema.chat, room, most), overflows
                )
            else:
                data = json.dumps(body | {"prompt": prompt.text}).encode()
                completion = await self._answering.ask(
                    server, "completions", data, schema.within(schema.completion, room, most), overflows
                )
        except Refused as error:
            return self._refused(request, Input(prompt), error, room)
        model_input = Input(prompt, tokens=completion.prompt_tokens)
        if completion.prompt_tokens is not None and completion.prompt_tokens > self.options.max_prompt_tokens:
            return self.speaker.overflow(request, model_input)
        return self.speaker.decide(request, model_input, completion.output, room)

    def _body(self, *parts: Mapping[str, Any]) -> dict[str, Any]:
        """A request's fields except the prompt."""
        return {"model": self.card.model} | {key: value for part in parts for key, value in part.items()}

    def _overflows(self, most: int) -> Callable[[Complaint], bool]:
        """Whether a complaint that the context is too short can hold for a request of ``most`` tokens at most, prompt
        and reply together."""

        def holds(complaint: Complaint) -> bool:
            known = complaint.context if complaint.context is not None else self.card.max_model_len
            return known is None or most > known

        return holds

    def _refused(self, request: Request, model_input: Input, error: Refused, room: int) -> Decision:
        """The outcome of a prompt that does not fit, or that a filter stopped.  Raises ``error`` if it is neither."""
        if error.verdict is Verdict.OVERFLOW:
            return self.speaker.overflow(request, model_input)
        if error.verdict is Verdict.FILTERED:
            return self.speaker.refuse(request, model_input, error.complaint.message, room)
        raise error

    async def aclose(self) -> None:
        for server in self.servers:
            await server.close()


async def _ask_card(server: Server, model: str) -> _Card:
    """What the server says of ``model`` ("": of the only one that it serves)."""
    try:
        cards = await server.ask(f"{server.url}/models", None, answers.models)
    except Refused as error:
        raise UsageError(f"{server.url} is not an OpenAI-compatible server: {error}") from error
    names = sorted(cards)
    if not model:
        if len(names) != 1:
            raise UsageError(f"{server.url} serves {', '.join(names) or 'no model'}: write openai:{server.url}#MODEL")
        model = names[0]
    if model not in cards:
        raise UsageError(f"{server.url} serves no model {model!r} (it serves: {', '.join(names) or 'none'})")
    limit, root = cards[model].get("max_model_len"), cards[model].get("root")
    if type(limit) is not int or not 1 <= limit <= MOST:
        limit = None  # a length that none can be is not known
    root = root if isinstance(root, str) and len(root) <= MOST_WORDS else None
    if root and root.startswith(("/", ".")):
        root = root.rstrip("/").rsplit("/", 1)[-1]
    version, density = None, 1.0
    try:
        if await server.is_web_page(f"{server.root}/version"):  # of a gateway that has a page for every address
            return _Card(model, version, limit, root, density)
        stated = await server.ask(f"{server.root}/version", None, lambda answer: str(answer.form["version"]))
        probe = json.dumps({"model": model, "prompt": _SAMPLE}).encode()
        density = len(await server.ask(f"{server.root}/tokenize", probe, answers.tokenized)) / len(_SAMPLE)
        version = stated[:MOST_WORDS]
    except (Refused, UsageError, KeyError, TypeError):  # a gateway may guard pages that it does not have
        pass
    return _Card(model, version, limit, root, density)


async def _answers_whole(server: Server, model: str) -> bool:
    """Whether the server's chat answers hold the whole reply as the model wrote it, and the ids that ``/tokenize``
    gives.

    A server that takes thinking or tool calls out of replies hides the ids of a reply whose thinking it was told to
    leave out.
    """
    body = {"model": model, "messages": [{"role": "user", "content": "a"}], "add_generation_prompt": True}
    probe = {**body, "max_tokens": 1, "temperature": 0.0, "seed": 0, "return_token_ids": True}
    try:
        alone = json.dumps({**body, "add_special_tokens": False}).encode()
        expected = await server.ask(f"{server.root}/tokenize", alone, answers.tokenized)
        data = json.dumps({**probe, "include_reasoning": False}).encode()
        reply = await server.ask(f"{server.url}/chat/completions", data, schema.chat_with_ids)
    except Refused:
        return False
    return reply is not None and reply.prompt == expected


def _with(body: Mapping[str, Any], key: str, value: bytes) -> bytes:
    """JSON of ``body`` with one more entry, whose ``value`` is JSON already."""
    return b'%s, "%s": %s}' % (json.dumps(body).encode()[:-1], key.encode(), value)
