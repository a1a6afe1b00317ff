"""Commands in a project whose skills are approved, compared with the version without approvals."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.harness import (
    BenchmarkError,
    Contender,
    read_cpu_time,
    run_rounds,
    run_to_file,
)
from benchmarks.plan import Plan
from benchmarks.report import Bar, Judged, Report, Row
from benchmarks.startup import INITIALIZE
from benchmarks.trees import SETTLED_SECONDS
from tests.support.skills import make_skill, make_skill_md

REPOSITORY = Path(__file__).resolve().parents[1]
BEFORE = "66b6392d"  # the last commit without approvals and policies
SKILLS = 30  # in the project, of eight files each
BAR = Bar(1.05, Judged.CPU)
COMMANDS = {
    "list": ("list",),
    "list --json": ("list", "--json"),
    "prompt": ("prompt",),
    "read": ("read", "skill-07"),
}
MCP = "mcp, until initialize is answered"
ACTIVATION = "load_skill, warm"
BATCHES = 10  # of calls of load_skill, one for each skill, after the first one
REPEATS = 3


def run(plan: Plan) -> Iterator[Report]:
    """Yield the report on commands in a project with approved skills."""
    with tempfile.TemporaryDirectory(prefix="skillhall-trust-") as folder:
        world = _World(Path(folder))
        world.prepare()
        rounds = run_rounds(
            [one for version in ("before", "now") for one in world.contenders(version)],
            plan.rounds,
            "trust",
        )
        rows = [
            Row(
                name=name,
                wall=rounds.wall_ratio(f"{name}, now", f"{name}, before"),
                cpu=rounds.cpu_ratio(f"{name}, now", f"{name}, before"),
                median_ms=rounds.wall(f"{name}, now") * 1e3,
                bar=BAR,
            )
            for name in (*COMMANDS, MCP)
        ]
        pairs = [pair for number in range(plan.rounds) for pair in _measure_pair(world, number)]
    ratio = median(now / before for before, now in pairs)
    cost = median(now for _, now in pairs) * 1e3
    rows.append(Row(name=ACTIVATION, cpu=ratio, median_ms=cost, bar=BAR))
    title = f"{SKILLS} approved skills in the project, against {BEFORE}, without approvals"
    yield Report(title, tuple(rows))


@dataclass(frozen=True, slots=True)
class _World:
    """A project with approved skills, and the sources of both versions."""

    folder: Path

    @property
    def project(self) -> Path:
        """The working directory of the commands."""
        return self.folder / "project"

    def prepare(self) -> None:
        """Write and approve the skills, check out the earlier version, and fill the caches."""
        (self.folder / "home").mkdir()
        body = "# Steps\n" + "Follow these lines of text.\n" * 120
        files = {f"references/{n}.md": b"# Reference\n" + b"Some text.\n" * 200 for n in range(4)}
        files |= {f"scripts/{n}.py": b"print(1)\n" * 100 for n in range(3)}
        for number in range(SKILLS):
            name = f"skill-{number:02}"
            data = make_skill_md(name, f"Does thing {number} when the user asks for it.", body)
            make_skill(self.project / ".agents/skills", name, data=data, files=files)
        self._check_out()
        approve = (sys.executable, "-m", "skillhall", "trust", "--yes")
        environment = {**self.environment("now")}
        subprocess.run(approve, cwd=self.project, env=environment, check=True, capture_output=True)
        time.sleep(SETTLED_SECONDS)
        for version in ("before", "now"):
            for contender in self.contenders(version):
                if not contender.first_line:
                    run_to_file(contender, self.folder / "output")

    def _check_out(self) -> None:
        archive = ("git", "-C", str(REPOSITORY), "archive", BEFORE, "src")
        packed = subprocess.run(archive, check=False, capture_output=True)
        if packed.returncode:
            raise BenchmarkError(
                f"commit {BEFORE} is needed\nhint: fetch the history of the project"
            )
        unpack = ("tar", "-x", "-C", str(self.folder))
        subprocess.run(unpack, input=packed.stdout, check=True)

    def environment(self, version: str) -> Mapping[str, str]:
        """Return the environment of a version, with caches of its own."""
        source = self.folder / "src" if version == "before" else REPOSITORY / "src"
        return {
            "HOME": str(self.folder / "home"),
            "PYTHONPATH": str(source),
            "SKILLHALL_DATA_DIR": str(self.folder / "data"),
            "SKILLHALL_CACHE_DIR": str(self.folder / f"cache-{version}"),
        }

    def contenders(self, version: str) -> Iterator[Contender]:
        """Yield the commands of a version."""
        environment, folder = self.environment(version), str(self.project)
        start = (sys.executable, "-m", "skillhall")
        for name, arguments in COMMANDS.items():
            yield Contender(
                f"{name}, {version}", (*start, *arguments), environment, REPEATS, folder=folder
            )
        line = json.dumps(INITIALIZE).encode() + b"\n"
        yield Contender(
            f"{MCP}, {version}", (*start, "mcp"), environment, 1, first_line=line, folder=folder
        )


def _measure_pair(world: _World, number: int) -> list[tuple[float, float]]:
    """Return the CPU seconds of calls of load_skill before and now, in batches that take turns.

    Both servers run at the same time: a slow moment of the machine affects both.
    """
    versions = ("before", "now") if number % 2 else ("now", "before")
    with ExitStack() as stack:
        clients = {
            version: stack.enter_context(_open_client(world, version)) for version in versions
        }
        for client in clients.values():
            client.load_all()
        time.sleep(SETTLED_SECONDS)  # the index of the search is built in the background
        batches = [
            {version: clients[version].measure_batch() for version in order}
            for batch in range(BATCHES)
            for order in (versions if batch % 2 else versions[::-1],)
        ]
    return [(costs["before"], costs["now"]) for costs in batches]


@contextmanager
def _open_client(world: _World, version: str) -> Iterator["_Client"]:
    with subprocess.Popen(
        (sys.executable, "-m", "skillhall", "mcp"),
        cwd=world.project,
        env=world.environment(version),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            client = _Client(process)
            client.request(INITIALIZE)
            yield client
        finally:
            process.kill()


@dataclass(slots=True)
class _Client:
    """Client of `skillhall mcp`."""

    process: subprocess.Popen[bytes]
    last_id: int = 1

    def request(self, message: Mapping[str, object]) -> str:
        """Send a request, and return the response."""
        if self.process.stdin is None or self.process.stdout is None:
            raise AssertionError
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        while line := self.process.stdout.readline():
            if json.loads(line).get("id") == message["id"]:
                return line.decode()
        raise BenchmarkError("skillhall mcp ended")

    def load_all(self) -> None:
        """Load each skill once."""
        for number in range(SKILLS):
            self.load_skill(number)

    def measure_batch(self) -> float:
        """Return the CPU seconds of the server for a call, on average over all skills."""
        started = read_cpu_time(self.process.pid)
        self.load_all()
        return (read_cpu_time(self.process.pid) - started) / SKILLS

    def load_skill(self, number: int) -> None:
        """Load a skill, whose text must arrive."""
        self.last_id += 1
        parameters = {"name": "load_skill", "arguments": {"name": f"skill-{number:02}"}}
        request = {"jsonrpc": "2.0", "id": self.last_id, "method": "tools/call"}
        if "Follow these lines" not in self.request({**request, "params": parameters}):
            raise BenchmarkError(f"skill {number} was not loaded")
