"""Fetching two skills of a large repository compared with a shallow clone."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import BenchmarkError, Contender, Rounds, run_rounds, run_to_file
from benchmarks.plan import Plan
from benchmarks.report import Bar, Judged, Report, Row
from benchmarks.texts import name_at
from benchmarks.trees import TreeSpec, ensure_tree
from tests.support.git_server import GitServer, run_git_server

SKILLS = 60
BASELINE = "git clone --depth 1"
FIRST, AGAIN = "two skills, first time", "two skills, again"
BARS = {FIRST: Bar(2.0, Judged.MOVED), AGAIN: Bar(1.0, Judged.MOVED)}

READ = """
import sys
from skillhall._internal.net.addresses import AddressPolicy
from skillhall._internal.sources.git.remote import GitAccess
from skillhall._internal.sources.git.source import read_git
from skillhall._internal.sources.git.git_ref import GitRef
url, cache, *names = sys.argv[1:]
access = GitAccess(cache, AddressPolicy.from_cidrs("127.0.0.0/8"))
for name in names:
    [bundle] = read_git(GitRef(url, name), access, source_text=url).bundles
    assert bundle.files["SKILL.md"].read()
"""


def run(plan: Plan) -> Iterator[Report]:
    """Yield the report on fetching from git."""
    if shutil.which("git") is None:
        raise BenchmarkError("there is no git")
    tree = ensure_tree(plan.data, TreeSpec("git", SKILLS))
    with (
        run_git_server(tree.root) as site,
        tempfile.TemporaryDirectory(prefix="skillhall-git-") as work,
    ):
        contenders = _contenders(site.url("skills.git"), work)
        moved = {one.name: _moved(one, site, Path(work) / "output") for one in contenders}
        rounds = run_rounds(contenders, plan.rounds, "cloning")
    rows = tuple(_row(rounds, one.name, moved[one.name]) for one in contenders)
    yield Report(f"two of {SKILLS} skills out of 50 MB of git, against {BASELINE}", rows)


def _contenders(url: str, work: str) -> list[Contender]:
    read = (sys.executable, "-c", READ, url)
    names = (name_at(3), name_at(41))
    return [
        Contender(BASELINE, _anew(f"{work}/clone", "git", "clone", "-q", "--depth=1", url)),
        Contender(FIRST, _anew(f"{work}/first", *read, last=names)),
        Contender(AGAIN, (*read, f"{work}/again", *names)),
    ]


def _anew(folder: str, *command: str, last: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return a command that creates `folder` after removing it."""
    return ("sh", "-c", 'rm -rf "$0" && exec "$@"', folder, *command, folder, *last)


def _moved(contender: Contender, site: GitServer, output: Path) -> float:
    """Megabytes received by one run, after a first run that fills its cache."""
    run_to_file(contender, output)
    before = site.bytes_sent
    run_to_file(contender, output)
    return (site.bytes_sent - before) / 1e6


def _row(rounds: Rounds, name: str, moved: float) -> Row:
    return Row(
        name=name,
        wall=rounds.wall_ratio(name, BASELINE),
        cpu=rounds.cpu_ratio(name, BASELINE),
        moved_mb=moved,
        median_ms=rounds.wall(name) * 1e3,
        bar=BARS.get(name),
    )
