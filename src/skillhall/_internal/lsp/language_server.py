"""The language server: translates requests of editors into calls of the checks.

Documents are checked as they are in the editor, the other files as they are on disk. Nothing is
written; renames and fixes are edits that the client applies.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from functools import partial
from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pygls import uris
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer

from skillhall._internal.authoring.open_document import OpenDocument
from skillhall._internal.authoring.portability import list_problems
from skillhall._internal.authoring.validate import validate
from skillhall._internal.lsp.diagnostics import (
    SOURCE,
    build_code_actions,
    build_diagnostics,
    build_portability_diagnostics,
)
from skillhall._internal.lsp.document_features import DocumentFeatures, LinkedFile
from skillhall._internal.lsp.positions import TextLines
from skillhall._internal.skill.frontmatter_locator import is_skill_md
from skillhall._version import VERSION
from skillhall.errors import SkillhallError, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.policy.profiles import Profile
    from skillhall._internal.settings import Settings

_TYPING_PAUSE = 0.2  # seconds after a change before a document is checked again
_KINDS = [lsp.CodeActionKind.QuickFix, lsp.CodeActionKind.SourceFixAll]


class SkillLanguageServer(LanguageServer):
    """The documents of one client, and the profile that judges them."""

    def __init__(self, profile: Profile, settings: Settings, agents: Sequence[str] = ()) -> None:
        super().__init__(SOURCE, VERSION)
        self.profile = profile
        self.agents = agents  # that the skills must be portable to
        self.settings = settings
        self._features: dict[str, tuple[int | None, DocumentFeatures]] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._changed = asyncio.Event()
        self._validated: dict[str, list[lsp.Diagnostic]] | None = None
        _register(self)

    def get_features(self, uri: str) -> DocumentFeatures | None:
        """Return the features of a document; `None` if it is not a SKILL.md."""
        path = uris.to_fs_path(uri)
        if path is None or not is_skill_md(os.path.basename(path)):
            return None
        document = self.workspace.get_text_document(uri)
        version, features = self._features.get(uri, (None, None))
        if features is None or version is None or version != document.version:
            text = document.source
            lines = TextLines(text, self.workspace.position_encoding)
            features = DocumentFeatures(OpenDocument.open(path, text, self.profile), lines)
            self._features[uri] = (document.version, features)
        return features

    def forget(self, uri: str) -> None:
        """Forget a document, or the files next to it, which have changed."""
        self._features.pop(uri, None)
        if (timer := self._timers.pop(uri, None)) is not None:
            timer.cancel()

    def forget_files(self) -> None:
        """Forget the files next to all documents."""
        self._features.clear()
        self._validated = None
        self.notice_change()

    def notice_change(self) -> None:
        """Wake the requests that wait for a change."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait_for_change(self) -> None:
        """Wait until a document or a file changes, and for the end of a burst of changes."""
        await self._changed.wait()
        await asyncio.sleep(_TYPING_PAUSE)

    @property
    def pulls_diagnostics(self) -> bool:
        """Whether the client pulls diagnostics; otherwise, the server pushes them."""
        text_document = self.client_capabilities.text_document
        return text_document is not None and text_document.diagnostic is not None

    def diagnose(self, uri: str) -> list[lsp.Diagnostic]:
        """Return the diagnostics of an open document."""
        self._features.pop(uri, None)  # other files may have changed
        features = self.get_features(uri)
        if features is None:
            return []
        findings = features.document.check(self.profile)
        found = build_diagnostics(findings, features.document.path, features.lines)
        if self.agents:
            problems = list_problems(features.judge_portability(self.agents))
            found += build_portability_diagnostics(
                problems, features.find_field_line, features.lines
            )
        return found

    def publish(self, uri: str, *, delay: float = 0) -> None:
        """Send the diagnostics of a document, unless the client asks for them itself."""
        if (timer := self._timers.pop(uri, None)) is not None:
            timer.cancel()
        if self.pulls_diagnostics:
            return
        if delay:
            loop = asyncio.get_running_loop()
            self._timers[uri] = loop.call_later(delay, partial(self.publish, uri))
            return
        version = self.workspace.get_text_document(uri).version
        self.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(uri, self.diagnose(uri), version)
        )

    async def diagnose_workspace(
        self, previous: dict[str, str]
    ) -> list[lsp.WorkspaceDocumentDiagnosticReport]:
        """Return the diagnostics of all skills; unchanged ones only by their id.

        The skills on disk are validated for the first request, and when a file has changed.
        """
        if self._validated is None or not previous:
            # In a thread, so that other requests are answered at the same time.
            self._validated = await asyncio.to_thread(self._validate, self._list_folders())
        found: dict[str, list[lsp.Diagnostic]] = {uri: [] for uri in previous}  # some may be gone
        found |= self._validated
        found |= {uri: self.diagnose(uri) for uri in self.workspace.text_documents if uri in found}
        return [self._build_report(uri, items, previous.get(uri)) for uri, items in found.items()]

    def _validate(self, folders: list[str]) -> dict[str, list[lsp.Diagnostic]]:
        found: dict[str, list[lsp.Diagnostic]] = {}
        for folder in folders:
            try:
                results = validate([folder], self.profile, self.settings).results
            except SkillhallError:  # the folder was deleted
                continue
            for result in results:
                path = result.location
                if is_skill_md(os.path.basename(path)):
                    found[_to_uri(path)] = build_diagnostics(result.findings, path)
        return found

    def _list_folders(self) -> list[str]:
        uri_list = [*self.workspace.folders] or [self.workspace.root_uri or ""]
        paths = (uris.to_fs_path(uri) for uri in uri_list if uri)
        return [path for path in paths if path and os.path.isdir(path)]

    def _build_report(
        self, uri: str, items: list[lsp.Diagnostic], previous: str | None
    ) -> lsp.WorkspaceDocumentDiagnosticReport:
        result_id = hashlib.sha256(repr(items).encode("utf-8", "replace")).hexdigest()[:16]
        document = self.workspace.text_documents.get(uri)
        version = None if document is None else document.version
        if result_id == previous:
            return lsp.WorkspaceUnchangedDocumentDiagnosticReport(uri, result_id, version)
        return lsp.WorkspaceFullDocumentDiagnosticReport(uri, items, version, result_id=result_id)

    def find_file(self, uri: str, position: lsp.Position) -> LinkedFile | None:
        """Return the file that the link at a position leads to."""
        features = self.get_features(uri)
        return None if features is None else features.find_file(position)

    def rename(self, uri: str, position: lsp.Position, new_name: str) -> lsp.WorkspaceEdit:
        """Return the edits that rename the file of a link. Raises: JsonRpcInvalidParams."""
        features, linked = self.get_features(uri), self.find_file(uri, position)
        if features is None or linked is None:
            raise JsonRpcInvalidParams("there is no link to a file of the skill here")
        document = features.document
        try:
            new = document.check_new_path(new_name)
        except UnsafePath as error:
            raise JsonRpcInvalidParams(str(error)) from None
        edits: dict[str, list[lsp.TextEdit | lsp.AnnotatedTextEdit | lsp.SnippetTextEdit]] = {}
        for one in document.rename_file(linked.path, new):
            file_uri = uri if is_skill_md(one.file) else self.get_uri(uri, one.file)
            text = self.workspace.get_text_document(file_uri).source
            lines = TextLines(text, self.workspace.position_encoding)
            edit = lsp.TextEdit(lines.span(one.line, one.start, one.end), one.text)
            edits.setdefault(file_uri, []).append(edit)
        changes = [
            lsp.TextDocumentEdit(
                lsp.OptionalVersionedTextDocumentIdentifier(file_uri, self._get_version(file_uri)),
                listed,
            )
            for file_uri, listed in edits.items()
        ]
        old_uri, new_uri = self.get_uri(uri, linked.path), self.get_uri(uri, new)
        renamed = lsp.RenameFile(old_uri=old_uri, new_uri=new_uri)
        return lsp.WorkspaceEdit(document_changes=[*changes, renamed])

    def get_uri(self, uri: str, path: str) -> str:
        """Return the URI of a file of the skill whose SKILL.md has a URI."""
        folder = os.path.dirname(uris.to_fs_path(uri) or "")
        return _to_uri(os.path.join(folder, *path.split("/")))

    def _get_version(self, uri: str) -> int | None:
        document = self.workspace.text_documents.get(uri)
        return None if document is None else document.version


def _to_uri(path: str) -> str:
    return uris.from_fs_path(path) or ""


def _register(server: SkillLanguageServer) -> None:
    """Register the handlers of requests and notifications."""
    _register_changes(server)
    _register_diagnostics(server)
    _register_views(server)
    _register_edits(server)


def _register_changes(server: SkillLanguageServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    async def did_open(params: lsp.DidOpenTextDocumentParams) -> None:
        server.publish(params.text_document.uri)
        server.notice_change()

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def did_change(params: lsp.DidChangeTextDocumentParams) -> None:
        server.publish(params.text_document.uri, delay=_TYPING_PAUSE)
        server.notice_change()

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    async def did_save(params: lsp.DidSaveTextDocumentParams) -> None:
        server.forget_files()
        server.publish(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    async def did_close(params: lsp.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        server.forget(uri)
        server.notice_change()
        if not server.pulls_diagnostics:
            server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    async def files_changed(_: lsp.DidChangeWatchedFilesParams) -> None:
        server.forget_files()

    @server.feature(lsp.INITIALIZED)
    async def initialized(_: lsp.InitializedParams) -> None:
        workspace = server.client_capabilities.workspace
        watching = workspace and workspace.did_change_watched_files
        if watching and watching.dynamic_registration:
            watcher = lsp.FileSystemWatcher(glob_pattern="**/*")
            options = lsp.DidChangeWatchedFilesRegistrationOptions([watcher])
            method = lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES
            registration = lsp.Registration("files", method, options)
            params = lsp.RegistrationParams([registration])
            await server.client_register_capability_async(params)


def _register_diagnostics(server: SkillLanguageServer) -> None:
    options = lsp.DiagnosticOptions(
        identifier=SOURCE, inter_file_dependencies=True, workspace_diagnostics=True
    )

    @server.feature(lsp.TEXT_DOCUMENT_DIAGNOSTIC, options)
    def diagnose(
        params: lsp.DocumentDiagnosticParams,
    ) -> lsp.RelatedFullDocumentDiagnosticReport:
        return lsp.RelatedFullDocumentDiagnosticReport(server.diagnose(params.text_document.uri))

    @server.feature(lsp.WORKSPACE_DIAGNOSTIC)
    async def diagnose_workspace(
        params: lsp.WorkspaceDiagnosticParams,
    ) -> lsp.WorkspaceDiagnosticReport:
        previous = {one.uri: one.value for one in params.previous_result_ids}
        while True:
            reports = await server.diagnose_workspace(previous)
            kinds = (lsp.WorkspaceUnchangedDocumentDiagnosticReport,)
            # A client asks again at once. The answer waits until there is something new.
            if not previous or not all(isinstance(one, kinds) for one in reports):
                return lsp.WorkspaceDiagnosticReport(reports)
            await server.wait_for_change()


def _register_views(server: SkillLanguageServer) -> None:
    @server.feature(
        lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=["(", "/", ":", " "])
    )
    def complete(params: lsp.CompletionParams) -> lsp.CompletionList:
        features = server.get_features(params.text_document.uri)
        items = [] if features is None else features.complete(params.position)
        return lsp.CompletionList(is_incomplete=False, items=items)

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hover(params: lsp.HoverParams) -> lsp.Hover | None:
        features = server.get_features(params.text_document.uri)
        return None if features is None else features.hover(params.position)

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def list_symbols(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        features = server.get_features(params.text_document.uri)
        return [] if features is None else features.list_symbols()

    @server.feature(lsp.TEXT_DOCUMENT_CODE_LENS)
    def list_lenses(params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
        features = server.get_features(params.text_document.uri)
        return [] if features is None else features.list_lenses(server.agents)

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def go_to_file(params: lsp.DefinitionParams) -> lsp.Location | None:
        uri = params.text_document.uri
        linked = server.find_file(uri, params.position)
        if linked is None:
            return None
        start = lsp.Position(0, 0)
        return lsp.Location(server.get_uri(uri, linked.path), lsp.Range(start, start))


def _register_edits(server: SkillLanguageServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions(code_action_kinds=_KINDS))
    def list_actions(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        uri = params.text_document.uri
        features = server.get_features(uri)
        if features is None:
            return []
        actions = build_code_actions(
            features.document, uri, features.lines, server.profile, params.context.diagnostics
        )
        only = params.context.only
        return [
            one
            for one in actions
            if only is None or any((one.kind or "").startswith(kind) for kind in only)
        ]

    @server.feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))
    def rename(params: lsp.RenameParams) -> lsp.WorkspaceEdit:
        return server.rename(params.text_document.uri, params.position, params.new_name)

    @server.feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)
    def prepare_rename(
        params: lsp.PrepareRenameParams,
    ) -> lsp.PrepareRenamePlaceholder | None:
        linked = server.find_file(params.text_document.uri, params.position)
        return None if linked is None else lsp.PrepareRenamePlaceholder(linked.range, linked.path)


def serve_editor(profile: Profile, settings: Settings, agents: Sequence[str] = ()) -> None:
    """Serve until the client exits. stdout is reserved for the protocol."""
    SkillLanguageServer(profile, settings, agents).start_io()
