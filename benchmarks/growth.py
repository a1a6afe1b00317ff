"""CPU time of a server per request, with many skills compared with few.

Real servers with different numbers of skills run side by side. Each gets the same requests, evenly
spread over some seconds, so that the CPU time includes the work between requests that notices
changes. The CPU time is that of the server's process, from the clock of its process: Linux only.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from statistics import median
from typing import NamedTuple
from urllib.parse import quote, urlencode

from benchmarks.harness import DISCARDED_ROUNDS, BenchmarkError
from benchmarks.plan import Plan
from benchmarks.report import Bar, Judged, Report, Row
from benchmarks.texts import name_at
from benchmarks.trees import TreeSpec, ensure_tree
from skillhall._internal.storage.sql.engine import Database
from skillhall._internal.storage.sql.skill_rows import SharedSkillWriter, SqlSharedSkillTable
from tests.support.actors import ACTOR
from tests.support.databases import TIMESTAMP, make_postgres_database
from tests.support.postgres import shared_server

# Typical queries: one word, several, names, prefixes, unknown words, other scripts.
QUERIES = (
    *("pdf", "python", "kubernetes", "résumé", "security audit", "python test", "excel chart"),
    *("docker compose postgres", "deploy kubernetes helm", "write changelog", "git release"),
    *("generate invoice pdf", "review react typescript", "api design", "translate email"),
    *("deploy-kub", "audit-css", "lint-yaml-rules", "vali", "kube", "terra aws", "optim sql"),
    *("summarize meeting notes for the team", "convert csv to json with errors", "Excel Guide"),
    *("migrate database schema without", "zebra", "python zebra", "分析", "测试数据"),
)
BASELINE = 100  # skills
JUDGED = 10_000  # skills; the bars apply to this size against the baseline
SECONDS = 2.5  # of one measurement
MAX_SECONDS = 10.0  # of one measurement, if the server is slower than the requests
REQUESTS = 50  # in one measurement
READ_SKILLS = 60  # different skills, of the first hundred, that are the same for every size
EDITS = 3  # in one measurement of edits
VISIBLE_WITHIN = 2.0  # seconds after an edit by hand
DEADLINE = 600.0  # seconds for a server to start and to become idle
KEPT_ALIVE = 3.0  # seconds; servers close idle connections after five
POLL = 0.02  # seconds
IDLE_CPU = 0.02  # share of a core below which a server is idle
IDLE_SECONDS = 5  # in a row; on a busy machine, a server may get no CPU time for a second
BATCH = 500  # skills written in one transaction
ONE, PAGE = Bar(1.5, Judged.CPU), Bar(2.5, Judged.CPU)
MCP_VERSION = "2026-07-28"
MCP_HEADERS = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": MCP_VERSION,
    "mcp-method": "skills/get",
}
WELL_KNOWN = "/.well-known/agent-skills/index.json"


class Request(NamedTuple):
    """One request to a server."""

    path: str
    body: bytes | None = None  # POST if there is one
    headers: Mapping[str, str] = {}
    status: int = 200


class Load(NamedTuple):
    """A kind of request: a row of the report."""

    name: str
    bar: Bar
    requests: Sequence[Request]


class Cost(NamedTuple):
    """CPU seconds of the server and seconds of waiting, for one request."""

    cpu: float
    wall: float


@dataclass
class Server:
    """A running server."""

    size: int
    process: int
    port: int
    run_directory: Path
    connection: HTTPConnection = field(init=False)
    last_used: float = 0.0

    def __post_init__(self) -> None:
        """Open the connection that all requests use."""
        self.connection = HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)

    def send(self, request: Request) -> bytes:
        """Send a request and return the body of the response."""
        response, body = self.receive(request)
        if response.status != request.status:
            raise BenchmarkError(f"{request.path} answers {response.status}: {body[:200]!r}")
        return body

    def receive(self, request: Request) -> tuple[HTTPResponse, bytes]:
        """Send a request and return the response with its body."""
        method = "GET" if request.body is None else "POST"
        if time.monotonic() - self.last_used > KEPT_ALIVE:
            self.connection.close()  # the next request opens it again
        self.connection.request(method, request.path, request.body, {**request.headers})
        response = self.connection.getresponse()
        body = response.read()
        self.last_used = time.monotonic()
        return response, body

    def cpu_seconds(self) -> float:
        """Return the CPU time of the process until now, with all its threads."""
        # The clock of another process, as by `clock_getcpuclockid`, in nanoseconds. The ticks of
        # `/proc/PID/stat` have ten milliseconds, as much as 25 requests that are not changed.
        return time.clock_gettime((~self.process << 3) | 2)

    def wait_until_idle(self) -> None:
        """Wait until the server has finished its work in the background."""
        deadline = time.monotonic() + DEADLINE
        before, idle_seconds = self.cpu_seconds(), 0
        while time.monotonic() < deadline and idle_seconds < IDLE_SECONDS:
            time.sleep(1.0)
            now = self.cpu_seconds()
            idle_seconds = idle_seconds + 1 if now - before <= IDLE_CPU else 0
            before = now

    def measure(self, requests: Sequence[Request]) -> Cost:
        """Send requests at even intervals and return the cost of one."""
        cpu, started, waited, count = self.cpu_seconds(), time.monotonic(), 0.0, 0
        while count < REQUESTS and time.monotonic() < started + MAX_SECONDS:
            time.sleep(max(0.0, started + SECONDS * count / REQUESTS - time.monotonic()))
            sent = time.monotonic()
            self.send(requests[count % len(requests)])
            waited += time.monotonic() - sent
            count += 1
        time.sleep(max(0.0, started + SECONDS - time.monotonic()))
        return Cost((self.cpu_seconds() - cpu) / count, waited / count)

    def measure_edits(self) -> Cost:
        """Edit skills by hand and return the cost until the list shows one edit."""
        cpu, waited = self.cpu_seconds(), 0.0
        for number in range(EDITS):
            name = name_at(number)
            path = self.run_directory / ".agents/skills" / name / "SKILL.md"
            original, text = path.read_bytes(), f"Edited at {time.monotonic_ns()}"
            page = Request(f"/api/v1/skills?limit=20&cursor={quote(name[:-1])}")
            try:
                path.write_text(f"---\nname: {name}\ndescription: {text}\n---\n", "utf-8")
                edited = time.monotonic()
                while text.encode() not in self.send(page):
                    if time.monotonic() - edited > DEADLINE:
                        raise BenchmarkError(f"an edit of {path} is not visible")
                    time.sleep(POLL)
                waited += time.monotonic() - edited
            finally:
                path.write_bytes(original)
        time.sleep(1.0)  # work in the background after the last edit counts
        return Cost((self.cpu_seconds() - cpu) / EDITS, waited / EDITS)


def run(plan: Plan) -> Iterator[Report]:
    """Yield one report per store and size."""
    if sys.platform != "linux":
        print("growth: skipped, only Linux shows the CPU clock of another process", file=sys.stderr)
        return
    sizes = sorted({BASELINE, *(plan.sizes or plan.scale.served)})
    folders = {size: ensure_tree(plan.data, TreeSpec("served", size)).root for size in sizes}
    with tempfile.TemporaryDirectory() as temporary:
        if plan.store in ("both", "folders"):
            with _serve_folders(plan, folders, Path(temporary)) as servers:
                yield from _reports("folders", servers, plan.rounds)
        if plan.store in ("both", "postgres"):
            with _serve_postgres(plan, folders, Path(temporary)) as servers:
                yield from _reports("PostgreSQL", servers, plan.rounds)


def _reports(store: str, servers: Sequence[Server], rounds: int) -> Iterator[Report]:
    for server in servers:
        _count_tokens(server)
        server.wait_until_idle()
    names = [name_at(number) for number in range(BASELINE)]
    readable = [name for name in names if _is_readable(servers[0], name)][:READ_SKILLS]
    loads = _loads(readable)
    rows: dict[int, list[Row]] = {server.size: [] for server in servers[1:]}
    for load in loads:
        costs = _measure_rounds(servers, load, rounds)
        for size, sized_rows in rows.items():
            sized_rows.append(_row(load.name, costs, size, load.bar))
    if store == "folders":
        edits = [{server.size: server.measure_edits() for server in servers} for _ in range(2)][1:]
        for size, sized_rows in rows.items():
            row = _row("an edit by hand, until it is listed", edits, size, None)
            within = edits[0][size].wall / VISIBLE_WITHIN
            sized_rows += [
                row,
                Row(
                    name="  seconds until then, against two",
                    wall=within,
                    bar=Bar(1.0, Judged.WALL),
                ),
            ]
    for size, sized_rows in rows.items():
        title = f"cost of a request, skills in {store}: {size:,} against {BASELINE}"
        yield Report(title, tuple(sized_rows))


def _row(name: str, rounds: Sequence[Mapping[int, Cost]], size: int, bar: Bar | None) -> Row:
    return Row(
        name=name,
        wall=median(costs[size].wall / costs[BASELINE].wall for costs in rounds),
        cpu=median(costs[size].cpu / costs[BASELINE].cpu for costs in rounds),
        median_ms=median(costs[size].cpu for costs in rounds) * 1e3,
        bar=bar if size <= JUDGED else None,
    )


def _measure_rounds(servers: Sequence[Server], load: Load, rounds: int) -> list[dict[int, Cost]]:
    """Measure all servers at the same moment, once per round."""
    kept = []
    for number in range(rounds + DISCARDED_ROUNDS):
        with ThreadPoolExecutor(len(servers)) as threads:
            measured = [
                (server.size, threads.submit(server.measure, _with_etag(server, load)))
                for server in servers
            ]
        costs = {size: cost.result() for size, cost in measured}
        if number >= DISCARDED_ROUNDS:
            kept.append(costs)
    return kept


def _loads(names: Sequence[str]) -> list[Load]:
    skills = [f"/api/v1/skills/{quote(name)}" for name in names]
    queries = [{"q": query} for query in QUERIES]
    return [
        Load("one skill", ONE, [Request(path) for path in skills]),
        Load("one file", ONE, [Request(f"{path}/files/SKILL.md") for path in skills]),
        Load("MCP skills/get", ONE, [_mcp_request(name) for name in names]),
        Load("list page", PAGE, [Request("/api/v1/skills?limit=100")]),
        Load("table", PAGE, [Request("/skills"), Request("/skills?page=2&sort=name")]),
        Load("table by tokens", PAGE, [Request("/skills?sort=tokens")]),
        Load("page of a skill", PAGE, [Request(f"/skill/{quote(name)}") for name in names]),
        Load("search", PAGE, [Request(f"/api/v1/skills?{urlencode(q)}&limit=20") for q in queries]),
        Load("search in the table", PAGE, [Request(f"/skills?{urlencode(q)}") for q in queries]),
        Load("well-known index", ONE, [Request(WELL_KNOWN, None, {"accept-encoding": "gzip"})]),
        Load("well-known index, not changed", ONE, [Request(WELL_KNOWN, None, {}, 304)]),
    ]


def _mcp_request(name: str) -> Request:
    uri = f"skill://{name}/SKILL.md"
    meta = {
        "io.modelcontextprotocol/protocolVersion": MCP_VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "skills/get",
        "params": {"uri": uri, "_meta": meta},
    }
    return Request("/mcp", json.dumps(message).encode(), MCP_HEADERS)


def _with_etag(server: Server, load: Load) -> Sequence[Request]:
    """Return the requests of a load, with the current ETag where 304 is expected."""
    if all(request.status != 304 for request in load.requests):
        return load.requests
    tagged = []
    for request in load.requests:
        response, _ = server.receive(request)
        tagged.append(request._replace(headers={"if-none-match": response.headers["etag"]}))
    return tagged


def _is_readable(server: Server, name: str) -> bool:
    """Whether every kind of request works for this skill; some are broken on purpose."""
    try:
        server.send(Request(f"/api/v1/skills/{quote(name)}"))
        reply = json.loads(server.send(_mcp_request(name)))
    except BenchmarkError:
        return False
    return "result" in reply


def _count_tokens(server: Server) -> None:
    """Let the server build what it builds once, before anything is measured."""
    for path in ("/skills?sort=tokens", "/skills?q=pdf", WELL_KNOWN):
        server.send(Request(path))


@contextmanager
def _serve_folders(
    plan: Plan, folders: Mapping[int, Path], temporary: Path
) -> Iterator[list[Server]]:
    with ExitStack() as stack:
        yield [
            # The cache stays: examining 50,000 skills takes two minutes.
            stack.enter_context(
                _serve(
                    plan,
                    size,
                    folder,
                    temporary / f"folders-{size}",
                    {"SKILLHALL_CACHE_DIR": str(folder.with_name(f"{folder.name}-cache"))},
                )
            )
            for size, folder in folders.items()
        ]


@contextmanager
def _serve_postgres(
    plan: Plan, folders: Mapping[int, Path], temporary: Path
) -> Iterator[list[Server]]:
    with ExitStack() as stack:
        database_server = stack.enter_context(shared_server(temporary))
        servers = []
        for size, folder in folders.items():
            url = make_postgres_database(database_server, f"growth-{size}")
            _fill_database(url, folder / ".agents/skills")
            place = temporary / f"postgres-{size}"
            (place / "run").mkdir(parents=True)
            environment = {"SKILLHALL_DATABASE_URL": url}
            server = _serve(plan, size, place / "run", place, environment)
            servers.append(stack.enter_context(server))
        yield servers


def _fill_database(url: str, folder: Path) -> None:
    """Write all skills of a folder to a database."""
    database = Database(url, TIMESTAMP)
    table = SqlSharedSkillTable(database)
    skills = sorted(folder.iterdir())
    for start in range(0, len(skills), BATCH):

        def write(writer: SharedSkillWriter, start: int = start) -> None:
            for skill in skills[start : start + BATCH]:
                files = {
                    path.relative_to(skill).as_posix(): (path.read_bytes(), 0o644)
                    for path in sorted(skill.rglob("*"))
                    if path.is_file()
                }
                writer.put(skill.name, files, "added")

        table.write(write, TIMESTAMP, actor=ACTOR)
    database.close()


@contextmanager
def _serve(
    plan: Plan, size: int, run_directory: Path, place: Path, environment: Mapping[str, str]
) -> Iterator[Server]:
    """Start `skillhall serve` and stop it afterwards."""
    place.mkdir(parents=True, exist_ok=True)
    command = [str(plan.executable), "serve", "--port=0", "--json", "--run-dir", str(run_directory)]
    with (
        (place / "log").open("wb") as log,
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=log,
            env={
                **os.environ,
                "SKILLHALL_CACHE_DIR": str(place / "cache"),
                "SKILLHALL_DATA_DIR": str(place / "data"),
                "NO_PROXY": "*",
                **environment,
            },
        ) as process,
    ):
        try:
            line = process.stdout.readline() if process.stdout else b""
            if not line.strip():
                raise BenchmarkError(f"the server did not start: {(place / 'log').read_text()}")
            port = int(json.loads(line)["data"]["url"].rpartition(":")[2])
            yield Server(size, process.pid, port, run_directory)
        finally:
            process.terminate()
            process.wait(DEADLINE)
