"""One HTTP server, asked with patience: the same request again after whatever a server may suffer.

A retry repeats the request byte for byte, seed included, so that it cannot shift what is sampled.  Repeated are:
connections that fail or break, answers that are cut short or are no JSON or lack what was asked for, time-outs, and the
statuses 408, 409, 425, 429 and 5xx.  Between tries the client waits (twice as long each time, or as Retry-After says).
A server that has not given one good answer for ``patience`` seconds counts as gone.
"""

from __future__ import annotations

import asyncio
import email.utils
import json
import os
import random
import time
from collections.abc import Callable
from datetime import datetime, timezone
from functools import lru_cache
from typing import TypeVar
from urllib.parse import urlsplit

import aiohttp

from handoff.errors import Interrupted, UsageError
from handoff.policies.openai.answers import Answer, parse
from handoff.policies.openai.wire import Wire, open_wire

T = TypeVar("T")

RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
FIRST_WAIT, LONGEST_WAIT = 0.25, 20.0


class BadAnswer(ValueError):
    """An answer of status 200 that is not one: it lacks what was asked for."""


class Refused(Exception):
    """The server understood and refused (a status that is not retried)."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Server:
    """A server at ``url`` (``http://host:port/v1``).

    The API key is read from the environment variable ``api_key_env`` and is never part of a message.
    """

    def __init__(self, url: str, concurrency: int, timeout: float, patience: float, api_key_env: str) -> None:
        self.url = check_url(url)
        self._timeout, self._patience, self._concurrency = timeout, patience, concurrency
        self._key = os.environ.get(api_key_env, "")
        self._key_name = api_key_env
        if not (self._key.isascii() and self._key.isprintable()):
            raise UsageError(f"{api_key_env} holds characters that an API key cannot have")
        self._wire: Wire | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._slots = asyncio.Semaphore(concurrency)
        self._last_good = 0.0
        self.retries = 0

    @property
    def root(self) -> str:
        """The URL without its ``/v1``: where vLLM has ``/tokenize``, ``/health`` and ``/version``."""
        return self.url.removesuffix("/v1")

    async def ask(self, url: str, body: bytes | None, read: Callable[[Answer], T]) -> T:
        """``read`` of the JSON answer to a POST of the JSON ``body`` (GET without one).

        ``read`` raises :class:`BadAnswer` for an answer to be asked again.  Raises :class:`Refused`,
        :class:`~handoff.errors.UsageError` for a rejected API key and :class:`~handoff.errors.Interrupted` when
        patience is at its end.
        """
        started = time.monotonic()
        attempt = 0
        async with self._slots_here():
            while True:
                try:
                    answer = read(await self._once(url, body))
                except (aiohttp.ClientError, asyncio.TimeoutError, OSError, BadAnswer, _Later) as error:
                    wait = min(LONGEST_WAIT, FIRST_WAIT * 2**attempt) * random.uniform(0.5, 1.0)
                    if isinstance(error, _Later) and error.wait is not None:
                        wait = error.wait
                    now = time.monotonic()
                    if self._lost(error, attempt, wait, started, now):
                        raise Interrupted(await self._gone(error, attempt + 1, now - started)) from error
                    self.retries += 1
                    attempt += 1
                    await asyncio.sleep(wait)
                else:
                    self._last_good = time.monotonic()
                    return answer

    def _lost(self, error: BaseException, attempt: int, wait: float, started: float, now: float) -> bool:
        """Whether to give up: the server has been silent for too long, or fails this one request again and again
        while it answers others (for much longer where it only asks to slow down)."""
        if isinstance(error, _Later) and error.wait is not None and error.wait > self._patience:
            return True
        slow_down = isinstance(error, _Later) and error.status == 429
        silent = now - max(started, self._last_good)
        spent = now - started + wait
        return attempt >= 2 and (silent + wait > self._patience or spent > self._patience * (20 if slow_down else 3))

    async def _once(self, url: str, body: bytes | None) -> Answer:
        reply = await self._open().send(_path(url), body, self._timeout)
        raw = reply.body
        if reply.status in RETRIED:
            wait = _retry_after(reply.headers.get("retry-after"))
            raise _Later(reply.status, f"HTTP {reply.status}: {self._excerpt(raw)}", wait)
        if reply.status in (401, 403):
            state = f"the one in {self._key_name} was not accepted" if self._key else f"{self._key_name} is not set"
            raise UsageError(f"{self.url} wants an API key, and {state} (HTTP {reply.status})")
        if reply.status != 200:
            raise Refused(reply.status, f"HTTP {reply.status}: {self._excerpt(raw)}")
        try:
            return parse(raw)
        except (ValueError, RecursionError):
            raise BadAnswer(f"the answer is not JSON: {self._excerpt(raw)}") from None

    async def _gone(self, error: BaseException, tries: int, seconds: float) -> str:
        what = str(error) or type(error).__name__
        if isinstance(error, asyncio.TimeoutError):
            what = f"no answer within {self._timeout:g} s"
        message = f"model server {self.url} gave no good answer in {tries} tries over {seconds:.0f} s (last: {what})"
        if isinstance(error, _Later) and not await self._healthy():
            message += "; its engine is dead: restart the server"
        return self._redact(message)

    async def _healthy(self) -> bool:
        """Whether the server says that its engine lives; a server without such a page is given the benefit."""
        try:
            return (await self._open().send(_path(f"{self.root}/health"), None, 5.0)).status not in RETRIED
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError):
            return False

    def _open(self) -> Wire:
        loop = asyncio.get_running_loop()
        if self._wire is None or self._loop is not loop:
            self._loop = loop
            self._wire = open_wire(self.url, {"Authorization": f"Bearer {self._key}"} if self._key else {})
        return self._wire

    def _slots_here(self) -> asyncio.Semaphore:
        if self._loop is not asyncio.get_running_loop():
            self._slots = asyncio.Semaphore(self._concurrency)
            self._open()
        return self._slots

    def _excerpt(self, raw: bytes) -> str:
        text = " ".join(raw[:2000].decode("utf-8", "replace").split())
        try:
            form = json.loads(raw)
            error = form.get("error", form)
            text = f"{error.get('message', text)} {error.get('code') or ''}" if isinstance(error, dict) else str(error)
        except (ValueError, AttributeError, RecursionError):
            pass
        return self._redact(text.strip()[:300] or "(empty)")

    def _redact(self, text: str) -> str:
        return text.replace(self._key, "***") if self._key else text

    async def close(self) -> None:
        if self._wire is not None and self._loop is asyncio.get_running_loop():
            await self._wire.close()
        self._wire = self._loop = None


class _Later(Exception):
    """A status that is retried; ``wait`` is what its Retry-After asks for."""

    def __init__(self, status: int, message: str, wait: float | None) -> None:
        super().__init__(message)
        self.status, self.wait = status, wait


@lru_cache
def _path(url: str) -> str:
    return urlsplit(url).path


def _retry_after(header: str | None) -> float | None:
    """Seconds that a Retry-After header asks for (a number, or a date)."""
    if header is None:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        when = email.utils.parsedate_to_datetime(header)
    except (TypeError, ValueError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=timezone.utc)
    return max(0.0, (when - datetime.now(timezone.utc)).total_seconds())


def check_url(url: str) -> str:
    """``url`` with ``/v1`` at its end if it had no path.  Raises :class:`~handoff.errors.UsageError`."""
    parts = urlsplit(url.strip().rstrip("/"))
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"write a server's URL as http://HOST:PORT/v1 (got {url!r})")
    try:
        parts.port  # noqa: B018 - it is checked when it is looked at
    except ValueError as error:
        raise UsageError(f"write a server's URL as http://HOST:PORT/v1 (got {url!r}: {error})") from None
    if parts.username or parts.password or parts.query:
        raise UsageError("a server's URL holds no user name, password or query: keys come from the environment")
    return f"{parts.scheme}://{parts.netloc}{parts.path or '/v1'}"
