"""ReadFile, ReadSkill and ListSkillFiles: exact results for any input."""

import os
import socket
from pathlib import Path

import pytest

from skillhall._internal.agents.file_tools import MAX_FILE_BYTES, MAX_FILES, ReadTools
from skillhall._internal.api.compat.toolbox import tools_for
from skillhall._internal.settings import Settings
from skillhall._internal.wiring.catalog import load_catalog
from tests.support.skills import make_skill, make_skill_md

REQUIRED = "Error: path is required."
OUTSIDE = "Error: path must be under the run directory."
NOT_FOUND = "Error: file not found."
TYPE = "Error: file type not allowed. Allowed: .md, .cs, .py, .txt, .json, .yml, .yaml"


@pytest.fixture
def run_directory(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    make_skill(folder / ".agents" / "skills", "pdf", files={"scripts/run.py": b"print()\n"})
    (folder / "notes.md").write_bytes("Nötes\n".encode())
    (tmp_path / "run-other").mkdir()
    (tmp_path / "run-other" / "secret.md").write_bytes(b"secret")
    return folder


@pytest.fixture
def tools(run_directory: Path) -> ReadTools:
    return ReadTools(str(run_directory))


# ReadFile


@pytest.mark.parametrize(
    "path",
    [
        "notes.md",
        "./notes.md",
        "././/notes.md",
        "notes.md ",
        " notes.md\n",
        ".agents/../notes.md",
        ".agents//skills/../../notes.md",
        "absent/../notes.md",
        "../run/notes.md",
    ],
)
def test_equivalent_spellings_of_a_path_are_read(tools: ReadTools, path: str) -> None:
    assert tools.read_file(path) == "Nötes\n"


def test_absolute_path_inside_the_run_directory_is_read(
    tools: ReadTools, run_directory: Path, tmp_path: Path
) -> None:
    assert tools.read_file(f"{run_directory}/notes.md") == "Nötes\n"
    assert tools.read_file(f"{run_directory}/../run//./notes.md") == "Nötes\n"
    assert tools.read_file(f"{run_directory}/.env.json") == NOT_FOUND
    (tmp_path / "link").symlink_to(run_directory)
    linked = ReadTools(str(tmp_path / "link"))
    assert linked.read_file(f"{run_directory}/notes.md") == "Nötes\n"
    assert linked.read_file(f"{tmp_path}/link/notes.md") == "Nötes\n"


def test_absolute_path_elsewhere_is_outside(tools: ReadTools, run_directory: Path) -> None:
    for path in (
        f"{run_directory}-other/secret.md",
        f"{run_directory}/../run-other/secret.md",
        f"{run_directory}",
        f"{run_directory}/",
    ):
        assert tools.read_file(path) == OUTSIDE


def test_files_of_valid_and_invalid_skills_are_read(tools: ReadTools, run_directory: Path) -> None:
    make_skill(run_directory / ".agents" / "skills", "broken", data=b"nothing")
    assert tools.read_file(".agents/skills/pdf/scripts/run.py") == "print()\n"
    assert tools.read_file(".agents/skills/broken/SKILL.md") == "nothing"


@pytest.mark.parametrize("path", [None, "", "  \n", 7, ["notes.md"], {"a": 1}, b"notes.md", True])
def test_missing_path_is_an_error(tools: ReadTools, path: object) -> None:
    assert tools.read_file(path) == REQUIRED


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../run-other/secret.md",
        "docs/../../run-other/secret.md",
        "../nothing.md",
        "/etc/hosts.md",
        "//server/share/a.md",
        "\\\\server\\share\\a.md",
        "C:/a.md",
        "c:a.md",
        "~/a.md",
        "~root/a.md",
        "a\\b.md",
        "notes.md\0",
        "notes.md\x00.txt",
        "a\nb.md",
        "\x1b[2J.md",
        "file:///etc/hosts.md",
        "https://example.org/a.md",
        "notes.md.",
        "notes.md/..",
        "notes.md::$DATA",
        "CON.md",
        "\udcff.md",
        "x" * 5000 + ".md",
    ],
)
def test_unsafe_path_is_outside(tools: ReadTools, path: str) -> None:
    assert tools.read_file(path) == OUTSIDE


@pytest.mark.parametrize("path", ["%2e%2e/run-other/secret.md", "$HOME/a.md", "a%00.md"])
def test_path_is_not_decoded_or_expanded(tools: ReadTools, path: str) -> None:
    assert tools.read_file(path) == NOT_FOUND


@pytest.mark.parametrize("path", ["key.pem", "noending", "notes.md.bin", "absent.exe"])
def test_only_allowed_file_types_are_read(tools: ReadTools, run_directory: Path, path: str) -> None:
    (run_directory / "key.pem").touch()
    assert tools.read_file(path) == TYPE


@pytest.mark.parametrize("extensions", [(".rst",), ("RST",), ".rst", ["rst", ".rst"]])
def test_allowed_file_types_can_be_passed(
    run_directory: Path, extensions: str | list[str] | tuple[str, ...]
) -> None:
    tools = ReadTools(run_directory, extensions)
    (run_directory / "a.RST").write_bytes(b"text")
    assert tools.read_file("a.RST") == "text"
    assert tools.read_file("notes.md") == "Error: file type not allowed. Allowed: .rst"


def test_allowed_file_types_are_a_setting(run_directory: Path) -> None:
    (run_directory / "a.sql").write_bytes(b"text")
    settings = Settings.read({"SKILLHALL_READ_EXTENSIONS": ".md, SQL"})
    tools = ReadTools(run_directory, settings=settings)
    assert tools.read_file("a.sql") == "text"
    assert tools.read_file("a.txt") == "Error: file type not allowed. Allowed: .md, .sql"
    assert "Allowed types: .md .sql." in tools.tools[0].description
    assert tools_for(run_directory, settings)["ReadFile"]({"path": "a.sql"}) == "text"
    assert tools_for(run_directory, extensions=["sql"])["ReadFile"]({"path": "a.sql"}) == "text"


def test_non_files_are_not_found(
    tools: ReadTools, run_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(run_directory)  # the path of a socket must be short
    (run_directory / "folder.md").mkdir()
    os.mkfifo(run_directory / "pipe.md")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket.md")
    (run_directory / "device.md").symlink_to("/dev/zero")
    for name in ("folder.md", "pipe.md", "socket.md", "absent.md", "notes.md/a.md"):
        assert tools.read_file(name) == NOT_FOUND
    assert tools.read_file("device.md") == OUTSIDE


def test_large_file_is_rejected(tools: ReadTools, run_directory: Path) -> None:
    (run_directory / "large.txt").write_bytes(b"x" * MAX_FILE_BYTES)
    assert len(tools.read_file("large.txt")) == MAX_FILE_BYTES
    (run_directory / "large.txt").write_bytes(b"x" * (MAX_FILE_BYTES + 1))
    assert tools.read_file("large.txt") == "Error: file too large."


@pytest.mark.parametrize("data", [b"\xff\xfea\0", b"a\0b", b"\xc3"])
def test_binary_file_is_rejected(tools: ReadTools, run_directory: Path, data: bytes) -> None:
    (run_directory / "data.txt").write_bytes(data)
    assert tools.read_file("data.txt") == "Error: file is not UTF-8 text."


def test_links_are_followed_inside_the_run_directory_only(
    tools: ReadTools, run_directory: Path
) -> None:
    (run_directory / "in.md").symlink_to("notes.md")
    (run_directory / "out.md").symlink_to("../run-other/secret.md")
    (run_directory / "nowhere.md").symlink_to("../absent.md")
    assert tools.read_file("in.md") == "Nötes\n"
    assert tools.read_file("out.md") == OUTSIDE
    assert tools.read_file("nowhere.md") == OUTSIDE


def test_file_type_is_checked_behind_links(tools: ReadTools, run_directory: Path) -> None:
    (run_directory / "key.pem").write_bytes(b"secret")
    (run_directory / "key.md").symlink_to("key.pem")
    assert tools.read_file("key.md") == TYPE


PRIVATE = [
    ".git/config.md",
    ".env.json",
    ".Env.json",
    ".hidden/a.md",
    ".agents/.env",
    ".agents/.skill-lock.json",
    "skillhall.toml",
    "skillhall-lock.json",
    "skillhall.db.json",
    "state/cache/a.json",
    "State/CACHE/a.json",
]


@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("path", PRIVATE)
def test_private_paths_are_never_distinguishable_from_missing_ones(
    run_directory: Path, path: str, exists: bool
) -> None:
    settings = Settings(str(run_directory), str(run_directory / "state" / "cache"))
    tools = ReadTools(str(run_directory), settings=settings)
    if exists:
        (run_directory / path).parent.mkdir(parents=True, exist_ok=True)
        (run_directory / path).write_bytes(b"secret")
    (run_directory / "link.md").symlink_to(path)
    (run_directory / "folder").symlink_to(Path(path).parent)
    for spelling in (path, "link.md", f"folder/{Path(path).name}"):
        assert tools.read_file(spelling) == NOT_FOUND


# ReadSkill


def test_read_skill_accepts_id_or_name(run_directory: Path) -> None:
    data = make_skill_md("PDF Tools", body="Read.\n</skill_content>\nMore.")
    make_skill(run_directory / ".agents" / "skills", "tools", data=data)
    tools = ReadTools(str(run_directory))
    text = tools.read_skill("tools")
    assert text == tools.read_skill("PDF Tools")
    assert text.startswith('<skill_content name="PDF Tools">\nRead.\n&lt;/skill_content>')
    assert "Skill directory: .agents/skills/tools\n" in text
    assert str(run_directory) not in text


def test_read_skill_prefers_the_id(run_directory: Path) -> None:
    skills = run_directory / ".agents" / "skills"
    make_skill(skills, "a", data=make_skill_md("b", body="I am a."))
    make_skill(skills, "b", data=make_skill_md("a", body="I am b."))
    assert "I am b." in ReadTools(str(run_directory)).read_skill("b")


def test_unknown_skill_error_lists_available_skills(tools: ReadTools, run_directory: Path) -> None:
    quiet = make_skill_md("quiet", disable_model_invocation="true")
    make_skill(run_directory / ".agents" / "skills", "quiet", data=quiet)
    for name in ("pfd", "quiet", "../pdf"):
        error = f"Error: there is no skill {name!r}. Available skills: pdf"
        assert tools.read_skill(name) == error
        assert tools.list_skill_files(name) == error


@pytest.mark.parametrize("name", [None, "", 3, ["pdf"]])
def test_missing_name_is_an_error(tools: ReadTools, name: object) -> None:
    assert tools.read_skill(name) == "Error: name is required. Available skills: pdf"


def test_error_without_skills_says_so(tmp_path: Path) -> None:
    error = ReadTools(str(tmp_path)).read_skill("pdf")
    assert error == "Error: there is no skill 'pdf'. No skills are available."


def test_invalid_skill_error_does_not_leak_the_path(run_directory: Path) -> None:
    catalog = load_catalog([str(run_directory / ".agents" / "skills")], "local-skills")
    tools = ReadTools(str(run_directory), catalog=lambda: catalog)
    file = run_directory / ".agents" / "skills" / "pdf" / "SKILL.md"
    file.write_bytes(make_skill_md("pdf") + b"\xff")
    assert tools.read_skill("pdf").startswith(
        "Error: skill 'pdf' is invalid: the file is not UTF-8"
    )
    file.unlink()
    assert tools.read_skill("pdf") == "Error: skill 'pdf' cannot be read."


# ListSkillFiles


def test_listed_files_are_readable_by_read_file(tools: ReadTools) -> None:
    assert tools.list_skill_files("pdf").splitlines()[1:] == [
        ".agents/skills/pdf/scripts/run.py (8 bytes)"
    ]
    first = tools.list_skill_files("pdf").splitlines()[0].partition(" (")[0]
    assert tools.read_file(first) == make_skill_md("pdf").decode()


def test_long_file_list_is_truncated_with_a_count(tools: ReadTools, run_directory: Path) -> None:
    for number in range(MAX_FILES):
        (run_directory / ".agents" / "skills" / "pdf" / f"{number}.md").touch()
    lines = tools.list_skill_files("pdf").splitlines()
    assert len(lines) == MAX_FILES + 1
    assert lines[-1] == "(2 more files are not listed here)"


# As tools


@pytest.mark.parametrize("arguments", [None, 3, "notes.md", [], {}, {"Path": "notes.md"}])
def test_arguments_of_any_type_give_a_result(tools: ReadTools, arguments: object) -> None:
    for tool in tools.tools:
        assert str(tool(arguments)).startswith("Error: ")
        assert tool.call(arguments).is_error


def test_file_that_starts_like_an_error_is_not_an_error(
    tools: ReadTools, run_directory: Path
) -> None:
    (run_directory / "log.txt").write_bytes(b"Error: file not found.")
    assert not tools.tools[0].call({"path": "log.txt"}).is_error
