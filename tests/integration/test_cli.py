"""The command as a process: exit codes, streams, locales, pipes and imports."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.archives import zip_of
from tests.support.skills import make_skill, make_skill_md

HEAVY = {"yaml", "rich", "fastapi", "mcp", "sqlalchemy", "httpx2", "httpx", "starlette"}
MANY = 600  # skills with long descriptions: their listing is larger than a pipe's buffer


def skillhall(
    *argv: str, env: dict[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "skillhall", *argv],
        capture_output=True,
        check=False,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        timeout=120,
    )


def modules_after(code: str, *argv: str) -> set[str]:
    """Return the top-level packages that `code` imports."""
    script = f"import sys; sys.argv[1:] = {list(argv)!r}\n{code}\n"
    script += "sys.stderr.write(' '.join({name.partition('.')[0] for name in sys.modules}))"
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, encoding="utf-8", check=True
    )
    return set(run.stderr.rpartition("\n")[2].split())


MAIN = "from skillhall._internal.cli.main import main; main()"


def on_a_terminal(*argv: str, env: dict[str, str]) -> bytes:
    """Return the output of a command whose stdout and stderr are a terminal."""
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "skillhall", *argv],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100", **env},
    )
    os.close(terminal)
    chunks = []
    try:
        while chunk := os.read(controller, 65536):
            chunks.append(chunk)
    except OSError:  # Linux reports the end of a terminal as an error
        pass
    finally:
        os.close(controller)
        process.wait(timeout=120)
    return b"".join(chunks)


def test_version_imports_almost_nothing() -> None:
    loaded = modules_after(MAIN, "--version")
    assert not loaded & {*HEAVY, "click", "json", "dataclasses", "pathlib"}
    result = skillhall("--version")
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout.startswith(b"skillhall ")


def test_library_import_loads_no_heavy_packages() -> None:
    assert not modules_after("import skillhall") & {*HEAVY, "click"}


@pytest.mark.parametrize(
    ("argv", "variables"),
    [
        (["--help"], {}),
        (["--version"], {}),
        (
            [],
            {
                "_SKILLHALL_COMPLETE": "bash_complete",
                "COMP_WORDS": "skillhall s",
                "COMP_CWORD": "1",
            },
        ),
    ],
)
def test_help_version_and_completion_of_names_import_no_command(
    argv: list[str], variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert not modules_after(MAIN, *argv) & HEAVY
    script = f"import sys; sys.argv[1:] = {argv!r}\n{MAIN}\n"
    script += "print([m for m in sys.modules if m.startswith('skillhall._internal.cli.commands')])"
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, encoding="utf-8", check=True
    )
    assert run.stdout.endswith("[]\n")


@pytest.mark.parametrize("argv", [[], ["--json"]])
def test_plain_list_imports_no_yaml_rich_or_click(argv: list[str], tmp_path: Path) -> None:
    for number in range(100):
        make_skill(tmp_path, f"skill-{number}")
    loaded = modules_after(MAIN, "list", str(tmp_path), *argv)
    assert not loaded & {*HEAVY, "click", "dataclasses", "inspect"}


def test_data_goes_to_stdout_and_messages_to_stderr(tmp_path: Path) -> None:
    make_skill(tmp_path, "good")
    make_skill(tmp_path, "bad", data=b"")
    result = skillhall("list", str(tmp_path))
    assert result.stdout.count(b"\n") == 1
    assert result.stdout.startswith(b"good\t")
    assert result.stderr.startswith(b"1 skill skipped; see 'skillhall validate")


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["list", "."], 0),
        (["validate", "good"], 0),
        (["validate", "."], 1),
        (["nope"], 2),
        (["list", "--nope"], 2),
        (["read", "good", "../bad/SKILL.md", "-r", "."], 3),
        (["validate", "gone"], 4),
        (["show", "gone", "-r", "."], 4),
        (["init", "good"], 6),
    ],
)
def test_exit_code_matches_the_result(argv: list[str], code: int, tmp_path: Path) -> None:
    make_skill(tmp_path, "good")
    make_skill(tmp_path, "bad", data=b"")
    result = skillhall(*argv, cwd=tmp_path)
    assert result.returncode == code
    assert b"Traceback" not in result.stderr


@pytest.mark.parametrize("argv", [["list"], ["list", "--json"], ["prompt"], ["validate", "--json"]])
def test_closed_pipe_is_not_an_error(argv: list[str], tmp_path: Path) -> None:
    for number in range(MANY):
        data = make_skill_md(f"skill-{number}", "x" * 1000, version="'1'")
        make_skill(tmp_path, f"skill-{number}", data=data)
    process = subprocess.Popen(
        [sys.executable, "-m", "skillhall", *argv, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    # 0 if the system accepted the complete text in one write before the pipe was closed.
    assert process.wait(timeout=120) in (0, 141)
    assert errors == b""


@pytest.mark.parametrize("argv", [["list"], ["prompt"], ["list", "--json"]])
def test_ascii_locale_prints_any_text(argv: list[str], tmp_path: Path) -> None:
    make_skill(
        tmp_path,
        "tee",
        data=make_skill_md("tee", "Kocht Tee – grün, 日本 \N{TEACUP WITHOUT HANDLE}"),
    )
    env = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": ""}
    result = skillhall(*argv, str(tmp_path), env=env)
    assert result.returncode == 0
    assert "grün, 日本 \N{TEACUP WITHOUT HANDLE}" in result.stdout.decode("utf-8")


@pytest.mark.parametrize("locale", ["C", "POSIX"])
def test_folder_names_are_utf8_in_any_locale(locale: str, tmp_path: Path) -> None:
    make_skill(tmp_path / "src", "grün-日本")
    home = {"HOME": str(tmp_path / "home"), "XDG_DATA_HOME": "", "SKILLHALL_DATA_DIR": ""}
    env = {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", **home}
    listed = json.loads(skillhall("list", "src", "--json", env=env, cwd=tmp_path).stdout)
    assert [one["id"] for one in listed["data"]["skills"]] == ["grün-日本"]
    assert skillhall("add", "./src", "--yes", env=env, cwd=tmp_path).returncode == 0
    assert (tmp_path / ".agents/skills/grün-日本/SKILL.md").is_file()
    archive = tmp_path / "grün.zip"
    archive.write_bytes(zip_of({"日本/SKILL.md": make_skill_md("日本")}))
    assert skillhall("add", "grün.zip", "--yes", env=env, cwd=tmp_path).returncode == 0
    assert (tmp_path / ".agents/skills/日本/SKILL.md").is_file()
    assert "fehlt-ä" in skillhall("show", "fehlt-ä", env=env, cwd=tmp_path).stderr.decode("utf-8")


def test_non_utf8_folder_name_does_not_break_json(tmp_path: Path) -> None:
    root = os.fsencode(tmp_path) + b"/caf\xe9"
    try:
        os.mkdir(root)  # noqa: PTH102 - a name that no Path can hold
    except OSError:
        pytest.skip("this file system takes only UTF-8 names")
    make_skill(Path(os.fsdecode(root)))
    result = skillhall("list", "--json", os.fsdecode(root))
    assert json.loads(result.stdout.decode("utf-8"))["data"]["skills"][0]["name"] == "pdf-tools"
    assert skillhall("list", os.fsdecode(root)).returncode == 0


def test_closed_streams_do_not_crash(tmp_path: Path) -> None:
    make_skill(tmp_path)
    command = f'"{sys.executable}" -m skillhall list "{tmp_path}" >&- 2>&-'
    assert subprocess.run(["sh", "-c", command], check=False).returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
def test_full_disk_at_stdout_is_a_storage_error(tmp_path: Path) -> None:
    make_skill(tmp_path)
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run(
            [sys.executable, "-m", "skillhall", "list", str(tmp_path)],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert result.returncode == 7
    assert result.stderr.startswith(b"error: no space left on device")
    assert b"Traceback" not in result.stderr


def test_removed_working_directory_is_an_error(tmp_path: Path) -> None:
    command = f'mkdir gone && cd gone && rmdir ../gone && "{sys.executable}" -m skillhall list'
    env = {**os.environ, "PYTHONSAFEPATH": "1"}
    result = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, env=env, capture_output=True, check=False
    )
    assert result.returncode == 4
    assert result.stderr.startswith(b"error: the current folder no longer exists")


def test_read_only_home_only_disables_the_cache(tmp_path: Path) -> None:
    make_skill(tmp_path)
    (tmp_path / "file").write_bytes(b"")
    env = {"SKILLHALL_CACHE_DIR": str(tmp_path / "file" / "cache"), "HOME": "/nonexistent"}
    result = skillhall("list", str(tmp_path), env=env)
    assert (result.returncode, result.stderr) == (0, b"")


@pytest.mark.parametrize("argv", [["list"], ["validate"], ["prompt"]])
def test_pipe_output_has_no_colors(argv: list[str], tmp_path: Path) -> None:
    make_skill(tmp_path, "BAD", data=make_skill_md("BAD", "\N{GREEK SMALL LETTER ALPHA}\u202e"))
    result = skillhall(*argv, str(tmp_path), env={"FORCE_COLOR": "1", "TERM": "xterm"})
    assert b"\x1b" not in result.stdout + result.stderr


def test_terminal_output_is_a_colored_table(tmp_path: Path) -> None:
    make_skill(tmp_path)
    decorated = on_a_terminal("list", str(tmp_path), env={"NO_COLOR": ""})
    assert b"NAME" in decorated
    assert b"\x1b[" in decorated
    plain = on_a_terminal("list", str(tmp_path), env={"TERM": "dumb"})
    assert plain.startswith(b"pdf-tools\tReads PDF files.\t")


@pytest.mark.parametrize("argv", [["list"], ["search", "pdf"], ["profiles"], ["agents"]])
def test_no_color_disables_only_the_colors(argv: list[str], tmp_path: Path) -> None:
    make_skill(tmp_path)
    roots = {"list": [str(tmp_path)], "search": ["--root", str(tmp_path)]}.get(argv[0], [])
    decorated = on_a_terminal(*argv, *roots, env={"NO_COLOR": ""})
    plain = on_a_terminal(*argv, *roots, env={"NO_COLOR": "1"})
    assert plain == re.sub(rb"\x1b\[[\d;]*m", b"", decorated)
    assert b"\x1b" not in plain
    assert b"\t" not in plain


def test_json_on_a_terminal_is_unchanged(tmp_path: Path) -> None:
    make_skill(tmp_path)
    written = on_a_terminal("list", "--json", str(tmp_path), env={"NO_COLOR": ""})
    assert json.loads(written)["ok"] is True


def test_escape_sequences_in_a_file_are_escaped_on_a_terminal(tmp_path: Path) -> None:
    make_skill(tmp_path, files={"evil.md": b"a\x1b]0;title\x07b\n", "data.bin": b"\xff\x1b"})
    argv = ["read", "pdf-tools", "--root", str(tmp_path)]
    assert on_a_terminal(*argv, "evil.md", env={}) == b"a\\x1b]0;title\\x07b\r\n"
    assert b"'data.bin' is not text" in on_a_terminal(*argv, "data.bin", env={})
    assert skillhall(*argv, "evil.md").stdout == b"a\x1b]0;title\x07b\n"


def test_escape_sequences_in_file_names_are_escaped(tmp_path: Path) -> None:
    (tmp_path / "a\x1b[31m").mkdir()
    for argv in (["validate", str(tmp_path)], ["validate", str(tmp_path / "a\x1b[31m")]):
        result = skillhall(*argv)
        assert result.returncode == 1
        assert b"\x1b" not in result.stdout + result.stderr
