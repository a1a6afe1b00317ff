"""The skills of an MCP server: found out, listed and read, under limits. Nothing is believed here.

What a server announces and hands out is checked by `skill.served`.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from skillhall._internal.net.connection import Network, Patience
from skillhall._internal.sources.mcp.transport import (
    HANDSHAKE,
    INVALID_PARAMS,
    MODERN,
    TIMING,
    CallRefused,
    Timing,
)
from skillhall._version import VERSION
from skillhall.errors import (
    SkillsNotServed,
    SourceUnavailable,
    TooLarge,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skillhall._internal.sources.mcp.transport import Line, Message

EXTENSION: Final = "io.modelcontextprotocol/skills"
MAX_PAGES: Final = 1000  # of one listing
MAX_ENTRIES: Final = 10_000  # in one listing
MAX_CURSOR: Final = 4096  # characters of what names the next page
MAX_PAGE: Final = 16 * 1024 * 1024  # bytes; a hundred skills with all the files they may have
_SMALL: Final = 1024 * 1024  # bytes of an answer that holds no files
_ENVELOPE: Final = 64 * 1024  # bytes around the content of a file
_ESCAPED: Final = 6  # bytes that JSON may need for one byte of a text
_PROTOCOL = "io.modelcontextprotocol/"
_CAPABILITIES: Mapping[str, object] = {"extensions": {EXTENSION: {}}}
_CLIENT: Mapping[str, object] = {"name": "skillhall", "version": VERSION}
_AGE = "its skills need an MCP server of 2026 that declares them"


class SkillServer:
    """A server whose skills can be asked for; `open_skill_server` is the way to make one."""

    def __init__(self, line: Line, timing: Timing) -> None:
        self.line = line
        self.timing = timing
        self._number = 0

    def entries(self) -> list[object]:
        """Every skill that the server announces, page after page, as it says it.

        Raises: SourceUnavailable, TooLarge, and what a `Line` raises.
        """
        patience = Patience(self.timing.listing)
        found: list[object] = []
        cursors: set[str] = set()
        cursor = ""
        while cursor not in cursors and len(cursors) < MAX_PAGES:
            cursors.add(cursor)
            page = self._page(cursor, patience)
            found += self._list_of(page, "skills")
            if len(found) > MAX_ENTRIES:
                raise TooLarge(self.line.host, MAX_ENTRIES, "skills")
            following = page.get("nextCursor")
            if following is None:
                return found
            if not isinstance(following, str) or not 0 < len(following) <= MAX_CURSOR:
                raise self._unreadable("'nextCursor' is no text of ordinary length")
            cursor = following
        raise self._unreadable("its listing has no end")

    def entry(self, uri: str) -> object | None:
        """One skill as the server announces it; `None` if it has none there. Raises: as above."""
        try:
            result = self._call("skills/get", {"uri": uri}, MAX_PAGE)
        except CallRefused as error:
            if error.rpc == INVALID_PARAMS:
                return None
            raise
        if not isinstance(result.get("skill"), dict):
            raise self._unreadable("'skill' is no object")
        return result["skill"]

    def read(self, uri: str, size: int, patience: Patience | None = None) -> bytes | None:
        """The bytes of a file of that size; `None` if the server has none there. Raises: as above.

        A file of another size may come, or TooLarge for one that is far longer.
        """
        at_most = _ESCAPED * size + _ENVELOPE
        try:
            result = self._call("resources/read", {"uri": uri}, at_most, patience)
        except CallRefused as error:
            if error.rpc == INVALID_PARAMS:
                return None
            raise
        contents = self._list_of(result, "contents")
        if len(contents) != 1:
            raise self._unreadable(f"it sends {len(contents)} contents for one file")
        return self._bytes_of(contents[0], uri)

    def greet(self) -> None:
        """Agree on a protocol, and make sure that there are skills. Raises: as above."""
        capabilities = self._discovered()
        if capabilities is None:
            capabilities = self._shaken_hands()
        extensions = capabilities.get("extensions")
        declared = extensions.get(EXTENSION) if isinstance(extensions, dict) else None
        if not isinstance(declared, dict):
            raise SkillsNotServed(self.line.host)

    def _discovered(self) -> Message | None:
        """What a server of the current protocol can do; `None` if it is an older one."""
        self.line.version = MODERN
        try:
            result = self._call("server/discover", {}, _SMALL, self.timing.starting)
        except CallRefused:
            return None
        versions, capabilities = result.get("supportedVersions"), result.get("capabilities")
        if not isinstance(versions, list) or MODERN not in versions:
            return None
        if not isinstance(capabilities, dict):
            raise self._unreadable("'capabilities' is no object")
        return capabilities

    def _shaken_hands(self) -> Message:
        """What an older server can do."""
        self.line.version = ""
        params: Message = {
            "protocolVersion": HANDSHAKE[0],
            "capabilities": dict(_CAPABILITIES),
            "clientInfo": dict(_CLIENT),
        }
        result = self._call("initialize", params, _SMALL, self.timing.starting)
        version, capabilities = result.get("protocolVersion"), result.get("capabilities")
        if version not in HANDSHAKE or not isinstance(capabilities, dict):
            raise SourceUnavailable(self.line.host, "it speaks no protocol that we speak", _AGE)
        self.line.version = str(version)
        told: Message = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        self.line.tell(told, Patience(self.timing.answering))
        return capabilities

    def _page(self, cursor: str, patience: Patience) -> Message:
        params: Message = {"cursor": cursor} if cursor else {}
        return self._call("skills/list", params, MAX_PAGE, patience)

    def _call(
        self, method: str, params: Message, at_most: int, within: Network | Patience | None = None
    ) -> Message:
        """The result of a call. Raises: CallRefused, and what a `Line` raises."""
        self._number += 1
        if self.line.version == MODERN:
            params = {**params, "_meta": _about_us()}
        request: Message = {"jsonrpc": "2.0", "id": self._number, "method": method}
        if params:
            request["params"] = params
        chosen = within or self.timing.answering
        patience = Patience(chosen) if isinstance(chosen, Network) else chosen
        answer = self.line.ask(request, at_most, patience)
        if "error" in answer:
            raise self._refused(method, answer["error"])
        result = answer["result"]
        if not isinstance(result, dict) or result.get("resultType", "complete") != "complete":
            raise self._unreadable(f"the result of {method} is none")
        return result

    def _refused(self, method: str, error: object) -> CallRefused:
        code = error.get("code") if isinstance(error, dict) else None
        number = code if isinstance(code, int) and not isinstance(code, bool) else 0
        return CallRefused(self.line.host, f"it answers {method} with error {number}", number)

    def _list_of(self, result: Message, name: str) -> list[object]:
        value = result.get(name)
        if not isinstance(value, list):
            raise self._unreadable(f"{name!r} is no list")
        return value

    def _bytes_of(self, content: object, uri: str) -> bytes:
        fields = content if isinstance(content, dict) else {}
        if fields.get("uri") != uri:
            raise self._unreadable("it sends another file than the one that was asked for")
        text, blob = fields.get("text"), fields.get("blob")
        try:
            if isinstance(text, str) and blob is None:
                return text.encode("utf-8")
            if isinstance(blob, str) and text is None:
                return b64decode(blob, validate=True)
        except (UnicodeEncodeError, binascii.Error, ValueError):
            pass
        raise self._unreadable("a file of it is neither text nor base64")

    def _unreadable(self, detail: str) -> SourceUnavailable:
        return SourceUnavailable(self.line.host, f"its answer cannot be read: {detail}", _AGE)


@contextmanager
def open_skill_server(line: Line, timing: Timing = TIMING) -> Iterator[SkillServer]:
    """The server at the other end of a line, for as long as the block lasts.

    Raises: SkillsNotServed, SourceUnavailable, and what a `Line` raises.
    """
    try:
        server = SkillServer(line, timing)
        server.greet()
        yield server
    except BaseException:
        line.close(at_once=True)
        raise
    line.close()


def _about_us() -> Message:
    """What every request says in the current protocol."""
    return {
        f"{_PROTOCOL}protocolVersion": MODERN,
        f"{_PROTOCOL}clientInfo": dict(_CLIENT),
        f"{_PROTOCOL}clientCapabilities": dict(_CAPABILITIES),
    }
