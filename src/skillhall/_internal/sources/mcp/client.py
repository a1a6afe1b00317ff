"""MCP client for skills: negotiates, lists entries and reads files, within limits.

Entries and files are not trusted; `entry` checks them.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from contextlib import contextmanager, suppress
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
from skillhall.errors import SkillsNotServed, SourceUnavailable, TooLarge

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skillhall._internal.sources.mcp.transport import McpTransport, Message

EXTENSION: Final = "io.modelcontextprotocol/skills"
MAX_PAGES: Final = 1000  # per listing
MAX_ENTRIES: Final = 10_000  # per listing
MAX_CURSOR_LENGTH: Final = 4096  # characters
MAX_PAGE_BYTES: Final = 16 * 1024 * 1024  # enough for a hundred skills with the maximum of files
_MAX_SMALL_RESPONSE: Final = 1024 * 1024  # bytes of a response without files
_RESPONSE_OVERHEAD: Final = 64 * 1024  # bytes around the content of a file
_MAX_ESCAPE_FACTOR: Final = 6  # bytes that JSON may need for one byte of text
_PROTOCOL = "io.modelcontextprotocol/"
_CAPABILITIES: Mapping[str, object] = {"extensions": {EXTENSION: {}}}
_CLIENT: Mapping[str, object] = {"name": "skillhall", "version": VERSION}
_CLIENT_METADATA: Mapping[str, object] = {  # the `_meta` of requests in the current protocol
    f"{_PROTOCOL}protocolVersion": CURRENT_PROTOCOL,
    f"{_PROTOCOL}clientInfo": dict(_CLIENT),
    f"{_PROTOCOL}clientCapabilities": dict(_CAPABILITIES),
}
_VERSION_HINT = "check that the server is up to date and supports the MCP skills extension"


class McpSkillClient:
    """Client for a server with skills. Create it with `open_skill_client`."""

    def __init__(self, transport: McpTransport, timeouts: McpTimeouts) -> None:
        self.transport = transport
        self.timeouts = timeouts
        self._last_request_id = 0

    def list_entries(self) -> list[object]:
        """Return the entries of all listed skills, unparsed.

        Raises: SourceUnavailable, TooLarge, and errors of the transport.
        """
        timeout = Timeout(self.timeouts.listing)
        entries: list[object] = []
        cursors: set[str] = set()
        cursor = ""
        while cursor not in cursors and len(cursors) < MAX_PAGES:
            cursors.add(cursor)
            params: Message = {"cursor": cursor} if cursor else {}
            page = self._call("skills/list", params, MAX_PAGE_BYTES, timeout)
            entries += self._require_list(page, "skills")
            if len(entries) > MAX_ENTRIES:
                raise TooLarge(self.transport.host, MAX_ENTRIES, "skills")
            next_cursor = page.get("nextCursor")
            if next_cursor is None:
                return entries
            if not isinstance(next_cursor, str) or not 0 < len(next_cursor) <= MAX_CURSOR_LENGTH:
                raise self._build_malformed_response_error("'nextCursor' is not valid")
            cursor = next_cursor
        raise self._build_malformed_response_error("the listing has too many pages, or repeats one")

    def get_entry(self, uri: str) -> object | None:
        """Return the entry of a skill; `None` if there is none. Raises: as `list_entries`."""
        result = self._call_with_uri("skills/get", uri, MAX_PAGE_BYTES)
        if result is None:
            return None
        if not isinstance(result.get("skill"), dict):
            raise self._build_malformed_response_error("'skill' is not an object")
        return result["skill"]

    def read_file(self, uri: str, size: int, timeout: Timeout | None = None) -> bytes | None:
        """Return the bytes of a file; `None` if there is none. Raises: as `list_entries`.

        `size` only limits the size of the response; callers check the size of the file.
        """
        limit = _MAX_ESCAPE_FACTOR * size + _RESPONSE_OVERHEAD
        result = self._call_with_uri("resources/read", uri, limit, timeout)
        if result is None:
            return None
        contents = self._require_list(result, "contents")
        if len(contents) != 1:
            raise self._build_malformed_response_error(
                f"expected one content item for the file, got {len(contents)}"
            )
        fields = contents[0] if isinstance(contents[0], dict) else {}
        if fields.get("uri") != uri:
            raise self._build_malformed_response_error(
                "it contains a different file from the one requested"
            )
        text, blob = fields.get("text"), fields.get("blob")
        with suppress(UnicodeEncodeError, binascii.Error, ValueError):
            if isinstance(text, str) and blob is None:
                return text.encode("utf-8")
            if isinstance(blob, str) and text is None:
                return b64decode(blob, validate=True)
        raise self._build_malformed_response_error("the content is neither text nor base64")

    def negotiate(self) -> None:
        """Negotiate the protocol and require the skills extension. Raises: SkillhallError."""
        capabilities = self._discover()
        if capabilities is None:
            capabilities = self._initialize()
        extensions = capabilities.get("extensions")
        extension = extensions.get(EXTENSION) if isinstance(extensions, dict) else None
        if not isinstance(extension, dict):
            raise SkillsNotServed(self.transport.host)

    def _discover(self) -> Message | None:
        """Return the capabilities of a server; `None` if its protocol is older."""
        self.transport.protocol_version = CURRENT_PROTOCOL
        try:
            result = self._call("server/discover", {}, _MAX_SMALL_RESPONSE, self.timeouts.startup)
        except McpCallError:
            return None
        versions, capabilities = result.get("supportedVersions"), result.get("capabilities")
        if not isinstance(versions, list) or CURRENT_PROTOCOL not in versions:
            return None
        if not isinstance(capabilities, dict):
            raise self._build_malformed_response_error("'capabilities' is not an object")
        return capabilities

    def _initialize(self) -> Message:
        """Return the capabilities of a server with an older protocol."""
        self.transport.protocol_version = ""
        params: Message = {
            "protocolVersion": LEGACY_PROTOCOLS[0],
            "capabilities": dict(_CAPABILITIES),
            "clientInfo": dict(_CLIENT),
        }
        result = self._call("initialize", params, _MAX_SMALL_RESPONSE, self.timeouts.startup)
        version, capabilities = result.get("protocolVersion"), result.get("capabilities")
        if version not in LEGACY_PROTOCOLS:
            problem = "it shares no MCP protocol version with this client"
            raise SourceUnavailable(self.transport.host, problem, _VERSION_HINT)
        if not isinstance(capabilities, dict):
            raise self._build_malformed_response_error("'capabilities' is not an object")
        self.transport.protocol_version = str(version)
        notification: Message = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        self.transport.notify(notification, Timeout(self.timeouts.response))
        return capabilities

    def _call_with_uri(
        self, method: str, uri: str, max_bytes: int, timeout: Timeout | None = None
    ) -> Message | None:
        """Call a method for a URI; `None` if the server does not know the URI."""
        try:
            return self._call(method, {"uri": uri}, max_bytes, timeout)
        except McpCallError as error:
            if error.rpc_code == INVALID_PARAMS:
                return None
            raise

    def _call(
        self,
        method: str,
        params: Message,
        max_bytes: int,
        timeout: NetworkSettings | Timeout | None = None,
    ) -> Message:
        """Call a method. Raises: McpCallError, and errors of the transport."""
        self._last_request_id += 1
        if self.transport.protocol_version == CURRENT_PROTOCOL:
            params = {**params, "_meta": dict(_CLIENT_METADATA)}
        request: Message = {"jsonrpc": "2.0", "id": self._last_request_id, "method": method}
        if params:
            request["params"] = params
        timeout = timeout or self.timeouts.response
        timeout = Timeout(timeout) if isinstance(timeout, NetworkSettings) else timeout
        response = self.transport.request(request, max_bytes, timeout)
        if "error" in response:
            error = response["error"]
            code = error.get("code") if isinstance(error, dict) else None
            number = code if isinstance(code, int) and not isinstance(code, bool) else 0
            problem = f"{method!r} failed with error {number}"
            raise McpCallError(self.transport.host, problem, number)
        result = response["result"]
        if not isinstance(result, dict) or result.get("resultType", "complete") != "complete":
            raise self._build_malformed_response_error(f"{method!r} returned an incomplete result")
        return result

    def _require_list(self, result: Message, name: str) -> list[object]:
        value = result.get(name)
        if not isinstance(value, list):
            raise self._build_malformed_response_error(f"{name!r} is not a list")
        return value

    def _build_malformed_response_error(self, detail: str) -> SourceUnavailable:
        problem = f"the response is malformed: {detail}"
        return SourceUnavailable(self.transport.host, problem, _VERSION_HINT)


@contextmanager
def open_skill_client(
    transport: McpTransport, timeouts: McpTimeouts = DEFAULT_MCP_TIMEOUTS
) -> Iterator[McpSkillClient]:
    """Negotiate over a transport, and close it at the end of the `with` block.

    Raises: SkillsNotServed, SourceUnavailable, and errors of the transport.
    """
    try:
        client = McpSkillClient(transport, timeouts)
        client.negotiate()
        yield client
    except BaseException:
        transport.close(force=True)
        raise
    transport.close()
