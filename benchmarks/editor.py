"""Answers of `skillhall lsp` to an editor, compared with runs of `skillhall validate`."""

import asyncio
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from lsprotocol import types as lsp

from benchmarks.plan import Plan
from benchmarks.report import Bar, Judged, Report, Row
from tests.support.editor import PULLED, Editor
from tests.support.skills import make_skill, make_skill_md

LIMIT = Bar(3.0, Judged.WALL)
SKILLS = 2_000
SIZE = 1024 * 1024 - 4096
SECTION = "## Part\n\n" + "Text with a [link](references/a.md), `code` and ünïcode.\n" * 16 + "\n"

Answer = Callable[[], Awaitable[object]]


def run(plan: Plan) -> Iterator[Report]:
    """Yield the reports on a large file and on many files."""
    folder = Path(tempfile.mkdtemp(prefix="skillhall-editor-"))
    try:
        body = SECTION * (SIZE // len(SECTION.encode()))
        files = {"references/a.md": b"# A\n"}
        make_skill(folder / "large", "big", data=make_skill_md("big", body=body), files=files)
        for number in range(SKILLS):
            make_skill(folder / "many", f"skill-{number:04}")
        yield asyncio.run(_measure(plan, folder / "large", "big/SKILL.md", "a SKILL.md of 1 MB"))
        name = f"a workspace of {SKILLS} skills"
        yield asyncio.run(_measure(plan, folder / "many", "skill-0001/SKILL.md", name))
    finally:
        shutil.rmtree(folder)


async def _measure(plan: Plan, folder: Path, document: str, title: str) -> Report:
    editor = Editor(folder, PULLED)
    await editor.start()
    try:
        text = editor.open(document)
        start = lsp.Position(0, 0)
        context = lsp.CodeActionContext([])
        client = editor.client
        answers: dict[str, Answer] = {
            "diagnostics": lambda: editor.pulled(text),
            "diagnostics of the workspace": editor.pulled_from_workspace,
            "code actions": lambda: client.text_document_code_action_async(
                lsp.CodeActionParams(text, lsp.Range(start, start), context)
            ),
            "completion": lambda: client.text_document_completion_async(
                lsp.CompletionParams(text, lsp.Position(1, 2))
            ),
            "hover": lambda: client.text_document_hover_async(lsp.HoverParams(text, start)),
            "outline": lambda: client.text_document_document_symbol_async(
                lsp.DocumentSymbolParams(text)
            ),
            "token counts": lambda: client.text_document_code_lens_async(lsp.CodeLensParams(text)),
            "go to file": lambda: client.text_document_definition_async(
                lsp.DefinitionParams(text, lsp.Position(6, 22))
            ),
        }
        times: dict[str, list[float]] = {name: [] for name in answers}
        baseline = []
        for _ in range(plan.rounds + 1):
            baseline.append(_validate(plan, folder))
            for name, answer in answers.items():
                editor.type(text, editor.texts[text.uri] + " ")  # nothing is answered from a cache
                started = time.perf_counter()
                await answer()
                times[name].append(time.perf_counter() - started)
    finally:
        await editor.stop()
    unit = statistics.median(baseline[1:])
    rows = [Row(name="skillhall validate", wall=1.0, median_ms=unit * 1e3)]
    for name, measured in times.items():
        median = statistics.median(measured[1:])
        rows.append(Row(name=name, wall=median / unit, median_ms=median * 1e3, bar=LIMIT))
    return Report(f"editor, {title}, against skillhall validate", tuple(rows))


def _validate(plan: Plan, folder: Path) -> float:
    started = time.perf_counter()
    command = [str(plan.executable), "validate", str(folder)]
    subprocess.run(command, capture_output=True, check=False)
    return time.perf_counter() - started
