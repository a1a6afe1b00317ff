"""The skills of an MCP server: found out, listed and read, under limits. Nothing is believed here.

What a server announces and hands out is checked by `skill.served`.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from skillhall._internal.net.connection import NetworkSettings, Timeout
from skillhall._internal.sources.mcp.transport import (
    CURRENT_PROTOCOL,
    DEFAULT_MCP_TIMEOUTS,
    INVALID_PARAMS,
    LEGACY_PROTOCOLS,
    McpCallError,
    McpTimeouts,
)
from skillhall._version import VERSION
from skillhall.errors import (
    SkillsNotServed,
    SourceUnavailable,
    TooLarge,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skillhall._internal.sources.mcp.transport import McpTransport, Message

EXTENSION: Final = "io.modelcontextprotocol/skills"
MAX_PAGES: Final = 1000  # of one listing
MAX_ENTRIES: Final = 10_000  # in one listing
MAX_CURSOR_LENGTH: Final = 4096  # characters of what names the next page
MAX_PAGE_BYTES: Final = 16 * 1024 * 1024  # bytes; a hundred skills with all the files they may have
_MAX_SMALL_RESPONSE: Final = 1024 * 1024  # bytes of an answer that holds no files
_RESPONSE_OVERHEAD: Final = 64 * 1024  # bytes around the content of a file
_MAX_ESCAPE_FACTOR: Final = 6  # bytes that JSON may need for one byte of a text
_PROTOCOL = "io.modelcontextprotocol/"
_CAPABILITIES: Mapping[str, object] = {"extensions": {EXTENSION: {}}}
_CLIENT: Mapping[str, object] = {"name": "skillhall", "version": VERSION}
_VERSION_HINT = "its skills need an MCP server of 2026 that declares them"


class McpSkillClient:
    """A server whose skills can be asked for; `open_skill_server` is the way to make one."""

    def __init__(self, transport: McpTransport, timeouts: McpTimeouts) -> None:
        self.transport = transport
        self.timeouts = timeouts
        self._last_request_id = 0

    def list_entries(self) -> list[object]:
        """Every skill that the server announces, page after page, as it says it.

        Raises: SourceUnavailable, TooLarge, and what a `Line` raises.
        """
        patience = Timeout(self.timeouts.listing)
        found: list[object] = []
        cursors: set[str] = set()
        cursor = ""
        while cursor not in cursors and len(cursors) < MAX_PAGES:
            cursors.add(cursor)
            page = self._list_page(cursor, patience)
            found += self._require_list(page, "skills")
            if len(found) > MAX_ENTRIES:
                raise TooLarge(self.transport.host, MAX_ENTRIES, "skills")
            following = page.get("nextCursor")
            if following is None:
                return found
            if not isinstance(following, str) or not 0 < len(following) <= MAX_CURSOR_LENGTH:
                raise self._build_malformed_response_error(
                    "'nextCursor' is no text of ordinary length"
                )
            cursor = following
        raise self._build_malformed_response_error("its listing has no end")

    def get_entry(self, uri: str) -> object | None:
        """One skill as the server announces it; `None` if it has none there. Raises: as above."""
        try:
            result = self._call("skills/get", {"uri": uri}, MAX_PAGE_BYTES)
        except McpCallError as error:
            if error.rpc_code == INVALID_PARAMS:
                return None
            raise
        if not isinstance(result.get("skill"), dict):
            raise self._build_malformed_response_error("'skill' is no object")
        return result["skill"]

    def read_file(self, uri: str, size: int, timeout: Timeout | None = None) -> bytes | None:
        """The bytes of a file of that size; `None` if the server has none there. Raises: as above.

        A file of another size may come, or TooLarge for one that is far longer.
        """
        at_most = _MAX_ESCAPE_FACTOR * size + _RESPONSE_OVERHEAD
        try:
            result = self._call("resources/read", {"uri": uri}, at_most, timeout)
        except McpCallError as error:
            if error.rpc_code == INVALID_PARAMS:
                return None
            raise
        contents = self._require_list(result, "contents")
        if len(contents) != 1:
            raise self._build_malformed_response_error(
                f"it sends {len(contents)} contents for one file"
            )
        return self._decode_content(contents[0], uri)

    def negotiate(self) -> None:
        """Agree on a protocol, and make sure that there are skills. Raises: as above."""
        capabilities = self._discover()
        if capabilities is None:
            capabilities = self._initialize()
        extensions = capabilities.get("extensions")
        declared = extensions.get(EXTENSION) if isinstance(extensions, dict) else None
        if not isinstance(declared, dict):
            raise SkillsNotServed(self.transport.host)

    def _discover(self) -> Message | None:
        """What a server of the current protocol can do; `None` if it is an older one."""
        self.transport.protocol_version = CURRENT_PROTOCOL
        try:
            result = self._call("server/discover", {}, _MAX_SMALL_RESPONSE, self.timeouts.startup)
        except McpCallError:
            return None
        versions, capabilities = result.get("supportedVersions"), result.get("capabilities")
        if not isinstance(versions, list) or CURRENT_PROTOCOL not in versions:
            return None
        if not isinstance(capabilities, dict):
            raise self._build_malformed_response_error("'capabilities' is no object")
        return capabilities

    def _initialize(self) -> Message:
        """What an older server can do."""
        self.transport.protocol_version = ""
        params: Message = {
            "protocolVersion": LEGACY_PROTOCOLS[0],
            "capabilities": dict(_CAPABILITIES),
            "clientInfo": dict(_CLIENT),
        }
        result = self._call("initialize", params, _MAX_SMALL_RESPONSE, self.timeouts.startup)
        version, capabilities = result.get("protocolVersion"), result.get("capabilities")
        if version not in LEGACY_PROTOCOLS or not isinstance(capabilities, dict):
            raise SourceUnavailable(
                self.transport.host, "it speaks no protocol that we speak", _VERSION_HINT
            )
        self.transport.protocol_version = str(version)
        told: Message = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        self.transport.notify(told, Timeout(self.timeouts.response))
        return capabilities

    def _list_page(self, cursor: str, timeout: Timeout) -> Message:
        params: Message = {"cursor": cursor} if cursor else {}
        return self._call("skills/list", params, MAX_PAGE_BYTES, timeout)

    def _call(
        self,
        method: str,
        params: Message,
        max_bytes: int,
        timeout: NetworkSettings | Timeout | None = None,
    ) -> Message:
        """The result of a call. Raises: CallRefused, and what a `Line` raises."""
        self._last_request_id += 1
        if self.transport.protocol_version == CURRENT_PROTOCOL:
            params = {**params, "_meta": _build_client_metadata()}
        request: Message = {"jsonrpc": "2.0", "id": self._last_request_id, "method": method}
        if params:
            request["params"] = params
        chosen = timeout or self.timeouts.response
        patience = Timeout(chosen) if isinstance(chosen, NetworkSettings) else chosen
        answer = self.transport.request(request, max_bytes, patience)
        if "error" in answer:
            raise self._build_call_error(method, answer["error"])
        result = answer["result"]
        if not isinstance(result, dict) or result.get("resultType", "complete") != "complete":
            raise self._build_malformed_response_error(f"the result of {method} is none")
        return result

    def _build_call_error(self, method: str, error: object) -> McpCallError:
        code = error.get("code") if isinstance(error, dict) else None
        number = code if isinstance(code, int) and not isinstance(code, bool) else 0
        return McpCallError(self.transport.host, f"it answers {method} with error {number}", number)

    def _require_list(self, result: Message, name: str) -> list[object]:
        value = result.get(name)
        if not isinstance(value, list):
            raise self._build_malformed_response_error(f"{name!r} is no list")
        return value

    def _decode_content(self, content: object, uri: str) -> bytes:
        fields = content if isinstance(content, dict) else {}
        if fields.get("uri") != uri:
            raise self._build_malformed_response_error(
                "it sends another file than the one that was asked for"
            )
        text, blob = fields.get("text"), fields.get("blob")
        try:
            if isinstance(text, str) and blob is None:
                return text.encode("utf-8")
            if isinstance(blob, str) and text is None:
                return b64decode(blob, validate=True)
        except (UnicodeEncodeError, binascii.Error, ValueError):
            pass
        raise self._build_malformed_response_error("a file of it is neither text nor base64")

    def _build_malformed_response_error(self, detail: str) -> SourceUnavailable:
        return SourceUnavailable(
            self.transport.host, f"its answer cannot be read: {detail}", _VERSION_HINT
        )


@contextmanager
def open_skill_client(
    transport: McpTransport, timeouts: McpTimeouts = DEFAULT_MCP_TIMEOUTS
) -> Iterator[McpSkillClient]:
    """The server at the other end of a line, for as long as the block lasts.

    Raises: SkillsNotServed, SourceUnavailable, and what a `Line` raises.
    """
    try:
        server = McpSkillClient(transport, timeouts)
        server.negotiate()
        yield server
    except BaseException:
        transport.close(force=True)
        raise
    transport.close()


def _build_client_metadata() -> Message:
    """What every request says in the current protocol."""
    return {
        f"{_PROTOCOL}protocolVersion": CURRENT_PROTOCOL,
        f"{_PROTOCOL}clientInfo": dict(_CLIENT),
        f"{_PROTOCOL}clientCapabilities": dict(_CAPABILITIES),
    }
