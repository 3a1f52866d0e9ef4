"""``openai:URL[,URL...]#MODEL``: a model behind an OpenAI-compatible server.

A vLLM server is told apart by its ``/version`` and ``/tokenize``.  From it every decision gets the full account: the
prompt is tokenized by the server, its room in the context computed, and exactly those token ids are sent and must come
back; the ids of the reply are recorded.  Any other server is sent the messages: what is recorded is the digest of the
rendered prompt and the server's own count of tokens, and overflow is what the server says it is.

Of several URLs each episode has one, by a hash of its task and seed slot: the choice does not depend on timing, and all
turns of an episode find its prefix cached.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from handoff.errors import EnvironmentFault, UsageError
from handoff.policies.base import Request, Served
from handoff.policies.http import BadAnswer, Refused, Server
from handoff.policies.language import Input, Output, Speaker
from handoff.policies.options import ModelOptions
from handoff.prompts import Prompt
from handoff.records import Decision
from handoff.seeds import derive


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
        found = asyncio.run(self._introduce(model.strip()))
        self.model, self._about = found[0]
        for server, (name, about) in zip(self.servers[1:], found[1:], strict=True):
            if (name, about) != found[0]:
                first = f"{self.servers[0].url} is {self.model} {self._about}"
                raise UsageError(f"servers of one policy must be equal, but {server.url} is {name} {about} and {first}")
        self.full = bool(self._about["tokenize"])
        self.context = self._context()

    def _context(self) -> int | None:
        limits = [limit for limit in (self._about["max_model_len"], self.options.context) if limit]
        return min(limits) if limits else None

    async def _introduce(self, model: str) -> list[tuple[str, dict[str, Any]]]:
        try:
            return [await _introduce(server, model) for server in self.servers]
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
        server = self.servers[derive(request.task.id, request.slot, "server") % len(self.servers)]
        prompt = self.speaker.render(request)
        try:
            return await (self._by_ids if self.full else self._by_text)(server, request, prompt)
        except Refused as error:
            raise UsageError(f"{server.url} refuses a request for model {self.model}: {error}") from error

    async def _by_ids(self, server: Server, request: Request, prompt: Prompt) -> Decision:
        body: dict[str, Any] = {"model": self.model}
        if prompt.form == "chat":
            body |= {"messages": prompt.chat(), "add_generation_prompt": True, "add_special_tokens": False}
        else:
            body |= {"prompt": prompt.text, "add_special_tokens": True}
        ids = await server.ask(f"{server.root}/tokenize", body, _ids)
        given = Input(prompt, ids)
        room = self.options.room(len(ids), self.context)
        if room is None:
            return self.speaker.overflow(request, given)
        body = {
            "model": self.model,
            "prompt": list(ids),
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
        sent, output = await server.ask(f"{server.url}/completions", body, _completion_of_ids)
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
                tokens, output = await server.ask(f"{server.url}/chat/completions", body, _chat)
            else:
                body["prompt"] = prompt.text
                tokens, output = await server.ask(f"{server.url}/completions", body, _completion)
        except Refused as error:
            if _is_overflow(error):
                return self.speaker.overflow(request, Input(prompt))
            raise
        given = Input(prompt, tokens=tokens)
        if tokens is not None and tokens > self.options.max_prompt_tokens:
            return self.speaker.overflow(request, given)
        return self.speaker.decide(request, given, output, self.options.max_new_tokens)

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
        about["version"] = await server.ask(f"{server.root}/version", None, lambda form: str(form["version"]))
        await server.ask(f"{server.root}/tokenize", {"model": model, "prompt": "a"}, _ids)
        about |= {"name": "vllm", "tokenize": True}
    except (Refused, KeyError, TypeError):
        about["version"] = None
    return model, about


def _cards(form: Any) -> dict[str, Any]:
    try:
        return {str(card["id"]): card for card in form["data"]}
    except (KeyError, TypeError) as error:
        raise BadAnswer(f"no list of models: {error}") from None


def _ids(form: Any) -> tuple[int, ...]:
    tokens = form.get("tokens") if isinstance(form, dict) else None
    if not isinstance(tokens, list) or not set(map(type, tokens)) <= {int}:
        raise BadAnswer("no token ids in the answer")
    return tuple(tokens)


def _choice(form: Any) -> dict[str, Any]:
    choices = form.get("choices") if isinstance(form, dict) else None
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        raise BadAnswer("the answer has no choice")
    # No reason to have ended means that it did not end: aborted, or cut off on the way.
    if choices[0].get("finish_reason") in (None, "", "abort", "error"):
        raise BadAnswer(f"generation did not end (finish reason {choices[0].get('finish_reason')!r})")
    return choices[0]


def _stop(choice: Mapping[str, Any]) -> str | None:
    stop = choice.get("stop_reason")
    return stop if isinstance(stop, str) else None


def _completion_of_ids(form: Any) -> tuple[tuple[int, ...], Output]:
    choice = _choice(form)
    sent, ids = choice.get("prompt_token_ids"), choice.get("token_ids")
    if not isinstance(sent, list) or not isinstance(ids, list):
        raise BadAnswer("the answer has no token ids")
    text = choice.get("text") or ""
    return tuple(sent), Output(text, str(choice["finish_reason"]), _stop(choice), tuple(ids))


def _usage(form: Mapping[str, Any]) -> tuple[int | None, int | None]:
    usage = form.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    counts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
    prompt, reply = (count if type(count) is int else None for count in counts)
    return prompt, reply


def _completion(form: Any) -> tuple[int | None, Output]:
    choice = _choice(form)
    prompt, reply = _usage(form)
    return prompt, Output(choice.get("text") or "", str(choice["finish_reason"]), _stop(choice), tokens=reply)


def _chat(form: Any) -> tuple[int | None, Output]:
    choice = _choice(form)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise BadAnswer("the answer has no message")
    prompt, reply = _usage(form)
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
