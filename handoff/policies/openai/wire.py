"""HTTP/1.1 over kept connections: what asking a model server takes and no more.

A run sends one small request per decision, and a full-featured client spends more time on it than all the rest of the
toolkit.  Here a connection is an asyncio protocol whose bytes llhttp (``httptools``) reads, one request at a time, and
is used again.  Where the environment names a proxy for the server, aiohttp does the asking.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Protocol
from urllib.parse import quote, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import attrs
import httptools

from handoff import __version__

#: Bytes that an answer may have: a server that sends more is not answering.
MOST = 1 << 28


class Broken(ConnectionError):
    """The connection ended before the answer did, or what came is no HTTP."""


@attrs.frozen
class Reply:
    """``headers`` have names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Wire(Protocol):
    """Connections to one server, in one event loop."""

    async def send(self, path: str, body: bytes | None, timeout: float) -> Reply:
        """The reply to a POST of the JSON ``body`` to ``path`` (GET without one).

        Raises ``OSError`` (:class:`Broken` and what connecting raises), ``aiohttp.ClientError`` or, after ``timeout``
        seconds, ``asyncio.TimeoutError``.
        """

    async def close(self) -> None: ...


def open_wire(url: str, headers: Mapping[str, str]) -> Wire:
    """A wire to the server of ``url``, whose requests all have these ``headers``."""
    parts = urlsplit(url)
    local = parts.hostname in ("127.0.0.1", "localhost", "::1")  # a proxy is for other machines
    if not local and parts.scheme in getproxies() and not proxy_bypass(parts.hostname or ""):
        return _Proxied(f"{parts.scheme}://{parts.netloc}", headers)
    return _Direct(parts.scheme, parts.netloc, parts.hostname or "", parts.port, headers)


@lru_cache
def _target(path: str) -> bytes:
    return quote(path, safe="/%:@!$&'()*+,;=~").encode()


class _Direct:
    def __init__(self, scheme: str, netloc: str, host: str, port: int | None, headers: Mapping[str, str]) -> None:
        self._host, self._port = host, port or (443 if scheme == "https" else 80)
        self._ssl = ssl.create_default_context() if scheme == "https" else None
        all_headers = {
            "Host": netloc if netloc.isascii() else netloc.encode("idna").decode(),
            "User-Agent": f"handoff/{__version__}",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            **headers,
        }
        self._head = "".join(f"{name}: {value}\r\n" for name, value in all_headers.items()).encode("ascii")
        self._idle: list[_Connection] = []
        self._all: set[_Connection] = set()

    async def send(self, path: str, body: bytes | None, timeout: float) -> Reply:
        target = _target(path)
        if body is None:
            request = b"GET %s HTTP/1.1\r\n%s\r\n" % (target, self._head)
        else:
            form = b"POST %s HTTP/1.1\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
            request = form % (target, self._head, len(body), body)
        while self._idle:
            connection = self._idle.pop()
            if not connection.open:
                continue
            try:
                return await self._over(connection, request, timeout)
            except Broken:
                if connection.answering:
                    raise
                # The server closed a connection that nobody used, as it may: that is no failure of this request.
        loop = asyncio.get_running_loop()
        connecting = loop.create_connection(
            _Connection, self._host, self._port, ssl=self._ssl, server_hostname=self._host if self._ssl else None
        )
        _, connection = await asyncio.wait_for(connecting, timeout)
        self._all.add(connection)
        return await self._over(connection, request, timeout)

    async def _over(self, connection: _Connection, request: bytes, timeout: float) -> Reply:
        try:
            reply = await connection.ask(request, timeout)
        except BaseException:
            connection.abort()  # its answer may still come
            self._all.discard(connection)
            raise
        if connection.open:
            self._idle.append(connection)
        else:
            self._all.discard(connection)
        return reply

    async def close(self) -> None:
        for connection in self._all:
            connection.abort()
        self._all.clear()
        self._idle.clear()


class _Connection(asyncio.Protocol):
    """One connection.  ``open``: another request can be made; ``answering``: some of the last answer has come."""

    def __init__(self) -> None:
        self.open = self.answering = False
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[Reply] | None = None
        self._parser: Any = None
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._size = 0

    async def ask(self, request: bytes, timeout: float) -> Reply:
        assert self._transport is not None
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        self.answering = False
        self._parser, self._headers, self._body, self._size = httptools.HttpResponseParser(self), {}, [], 0
        timer = loop.call_later(timeout, self._fail, asyncio.TimeoutError())
        try:
            self._transport.write(request)
            return await self._waiter
        finally:
            timer.cancel()
            self._waiter = None

    def abort(self) -> None:
        self.open = False
        if self._transport is not None:
            self._transport.abort()

    def _fail(self, error: BaseException) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)

    # what the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self.open = transport, True

    def data_received(self, data: bytes) -> None:
        if self._waiter is None or self._waiter.done():
            self.abort()  # nobody asked
            return
        self.answering = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(Broken(f"what came is not HTTP ({error})"))

    def connection_lost(self, error: Exception | None) -> None:
        self.open = False
        framed = "content-length" in self._headers or "transfer-encoding" in self._headers
        if error is None and self._headers and not framed:
            self._complete()  # such an answer ends where the connection does
        self._fail(Broken(f"the server closed the connection{f' ({error})' if error else ''}"))

    # what the parser calls

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if self._size > MOST:
            self._fail(Broken(f"the answer has more than {MOST} bytes"))
            self.abort()
        else:
            self._body.append(body)

    def on_message_complete(self) -> None:
        if self._parser.get_status_code() < 200:  # a word in between
            self._headers, self._body = {}, []
            return
        self.open = self.open and self._parser.should_keep_alive()
        self._complete()
        if not self.open and self._transport is not None:
            self._transport.close()

    def _complete(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(Reply(self._parser.get_status_code(), self._headers, b"".join(self._body)))


class _Proxied:
    def __init__(self, root: str, headers: Mapping[str, str]) -> None:
        self._root = root
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), headers=dict(headers), trust_env=True
        )

    async def send(self, path: str, body: bytes | None, timeout: float) -> Reply:
        method = "GET" if body is None else "POST"
        headers = {} if body is None else {"Content-Type": "application/json"}
        limit = aiohttp.ClientTimeout(total=timeout)
        async with self._session.request(
            method, self._root + path, data=body, headers=headers, timeout=limit
        ) as response:
            lower = {name.lower(): value for name, value in response.headers.items()}
            return Reply(response.status, lower, await response.read())

    async def close(self) -> None:
        await self._session.close()
