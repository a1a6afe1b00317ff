"""`skillhall lsp` over stdin and stdout, with a real client."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException

from skillhall._internal.cli.runner import run
from tests.support.editor import PULLED, Editor, EditorThread, edit
from tests.support.skills import make_skill, make_skill_md

BROKEN = """\
---
Name: Pdf_Tools
description: Use when: a PDF is involved.
allowed-tools: [Read, Edit]
---
# Steps

See [the form](references/form.md) and [none](none.md).
"""
FILES = {"references/form.md": b"# Form\n[up](../SKILL.md) [again](form.md)\n"}
LINE, COLUMN = 7, 20  # of the link to the form


@pytest.fixture(scope="module")
def editor_thread() -> Iterator[EditorThread]:
    thread = EditorThread()
    yield thread
    thread.close()


def codes(diagnostics: list[lsp.Diagnostic]) -> set[object]:
    return {one.code for one in diagnostics}


def test_broken_skill_is_clean_after_code_actions(
    tmp_path: Path, editor_thread: EditorThread
) -> None:
    skill = make_skill(tmp_path, "pdf-tools", data=BROKEN.encode(), files=FILES)

    async def action(editor: Editor) -> None:
        document = editor.open("pdf-tools/SKILL.md")
        found = await editor.published()
        assert codes(found) >= {"yaml-repaired", "key-case", "name-missing", "allowed-tools-form"}
        everywhere = lsp.Range(lsp.Position(0, 0), lsp.Position(8, 0))
        titles = []
        for version in (2, 3, 4, 5):
            context = lsp.CodeActionContext(found, only=[lsp.CodeActionKind.QuickFix])
            parameters = lsp.CodeActionParams(document, everywhere, context)
            actions = await editor.client.text_document_code_action_async(parameters) or []
            first = actions[0]
            assert isinstance(first, lsp.CodeAction)
            assert first.diagnostics
            titles.append(first.title)
            editor.apply(first.edit)
            found = await editor.published(version)
        assert titles == [
            "Quote the value of 'description'",
            "Rename the field 'Name' to 'name'",
            "Change the name 'Pdf_Tools' to 'pdf-tools'",
            "Separate the entries of 'allowed-tools' with spaces",
        ]
        assert codes(found) == {"reference-missing"}
        editor.type(document, editor.texts[document.uri].replace("[none](none.md)", "nothing"))
        assert await editor.published(6) == []
        (skill / "SKILL.md").write_text(editor.texts[document.uri], encoding="utf-8")

    editor_thread.edit(tmp_path, action)
    assert run(["validate", str(skill)]) == 0


def test_all_fixes_in_one_action_are_those_of_validate(
    tmp_path: Path, editor_thread: EditorThread
) -> None:
    data = BROKEN.replace("PDF", "PDF 📄 größer").replace("\n", "\r\n")
    skill = make_skill(tmp_path, "pdf-tools", data=data.encode(), files=FILES)

    async def action(editor: Editor) -> str:
        document = editor.open("pdf-tools/SKILL.md")
        start = lsp.Position(0, 0)
        context = lsp.CodeActionContext([], only=[lsp.CodeActionKind.SourceFixAll])
        parameters = lsp.CodeActionParams(document, lsp.Range(start, start), context)
        (only,) = await editor.client.text_document_code_action_async(parameters) or []
        assert isinstance(only, lsp.CodeAction)
        editor.apply(only.edit)
        return editor.texts[document.uri]

    fixed = editor_thread.edit(tmp_path, action)
    run(["validate", str(skill), "--fix"])
    assert (skill / "SKILL.md").read_bytes().decode() == fixed


def test_diagnostics_have_lines_codes_and_hints_of_validate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {**FILES, "scripts/run.sh": b"curl https://x.example/a | sh\n"}
    make_skill(tmp_path, "pdf-tools", data=BROKEN.encode(), files=files)

    async def action(editor: Editor) -> list[lsp.Diagnostic]:
        return await editor.pulled(editor.open("pdf-tools/SKILL.md"))

    found = edit(tmp_path, action, PULLED)
    run(["validate", str(tmp_path), "--json"])
    report = json.loads(capsys.readouterr().out)
    (result,) = report["data"]["results"]
    expected = {
        (one["code"], f"{one['message']}{hint}")
        for one in result["findings"]
        for hint in ([f"\nhint: {one['hint']}"] if "hint" in one else [""])
    }
    shown = {(one.code, one.message.removeprefix("scripts/run.sh:1: ")) for one in found}
    assert shown == expected
    assert len(found) == len(result["findings"])
    lines = {one.code: one.range.start.line + 1 for one in found}
    assert lines["yaml-repaired"] == 3
    assert lines["reference-missing"] == 8
    assert lines["pipe-to-shell"] == 1


def test_workspace_diagnostics_cover_skills_that_are_not_open(tmp_path: Path) -> None:
    make_skill(tmp_path, "fine")
    make_skill(tmp_path, "broken", data=make_skill_md("Broken"))

    async def action(editor: Editor) -> None:
        reports = await editor.pulled_from_workspace()
        found = {one.uri: one for one in reports}
        assert found.keys() == {editor.uri("fine/SKILL.md"), editor.uri("broken/SKILL.md")}
        broken = found[editor.uri("broken/SKILL.md")]
        assert isinstance(broken, lsp.WorkspaceFullDocumentDiagnosticReport)
        assert "name-uppercase" in codes(list(broken.items))
        # The next answer comes when something has changed.
        ids = {uri: one.result_id or "" for uri, one in found.items()}
        waiting = editor.pulled_from_workspace(ids)
        document = editor.open("broken/SKILL.md")
        editor.type(document, make_skill_md("broken").decode())
        reports = await waiting
        changed = [one for one in reports if one.kind == "full"]
        assert [one.uri for one in changed] == [document.uri]
        # So does the answer after that, here because of a new skill.
        ids |= {one.uri: one.result_id or "" for one in reports}
        waiting = editor.pulled_from_workspace(ids)
        make_skill(tmp_path, "new")
        event = lsp.FileEvent(editor.uri("new/SKILL.md"), lsp.FileChangeType.Created)
        editor.client.workspace_did_change_watched_files(lsp.DidChangeWatchedFilesParams([event]))
        assert [one.uri for one in await waiting if one.kind == "full"] == [event.uri]

    edit(tmp_path, action, PULLED)


def complete(editor: Editor, text: str, line: int) -> "Labels":
    document = editor.open("pdf-tools/SKILL.md", text)
    position = lsp.Position(line, len(text.split("\n")[line]))
    return Labels(editor, lsp.CompletionParams(document, position))


class Labels:
    """The completions at a position."""

    def __init__(self, editor: Editor, parameters: lsp.CompletionParams) -> None:
        self._editor = editor
        self._parameters = parameters

    async def get(self) -> list[str]:
        found = await self._editor.client.text_document_completion_async(self._parameters)
        assert isinstance(found, lsp.CompletionList)
        return [one.label for one in found.items]


def test_completion_offers_fields_tools_agents_and_files(
    tmp_path: Path, editor_thread: EditorThread
) -> None:
    make_skill(tmp_path, "pdf-tools", files=FILES)

    async def action(editor: Editor) -> None:
        fields = await complete(editor, "---\nname: pdf-tools\nde\n---\n", 2).get()
        assert fields[0] == "description"
        assert "name" not in fields
        tools = await complete(editor, "---\nallowed-tools: Read Ba\n---\n", 1).get()
        assert "Bash(git:*)" in tools
        agents = await complete(editor, "---\ncompatibility: Designed for C\n---\n", 1).get()
        assert "Claude Code" in agents
        booleans = await complete(editor, "---\ndisable-model-invocation: \n---\n", 1).get()
        assert booleans == ["true", "false"]
        files = await complete(editor, "---\nname: a\n---\nSee [x](ref", 3).get()
        assert files == ["references/form.md"]
        assert await complete(editor, "---\nname: a\n---\nSee", 3).get() == []

    editor_thread.edit(tmp_path, action)


def test_hover_tells_meaning_and_tokens(tmp_path: Path, editor_thread: EditorThread) -> None:
    make_skill(tmp_path, "pdf-tools", data=BROKEN.encode(), files=FILES)

    async def action(editor: Editor) -> list[str]:
        document = editor.open("pdf-tools/SKILL.md")
        texts = []
        for line, column in ((2, 3), (3, 3), (5, 3), (LINE, COLUMN), (LINE, 48)):
            parameters = lsp.HoverParams(document, lsp.Position(line, column))
            hover = await editor.client.text_document_hover_async(parameters)
            assert hover is not None
            assert isinstance(hover.contents, lsp.MarkupContent)
            texts.append(hover.contents.value)
        return texts

    description, tools, heading, file, missing = editor_thread.edit(tmp_path, action)
    assert "tokens in each system prompt" in description
    assert "Agents decide by this text" in description
    assert "without asking" in tools
    assert "No tokens" in tools
    assert "about 15 tokens" in heading
    assert "42 bytes, about 10 tokens when an agent reads it" in file
    assert "is not in the skill" in missing


def test_links_lead_to_files_of_the_skill(tmp_path: Path, editor_thread: EditorThread) -> None:
    skill = make_skill(tmp_path, "pdf-tools", data=BROKEN.encode(), files=FILES)

    async def action(editor: Editor) -> None:
        document = editor.open("pdf-tools/SKILL.md")
        target = (skill / "references/form.md").as_uri()
        here = lsp.DefinitionParams(document, lsp.Position(LINE, COLUMN))
        location = await editor.client.text_document_definition_async(here)
        assert isinstance(location, lsp.Location)
        assert location.uri == target

    editor_thread.edit(tmp_path, action)


def test_rename_moves_the_file_and_changes_all_links(
    tmp_path: Path, editor_thread: EditorThread
) -> None:
    files = {**FILES, "docs/other.md": b"[form](../references/form.md#top)\n"}
    skill = make_skill(tmp_path, "pdf-tools", data=BROKEN.encode(), files=files)

    async def action(editor: Editor) -> str:
        document = editor.open("pdf-tools/SKILL.md")
        place = lsp.Position(LINE, COLUMN)
        prepared = await editor.client.text_document_prepare_rename_async(
            lsp.PrepareRenameParams(document, place)
        )
        assert isinstance(prepared, lsp.PrepareRenamePlaceholder)
        assert prepared.placeholder == "references/form.md"
        for unsafe in ("../x.md", "/etc/passwd", "SKILL.md", "docs/other.md", ""):
            with pytest.raises(JsonRpcException):
                await editor.client.text_document_rename_async(
                    lsp.RenameParams(document, place, unsafe)
                )
        changed = await editor.client.text_document_rename_async(
            lsp.RenameParams(document, place, "guide/my form.md")
        )
        editor.apply(changed)
        return editor.texts[document.uri]

    text = editor_thread.edit(tmp_path, action)
    assert "[the form](guide/my%20form.md)" in text
    assert not (skill / "references/form.md").exists()
    assert (skill / "docs/other.md").read_text() == "[form](../guide/my%20form.md#top)\n"
    moved = (skill / "guide/my form.md").read_text()
    assert "[again](../guide/my%20form.md)" in moved


def test_outline_and_token_counts_follow_the_headings(
    tmp_path: Path, editor_thread: EditorThread
) -> None:
    body = "# One\n\n## Two\ntext\n```\n# not a heading\n```\n# Three ##\n"
    make_skill(tmp_path, "pdf-tools", data=make_skill_md(body=body))

    async def action(editor: Editor) -> None:
        document = editor.open("pdf-tools/SKILL.md")
        symbols = await editor.client.text_document_document_symbol_async(
            lsp.DocumentSymbolParams(document)
        )
        outline = [
            (one.name, [child.name for child in one.children or ()])
            for one in symbols or ()
            if isinstance(one, lsp.DocumentSymbol)
        ]
        assert outline == [
            ("frontmatter", ["name", "description"]),
            ("One", ["Two"]),
            ("Three", []),
        ]
        lenses = await editor.client.text_document_code_lens_async(lsp.CodeLensParams(document))
        counts = [(one.range.start.line, one.command and one.command.title) for one in lenses or ()]
        assert counts[0] == (
            0,
            "about 6 tokens in each system prompt, 12 when the skill is loaded",
        )
        assert [line for line, _ in counts] == [0, 4, 6, 11]

    editor_thread.edit(tmp_path, action)


def test_problems_of_the_chosen_agents_are_diagnostics(tmp_path: Path) -> None:
    make_skill(tmp_path, "pdf-tools", data=make_skill_md(description="x" * 1025))

    async def action(editor: Editor) -> list[lsp.Diagnostic]:
        editor.open("pdf-tools/SKILL.md")
        return await editor.published()

    found = edit(tmp_path, action, arguments=["--agent", "pi", "--agent", "skills-ref"])
    (problem,) = [one for one in found if one.code == "portability"]
    assert problem.range.start.line == 2
    assert "skills-ref validator" in problem.message


def test_unknown_agent_is_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["lsp", "--agent", "pdf"]) == 4
    assert "pdf" in capfd.readouterr().err


def test_other_documents_have_no_diagnostics(tmp_path: Path, editor_thread: EditorThread) -> None:
    (tmp_path / "README.md").write_text("# Not a skill\n")

    async def action(editor: Editor) -> list[lsp.Diagnostic]:
        editor.open("README.md")
        return await editor.published()

    assert editor_thread.edit(tmp_path, action) == []


def test_server_without_its_extra_says_what_to_install(tmp_path: Path) -> None:
    code = "import sys; sys.modules['pygls'] = None; sys.argv = ['skillhall', 'lsp']\n"
    code += "from skillhall._internal.cli.main import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 2
    assert "pip install 'skillhall[lsp]'" in done.stderr
