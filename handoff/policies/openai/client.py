"""One HTTP server, asked with patience: a request that fails is sent again.

A retry repeats the request byte for byte, seed included, so that it cannot shift what is sampled.  A request is
repeated after a connection that fails or breaks, an answer that is cut short, is not JSON or lacks what was asked for,
a time-out, and an error that passes (:mod:`handoff.policies.openai.refusals`).  Between tries the client waits, twice
as long each time, or as Retry-After says.

`docs/models.md` says how long that goes on (Patience); :meth:`Server._end` is the rule.
"""

from __future__ import annotations

import asyncio
import email.utils
import math
import os
import random
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import attrs

from handoff import __version__
from handoff.errors import Interrupted, UsageError
from handoff.policies.openai import refusals
from handoff.policies.openai.answers import Answer, BadAnswer, parse
from handoff.policies.openai.refusals import Complaint, Verdict
from handoff.policies.openai.schema import Stated

T = TypeVar("T")

FIRST_WAIT, LONGEST_WAIT = 0.25, 20.0
#: Bytes that an answer may have.
MOST = 1 << 28
#: A shorter API key is a placeholder, such as "EMPTY": it is no secret, and may be a word of a reply.
SHORTEST_KEY = 8


class Refused(Exception):
    """The server understood and refused: another try would end in the same."""

    def __init__(self, complaint: Complaint) -> None:
        super().__init__(str(complaint))
        self.complaint = complaint
        self.status, self.verdict = complaint.status, complaint.verdict


def _always(complaint: Complaint) -> bool:
    return True


class Server:
    """A server at ``url`` (``http://host:port/v1``).

    The API key is read from the environment variable ``api_key_env``.  Where the server repeats it, in whatever part of
    an answer, asterisks take its place before the answer is read.
    """

    def __init__(self, url: str, concurrency: int, timeout: float, patience: float, api_key_env: str) -> None:
        self.url = check_url(url)
        self._timeout, self._patience, self._concurrency = timeout, patience, concurrency
        # A header loses blanks at its ends, so a server repeats the key without them.
        self._key = os.environ.get(api_key_env, "").strip()
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

    async def ask(
        self,
        url: str,
        body: bytes | None,
        read: Callable[[Answer], T],
        overflows: Callable[[Complaint], bool] = _always,
    ) -> T:
        """``read`` of the JSON answer to a POST of the JSON ``body`` (``None``: a GET).

        ``read`` raises :class:`BadAnswer` for an answer to be asked again.  So is a complaint of a prompt that is too
        long, where it does not hold by ``overflows``.  Raises :class:`Refused`,
        :class:`~handoff.errors.UsageError` for a rejected API key and :class:`~handoff.errors.Interrupted` when
        patience is at its end or the account has no credit.
        """
        attempt = 0
        self._open()
        async with self._slots:
            started = time.monotonic()
            while True:
                try:
                    answer = await self._once(url, body, read, overflows)
                except (aiohttp.ClientError, OSError, BadAnswer, _Later) as error:
                    attempt += 1
                    if isinstance(error, _Later) and (error.wait or 0.0) > self._patience:
                        raise Interrupted(
                            self.without_key(f"model server {self.url} {error.asked(self._patience)}")
                        ) from error
                    now = time.monotonic()
                    end = self._end(error, started)
                    if attempt >= 3 and now >= end:
                        raise Interrupted(await self._gone(error, attempt, now - started)) from error
                    await asyncio.sleep(_pause(error, attempt, end - now))
                else:
                    self._last_good = time.monotonic()
                    return answer

    async def is_web_page(self, url: str) -> bool:
        """Whether the server has a page for people there.  Asks once; of a failure it says no."""
        self._open()
        try:
            status, _, raw = await self._send(url, None, self._timeout)
        except (aiohttp.ClientError, OSError, BadAnswer):
            return False
        return status == 200 and raw.lstrip().startswith(b"<")

    def _end(self, error: BaseException, started: float) -> float:
        """When patience with a request that began at ``started`` ends."""
        slow_down = isinstance(error, _Later) and error.complaint.verdict is Verdict.SLOW_DOWN
        silent = max(started, self._last_good) + self._patience
        return min(silent, started + self._patience * (20 if slow_down else 3))

    async def _once(
        self, url: str, body: bytes | None, read: Callable[[Answer], T], overflows: Callable[[Complaint], bool]
    ) -> T:
        status, headers, raw = await self._send(url, body, self._timeout)
        wait = retry_after(headers.get("Retry-After"))
        if status == 200:
            try:
                return read(self._parsed(raw))
            except Stated as error:
                raise self._failure(error.complaint, wait, overflows) from None
            except RecursionError:
                raise BadAnswer("the answer is nested too deep") from None
        try:
            form = self._parsed(raw).form
        except BadAnswer:
            form = None
        complaint = refusals.read(status, form, self.without_key(_legible(raw)))
        raise self._failure(complaint, wait, overflows)

    def _failure(
        self, complaint: Complaint, wait: float | None, overflows: Callable[[Complaint], bool]
    ) -> BadAnswer | _Later | Refused | UsageError | Interrupted:
        """What to raise for ``complaint``."""
        verdict = complaint.verdict
        if verdict in (Verdict.SLOW_DOWN, Verdict.FAILED) or (verdict is Verdict.UNPAID and wait is not None):
            return _Later(complaint, wait)
        if verdict is Verdict.UNPAID:
            return Interrupted(f"{self.url} says that the account has no credit left ({complaint})")
        if verdict is Verdict.KEY:
            state = f"the one in {self._key_name} was not accepted" if self._key else f"{self._key_name} is not set"
            return UsageError(f"{self.url} wants an API key, and {state} ({complaint})")
        if verdict is Verdict.OVERFLOW and not overflows(complaint):
            return BadAnswer(f"the server says that the prompt is too long, and it is not ({complaint})")
        if verdict is Verdict.REFUSED and 200 <= complaint.status <= 299:
            return BadAnswer(f"the server states an error of an unknown kind ({complaint})")
        return Refused(complaint)

    def _parsed(self, raw: bytes) -> Answer:
        """The answer in ``raw`` without the API key.  Raises :class:`BadAnswer` if it is not JSON."""
        secret = self._secret
        try:
            answer = parse(raw)
            # An escape may hide it, and so may another encoding.
            if secret is not None and any(part in raw for part in (secret.encode(), b"\\", b"\0")):
                answer = attrs.evolve(answer, form=_without(answer.form, secret))
        except (ValueError, RecursionError):
            text = " ".join(self.without_key(_legible(raw)).split())
            raise BadAnswer(f"the answer is not JSON: {text[:300] or '(empty)'}") from None
        return answer

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
        failed = isinstance(error, _Later) and error.complaint.verdict is Verdict.FAILED
        if failed and not await self._is_healthy():
            message += "; its engine is dead: restart the server"
        return self.without_key(message)

    async def _is_healthy(self) -> bool:
        """Whether the server says that its engine lives; a server without such a page gets the benefit of doubt."""
        try:
            status, _, _ = await self._send(f"{self.root}/health", None, 5.0)
        except (aiohttp.ClientError, OSError, BadAnswer):
            return False
        return not refusals.is_passing(status)

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

    @property
    def _secret(self) -> str | None:
        return self._key if len(self._key) >= SHORTEST_KEY else None

    def without_key(self, text: str) -> str:
        """``text`` with asterisks for the API key."""
        return text if self._secret is None else text.replace(self._secret, _HIDDEN)

    async def close(self) -> None:
        """Close what belongs to the running event loop.  May be called twice."""
        if self._loop is asyncio.get_running_loop():
            await self._session.close()
        self._loop = None


class _Later(Exception):
    """An error that passes; ``wait`` is what its Retry-After asks for, in seconds."""

    def __init__(self, complaint: Complaint, wait: float | None) -> None:
        super().__init__(str(complaint))
        self.complaint, self.wait = complaint, wait

    def asked(self, patience: float) -> str:
        """That the server asks for a longer wait than ``patience``."""
        wait = self.wait or 0.0
        long = f" (about {wait / 86400:,.0f} days)" if wait >= 2 * 86400 else ""
        return (
            f"asks by Retry-After for a wait of {wait:.0f} s{long}, which is more than --patience {patience:g} "
            f"({self}): wait as long, or ask for less at once by --concurrency"
        )


_HIDDEN = "***"


def _legible(raw: bytes) -> str:
    """The text of an answer for people.  In UTF-16 every second byte of it is 0, and a key would hide between them."""
    return raw.decode("utf-8", "replace").replace("\0", "")


def _without(form: Any, secret: str) -> Any:
    """The JSON value ``form`` with asterisks for ``secret``."""
    if isinstance(form, str):
        return form.replace(secret, _HIDDEN)
    if isinstance(form, list):
        return [_without(entry, secret) for entry in form]
    if isinstance(form, dict):
        return {_without(key, secret): _without(entry, secret) for key, entry in form.items()}
    return form


def _pause(error: BaseException, attempt: int, left: float) -> float:
    """Seconds to wait before the next try, after ``attempt`` of them, where patience ends in ``left`` seconds."""
    if isinstance(error, _Later) and error.wait:
        return error.wait
    if isinstance(error, aiohttp.ServerDisconnectedError) and attempt == 1:
        return 0.0  # a server may close a kept connection that nobody used
    wait: float = min(LONGEST_WAIT, FIRST_WAIT * 2 ** (attempt - 1)) * random.uniform(0.5, 1.0)
    return min(wait, left) if left > 0 else wait


def has_proxy(url: str) -> bool:
    """Whether the environment names a proxy for the server; a proxy is for other machines."""
    parts = urlsplit(url)
    local = parts.hostname in ("127.0.0.1", "localhost", "::1")
    return not local and parts.scheme in getproxies() and not proxy_bypass(parts.hostname or "")


def retry_after(header: str | None) -> float | None:
    """Seconds that a Retry-After header asks for (a number, or a date); ``None`` if it makes no sense."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        pass
    else:
        return seconds if math.isfinite(seconds) and seconds >= 0 else None
    try:
        when = email.utils.parsedate_to_datetime(header)
        if when.tzinfo is None:
            when = when.replace(tzinfo=UTC)
        return max(0.0, (when - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError, OverflowError, IndexError):
        return None


def check_url(url: str) -> str:
    """``url`` with ``/v1`` at its end if it had no path.  Raises :class:`~handoff.errors.UsageError`."""
    try:
        parts = urlsplit(url.strip().rstrip("/"))
        (parts.hostname or "").encode("idna")
    except ValueError as error:
        raise UsageError(f"write a server's URL as http://HOST:PORT/v1 (got {url!r:.200}: {error})") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"write a server's URL as http://HOST:PORT/v1 (got {url!r})")
    try:
        parts.port  # noqa: B018 - it is checked when it is looked at
    except ValueError as error:
        raise UsageError(f"write a server's URL as http://HOST:PORT/v1 (got {url!r}: {error})") from None
    if parts.username or parts.password or parts.query:
        raise UsageError("a server's URL holds no user name, password or query: keys come from the environment")
    return f"{parts.scheme}://{parts.netloc}{parts.path or '/v1'}"
