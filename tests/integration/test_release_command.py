"""`python3 dev.py release` in a clone: what it makes, and what it refuses."""

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

import dev
from tests.support.releases import export_checkout
from tools.changelog import FragmentInvalid, read_fragments, release_changelog

VERSION = "9.8.7"
NOW = f"{sys.version_info.major}.{sys.version_info.minor}"
_ENVIRONMENT = dev.environment()


def git(clone: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    return subprocess.check_output(["git", *identity, *arguments], cwd=clone, text=True).strip()


def release(clone: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tools.release", *arguments],
        cwd=clone,
        env={
            **_ENVIRONMENT,
            "PATH": f"{dev.BIN}{os.pathsep}{os.environ['PATH']}",
            **{f"GIT_{role}_NAME": "Ada" for role in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{role}_EMAIL": "ada@example.org" for role in ("AUTHOR", "COMMITTER")},
        },
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = export_checkout(tmp_path_factory.mktemp("clone"))
    (folder / "changes" / "new-thing.added.md").write_text("A new thing.\n", encoding="utf-8")
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "Start")
    return folder


@pytest.fixture(scope="module")
def released(clone: Path) -> Path:
    done = release(clone, VERSION, "--python", NOW)
    assert done.returncode == 0, done.stderr
    assert "two builds give the same bytes" in done.stderr
    assert re.search(rf"Python {NOW}: \d\d steps of the tutorial", done.stderr)
    return clone


def test_release_commits_the_version_and_the_changelog_and_tags_them(released: Path) -> None:
    assert git(released, "log", "--format=%s", "-1", f"v{VERSION}") == f"Release {VERSION}"
    assert git(released, "status", "--porcelain") == ""
    assert f'VERSION = "{VERSION}"' in git(released, "show", "HEAD:src/skillhall/_version.py")
    changelog = git(released, "show", "HEAD:CHANGELOG.md")
    entries = changelog.partition(f"## [{VERSION}] - ")[2].partition("\n## [")[0]
    assert "- A new thing." in entries
    assert changelog.index("## [Unreleased]") < changelog.index(f"## [{VERSION}]")
    assert [path.name for path in (released / "changes").iterdir()] == ["README.md"]


def test_release_has_the_files_of_the_tag_and_a_list_of_their_components(released: Path) -> None:
    dist = released / "dist"
    wheel = dist / f"skillhall-{VERSION}-py3-none-any.whl"
    sdist = dist / f"skillhall-{VERSION}.tar.gz"
    static = "skillhall/_internal/web/static/vendor/htmx.min.js"
    assert static in zipfile.ZipFile(wheel).namelist()
    with tarfile.open(sdist) as archive:
        assert f"skillhall-{VERSION}/src/{static}" in archive.getnames()
    text = (dist / f"skillhall-{VERSION}.cdx.json").read_text(encoding="utf-8")
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    document = json.loads(text)
    names = {component["name"] for component in document["components"]}
    assert {"fastapi", "uvicorn", "click", "htmx.org", "sortablejs", "@codemirror/view"} <= names
    files = {
        item["name"]: item["hashes"][0]["content"]
        for item in document["metadata"]["component"]["components"]
    }
    assert files == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (wheel, sdist)
    }
    assert "--hash=sha256:" in (dist / "requirements.txt").read_text(encoding="utf-8")


def test_files_of_a_release_can_be_built_again_from_its_tag(released: Path, tmp_path: Path) -> None:
    done = release(released, "--rebuild", f"v{VERSION}", "--into", str(tmp_path), "--python", "3.1")
    assert done.returncode == 0, done.stderr
    assert "Python 3.1: not on this machine, skipped" in done.stderr
    names = sorted(path.name for path in tmp_path.iterdir())
    assert len(names) == 4
    for name in names:
        assert (tmp_path / name).read_bytes() == (released / "dist" / name).read_bytes()


def test_rebuild_without_the_tag_is_refused(clone: Path) -> None:
    done = release(clone, "--rebuild", "v1.2.3")
    assert (done.returncode, "check out the tag v1.2.3" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    ("version", "message"),
    [("1.2", "not a version"), ("0.0.1", "lower than the current version")],
)
def test_release_with_a_wrong_version_is_refused(clone: Path, version: str, message: str) -> None:
    done = release(clone, version)
    assert (done.returncode, message in done.stderr) == (1, True)


def test_release_of_a_changed_checkout_is_refused(tmp_path: Path) -> None:
    folder = export_checkout(tmp_path)
    git(folder, "init", "--quiet")
    done = release(folder, VERSION)
    assert (done.returncode, "uncommitted changes" in done.stderr) == (1, True)


def test_fragments_join_the_unreleased_entries_of_their_kind(tmp_path: Path) -> None:
    (tmp_path / "b.fixed.md").write_text("A fix\nof two lines.\n", encoding="utf-8")
    (tmp_path / "a.removed.md").write_text("An option.\n", encoding="utf-8")
    older = "## [0.1.0] - 2026-01-01\n\nx\n"
    text = f"# Changelog\n\n## [Unreleased]\n\n### Fixed\n\n- Old fix.\n\n{older}"
    result = release_changelog(text, read_fragments(tmp_path), "0.2.0", "2026-02-03")
    assert result == (
        "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-02-03\n\n### Removed\n\n"
        f"- An option.\n\n### Fixed\n\n- Old fix.\n- A fix of two lines.\n\n{older}"
    )


def test_fragment_of_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.improved.md").write_text("Better.\n", encoding="utf-8")
    with pytest.raises(FragmentInvalid, match=r"a\.improved\.md: name it"):
        read_fragments(tmp_path)
