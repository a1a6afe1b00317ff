"""Which folders the commands search: roots, depth, links, and reported findings."""

import json
from pathlib import Path
from typing import Any

import pytest

from skillhall._internal.cli.runner import run
from tests.support.skills import make_skill, make_skill_md

FAULTS = {"nul-byte": b"\0", "not-utf8": b"\xff"}
FAR = 5000  # bytes; beyond what a listing reads


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


class Cli:
    """Runs a command and stores its output."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.out = self.err = ""

    def __call__(self, *argv: str) -> int:
        code = run(argv)
        self.out, self.err = self._capsys.readouterr()
        return code

    def json(self, *argv: str) -> dict[str, Any]:
        self(*argv, "--json")
        report: dict[str, Any] = json.loads(self.out)
        return report

    def names(self, *argv: str) -> list[str]:
        return [skill["name"] for skill in self.json(*argv)["data"]["skills"]]

    def codes(self, *argv: str) -> list[str]:
        return [finding["code"] for finding in self.json(*argv)["findings"]]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(capsys)


# Paths


@pytest.mark.parametrize(
    "argv",
    [
        ("list", "gone"),
        ("list", "gone", "--long"),
        ("list", "skills", "gone"),
        ("list", "skills/pdf/SKILL.md"),
        ("prompt", "gone"),
        ("search", "pdf", "-r", "gone"),
        ("show", "pdf", "-r", "gone"),
        ("read", "pdf", "-r", "gone"),
        ("why", "pdf", "-r", "gone"),
        ("validate", "gone"),
        ("scan", "gone"),
    ],
    ids=" ".join,
)
def test_missing_path_exits_with_4(cli: Cli, tmp_path: Path, argv: tuple[str, ...]) -> None:
    make_skill(tmp_path / "skills", "pdf")
    assert cli(*argv) == 4
    assert cli.out == ""
    report = cli.json(*argv)
    assert (report["ok"], report["error"]["code"]) == (False, "not_found")


def test_missing_default_folders_are_no_error(cli: Cli) -> None:
    assert cli("list") == 0
    assert cli("prompt") == 0


# Depth


def test_validate_and_list_search_equally_deep(cli: Cli, tmp_path: Path) -> None:
    for depth in range(8):
        make_skill(tmp_path.joinpath("root", *"abcdefgh"[:depth]), f"skill-{depth}")
    listed = cli.names("list", "root")
    validated = {result["name"] for result in cli.json("validate", "root")["data"]["results"]}
    assert listed == sorted(validated) == [f"skill-{depth}" for depth in range(6)]


@pytest.mark.parametrize(
    "argv", [("list",), ("prompt",), ("validate",), ("scan",), ("search", "x", "-r")]
)
def test_folders_beyond_the_depth_limit_are_counted(
    cli: Cli, tmp_path: Path, argv: tuple[str, ...]
) -> None:
    for name in ("one", "two", "node_modules"):
        make_skill(tmp_path / "root/a/b/c/d/e/f", name)
    findings = cli.json(*argv, "root")["findings"]
    (finding,) = [item for item in findings if item["code"] == "bound-reached"]
    assert finding["message"] == "2 folders were not searched: deeper than 6 levels"
    assert (finding["path"], "--depth" in finding["hint"]) == (str(tmp_path / "root"), True)


def test_single_folder_beyond_the_depth_limit_is_counted(cli: Cli, tmp_path: Path) -> None:
    make_skill(tmp_path / "root/a", "pdf")
    cli("list", "root", "--depth", "1")
    assert "1 folder was not searched: deeper than 1 levels" in cli.err


def test_depth_option_changes_the_search_depth(cli: Cli, tmp_path: Path) -> None:
    make_skill(tmp_path / "root/a/b/c/d/e/f", "pdf")
    assert cli.names("list", "root", "--depth", "7") == ["pdf"]
    assert cli.names("prompt", "root", "--depth=7") == ["pdf"]
    assert cli("search", "pdf", "-r", "root", "--depth", "7") == 0
    for command in ("validate", "scan"):
        results = cli.json(command, "root", "--depth", "7")["data"]["results"]
        assert [result["name"] for result in results] == ["pdf"]


@pytest.mark.parametrize("depth", ["0", "65", "x"])
def test_depth_out_of_range_is_a_usage_error(cli: Cli, depth: str) -> None:
    assert cli("list", "--depth", depth) == 2


# Bodies


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    "argv",
    [
        ("list", "--long"),
        ("prompt",),
        ("prompt", "--format", "markdown"),
        ("prompt", "--format", "inline"),
    ],
    ids=" ".join,
)
def test_unreadable_body_is_rejected_as_by_validate(
    cli: Cli, tmp_path: Path, fault: str, argv: tuple[str, ...]
) -> None:
    make_skill(tmp_path / "skills", "pdf", data=_damaged(fault, FAR))
    assert fault in cli.codes("validate", "skills")
    cli(*argv, "skills")
    assert "pdf" not in cli.out
    assert "1 skill skipped" in cli.err


@pytest.mark.parametrize("fault", FAULTS)
def test_list_rejects_damage_in_the_part_it_reads(cli: Cli, tmp_path: Path, fault: str) -> None:
    make_skill(tmp_path / "skills", "near", data=_damaged(fault, 0))
    make_skill(tmp_path / "skills", "far-on", data=_damaged(fault, 3000) + b"x" * FAR)
    assert cli.names("list", "skills") == []
    assert cli.codes("list", "skills").count(fault) == 2


def _damaged(fault: str, start: int) -> bytes:
    return make_skill_md("pdf", body="x" * start) + FAULTS[fault]


# Documents next to skills


@pytest.mark.parametrize("profile", ["specification", "lenient", "prompt-repository"])
def test_validate_ignores_a_readme_next_to_skills(cli: Cli, tmp_path: Path, profile: str) -> None:
    make_skill(tmp_path / "repo", "pdf")
    for name in ("README.md", "CHANGELOG.md", "AGENTS.md", "readme.md"):
        (tmp_path / "repo" / name).write_text("# Hello\n", encoding="utf-8")
    assert cli("validate", "repo", "--profile", profile) == 0
    assert [result["name"] for result in cli.json("validate", "repo")["data"]["results"]] == ["pdf"]


def test_validate_rejects_an_explicitly_named_readme(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# Hello\n", encoding="utf-8")
    assert cli("validate", "README.md", "--profile", "prompt-repository") == 1


def test_prompt_without_frontmatter_is_rejected(cli: Cli, tmp_path: Path) -> None:
    make_skill(tmp_path / "repo", "pdf")
    (tmp_path / "repo/review.md").write_text("# Review\n", encoding="utf-8")
    assert cli("validate", "repo", "--profile", "prompt-repository") == 1


def test_validate_ignores_folders_without_skills(cli: Cli, tmp_path: Path) -> None:
    make_skill(tmp_path / "repo/skills", "pdf")
    (tmp_path / "repo/docs").mkdir()
    assert cli("validate", "repo") == 0
    assert "skipped" in cli.codes("validate", "repo")


def test_folder_without_skill_md_among_skills_is_rejected(cli: Cli, tmp_path: Path) -> None:
    make_skill(tmp_path / "mine", "pdf")
    (tmp_path / "mine/docx").mkdir()
    assert cli("validate", "mine") == 1
    assert "no-skill-md" in cli.codes("validate", "mine")


# Links out of the roots


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A folder of skills with a link to a skill elsewhere."""
    outside = make_skill(tmp_path / "elsewhere", "pdf", files={"notes.md": b"Notes"})
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills/pdf").symlink_to(outside)
    return tmp_path / "skills"


def test_linked_skill_is_rejected_with_a_hint(cli: Cli, linked: Path) -> None:
    report = cli.json("list", "skills")
    assert report["data"]["skills"] == []
    (finding,) = report["findings"]
    assert (finding["code"], finding["path"]) == ("link-outside", str(linked / "pdf"))
    assert "--follow-links" in finding["hint"]
    assert "SKILLHALL_FOLLOW_LINKS" in finding["hint"]


def test_validate_rejects_a_linked_skill_with_a_hint(cli: Cli, linked: Path) -> None:
    assert linked.is_dir()
    (finding,) = cli.json("validate", "skills")["findings"]
    assert (finding["code"], "--follow-links" in finding["hint"]) == ("link-skipped", True)


def test_linked_skill_is_found_with_follow_links(cli: Cli, linked: Path) -> None:
    assert cli.names("list", "skills", "--long", "--follow-links") == ["pdf"]
    assert cli.names("prompt", "skills", "--follow-links") == ["pdf"]
    assert cli("search", "pdf", "-r", "skills", "--follow-links") == 0
    assert cli("validate", "skills", "--follow-links") == 0
    assert cli("scan", "skills", "--follow-links") == 0
    assert cli("read", "pdf", "notes.md", "-r", "skills", "--follow-links") == 0
    assert cli.out == "Notes"
    assert cli("add", "skills", "--follow-links") == 0


def test_fix_does_not_write_through_links(cli: Cli, linked: Path) -> None:
    file = linked / "pdf/SKILL.md"
    file.write_bytes(make_skill_md("pdf").replace(b"name:", b"Name:"))
    assert cli("validate", "skills", "--fix", "--follow-links") == 1
    assert b"Name:" in file.read_bytes()


def test_follow_links_setting_allows_links(
    cli: Cli, linked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert linked.is_dir()
    monkeypatch.setenv("SKILLHALL_FOLLOW_LINKS", "on")
    assert cli.names("list", "skills") == ["pdf"]
    monkeypatch.setenv("SKILLHALL_FOLLOW_LINKS", "off")
    assert cli.names("list", "skills") == []
