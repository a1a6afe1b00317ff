"""Start-up of short commands compared with a bare interpreter."""

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import Contender, Rounds, run_rounds, run_to_file
from benchmarks.plan import Plan
from benchmarks.report import Bar, Judged, Report, Row
from benchmarks.trees import TreeSpec, ensure_tree

REPEATS = 3  # a run takes milliseconds; the mean of three is more stable
BASELINE = "python -c pass"
MCP = "mcp, until initialize is answered"
BARS = {
    "--version": Bar(3.0),
    "list, index present": Bar(5.0),
    "list --no-index": Bar(5.0),
    MCP: Bar(25.0, Judged.CPU),
}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"roots": {"listChanged": True}},
        "clientInfo": {"name": "benchmarks", "version": "1"},
    },
}


def run(plan: Plan) -> Iterator[Report]:
    """Yield the report on start-up."""
    tree = ensure_tree(plan.data, TreeSpec("flat", plan.scale.few))
    with tempfile.TemporaryDirectory(prefix="skillhall-index-") as caches:
        contenders = _contenders(plan, tree.root, caches)
        tree.wait_until_settled()
        for contender in (each for each in contenders if not each.first_line):
            run_to_file(contender, Path(caches) / "output")
        rounds = run_rounds(contenders, plan.rounds, "startup")
    rows = tuple(_row(rounds, contender.name) for contender in contenders)
    yield Report(f"start-up, lists of {plan.scale.few} skills, against {BASELINE}", rows)


def _contenders(plan: Plan, root: Path, caches: str) -> list[Contender]:
    tool, environment = str(plan.executable), {"SKILLHALL_CACHE_DIR": caches}
    commands = {
        BASELINE: (sys.executable, "-c", "pass"),
        "import skillhall": (sys.executable, "-c", "import skillhall"),
        "--version": (tool, "--version"),
        "list, index present": (tool, "list", str(root)),
        "list --no-index": (tool, "list", str(root), "--no-index"),
    }
    contenders = [
        Contender(name, command, environment, REPEATS) for name, command in commands.items()
    ]
    if sys.platform == "linux":
        line = json.dumps(INITIALIZE).encode() + b"\n"
        contenders.append(Contender(MCP, (tool, "mcp", str(root)), environment, 1, line))
    return contenders


def _row(rounds: Rounds, name: str) -> Row:
    return Row(
        name=name,
        wall=rounds.wall_ratio(name, BASELINE),
        cpu=rounds.cpu_ratio(name, BASELINE),
        median_ms=rounds.wall(name) * 1e3,
        bar=BARS.get(name),
    )
