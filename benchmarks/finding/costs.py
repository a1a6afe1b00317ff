"""CPU time of a query, of the index and of its update, and the size of the index."""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.finding.baselines import PlainSearch
from benchmarks.finding.evaluation_set import Half, load_set
from benchmarks.finding.quality import finding_tree, read_texts
from benchmarks.harness import DISCARDED_ROUNDS, Contender, Sample, run_to_file
from benchmarks.plan import Plan
from benchmarks.report import Bar, Judged, Report, Row
from benchmarks.trees import Tree, ensure_tree
from skillhall import Skills

QUERIES = 30
LIMIT = 20
WORD = "spreadsheet"
QUERY_BAR = Bar(4.0, Judged.CPU)
BUILD_BAR = Bar(2.5, Judged.CPU)
UPDATE_BAR = Bar(20.0, Judged.CPU)
MB = 1e6


def run(plan: Plan) -> Iterator[Report]:
    """Yield the costs with many skills."""
    tree = ensure_tree(plan.data, finding_tree(plan.scale.finding_many))
    tree.wait_until_settled()
    yield _report_queries(plan, tree)
    yield from _report_index(plan, tree)


def _report_queries(plan: Plan, tree: Tree) -> Report:
    """Compare searches with one MATCH of all words over the same texts."""
    skills = Skills.load(tree.root)
    prompts = load_set().prompts(Half(plan.half))
    texts = [prompts[len(prompts) * number // QUERIES].text for number in range(QUERIES)]
    texts += [query.text for query in load_set().keywords(Half(plan.half))[:QUERIES]]
    with tempfile.TemporaryDirectory(prefix="skillhall-plain-") as folder:
        plain = PlainSearch(read_texts(skills), str(Path(folder) / "plain.db"))
        ratios: list[tuple[float, float]] = []
        walls: list[float] = []
        for _ in range(plan.rounds + DISCARDED_ROUNDS):
            ours = [_cost(partial(skills.search, text, limit=LIMIT)) for text in texts]
            bare = [_cost(partial(plain.match, "texts", text, LIMIT)) for text in texts]
            ratios.append(_ratio(ours, bare))
            walls += [wall for wall, _ in ours]
    wall, cpu = (median(values) for values in zip(*ratios[DISCARDED_ROUNDS:], strict=True))
    row = Row(name="search", wall=wall, cpu=cpu, median_ms=median(walls) * 1e3, bar=QUERY_BAR)
    title = f"{len(texts)} queries over {len(skills):,} skills, against one MATCH with bm25"
    return Report(title, (row,))


def _report_index(plan: Plan, tree: Tree) -> Iterator[Report]:
    """Compare the first search with a cold list, and a search after an edit with one before."""
    tool, root = str(plan.executable), str(tree.root)
    target = next(tree.root.glob("*--xlsx")) / "SKILL.md"
    content = target.read_bytes()
    build, update, passes, walls = [], [], [], []
    size = 0
    try:
        for number in range(plan.rounds + DISCARDED_ROUNDS):
            with tempfile.TemporaryDirectory(prefix="skillhall-index-") as cold:
                listed = _run(cold, tool, "list", root, "--json")
            with tempfile.TemporaryDirectory(prefix="skillhall-index-") as cache:
                search = partial(_run, cache, tool, "search", WORD, "--root", root)
                built = search()
                size = sum(path.stat().st_size for path in Path(cache).rglob("*") if path.is_file())
                search()  # the first run with caches may still complete them
                before = search()
                target.write_bytes(content + f"\nEdited {number} times.\n".encode())
                after = search()
            bare = _run("", sys.executable, "-c", "pass")
            build.append((built.wall / listed.wall, built.cpu / listed.cpu))
            update.append((after.cpu - before.cpu) / bare.cpu)
            passes.append(before.cpu / bare.cpu)
            walls.append(built.wall)
    finally:
        target.write_bytes(content)
    wall, cpu = (median(values) for values in zip(*build[DISCARDED_ROUNDS:], strict=True))
    first = Row(
        name="first search", wall=wall, cpu=cpu, median_ms=median(walls) * 1e3, bar=BUILD_BAR
    )
    count = f"{plan.scale.finding_many:,} skills"
    title = f"index of {count} with bodies, against list --json without caches; "
    yield Report(f"{title}files of {size / MB:,.0f} MB", (first,))
    kept = slice(DISCARDED_ROUNDS, None)
    rows = (
        Row(name="search, nothing changed", cpu=median(passes[kept])),
        Row(name="one edited skill, in addition", cpu=median(update[kept]), bar=UPDATE_BAR),
    )
    yield Report(f"index of {count}, against python -c pass", rows)


def _run(cache: str, *command: str) -> Sample:
    contender = Contender(command[1], command, {"SKILLHALL_CACHE_DIR": cache} if cache else {})
    return run_to_file(contender, Path(os.devnull))


def _cost(work: Callable[[], object]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def _ratio(ours: list[tuple[float, float]], bare: list[tuple[float, float]]) -> tuple[float, float]:
    walls = sum(wall for wall, _ in ours) / sum(wall for wall, _ in bare)
    return walls, sum(cpu for _, cpu in ours) / sum(cpu for _, cpu in bare)
