"""``openai:URL[,URL...]#MODEL``: a model behind an OpenAI-compatible server.

A vLLM server is told apart by its ``/version`` and ``/tokenize``.  From it every decision gets the full account, ids of
prompt and reply included.  One request is enough where the prompt leaves all the room that is asked for: the server
tokenizes it, and says with which ids it went on.  Else the prompt is tokenized first, its room in the context computed,
and exactly its token ids are sent and must come back.  Both ways end in the same decision.  Any other server is sent
the messages: what is recorded is the digest of the rendered prompt and the server's own count of tokens, and overflow
is what the server says it is.

Of several URLs each episode has one, by a hash of its task and seed slot: the choice does not depend on timing, and all
turns of an episode find its prefix cached.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from handoff import signals
from handoff.errors import EnvironmentFault, UsageError
from handoff.policies.language.model import FAILED, Input, Output, Speaker
from handoff.policies.language.options import ModelOptions
from handoff.policies.language.prompts import Prompt
from handoff.policies.language.tokens import TokenIds
from handoff.policies.openai.answers import Answer
from handoff.policies.openai.client import BadAnswer, Refused, Server
from handoff.policies.policy import Request, Served
from handoff.records import Decision
from handoff.seeds import derive

#: Tokens that a chat template may put around a prompt.
_AROUND = 100


class OpenAIServer(Served):
    """A policy behind one server or several equal ones."""

    def __init__(self, argument: str, options: ModelOptions) -> None:
        """Asks every server who it is.

        Raises :class:`~handoff.errors.UsageError` for a malformed argument, an unknown model or servers that differ,
        and :class:`~handoff.errors.Interrupted` if a server cannot be reached.
        """
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
        found = signals.run(lambda: self._introduce(model.strip()))
        self.model, self._about = found[0]
        for server, (name, about) in zip(self.servers[1:], found[1:], strict=True):
            if (name, about) != found[0]:
                first = f"{self.servers[0].url} is {self.model} {self._about}"
                raise UsageError(f"servers of one policy must be equal, but {server.url} is {name} {about} and {first}")
        self.full = bool(self._about["tokenize"])
        self.context = self._context()
        self._density = 1.0  # tokens a character, to be on the safe side
        self._tokenized = 0

    def _context(self) -> int | None:
        limits = [limit for limit in (self._about["max_model_len"], self.options.context) if limit]
        return min(limits) if limits else None

    async def _introduce(self, model: str) -> list[tuple[str, dict[str, Any]]]:
        """What every server says of itself, and whether one request to it can be a decision."""
        try:
            found = [await _introduce(server, model) for server in self.servers]
            self._whole = all(
                [
                    about["tokenize"] and (self.options.prompt_form == "text" or await _is_whole(server, name))
                    for server, (name, about) in zip(self.servers, found, strict=True)
                ]
            )
            return found
        finally:
            await self.aclose()

    def describe(self) -> Mapping[str, Any]:
        return {
            "spec": f"openai:#{self.model}",  # where it is served is no part of what the run is
            "kind": "openai",
            "model": self.model,
            "engine": {key: value for key, value in self._about.items() if key != "tokenize"},
            "tokens": "ids" if self.full else "rendered prompt only",
            "guarantee": (
                "each request has its own seed; equal tokens at any concurrency need a float32 server (handoff doctor)"
                if self.full
                else "each request has its own seed; what the server makes of it is not known"
            ),
            **self.speaker.describe(),
        }

    async def decide_one(self, request: Request) -> Decision:
        server = self.servers[0]
        if len(self.servers) > 1:
            server = self.servers[derive(request.task.id, request.slot, "server") % len(self.servers)]
        prompt = self.speaker.render(request)
        try:
            if not self.full:
                return await self._by_text(server, request, prompt)
            decision = await self._at_once(server, request, prompt) if self._suits(prompt) else None
            return decision or await self._by_ids(server, request, prompt)
        except Refused as error:
            raise UsageError(f"{server.url} refuses a request for model {self.model}: {error}") from error

    def _suits(self, prompt: Prompt) -> bool:
        """Whether one request will do, as far as one can say before the prompt is tokenized."""
        if not self._whole:
            return False
        room = self.options.max_prompt_tokens
        if self.context is not None:
            room = min(room, self.context - self.options.max_new_tokens)
        return prompt.characters * self._density + _AROUND <= room

    def _counted(self, prompt: Prompt, ids: TokenIds) -> None:
        """Learn how many tokens there are to a character, with a margin."""
        density = 1.25 * len(ids) / max(1, prompt.characters)
        self._density = density if self._tokenized == 0 else max(self._density, density)
        self._tokenized += 1

    async def _at_once(self, server: Server, request: Request, prompt: Prompt) -> Decision | None:
        """The decision by one request: the server tokenizes, generates, and says which ids it did both with.

        ``None`` if what came is not what :meth:`_by_ids` would get: the prompt leaves less room than was asked for, or
        the server gives no token ids here, or has taken the reply apart.
        """
        room = self.options.max_new_tokens
        body = {"model": self.model, **self._all_sampling(request, room)}
        found: tuple[TokenIds, Output] | None
        try:
            if prompt.form == "chat":
                body |= {"add_generation_prompt": True, "add_special_tokens": False}
                data = _with(body, "messages", prompt.chat_json())
                found = await server.ask(f"{server.url}/chat/completions", data, _chat_of_ids)
            else:
                data = json.dumps(body | {"prompt": prompt.text, "add_special_tokens": True}).encode()
                found = await server.ask(f"{server.url}/completions", data, _completion_of_ids)
        except Refused:
            return None  # too long by the server's own count, or an error that will show again
        if found is None:
            self._whole = False
            return None
        ids, output = found
        self._counted(prompt, ids)
        if self.options.room(len(ids), self.context) != room:
            return None
        return self.speaker.decide(request, Input(prompt, ids), output, room)

    async def _by_ids(self, server: Server, request: Request, prompt: Prompt) -> Decision:
        """The decision by two requests: the prompt is tokenized, its room computed, and exactly its ids are sent."""
        body: dict[str, Any] = {"model": self.model}
        if prompt.form == "chat":
            body |= {"messages": prompt.chat(), "add_generation_prompt": True, "add_special_tokens": False}
        else:
            body |= {"prompt": prompt.text, "add_special_tokens": True}
        ids = await server.ask(f"{server.root}/tokenize", json.dumps(body).encode(), _ids)
        self._counted(prompt, ids)
        given = Input(prompt, ids)
        room = self.options.room(len(ids), self.context)
        if room is None:
            return self.speaker.overflow(request, given)
        data = _with({"model": self.model, **self._all_sampling(request, room)}, "prompt", ids.text)
        sent, output = await server.ask(f"{server.url}/completions", data, _completion_of_ids)
        if sent != ids:
            raise EnvironmentFault(f"{server.url} answered {len(sent)} prompt tokens that are not the {len(ids)} sent")
        return self.speaker.decide(request, given, output, room)

    async def _by_text(self, server: Server, request: Request, prompt: Prompt) -> Decision:
        # Servers of several kinds take 32 bits only.
        body = {
            "model": self.model,
            "max_tokens": self.options.max_new_tokens,
            **self._sampling(request, request.seed & 0x7FFFFFFF),
        }
        try:
            if prompt.form == "chat":
                body["messages"] = prompt.chat()
                data = json.dumps(body).encode()
                tokens, output = await server.ask(f"{server.url}/chat/completions", data, _chat)
            else:
                body["prompt"] = prompt.text
                data = json.dumps(body).encode()
                tokens, output = await server.ask(f"{server.url}/completions", data, _completion)
        except Refused as error:
            if _is_overflow(error):
                return self.speaker.overflow(request, Input(prompt))
            raise
        given = Input(prompt, tokens=tokens)
        if tokens is not None and tokens > self.options.max_prompt_tokens:
            return self.speaker.overflow(request, given)
        return self.speaker.decide(request, given, output, self.options.max_new_tokens)

    def _all_sampling(self, request: Request, room: int) -> dict[str, Any]:
        body = {
            "max_tokens": room,
            "return_token_ids": True,
            "skip_special_tokens": True,
            # A server may have other defaults from the checkpoint's generation_config.json: state them all.
            "top_k": self.options.top_k or -1,
            "min_p": 0.0,
            "repetition_penalty": 1.0,
            **self._sampling(request, request.seed),
        }
        if self.options.constrain:
            body["structured_outputs"] = {"choice": list(request.record.admissible)}
        return body

    def _sampling(self, request: Request, seed: int) -> dict[str, Any]:
        body: dict[str, Any] = {
            "temperature": request.tempered(self.options.temperature),
            "top_p": self.options.top_p,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
            "seed": seed,
        }
        if self.options.stop:
            body["stop"] = list(self.options.stop)
        return body

    async def aclose(self) -> None:
        for server in self.servers:
            await server.close()


async def _introduce(server: Server, model: str) -> tuple[str, dict[str, Any]]:
    """The model's name and what the server says of it."""
    try:
        cards = await server.ask(f"{server.url}/models", None, _cards)
    except Refused as error:
        raise UsageError(f"{server.url} is not an OpenAI-compatible server: {error}") from error
    names = sorted(cards)
    if not model:
        if len(names) != 1:
            raise UsageError(f"{server.url} serves {', '.join(names) or 'no model'}: write openai:{server.url}#MODEL")
        model = names[0]
    if model not in cards:
        raise UsageError(f"{server.url} serves no model {model!r} (it serves: {', '.join(names) or 'none'})")
    card = cards[model]
    limit = card.get("max_model_len")
    root = card.get("root")
    about: dict[str, Any] = {
        "name": None,
        "version": None,
        "max_model_len": limit if isinstance(limit, int) else None,
        # A hub name says which weights these are; of a path only the last part is kept.
        "root": str(root).rstrip("/").rsplit("/", 1)[-1] if root and str(root).startswith(("/", ".")) else root,
        "tokenize": False,
    }
    try:
        about["version"] = await server.ask(f"{server.root}/version", None, lambda answer: str(answer.form["version"]))
        await server.ask(f"{server.root}/tokenize", json.dumps({"model": model, "prompt": "a"}).encode(), _ids)
        about |= {"name": "vllm", "tokenize": True}
    except (Refused, KeyError, TypeError):
        about["version"] = None
    return model, about


async def _is_whole(server: Server, model: str) -> bool:
    """Whether the server's chat answers hold the whole reply as the model wrote it, and the ids that ``/tokenize``
    gives.

    A server that takes thinking or tool calls out of replies hides the ids of a reply whose thinking it was told to
    leave out.
    """
    body = {"model": model, "messages": [{"role": "user", "content": "a"}], "add_generation_prompt": True}
    probe = {**body, "max_tokens": 1, "temperature": 0.0, "seed": 0, "return_token_ids": True}
    try:
        alone = json.dumps({**body, "add_special_tokens": False}).encode()
        expected = await server.ask(f"{server.root}/tokenize", alone, _ids)
        asked = json.dumps({**probe, "include_reasoning": False}).encode()
        found = await server.ask(f"{server.url}/chat/completions", asked, _chat_of_ids)
    except Refused:
        return False
    return found is not None and found[0] == expected


def _with(body: Mapping[str, Any], key: str, value: bytes) -> bytes:
    """JSON of ``body`` with one more entry, whose ``value`` is JSON already."""
    return b'%s, "%s": %s}' % (json.dumps(body).encode()[:-1], key.encode(), value)


def _cards(answer: Answer) -> dict[str, Any]:
    try:
        return {str(card["id"]): card for card in answer.form["data"]}
    except (KeyError, TypeError) as error:
        raise BadAnswer(f"no list of models: {error}") from None


def _ids(answer: Answer) -> TokenIds:
    tokens = answer.token_ids("tokens", answer.form)
    if tokens is None:
        raise BadAnswer("no token ids in the answer")
    return tokens


def _choice(answer: Answer) -> dict[str, Any]:
    form = answer.form
    choices = form.get("choices") if isinstance(form, dict) else None
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        raise BadAnswer("the answer has no choice")
    if choices[0].get("finish_reason") in FAILED:
        raise BadAnswer(f"generation did not end (finish reason {choices[0].get('finish_reason')!r})")
    return choices[0]


def _stop(choice: Mapping[str, Any]) -> str | None:
    stop = choice.get("stop_reason")
    return stop if isinstance(stop, str) else None


def _completion_of_ids(answer: Answer) -> tuple[TokenIds, Output]:
    choice = _choice(answer)
    sent, ids = answer.token_ids("prompt_token_ids", choice), answer.token_ids("token_ids", choice)
    if sent is None or ids is None:
        raise BadAnswer("the answer has no token ids")
    return sent, Output(choice.get("text") or "", str(choice["finish_reason"]), _stop(choice), ids)


def _chat_of_ids(answer: Answer) -> tuple[TokenIds, Output] | None:
    """``None`` if the answer lacks token ids, or the reply was taken apart."""
    choice = _choice(answer)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise BadAnswer("the answer has no message")
    sent, ids = answer.token_ids("prompt_token_ids", answer.form), answer.token_ids("token_ids", choice)
    apart = any(message.get(part) not in (None, []) for part in ("reasoning", "reasoning_content", "tool_calls"))
    if sent is None or ids is None or apart:
        return None
    text = message.get("content")
    return sent, Output(text if isinstance(text, str) else "", str(choice["finish_reason"]), _stop(choice), ids)


def _usage(answer: Answer) -> tuple[int | None, int | None]:
    usage = answer.form.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    counts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
    prompt, reply = (count if type(count) is int else None for count in counts)
    return prompt, reply


def _completion(answer: Answer) -> tuple[int | None, Output]:
    choice = _choice(answer)
    prompt, reply = _usage(answer)
    return prompt, Output(choice.get("text") or "", str(choice["finish_reason"]), _stop(choice), tokens=reply)


def _chat(answer: Answer) -> tuple[int | None, Output]:
    choice = _choice(answer)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise BadAnswer("the answer has no message")
    prompt, reply = _usage(answer)
    text = message.get("content")
    text = text if isinstance(text, str) else ""
    flags: tuple[str, ...] = ()
    calls = message.get("tool_calls")
    if not text.strip() and isinstance(calls, list) and calls:
        text, flags = "\n".join(_call_text(call) for call in calls), ("tool_call",)
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    return prompt, Output(
        text,
        str(choice["finish_reason"]),
        _stop(choice),
        tokens=reply,
        reasoning=reasoning if isinstance(reasoning, str) else None,
        flags=flags,
    )


def _call_text(call: Any) -> str:
    """A tool call as the text that a model without a tool parser would have written."""
    function = call.get("function") if isinstance(call, dict) else None
    function = function if isinstance(function, dict) else {}
    form = {"name": function.get("name"), "arguments": function.get("arguments")}
    return f"<tool_call>{json.dumps(form)}</tool_call>"


_OVERFLOW: Sequence[str] = ("context_length_exceeded", "maximum context length", "context length", "too many tokens")


def _is_overflow(error: Refused) -> bool:
    text = str(error).lower()
    return error.status in (400, 413, 422) and any(sign in text for sign in _OVERFLOW)
