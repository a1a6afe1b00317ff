"""`skillhall publish`, run in this process: plans, versions, refusals and yanks."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from skillhall._internal.cli.runner import run
from tests.support.publications import MANIFEST, make_project, read_tree
from tests.support.skills import make_skill, make_skill_md


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return make_project(tmp_path, 2)


class Publisher:
    """Runs the command and returns its output."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture

    def __call__(self, *arguments: str, exits: int = 0) -> str:
        self._capture.readouterr()
        code = run(["publish", *arguments])
        captured = self._capture.readouterr()
        assert code == exits, captured
        self.messages = captured.err
        return captured.out

    def json(self, *arguments: str) -> Any:  # noqa: ANN401 - JSON
        return json.loads(self("--json", *arguments))["data"]


@pytest.fixture
def publish(capsys: pytest.CaptureFixture[str]) -> Publisher:
    return Publisher(capsys)


def test_dry_run_shows_the_changes_and_writes_nothing(project: Path, publish: Publisher) -> None:
    before = read_tree(project)
    lines = publish("gemini", "--dry-run").splitlines()
    assert "skill-00 new -> 1.0.0 (first version)" in lines
    assert "gemini: + skills/skill-01/scripts/run.sh" in lines
    assert publish.messages.endswith("would publish 2 skills as version 1.0.0\n")
    assert {p: f for p, f in read_tree(project).items() if not p.startswith("home/")} == before


def test_change_is_published_with_the_declared_bump(project: Path, publish: Publisher) -> None:
    publish("gemini", "git")
    (project / "skills/skill-01/new.md").write_text("new")
    report = publish.json("gemini", "--bump", "minor")
    assert report["version"] == "1.1.0"
    assert report["versions"] == [
        {"name": "skill-01", "old": "1.0.0", "new": "1.1.0", "changes": ["added new.md"]}
    ]
    # Other targets get the same version later.
    assert publish.json("git", "--bump", "major")["version"] == "1.1.0"
    log = subprocess.run(
        ["git", "--git-dir=dist/git", "for-each-ref", "--format=%(refname:short)"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert log.stdout.split() == [
        *("main", "skill-00@1.0.0", "skill-01@1.0.0", "skill-01@1.1.0", "v1.0.0", "v1.1.0")
    ]


def test_diff_shows_the_changed_lines_of_text_files(project: Path, publish: Publisher) -> None:
    publish("gemini", "git")
    script = project / "skills/skill-01/scripts/run.sh"
    script.write_text("#!/bin/sh\necho 2\n")
    (project / "skills/skill-01/references/data.bin").write_bytes(b"\0")
    (project / "skills/skill-01/empty.txt").unlink()
    output = publish("gemini", "git", "--dry-run", "--diff")
    for target in ("gemini", "git"):
        name = f"{target}/skills/skill-01"
        diff = f"--- a/{name}/scripts/run.sh\n+++ b/{name}/scripts/run.sh\n@@ -1,2 +1,2 @@\n"
        assert f"{diff} #!/bin/sh\n-echo 1\n+echo 2\n" in output
        file = f"{name}/references/data.bin"
        assert f"Binary files a/{file} and b/{file} differ\n" in output
    assert "@@" not in publish("gemini", "--dry-run")


def test_diff_needs_a_dry_run(project: Path, publish: Publisher) -> None:
    publish("--diff", exits=2)


def test_yanked_skill_is_left_out(project: Path, publish: Publisher) -> None:
    publish("gemini")
    publish("--yank", "skill-00@1.0.0", "--reason", "leaks names")
    report = publish.json("gemini")
    assert [one["name"] for one in report["skills"]] == ["skill-01"]
    assert "skill-00: 1.0.0 is yanked" in publish.messages
    assert not (project / "dist/gemini/skills/skill-00").exists()
    changelog = (project / "dist/gemini/CHANGELOG.md").read_text(encoding="utf-8")
    assert "yanked: leaks names" in changelog


@pytest.mark.parametrize(
    "arguments",
    [("--yank", "x"), ("--yank", "a@1.0.0", "git"), ("--yank", "a@1.0.0", "--dry-run")],
)
def test_yank_needs_a_name_and_a_version_only(
    project: Path, publish: Publisher, arguments: tuple[str, ...]
) -> None:
    publish(*arguments, exits=2)


def test_reason_needs_a_yank(project: Path, publish: Publisher) -> None:
    publish("--reason", "x", exits=2)


def test_rejected_skill_stops_everything(project: Path, publish: Publisher) -> None:
    make_skill(project / "skills", "bad", data=make_skill_md("Bad Name"))
    publish(exits=3)
    assert not (project / "dist").exists()
    assert not (project / "skillhall.versions.json").exists()


def test_skill_with_a_link_is_rejected(project: Path, publish: Publisher) -> None:
    (project / "skills/skill-00/link").symlink_to("/etc/passwd")
    publish(exits=3)
    assert "it is a link" in publish.messages


def test_two_skills_with_one_name_are_rejected(project: Path, publish: Publisher) -> None:
    make_skill(project / "more", "skill-00")
    manifest = MANIFEST.replace("[publish]\n", '[publish]\nskills = ["skills", "more"]\n')
    (project / "skillhall.toml").write_text(manifest)
    publish(exits=3)
    assert "another skill is named 'skill-00'" in publish.messages


def test_skill_that_a_policy_denies_is_not_published(project: Path, publish: Publisher) -> None:
    policy = 'version = 1\ndeny = [{ name = "skill-01" }]\n'
    (project / "skillhall-policy.toml").write_text(policy)
    publish(exits=3)
    assert "'skill-01' is not approved: deny[0] of" in publish.messages
    assert not (project / "dist").exists()


def test_unreadable_policy_stops_everything(project: Path, publish: Publisher) -> None:
    (project / "skillhall-policy.toml").write_text("deny = 1")
    publish(exits=3)
    assert "skillhall-policy.toml:1: 'version' must be set" in publish.messages


@pytest.mark.parametrize("folder", ["skills/out", ".", "skills"])
def test_output_must_not_overlap_with_the_skills(
    project: Path, publish: Publisher, folder: str
) -> None:
    manifest = MANIFEST.replace("gemini = {}", f'gemini = {{ folder = "{folder}" }}')
    (project / "skillhall.toml").write_text(manifest)
    publish("gemini", exits=3)
    assert "overlaps" in publish.messages


def test_folder_that_is_no_repository_is_left_alone(project: Path, publish: Publisher) -> None:
    (project / "dist/git").mkdir(parents=True)
    (project / "dist/git/mine.txt").write_text("mine")
    publish("git", exits=3)
    assert "is not a bare git repository" in publish.messages


def test_target_must_be_in_the_manifest(project: Path, publish: Publisher) -> None:
    (project / "skillhall.toml").write_text(MANIFEST.replace("gemini = {}\n", ""))
    publish("gemini", exits=3)
    assert "has no target 'gemini'" in publish.messages


def test_project_without_a_manifest_gets_a_hint(
    tmp_path: Path, publish: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    publish(exits=4)
    assert "create it with a table [publish]" in publish.messages


def test_damaged_versions_are_not_overwritten(project: Path, publish: Publisher) -> None:
    (project / "skillhall.versions.json").write_text("{}")
    publish(exits=3)
    assert "restore it from version control" in publish.messages


def test_hidden_files_are_left_out_with_a_warning(project: Path, publish: Publisher) -> None:
    (project / "skills/skill-00/.env").write_text("TOKEN=secret")
    (project / "skills/skill-00/.cache").mkdir()
    (project / "skills/skill-00/.cache/note.md").write_text("secret")
    publish()
    assert "skill-00: hidden file left out: .env" in publish.messages
    assert "skill-00: hidden file left out: .cache/note.md" in publish.messages
    published = {path for path in (project / "dist").rglob("*") if path.name in (".env", "note.md")}
    assert published == set()


def test_publishing_without_skills_is_an_error(project: Path, publish: Publisher) -> None:
    (project / "empty").mkdir()
    manifest = MANIFEST.replace("[publish]\n", '[publish]\nskills = ["empty"]\n')
    (project / "skillhall.toml").write_text(manifest)
    publish(exits=3)
    assert "'empty' contains no SKILL.md" in publish.messages
