"""Makes a release: version, changelog, tag, distributions, SBOM, smoke tests.

    python3 dev.py release X.Y.Z [--dry-run]
    python3 dev.py release --rebuild X.Y.Z      the files of a tag that is checked out

Nothing in the checkout changes until every step has succeeded, and nothing is published.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import dev
from tools.changelog import FragmentInvalid, read_fragments, release_changelog
from tools.distributions import BuildFailed, build, find_python, install
from tools.sbom import build_sbom
from tools.tutorial import Tutorial

ROOT = dev.ROOT
# Files that contain the version, with the text around it.
VERSIONED = {
    "pyproject.toml": 'version = "{}"\n',
    "src/skillhall/_version.py": 'VERSION = "{}"\n',
    "deploy/kubernetes.yaml": "registry.example.org/skillhall:{}\n",
}
_VERSION = re.compile(r"\d+\.\d+\.\d+")


class ReleaseRefused(Exception):
    """The release cannot be made; the text says why, and what to do."""


def main(arguments: list[str]) -> int:
    """Make a release candidate and return the exit code."""
    parser = argparse.ArgumentParser(prog="dev.py release", description=__doc__.partition("\n")[0])
    parser.add_argument("version", metavar="X.Y.Z")
    parser.add_argument("--dry-run", action="store_true", help="make no commit and no tag")
    parser.add_argument("--rebuild", action="store_true", help="only build the files of the tag")
    parser.add_argument("--into", type=Path, default=ROOT / "dist", help="folder for the files")
    parser.add_argument(
        "--python", action="append", metavar="X.Y", help="smoke test on this version only"
    )
    options = parser.parse_args(arguments)
    version = options.version.removeprefix("v")
    try:
        if options.rebuild:
            rebuild(version, options.into, options.python)
        else:
            make_release(version, options.into, options.python, is_dry_run=options.dry_run)
    except (ReleaseRefused, FragmentInvalid, BuildFailed, AssertionError) as error:
        dev.say(f"no release: {error}")
        return 1
    return 0


def make_release(
    version: str, folder: Path, pythons: list[str] | None, *, is_dry_run: bool
) -> None:
    """Build and test the release in copies of the checkout, then commit and tag it.

    Raises: ReleaseRefused, FragmentInvalid, BuildFailed.
    """
    check_state(version)
    # The time of the release commit too, so that others can build the same bytes from the tag.
    epoch = int(time.time())
    day = datetime.fromtimestamp(epoch, UTC).date().isoformat()
    with tempfile.TemporaryDirectory() as name:
        copies = [export_commit(Path(name) / copy) for copy in ("first", "second")]
        for copy in copies:
            prepare(copy, version, day)
        make_files(version, copies, epoch, folder, pythons)
    if is_dry_run:
        say_done(f"dry run: no commit, no tag; the files are in {folder}")
        return
    prepare(ROOT, version, day)
    commit(version, epoch)
    say_done(f"tag v{version}; the files are in {folder}. To publish: git push origin v{version}")


def rebuild(version: str, folder: Path, pythons: list[str] | None) -> None:
    """Build the files of a release again from its tag, which is checked out.

    Raises: ReleaseRefused, BuildFailed.
    """
    if f"v{version}" not in git("tag", "--points-at", "HEAD").split():
        raise ReleaseRefused(f"check out the tag v{version} first")
    if read_version(ROOT) != version:
        raise ReleaseRefused(f"the version of the tag v{version} is {read_version(ROOT)}")
    with tempfile.TemporaryDirectory() as name:
        copies = [export_commit(Path(name) / copy) for copy in ("first", "second")]
        epoch = int(git("log", "-1", "--format=%ct"))
        make_files(version, copies, epoch, folder, pythons)
    say_done(f"the files are in {folder}")


def make_files(
    version: str, copies: list[Path], epoch: int, folder: Path, pythons: list[str] | None
) -> None:
    """Build the prepared copies, test the wheel and write the files of the release."""
    wheel, *_ = files = build_twice(copies, epoch)
    say_done("two builds give the same bytes")
    work = copies[0].parent
    sbom = work / f"skillhall-{version}.cdx.json"
    sbom.write_text(build_sbom(version, files, copies[0]), encoding="utf-8")
    for python in pythons or supported_pythons():
        run_smoke_test(wheel, version, python, work / f"python-{python}")
    folder.mkdir(parents=True, exist_ok=True)
    for file in (*files, sbom, copies[0] / dev.IMAGE_LOCK):
        shutil.copyfile(file, folder / file.name)


def check_state(version: str) -> None:
    """Refuse unless the checkout is clean and the version is the next one."""
    if not _VERSION.fullmatch(version):
        raise ReleaseRefused(f"{version!r} is not a version; write it as 1.2.3")
    current = read_version(ROOT)
    if [int(part) for part in version.split(".")] < [int(part) for part in current.split(".")]:
        raise ReleaseRefused(f"{version} is lower than the current version {current}")
    if changed := git("status", "--porcelain"):
        raise ReleaseRefused(f"there are uncommitted changes; commit them first:\n{changed}")
    if git("tag", "--list", f"v{version}"):
        raise ReleaseRefused(f"the tag v{version} exists already")


def export_commit(target: Path) -> Path:
    """Copy the files of the current commit."""
    # There are no uncommitted changes, so the index has the files of the commit.
    git("checkout-index", "--all", f"--prefix={target}/")
    return target


def prepare(root: Path, version: str, day: str) -> None:
    """Set the version, and move the fragments into the changelog."""
    current = read_version(root)
    for name, pattern in VERSIONED.items():
        text = (root / name).read_text(encoding="utf-8")
        if text.count(pattern.format(current)) != 1:
            raise ReleaseRefused(f"{name} does not contain the version {current} once")
        text = text.replace(pattern.format(current), pattern.format(version))
        (root / name).write_text(text, encoding="utf-8")
    fragments = read_fragments(root / "changes")
    changelog = root / "CHANGELOG.md"
    text = release_changelog(changelog.read_text(encoding="utf-8"), fragments, version, day)
    changelog.write_text(text, encoding="utf-8")
    for path in fragments:
        path.unlink()


def build_twice(copies: list[Path], epoch: int) -> list[Path]:
    """Build both copies and return the files of the first, the wheel first."""
    built = []
    for copy in copies:
        wheel = build(copy, SOURCE_DATE_EPOCH=str(epoch))
        built.append([wheel, *wheel.parent.glob("*.tar.gz")])
    for one, other in zip(*built, strict=True):
        if one.name != other.name or one.read_bytes() != other.read_bytes():
            raise ReleaseRefused(f"two builds of {one.name} differ")
    return built[0]


def supported_pythons() -> list[str]:
    """Return the Python versions that the package supports, as its classifiers say."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [classifier.rpartition(" :: ")[2] for classifier in project["classifiers"]]
    return [name for name in names if re.fullmatch(r"3\.\d+", name)]


def run_smoke_test(wheel: Path, version: str, python: str, folder: Path) -> None:
    """Install the wheel on a Python version and run the tutorial, if it is available."""
    interpreter = find_python(python)
    if interpreter is None:
        say_done(f"Python {python}: not on this machine, skipped")
        return
    program = install(wheel, "server", interpreter, folder)
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    if done.stdout.strip() != f"skillhall {version}":
        raise ReleaseRefused(f"Python {python}: --version prints {done.stdout!r} {done.stderr}")
    place = folder / "tutorial"
    place.mkdir()
    steps = Tutorial(place, program.parent).run()
    say_done(f"Python {python}: {steps} steps of the tutorial")


def commit(version: str, epoch: int) -> None:
    """Commit the prepared files and tag the commit."""
    dates = {"GIT_AUTHOR_DATE": f"{epoch} +0000", "GIT_COMMITTER_DATE": f"{epoch} +0000"}
    git("add", "--all", *VERSIONED, "CHANGELOG.md", "changes")
    git("commit", "--quiet", "--message", f"Release {version}", **dates)
    git("tag", "--annotate", f"v{version}", "--message", f"Skillhall {version}", **dates)


def read_version(root: Path) -> str:
    """Return the version of a copy of the checkout."""
    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    return str(tomllib.loads(text)["project"]["version"])


def git(*arguments: str, **variables: str) -> str:
    """Run git in the checkout and return its output."""
    done = subprocess.run(
        ["git", *arguments],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ReleaseRefused(f"git {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout.strip()


def say_done(text: str) -> None:
    """Print the result of a step."""
    dev.say(f"- {text}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
