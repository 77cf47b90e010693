# SPDX-License-Identifier: Apache-2.0
"""Every request passes here. _transport.py is made of this file by make_sync.py."""
from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Any, AsyncIterator

import httpx

from . import wire
from .config import Place, find

TRIES = 5
FIRST_PAUSE = 0.1
TIMEOUT = httpx.Timeout(60, connect=10)
SLOW = httpx.Timeout(60, connect=10, read=None)


class _AsyncNoDelay:
    """Old httpcore leaves Nagle's algorithm on: every POST with a body then waits 40 ms."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def connect_tcp(self, *args: Any, **options: Any) -> Any:
        stream = await self._inner.connect_tcp(*args, **options)
        connection = stream.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return stream

    async def connect_unix_socket(self, *args: Any, **options: Any) -> Any:
        stream = await self._inner.connect_unix_socket(*args, **options)
        return stream

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


class AsyncServer:
    """A Silt server: connections are kept and shared by all its sandboxes."""

    def __init__(self, url: str | None = None, token: str | None = None, place: Place | None = None) -> None:
        self.place = place or find(url, token)
        verify: Any = ssl.create_default_context(cafile=self.place.ca) if self.place.ca else True
        uds = self.place.url[len("unix:"):] if self.place.url.startswith("unix:") else None
        transport = httpx.AsyncHTTPTransport(verify=verify, uds=uds, limits=httpx.Limits(
            max_connections=256, max_keepalive_connections=32, keepalive_expiry=30))
        pool = getattr(transport, "_pool", None)
        if pool is not None and hasattr(pool, "_network_backend"):
            pool._network_backend = _AsyncNoDelay(pool._network_backend)
        headers = {"Authorization": f"Bearer {self.place.token}"} if self.place.token else {}
        self._client = httpx.AsyncClient(transport=transport, headers=headers, timeout=TIMEOUT, trust_env=False,
                                         base_url="http://localhost" if uds else self.place.url)

    async def close(self) -> None:
        await self._client.aclose()

    async def _send(self, method: str, path: str, stream: bool, slow: bool, again: bool,
                    **options: Any) -> httpx.Response:
        pause = FIRST_PAUSE
        for tries in range(1, TRIES + 1):
            request = self._client.build_request(method, path, timeout=SLOW if slow else TIMEOUT, **options)
            try:
                response = await self._client.send(request, stream=stream)
                if response.status_code != 503 or not again or tries == TRIES:
                    return response
                await response.aclose()
            except httpx.ConnectError as cause:
                if tries == TRIES:
                    raise wire.unreachable(self.place.url, cause) from cause
            except httpx.HTTPError as cause:
                if not again or tries == TRIES or isinstance(cause, httpx.TimeoutException):
                    raise wire.broken(method, path, cause) from cause
            await asyncio.sleep(pause)
            pause *= 2
        raise AssertionError("unreachable")

    async def open(self, method: str, path: str, *, slow: bool = False, **options: Any) -> httpx.Response:
        """A response whose body the caller reads and closes. Errors are raised."""
        response = await self._send(method, path, True, slow, method in ("GET", "HEAD"), **options)
        if response.status_code < 400:
            return response
        try:
            text = await response.aread()
        finally:
            await response.aclose()
        raise wire.error_of(response.status_code, text)

    async def call(self, method: str, path: str, *, slow: bool = False, **options: Any) -> dict[str, Any]:
        """A response as JSON."""
        response = await self._send(method, path, False, slow, method in ("GET", "HEAD"), **options)
        if response.status_code >= 400:
            raise wire.error_of(response.status_code, response.content)
        return wire.read_json(response.content)

    async def events(self, method: str, path: str, **options: Any) -> AsyncIterator[dict[str, Any]]:
        """Server-sent events. The last one is not known here: a stream that breaks raises."""
        headers = {"Accept": "text/event-stream"}
        response = await self.open(method, path, slow=True, headers=headers, **options)
        parser = wire.Events()
        try:
            async for piece in response.aiter_raw():
                for event in parser.feed(piece):
                    yield event
        except httpx.HTTPError as cause:
            raise wire.broken(method, path, cause) from cause
        finally:
            await response.aclose()
