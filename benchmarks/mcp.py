"""`skills/list` compared with constant pages of the same size, sent by the same SDK."""

import asyncio
import gc
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import PaginatedRequestParams
from starlette.types import Message

from benchmarks.harness import DISCARDED_ROUNDS, BenchmarkError
from benchmarks.plan import Plan
from benchmarks.report import Bar, Report, Row
from benchmarks.trees import TreeSpec, ensure_tree
from skillhall._internal.mcp.server import SkillServer
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.settings import Settings
from skillhall._internal.wiring.skill_provider import open_folder_provider

BAR = Bar(2.0)
METHOD = "skills/list"
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
HEADERS = (
    (b"host", b"127.0.0.1"),
    (b"content-type", b"application/json"),
    (b"accept", b"application/json, text/event-stream"),
    (b"mcp-protocol-version", b"2026-07-28"),
    (b"mcp-method", METHOD.encode()),
)


@dataclass(slots=True)
class _Pages:
    """All pages of one pass and their total cost."""

    wall: float = 0.0
    cpu: float = 0.0
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)  # by cursor

    @property
    def skills(self) -> int:
        return sum(len(answer["skills"]) for answer in self.answers.values())


def run(plan: Plan) -> Iterator[Report]:
    """Yield the report on paging through the list of a large folder."""
    # The list excludes skills that are broken or have names that hosts reject.
    tree = ensure_tree(plan.data, TreeSpec("flat", plan.scale.growth_by * 6 // 5))
    yield asyncio.run(_report(str(tree.root), plan.rounds))


async def _report(root: str, rounds: int) -> Report:
    offering = open_folder_provider([root], LENIENT, Settings(".", ".", use_head_cache=False))
    ours = StreamableHTTPSessionManager(SkillServer(offering), json_response=True)
    async with ours.run():
        first = await _pass(ours)
        bare = StreamableHTTPSessionManager(_constant(first.answers), json_response=True)
        async with bare.run():
            pairs = [(await _pass(ours), await _pass(bare)) for _ in range(rounds + 1)]
    if any(one.skills != other.skills for one, other in pairs) or not first.skills:
        raise BenchmarkError("the pages do not hold the same skills")
    counted = pairs[DISCARDED_ROUNDS:]
    # Files are checked only every few rounds; the sum includes these checks.
    page = Row(
        name="a page of skills/list",
        wall=sum(one.wall for one, _ in counted) / sum(other.wall for _, other in counted),
        cpu=sum(one.cpu for one, _ in counted) / sum(other.cpu for _, other in counted),
        median_ms=median(one.wall for one, _ in counted) / len(first.answers) * 1e3,
        bar=BAR,
    )
    cold = Row(name="all pages, first time", median_ms=first.wall * 1e3)
    title = f"{METHOD}, {first.skills:,} skills in {len(first.answers)} pages, against constants"
    return Report(title, (page, cold))


def _constant(answers: Mapping[str, dict[str, Any]]) -> Server[Any]:
    """Return a server that returns the same pages without reading any files."""
    kept = {
        cursor: {key: value for key, value in answer.items() if key != "_meta"}
        for cursor, answer in answers.items()
    }
    server: Server[Any] = Server("constant")

    async def answer(_: object, params: PaginatedRequestParams) -> dict[str, Any]:
        return kept[params.cursor or ""]

    server.add_request_handler(METHOD, PaginatedRequestParams, answer)
    return server


async def _pass(manager: StreamableHTTPSessionManager) -> _Pages:
    pages, cursor = _Pages(), ""
    gc.collect()  # garbage of the previous pass counts for neither side
    while True:
        wall, cpu = time.perf_counter(), time.process_time()
        body = await _ask(manager, cursor)
        pages.wall += time.perf_counter() - wall
        pages.cpu += time.process_time() - cpu
        answer = json.loads(body)["result"]
        pages.answers[cursor] = answer
        cursor = answer.get("nextCursor", "")
        if not cursor:
            return pages


async def _ask(manager: StreamableHTTPSessionManager, cursor: str) -> bytes:
    """One request as a server meets it, without a socket."""
    params = {"_meta": META, **({"cursor": cursor} if cursor else {})}
    message = {"jsonrpc": "2.0", "id": 1, "method": METHOD, "params": params}
    data, sent = json.dumps(message).encode(), bytearray()
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "query_string": b"",
        "headers": [*HEADERS],
    }

    async def receive() -> Message:
        return {"type": "http.request", "body": data, "more_body": False}

    async def send(message: Message) -> None:
        sent.extend(message.get("body", b""))

    await manager.handle_request(scope, receive, send)
    return bytes(sent)
