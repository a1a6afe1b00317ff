"""Starlette responses with the JSON envelope of the API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from skillhall._internal.http.request import REQUEST_ID_KEY
from skillhall._internal.prompt_server.prompt_snapshot import PromptSnapshot

_MAX_JOINED_BYTES = 65_536  # up to this size one write is cheaper than three


class SuccessResponse(Response):
    """Response with a success envelope.

    The envelope is built when it is sent, because its `meta` contains the request id.
    """

    media_type = "application/json"

    def __init__(
        self,
        data: object,
        status_code: int = 200,
        headers: Mapping[str, str] | None = None,
        *,
        snapshot: PromptSnapshot | None = None,
    ) -> None:
        """`data` is a value to encode as JSON, or encoded JSON as bytes.

        If `snapshot` is given, `meta` contains its commit and whether it is stale.
        """
        # Not `Response.__init__`, which would set the length of the body before it is known.
        self.status_code = status_code
        self.background = None
        self.init_headers(headers)
        self._data = data if isinstance(data, bytes) else encode_json(data)
        self._snapshot = snapshot

    def parts(self, request_id: str) -> tuple[bytes, ...]:
        """Return the body in parts, so that large data is not copied."""
        tail = b',"meta":' + encode_meta(request_id, self._snapshot) + b"}"
        return b'{"success":true,"data":', self._data, tail

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Send the response."""
        parts = self.parts(scope[REQUEST_ID_KEY])
        length = sum(map(len, parts))
        headers = [*self.raw_headers, (b"content-length", b"%d" % length)]
        await send({"type": "http.response.start", "status": self.status_code, "headers": headers})
        if length <= _MAX_JOINED_BYTES:
            parts = (b"".join(parts),)
        for part in parts[:-1]:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": parts[-1]})


def failure_response(status: int, error: Mapping[str, object], request_id: str) -> Response:
    """Return a response with an error envelope."""
    body = b'{"success":false,"error":%s,"meta":%s}' % (encode_json(error), encode_meta(request_id))
    return Response(body, status, media_type="application/json")


def encode_json(value: object) -> bytes:
    """Encode a value as JSON. Unpaired surrogates become question marks."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), check_circular=False)
    return text.encode("utf-8", "replace")


def encode_meta(request_id: str, snapshot: PromptSnapshot | None = None) -> bytes:
    """Encode the `meta` of a response, with the commit and staleness of its snapshot."""
    # Nothing to escape: a request id has only letters, digits and "._-".
    text = f'{{"timestamp":"{utc_timestamp()}","requestId":"{request_id}","version":"v1"'.encode()
    if snapshot is None:
        return text + b"}"
    if snapshot.commit:
        text += b',"commit":' + encode_json(snapshot.commit)
    if snapshot.stale:
        text += b',"stale":' + encode_json(snapshot.stale._asdict())
    return text + b"}"


def utc_timestamp() -> str:
    """Return the current UTC time in ISO 8601, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
