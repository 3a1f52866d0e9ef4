"""Who answers behind the servers of a policy: names, system fingerprints, and the fingerprint of the model.

The rule: a policy is answered under one name.  It may be another than the one that was asked for (a gateway's alias):
that name is stated in the manifest.  Another name later on ends the run, because nobody knows what its model is, and so
do other greedy replies when a run is resumed.  A system fingerprint tells of software and hardware: a change is
remarked on and ends nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import attrs

from handoff.errors import Interrupted, UsageError
from handoff.policies.language import fingerprint
from handoff.policies.language.fingerprint import Fingerprint
from handoff.policies.language.model import Output
from handoff.policies.language.options import ModelOptions
from handoff.policies.language.prompts import Prompt
from handoff.policies.openai import fields, schema
from handoff.policies.openai.answers import Answer
from handoff.policies.openai.client import Refused, Server
from handoff.policies.openai.refusals import Complaint
from handoff.policies.openai.schema import Completion
from handoff.text import printable

C = TypeVar("C", Completion, Completion | None)

#: Characters that are kept of a name.
_MOST = 200


class Answering:
    """What the servers of one policy show of the model that answers."""

    def __init__(self, servers: Sequence[Server], asked: str, options: ModelOptions) -> None:
        self.asked = asked
        self.servers = servers
        #: The name under which the policy is answered; ``None``: no answer has stated one yet.
        self.name: str | None = None
        self.systems: set[str] = set()
        self.fingerprint = fingerprint.NOTHING
        self._options = options
        self._is_known = False

    async def ask(
        self,
        server: Server,
        page: str,
        data: bytes,
        read: Callable[[Answer], C],
        *overflows: Callable[[Complaint], bool],
    ) -> C:
        """The answer to one request for generation, as :meth:`Server.ask`, with note taken of who gave it.

        Raises :class:`~handoff.errors.Interrupted` if it comes under another name than the answers before.
        """
        completion = await server.ask(f"{server.url}/{page}", data, read, *overflows)
        if completion is None:
            return completion
        self._note(server.url, completion)
        # Parts that were joined can make a key that none of them had.
        output = completion.output
        texts: dict[str, Any] = {"text": output.text, "reasoning": output.reasoning, "refusal": output.refusal}
        hidden: dict[str, Any] = {name: server.without_key(text) for name, text in texts.items() if text}
        if any(hidden[name] != texts[name] for name in hidden):
            return attrs.evolve(completion, output=attrs.evolve(output, **hidden))
        return completion

    def _note(self, url: str, completion: Completion) -> None:
        system, name = _cleaned(completion.system_fingerprint), _cleaned(completion.model)
        if system is not None:
            self.systems.add(system)
        if name is not None and self.name is not None and name != self.name:
            if not self._is_known:
                raise UsageError(
                    f"model {self.asked} is answered as {self.name} and, by {url}, as {name}: a policy is one model; "
                    "name a model and servers that always answer under one name"
                )
            raise Interrupted(
                f"{url} answers as {name} now, and answered as {self.name} before: another model may be behind "
                f"{self.asked}. Its last answer was not used; go on when {self.name} is served there again"
            )
        if name is not None and self.name is None and self._is_known and name != self.asked:
            raise Interrupted(
                f"{url} answers as {name} now, and stated no name before: another model may be behind {self.asked}. "
                f"Its last answer was not used; go on when {self.asked} is served there again"
            )
        self.name = self.name or name

    async def identify(self, tokenizes: bool) -> None:
        """Take the fingerprint that all servers have in common; ``tokenizes``: they give token ids.

        Raises :class:`~handoff.errors.UsageError` if different models answer.
        """
        taken = [await fingerprint.take(partial(self._probe, server, tokenizes)) for server in self.servers]
        for server, other in zip(self.servers, taken, strict=True):
            difference = taken[0].difference(other)
            if difference is not None:
                raise UsageError(
                    f"servers of one policy must be equal, but under the name {self.asked} {self.servers[0].url} and "
                    f"{server.url} differ: {difference}"
                )
        self.fingerprint = fingerprint.in_common(taken)
        self._is_known = True

    async def count(self, server: Server, prompt: Prompt) -> int | None:
        """Tokens of ``prompt`` by the server's own count, which takes a reply of one token; ``None``: it states none.

        Raises :class:`~handoff.policies.openai.client.Refused`.
        """
        return (await self._greedy(server, prompt, 1)).prompt_tokens

    async def _probe(self, server: Server, tokenizes: bool, text: str) -> Output | None:
        """The greedy reply to ``text``; ``None``: the server refuses the request."""
        # Token ids come with text completions from every server that has them, also from one that takes replies apart.
        form = "text" if tokenizes else self._options.prompt_form
        try:
            completion = await self._greedy(server, Prompt(form, (("user", text),)), fingerprint.TOKENS, ids=tokenizes)
        except Refused:
            return None
        return completion.output

    async def _greedy(self, server: Server, prompt: Prompt, tokens: int, ids: bool = False) -> Completion:
        """A greedy reply of at most ``tokens`` tokens."""
        body: dict[str, Any] = {"model": self.asked, "temperature": 0.0, "seed": fingerprint.SEED}
        body |= fields.limit(self._options, prompt.form, tokens)
        if prompt.form == "chat":
            data = json.dumps(body | {"messages": prompt.chat()}).encode()
            return await self.ask(server, "chat/completions", data, schema.chat)
        body["prompt"] = prompt.text
        if not ids:
            return await self.ask(server, "completions", json.dumps(body).encode(), schema.completion)
        body |= {"return_token_ids": True, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}
        return await self.ask(server, "completions", json.dumps(body).encode(), schema.completion_with_ids)

    def describe(self) -> dict[str, Any]:
        """For the manifest: the fingerprint, and the name where it is not the one that was asked for."""
        alias = {} if self.name in (None, self.asked) else {"answers_as": self.name}
        return {**alias, "fingerprint": self.fingerprint.to_json()}

    def resume_from(self, stated: Mapping[str, Any]) -> list[str]:
        """As :meth:`handoff.policies.policy.Policy.resume_from`."""
        if "fingerprint" not in stated:
            return ["begun by a version that took no fingerprint: whether the same model answers now is not known"]
        urls = " and ".join(server.url for server in self.servers)
        before = stated.get("answers_as", self.asked)
        if self.name not in (None, before):
            raise UsageError(f"{urls} answered as {before} when the run was begun, and answers as {self.name} now")
        earlier = Fingerprint.from_json(stated["fingerprint"])
        if earlier.differing(self.fingerprint):
            raise UsageError(
                f"another model than when the run was begun, or other software, answers at {urls} under the name "
                f"{self.asked}: {earlier.difference(self.fingerprint)}"
            )
        if not earlier.common(self.fingerprint):
            return ["no greedy reply can be compared: whether the same model answers as before is not known"]
        return []

    def limits(self) -> str | None:
        """What is not known of the model, in words."""
        return self.fingerprint.limits()


def _cleaned(text: str | None) -> str | None:
    """What is kept of a name in an answer."""
    if text is None or not text.strip():
        return None
    if text.startswith(("/", "./")):  # of a path only the last part is kept
        text = text.rstrip("/").rsplit("/", 1)[-1]
    return printable(text)[:_MOST]
