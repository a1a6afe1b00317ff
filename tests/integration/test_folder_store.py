"""Folder store under faults: concurrent writers and swapped folders."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from skillhall._internal.agents.file_tools import ReadTools
from skillhall._internal.skill_store.folder_store import FolderStore
from tests.support.skills import make_skill_md
from tests.support.trees import DEADLINE, run_in_background

ADD = """
import sys
from skillhall.errors import Conflict
from skillhall._internal.skill_store.folder_store import FolderStore
store = FolderStore(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for number in range(10):
    try:
        print(store.add(f"skill-{number}", sys.argv[2], "Reads.").id)
    except Conflict:
        pass
"""


def test_concurrent_adds_of_one_id_have_one_winner(tmp_path: Path) -> None:
    pipe = subprocess.PIPE
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", ADD, str(tmp_path), name], stdin=pipe, stdout=pipe, text=True
        )
        for name in "abcd"
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    outputs = [process.communicate(timeout=DEADLINE)[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    winners = {id_: name for name, ids in zip("abcd", outputs, strict=True) for id_ in ids}
    assert sum(map(len, outputs)) == len(winners) == 10
    assert {item.id: item.name for item in FolderStore(tmp_path).list().items} == winners


SWAP = """
os.rename(arguments[0], arguments[0] + ".aside")
os.symlink(arguments[1], arguments[0])
os.remove(arguments[0])
os.rename(arguments[0] + ".aside", arguments[0])
"""
RETARGET = """
for target in arguments[1:]:
    os.symlink(target, arguments[0] + ".new")
    os.rename(arguments[0] + ".new", arguments[0])
"""


@pytest.fixture
def run_directory(tmp_path: Path) -> Path:
    run = tmp_path / "run"
    for folder in (run / "docs", run / ".git", tmp_path / "outside"):
        folder.mkdir(parents=True)
        (folder / "a.md").write_text("SECRET", encoding="utf-8")
    (run / "docs" / "a.md").write_text("open", encoding="utf-8")
    (run / "link").symlink_to("docs")
    return run


def test_swapped_folder_does_not_leak_files(run_directory: Path, tmp_path: Path) -> None:
    tools = ReadTools(str(run_directory))
    with run_in_background(SWAP, run_directory / "docs", tmp_path / "outside"):
        results = {tools.read_file(path) for _ in range(400) for path in ("docs/a.md", "link/a.md")}
    assert "open" in results
    assert "SECRET" not in results


@pytest.mark.parametrize("target", ["../outside", ".git"])
def test_retargeted_link_does_not_leak_files(run_directory: Path, target: str) -> None:
    tools = ReadTools(str(run_directory))
    with run_in_background(RETARGET, run_directory / "link", target, "docs"):
        results = {tools.read_file("link/a.md") for _ in range(800)}
    assert "open" in results
    assert "SECRET" not in results


def test_change_by_another_process_is_visible(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    before, block = store.revision(), store.prompt_block()
    command = [sys.executable, "-m", "skillhall", "local", "add", "pdf", "--description", "Reads."]
    subprocess.run([*command, "--root", tmp_path], check=True, capture_output=True)
    assert store.revision() != before
    assert block == ""
    assert "- id: pdf; name: pdf; description: Reads." in store.prompt_block()


def test_skill_imported_from_zip_is_readable_by_tools(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "pdf.zip", "w") as archive:
        archive.writestr("SKILL.md", make_skill_md("PDF Tools", body="Read it."))
        archive.writestr("references/a.md", "More.")
    run = tmp_path / "run"
    run.mkdir()
    skillhall = [sys.executable, "-m", "skillhall"]

    def call(*arguments: str) -> str:
        result = subprocess.run(
            [*skillhall, *arguments, "--root", run], capture_output=True, check=True, cwd=tmp_path
        )
        return result.stdout.decode()

    imported = json.loads(call("local", "import", "./pdf.zip", "--json"))
    assert imported["data"]["imported"][0]["id"] == "pdf"
    listed = call("tool", "call", "ListSkillFiles", '{"name": "pdf"}')
    path = listed.splitlines()[1].partition(" (")[0]
    assert call("tool", "call", "ReadFile", json.dumps({"path": path})) == "More.\n"
