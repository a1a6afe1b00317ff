"""Ends open requests and streams as soon as their token is revoked or their sign-in ends."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from skillhall._internal.http.credentials import Credential, Credentials

_DISCONNECT: Message = {"type": "http.disconnect"}


class OpenRequests:
    """Requests in progress whose token or sign-in can end."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._requests: set[_OpenRequest] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        credentials.on_change(self._on_tokens_changed)

    async def handle(
        self, credential: Credential, app: ASGIApp, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Run the app; if the token is revoked, the app sees the client disconnect."""
        self._loop = asyncio.get_running_loop()
        request = _OpenRequest(credential, receive)
        self._requests.add(request)
        try:
            # The token may have been revoked since it was checked.
            if not self._credentials.is_valid(credential):
                request.revoked.set()
            await app(scope, request.receive, send)
        finally:
            self._requests.discard(request)

    def _on_tokens_changed(self) -> None:
        # Runs in the thread that polls the tokens.
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed, so no request is open
                self._loop.call_soon_threadsafe(self._revoke_invalid)

    def _revoke_invalid(self) -> None:
        for request in self._requests:
            if not self._credentials.is_valid(request.credential):
                request.revoked.set()


class _OpenRequest:
    """A request whose `receive` reports a disconnect once the token is revoked."""

    def __init__(self, credential: Credential, receive: Receive) -> None:
        self.credential = credential
        self.revoked = asyncio.Event()
        self._receive = receive
        self._is_body_complete = False

    async def receive(self) -> Message:
        """Return the next message. The body is always passed on completely."""
        if not self._is_body_complete:
            message = await self._receive()
            self._is_body_complete = not message.get("more_body", False)
            return message
        if self.revoked.is_set():
            return _DISCONNECT
        receiving = asyncio.ensure_future(self._receive())
        revoked = asyncio.ensure_future(self.revoked.wait())
        try:
            await asyncio.wait({receiving, revoked}, return_when=asyncio.FIRST_COMPLETED)
            return receiving.result() if receiving.done() else _DISCONNECT
        finally:
            receiving.cancel()
            revoked.cancel()
