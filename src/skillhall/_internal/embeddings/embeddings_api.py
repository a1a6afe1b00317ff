"""Embedding model behind a server with OpenAI's embeddings API.

The user configured the URL. Plain http is accepted only from this machine and allowed networks,
redirects are not followed, and responses are not trusted. Errors never contain text from the
server, which may repeat the key.
"""

from __future__ import annotations

import binascii
import json
import sys
from array import array
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from skillhall._internal.embeddings.embedding_model import EmbeddingFailed, normalize_vector
from skillhall._internal.net.addresses import AddressPolicy
from skillhall._internal.net.connection import (
    ConnectionRequest,
    NetworkSettings,
    Timeout,
    limit_size,
    parse_response_json,
    read_chunks,
    reveal_token,
    send_request,
    serialize_request,
)
from skillhall._internal.net.fetch import parse_retry_after
from skillhall._internal.net.url import WebUrl
from skillhall.errors import ConfigInvalid, SourceError, SourceTimedOut, TooLarge

if TYPE_CHECKING:
    from collections.abc import Sequence
    from http.client import HTTPResponse

    from skillhall._internal.embeddings.embedding_model import Vector
    from skillhall._internal.settings import Secret

URL_VARIABLE: Final = "SKILLHALL_EMBEDDINGS_URL"
KEY_VARIABLE: Final = "SKILLHALL_EMBEDDINGS_KEY"
# Default limit of Text Embeddings Inference; larger batches are hardly faster.
BATCH_SIZE: Final = 32
# A batch of the largest vectors as decimal numbers has about 10 MiB.
MAX_RESPONSE_BYTES: Final = 16 * 1024 * 1024
_BATCH_NETWORK = NetworkSettings(total=120, idle=120)  # a slow CPU needs a minute for a batch
_BASE64, _FLOAT = "base64", "float"
_OK, _RATE_LIMITED = 200, 429
_REDIRECTS, _CLIENT_ERRORS = range(300, 400), range(400, 500)


class _StatusProblem(NamedTuple):
    problem: str
    hint: str = ""
    code: str = "upstream_error"
    is_temporary: bool = False


_UNAUTHORIZED = _StatusProblem(
    "the server rejected the API key", f"check {KEY_VARIABLE}", "unauthenticated"
)
_NOT_FOUND = _StatusProblem(
    "the server has no such model or URL", f"check {URL_VARIABLE} and SKILLHALL_EMBEDDINGS_MODEL"
)
_TEXT_REJECTED = _StatusProblem("the server rejected one of the texts", code="invalid_argument")
_BUSY = _StatusProblem("the server is not ready", is_temporary=True)
_STATUS_PROBLEMS = {
    400: _TEXT_REJECTED,
    401: _UNAUTHORIZED,
    403: _UNAUTHORIZED,
    404: _NOT_FOUND,
    405: _NOT_FOUND,
    408: _BUSY,
    413: _TEXT_REJECTED,
    422: _TEXT_REJECTED,
    424: _BUSY,  # Text Embeddings Inference, while it loads its model
    425: _BUSY,
    _RATE_LIMITED: _StatusProblem(
        "rate limited by the server", "", "rate_limited", is_temporary=True
    ),
}


@dataclass(slots=True)
class EmbeddingsApi:
    """Embedding model on one server. Create it with `from_url`."""

    url: WebUrl
    model: str
    policy: AddressPolicy
    key: str = field(default="", repr=False)
    network: NetworkSettings = _BATCH_NETWORK
    batch_size: int = BATCH_SIZE
    _encoding: str = _BASE64

    @classmethod
    def from_url(
        cls, text: str, model: str, policy: AddressPolicy, key: Secret | None = None
    ) -> EmbeddingsApi:
        """Build the model, without connecting; `text` is the URL without `/embeddings`.

        Raises: ConfigInvalid.
        """
        try:
            url = WebUrl.parse(text.rstrip("/"))
        except SourceError as error:
            raise ConfigInvalid(URL_VARIABLE, getattr(error, "problem", str(error))) from None
        if url.query or url.fragment:
            raise ConfigInvalid(URL_VARIABLE, "the URL must not have a query or fragment")
        url = replace(url, path=f"{url.path.rstrip('/')}/embeddings")
        policy = policy.with_named_loopback(url.host)
        return cls(url, model, policy, reveal_token(key, KEY_VARIABLE))

    @property
    def id(self) -> str:
        """Model and URL, because servers may use the same name for different models."""
        return f"{self.model} at {self.url.without_query.removesuffix('/embeddings')}"

    def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector for each text. Raises: EmbeddingFailed."""
        return self._embed(texts, self.network)

    def embed_query(self, text: str, timeout: float) -> Vector:
        """Return the vector of a query. Raises: EmbeddingFailed."""
        return self._embed([text], replace(self.network, total=timeout, idle=timeout))[0]

    def _embed(self, texts: Sequence[str], network: NetworkSettings) -> list[Vector]:
        timeout = Timeout(network)
        try:
            return self._post(texts, timeout)
        except EmbeddingFailed as error:
            # Base64 takes a quarter of the bytes; servers without support reject the request.
            if error.code != _TEXT_REJECTED.code or self._encoding == _FLOAT:
                raise
        vectors = self._post(texts, timeout, _FLOAT)
        self._encoding = _FLOAT
        return vectors

    def _post(self, texts: Sequence[str], timeout: Timeout, encoding: str = "") -> list[Vector]:
        body = {
            "model": self.model,
            "input": [*texts],
            "encoding_format": encoding or self._encoding,
        }
        headers = {
            "Accept": "application/json",
            "Content-Type": "application/json",
            "Authorization": f"Bearer {self.key}" if self.key else "",
        }
        data = serialize_request("POST", self.url, headers, json.dumps(body).encode())
        request = ConnectionRequest(self.url, timeout, self.network)
        try:
            with send_request(request, self.policy, data, MAX_RESPONSE_BYTES) as response:
                self._check_status(response)
                chunks = read_chunks(response, self.url.host)
                content = b"".join(limit_size(chunks, MAX_RESPONSE_BYTES, self.url.host))
        except TooLarge:
            raise self._failure(
                f"the response is larger than {MAX_RESPONSE_BYTES} bytes", is_temporary=False
            ) from None
        except SourceTimedOut:
            raise self._failure("the server timed out", code="upstream_timeout") from None
        except SourceError as error:
            problem = getattr(error, "problem", str(error))
            hint = f"check that it is running and that {URL_VARIABLE} is correct"
            raise self._failure(f"{self.url.host}: {problem}", hint) from None
        try:
            return _parse_vectors(parse_response_json(content), len(texts))
        except ValueError as error:
            raise self._failure(f"the response is malformed: {error}") from None

    def _check_status(self, response: HTTPResponse) -> None:
        """Check that the status is 200. Raises: EmbeddingFailed."""
        status = response.status
        if status == _OK:
            return
        if status in _REDIRECTS:
            hint = f"set {URL_VARIABLE} to the URL that it redirects to"
            problem = _StatusProblem("the server responded with a redirect", hint)
        else:
            problem = _STATUS_PROBLEMS.get(
                status,
                _StatusProblem("the server rejected the request")
                if status in _CLIENT_ERRORS
                else _StatusProblem("the server failed", is_temporary=True),
            )
        seconds = 0
        if problem.is_temporary and (status == _RATE_LIMITED or "Retry-After" in response.headers):
            seconds = parse_retry_after(_RATE_LIMITED, response.headers) or 0
        raise self._failure(
            f"{problem.problem} (status {status})",
            problem.hint,
            problem.code,
            retry_after=seconds,
            is_temporary=problem.is_temporary,
        )

    def _failure(
        self,
        problem: str,
        hint: str = "",
        code: str = "upstream_error",
        *,
        retry_after: float = 0.0,
        is_temporary: bool = True,
    ) -> EmbeddingFailed:
        return EmbeddingFailed(
            self.model, problem, hint, code, retry_after=retry_after, is_temporary=is_temporary
        )


def _parse_vectors(document: object, count: int) -> list[Vector]:
    """Return the vectors of a response, in the order of the texts. Raises: ValueError."""
    rows = document.get("data") if isinstance(document, dict) else None
    if not isinstance(rows, list):
        raise ValueError("it is not valid JSON with a list 'data'")  # noqa: TRY004 - of JSON
    if len(rows) != count:
        raise ValueError(f"it has {len(rows)} vectors for {count} texts")
    vectors: dict[int, Vector] = {}
    for position, row in enumerate(rows):
        fields = row if isinstance(row, dict) else {}
        index = fields.get("index", position)
        if not isinstance(index, int) or not 0 <= index < count or index in vectors:
            raise ValueError("the 'index' of a vector is invalid or repeated")
        vectors[index] = normalize_vector(_parse_numbers(fields.get("embedding")))
    if len({len(vector) for vector in vectors.values()}) > 1:
        raise ValueError("its vectors have different dimensions")
    return [vectors[index] for index in range(count)]


def _parse_numbers(embedding: object) -> array[float]:
    if isinstance(embedding, str):
        numbers = array("f")
        try:
            numbers.frombytes(binascii.a2b_base64(embedding, strict_mode=True))
        except ValueError:
            raise ValueError("a vector is not valid base64") from None
        if sys.byteorder == "big":
            numbers.byteswap()  # the API uses the little-endian order
        return numbers
    try:
        return array("f", embedding if isinstance(embedding, list) else "")
    except (TypeError, OverflowError):
        raise ValueError("a vector is not a list of numbers") from None
