"""An editor: pygls' client, connected to `skillhall lsp` over stdin and stdout."""

import asyncio
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from lsprotocol import types as lsp
from pygls import uris
from pygls.lsp.client import LanguageClient

T = TypeVar("T")
DEADLINE = 120  # seconds; a longer test hangs


class Editor:
    """A client with the documents that it has opened, and the diagnostics that it was sent."""

    def __init__(self, folder: Path, capabilities: lsp.ClientCapabilities) -> None:
        self.folder = folder
        self.client = LanguageClient("tests", "1")
        self._capabilities = capabilities
        self._published: asyncio.Queue[lsp.PublishDiagnosticsParams] = asyncio.Queue()
        self._versions: dict[str, int] = {}
        self.texts: dict[str, str] = {}

        @self.client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)  # type: ignore[untyped-decorator]
        def on_diagnostics(params: lsp.PublishDiagnosticsParams) -> None:
            self._published.put_nowait(params)

        @self.client.feature(lsp.CLIENT_REGISTER_CAPABILITY)  # type: ignore[untyped-decorator]
        def on_registration(params: lsp.RegistrationParams) -> None:
            pass

    async def start(self, *arguments: str) -> lsp.InitializeResult:
        """Start the server and initialize it."""
        await self.client.start_io(
            sys.executable, "-m", "skillhall", "lsp", *arguments, cwd=self.folder, env=os.environ
        )
        folder = lsp.WorkspaceFolder(self.uri(""), "tests")
        parameters = lsp.InitializeParams(
            self._capabilities, root_uri=folder.uri, workspace_folders=[folder]
        )
        result = await self.client.initialize_async(parameters)
        self.client.initialized(lsp.InitializedParams())
        return result

    async def stop(self) -> None:
        await self.client.shutdown_async(None)
        self.client.exit(None)
        await self.client.stop()  # type: ignore[no-untyped-call]

    def uri(self, path: str) -> str:
        return uris.from_fs_path(str(self.folder / path)) or ""

    def open(self, path: str, text: str | None = None) -> lsp.TextDocumentIdentifier:
        """Open a file, by default with its text on disk."""
        uri = self.uri(path)
        if text is None:
            text = (self.folder / path).read_bytes().decode()
        self.texts[uri], self._versions[uri] = text, 1
        item = lsp.TextDocumentItem(uri, "markdown", 1, text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        return lsp.TextDocumentIdentifier(uri)

    def type(self, document: lsp.TextDocumentIdentifier, text: str) -> None:
        """Replace the text of a document."""
        uri = document.uri
        self.texts[uri] = text
        self._versions[uri] += 1
        identifier = lsp.VersionedTextDocumentIdentifier(self._versions[uri], uri)
        change = lsp.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(identifier, [change]))

    def apply(self, edit: lsp.WorkspaceEdit | None) -> None:
        """Apply an edit to open documents, and renames on disk."""
        assert edit is not None
        for uri, edits in (edit.changes or {}).items():
            self._apply_edits(uri, list(edits))
        for change in edit.document_changes or ():
            if isinstance(change, lsp.RenameFile):
                old, new = (uris.to_fs_path(uri) for uri in (change.old_uri, change.new_uri))
                Path(new or "").parent.mkdir(parents=True, exist_ok=True)
                Path(old or "").rename(new or "")
            elif isinstance(change, lsp.TextDocumentEdit):
                edits = [one for one in change.edits if isinstance(one, lsp.TextEdit)]
                self._apply_edits(change.text_document.uri, edits)

    def _apply_edits(self, uri: str, edits: list[lsp.TextEdit]) -> None:
        path = Path(uris.to_fs_path(uri) or "")
        text = self.texts[uri] if uri in self.texts else path.read_text(encoding="utf-8")
        for edit in sorted(edits, key=lambda one: one.range.start, reverse=True):
            start, end = (_offset(text, one) for one in (edit.range.start, edit.range.end))
            text = text[:start] + edit.new_text + text[end:]
        if uri in self.texts:
            self.type(lsp.TextDocumentIdentifier(uri), text)
        else:
            path.write_text(text, encoding="utf-8")

    async def published(self, version: int | None = None) -> list[lsp.Diagnostic]:
        """Return the diagnostics that the server sends next, for a version of the document."""
        while True:
            params = await self._published.get()
            is_here = params.uri.startswith(self.uri(""))  # a test before may have left some
            if is_here and version in (None, params.version):
                return list(params.diagnostics)

    async def pulled(self, document: lsp.TextDocumentIdentifier) -> list[lsp.Diagnostic]:
        """Ask for the diagnostics of a document."""
        parameters = lsp.DocumentDiagnosticParams(document)
        report = await self.client.text_document_diagnostic_async(parameters)
        assert isinstance(report, lsp.RelatedFullDocumentDiagnosticReport)
        return list(report.items)

    async def pulled_from_workspace(
        self, previous: dict[str, str] | None = None
    ) -> list[lsp.WorkspaceDocumentDiagnosticReport]:
        """Ask for the diagnostics of all skills."""
        ids = [lsp.PreviousResultId(*pair) for pair in (previous or {}).items()]
        parameters = lsp.WorkspaceDiagnosticParams(ids)
        return list((await self.client.workspace_diagnostic_async(parameters)).items)


def _offset(text: str, position: lsp.Position) -> int:
    """Return the offset of a position in UTF-16 code units."""
    line = text.split("\n")[position.line]
    before = line.encode("utf-16-le")[: 2 * position.character].decode("utf-16-le")
    return sum(len(one) + 1 for one in text.split("\n")[: position.line]) + len(before)


PUSHED = lsp.ClientCapabilities()
PULLED = lsp.ClientCapabilities(
    text_document=lsp.TextDocumentClientCapabilities(diagnostic=lsp.DiagnosticClientCapabilities())
)


class EditorThread:
    """A thread with one editor for several tests, since a server takes a second to start."""

    def __init__(self, capabilities: lsp.ClientCapabilities = PUSHED) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._editor = Editor(Path.cwd(), capabilities)
        self._run(self._editor.start())

    def edit(self, folder: Path, action: Callable[[Editor], Awaitable[T]]) -> T:
        """Run an action in a folder."""
        self._editor.folder = folder
        return self._run(action(self._editor))

    def close(self) -> None:
        """Stop the server and the thread."""
        self._run(self._editor.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(DEADLINE)
        self._loop.close()

    def _run(self, action: Awaitable[T]) -> T:
        async def main() -> T:
            async with asyncio.timeout(DEADLINE):
                return await action

        return asyncio.run_coroutine_threadsafe(main(), self._loop).result()


def edit(
    folder: Path,
    action: Callable[[Editor], Awaitable[T]],
    capabilities: lsp.ClientCapabilities = PUSHED,
    arguments: Sequence[str] = (),
) -> T:
    """Run an action in an editor that has a folder open; `arguments` are of the server."""

    async def main() -> T:
        editor = Editor(folder, capabilities)
        async with asyncio.timeout(DEADLINE):
            await editor.start(*arguments)
            try:
                return await action(editor)
            finally:
                await editor.stop()

    return asyncio.run(main())
