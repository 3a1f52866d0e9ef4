"""One HTTP server, asked with patience: a request that fails is sent again.

A retry repeats the request byte for byte, seed included, so that it cannot shift what is sampled.  A request is
repeated after a connection that fails or breaks, an answer that is cut short, is not JSON or lacks what was asked for,
a time-out, and the statuses 408, 409, 425, 429 and 5xx.  Between tries the client waits (twice as long each time, or as
Retry-After says).  A server that has not given one good answer for ``patience`` seconds counts as gone.
"""

from __future__ import annotations

import asyncio
import email.utils
import json
import os
import random
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp

from handoff import __version__
from handoff.errors import Interrupted, UsageError
from handoff.policies.openai.answers import Answer, BadAnswer, parse

T = TypeVar("T")

RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
FIRST_WAIT, LONGEST_WAIT = 0.25, 20.0
#: Bytes that an answer may have.
MOST = 1 << 28


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
        self._loop: asyncio.AbstractEventLoop | None = None
        self._session: aiohttp.ClientSession
        self._slots: asyncio.Semaphore
        self._last_good = 0.0

    @property
    def root(self) -> str:
        """The URL without its ``/v1``: where vLLM has ``/tokenize``, ``/health`` and ``/version``."""
        return self.url.removesuffix("/v1")

    async def ask(self, url: str, body: bytes | None, read: Callable[[Answer], T]) -> T:
        """``read`` of the JSON answer to a POST of the JSON ``body`` (``None``: a GET).

        ``read`` raises :class:`BadAnswer` for an answer to be asked again.  Raises :class:`Refused`,
        :class:`~handoff.errors.UsageError` for a rejected API key and :class:`~handoff.errors.Interrupted` when
        patience is at its end.
        """
        started = time.monotonic()
        attempt = 0
        self._open()
        async with self._slots:
            while True:
                try:
                    answer = read(await self._once(url, body))
                except (aiohttp.ClientError, OSError, BadAnswer, _Later) as error:
                    wait = min(LONGEST_WAIT, FIRST_WAIT * 2**attempt) * random.uniform(0.5, 1.0)
                    if isinstance(error, _Later) and error.wait is not None:
                        wait = error.wait
                    elif isinstance(error, aiohttp.ServerDisconnectedError) and attempt == 0:
                        wait = 0.0  # a server may close a kept connection that nobody used
                    now = time.monotonic()
                    if self._lost(error, attempt, wait, started, now):
                        raise Interrupted(await self._gone(error, attempt + 1, now - started)) from error
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
        status, headers, raw = await self._send(url, body, self._timeout)
        if status in RETRIED:
            raise _Later(status, f"HTTP {status}: {self._excerpt(raw)}", _retry_after(headers.get("Retry-After")))
        if status in (401, 403):
            state = f"the one in {self._key_name} was not accepted" if self._key else f"{self._key_name} is not set"
            raise UsageError(f"{self.url} wants an API key, and {state} (HTTP {status})")
        if status != 200:
            raise Refused(status, f"HTTP {status}: {self._excerpt(raw)}")
        try:
            return parse(raw)
        except (ValueError, RecursionError):
            raise BadAnswer(f"the answer is not JSON: {self._excerpt(raw)}") from None

    async def _send(self, url: str, body: bytes | None, timeout: float) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body of one answer.

        Raises ``aiohttp.ClientError``, ``OSError`` (``TimeoutError`` after ``timeout`` seconds) or :class:`BadAnswer`.
        """
        chunks, size = [], 0
        async with self._session.request(
            "GET" if body is None else "POST",
            url,
            data=body,
            headers=None if body is None else {"Content-Type": "application/json"},
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=timeout),
        ) as response:
            while chunk := await response.content.readany():
                chunks.append(chunk)
                size += len(chunk)
                if size > MOST:
                    raise BadAnswer(f"the answer has more than {MOST} bytes")
            return response.status, response.headers, b"".join(chunks)

    async def _gone(self, error: BaseException, tries: int, seconds: float) -> str:
        cause = str(error) or type(error).__name__
        if isinstance(error, TimeoutError):
            cause = f"no answer within {self._timeout:g} s"
        message = f"model server {self.url} gave no good answer in {tries} tries over {seconds:.0f} s (last: {cause})"
        if isinstance(error, _Later) and not await self._is_healthy():
            message += "; its engine is dead: restart the server"
        return self._redact(message)

    async def _is_healthy(self) -> bool:
        """Whether the server says that its engine lives; a server without such a page gets the benefit of doubt."""
        try:
            status, _, _ = await self._send(f"{self.root}/health", None, 5.0)
        except (aiohttp.ClientError, OSError, BadAnswer):
            return False
        return status not in RETRIED

    def _open(self) -> None:
        """Make what belongs to the running event loop: a session and the slots of requests."""
        loop = asyncio.get_running_loop()
        if self._loop is loop:
            return
        headers = {
            "User-Agent": f"handoff/{__version__}",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
        }
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=headers,
            trust_env=has_proxy(self.url),
        )
        self._slots = asyncio.Semaphore(self._concurrency)
        self._loop = loop

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
        """Close what belongs to the running event loop.  May be called twice."""
        if self._loop is asyncio.get_running_loop():
            await self._session.close()
        self._loop = None


class _Later(Exception):
    """A status that is retried; ``wait`` is what its Retry-After asks for."""

    def __init__(self, status: int, message: str, wait: float | None) -> None:
        super().__init__(message)
        self.status, self.wait = status, wait


def has_proxy(url: str) -> bool:
    """Whether the environment names a proxy for the server; a proxy is for other machines."""
    parts = urlsplit(url)
    local = parts.hostname in ("127.0.0.1", "localhost", "::1")
    return not local and parts.scheme in getproxies() and not proxy_bypass(parts.hostname or "")


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
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())


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
