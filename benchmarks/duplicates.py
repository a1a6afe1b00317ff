"""`duplicates` on generated collections with known copies: quality, growth and memory."""

import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

from benchmarks.copied_texts import VARIANTS, parse_folder
from benchmarks.harness import Contender, run_rounds, run_to_file
from benchmarks.plan import Plan
from benchmarks.report import Bar, Judged, Report, Row
from benchmarks.trees import TreeSpec, ensure_tree

PRECISION, RECALL = Bar(0.95, Judged.RATE), Bar(0.9, Judged.RATE)
GROWTH = Bar(11, Judged.CPU)  # ten times as many skills
GROWTH_FACTOR = 10
MEMORY = Bar(400, Judged.MEMORY)
LIST, FEW, MANY = "list --no-index --json", "few skills", "many skills"


def run(plan: Plan) -> Iterator[Report]:
    """Yield the reports on the quality and the cost."""
    trees = {
        name: ensure_tree(plan.data, TreeSpec("copies", count)).root
        for name, count in (
            (FEW, plan.scale.registry // GROWTH_FACTOR),
            (MANY, plan.scale.registry),
        )
    }
    with tempfile.TemporaryDirectory(prefix="skillhall-duplicates-") as folder:
        output = Path(folder) / "report.json"
        for root in trees.values():
            run_to_file(_duplicates(plan, MANY, root), output)
            yield _quality_report(root, json.loads(output.read_bytes())["data"])
    contenders = [
        *(_duplicates(plan, name, root) for name, root in trees.items()),
        Contender(LIST, (str(plan.executable), "list", str(trees[MANY]), "--no-index", "--json")),
    ]
    rounds = run_rounds(contenders, plan.rounds, "duplicates")
    rows = (
        Row(
            name=f"{plan.scale.registry:,} skills against {plan.scale.registry // GROWTH_FACTOR:,}",
            wall=rounds.wall_ratio(MANY, FEW),
            cpu=rounds.cpu_ratio(MANY, FEW),
            median_ms=rounds.wall(MANY) * 1e3,
            bar=GROWTH,
        ),
        Row(
            name="against list --no-index",
            wall=rounds.wall_ratio(MANY, LIST),
            cpu=rounds.cpu_ratio(MANY, LIST),
            median_ms=rounds.wall(LIST) * 1e3,
        ),
        Row(name="memory of the largest process", peak_mb=rounds.peak_mb(MANY), bar=MEMORY),
    )
    yield Report("duplicates, cost", rows)


def _duplicates(plan: Plan, name: str, root: Path) -> Contender:
    return Contender(name, (str(plan.executable), "duplicates", str(root), "--no-index", "--json"))


def _quality_report(root: Path, report: dict[str, list[dict[str, list[dict[str, str]]]]]) -> Report:
    """Compare pairs of skills in a group with pairs of skills in a family."""
    families: dict[str, list[str]] = {}
    for folder in sorted(path.name for path in root.iterdir()):
        families.setdefault(parse_folder(folder)[0], []).append(folder)
    expected = {pair for family in families.values() for pair in combinations(family, 2)}
    found = {
        pair
        for group in report["groups"]
        for pair in combinations(
            sorted(Path(copy["location"]).parent.name for copy in group["skills"]), 2
        )
    }
    correct = found & expected
    rows = [
        Row(name="precision", rate=len(correct) / max(1, len(found)), bar=PRECISION),
        Row(name="recall", rate=len(correct) / max(1, len(expected)), bar=RECALL),
    ]
    totals, hits = _count_variants(expected), _count_variants(correct)
    for variant in VARIANTS:
        rate = hits[variant] / max(1, totals[variant])
        rows.append(Row(name=f"recall, original and {variant}", rate=rate, bar=RECALL))
    count = sum(map(len, families.values()))
    return Report(
        f"duplicates, {count:,} skills with {len(expected):,} pairs of copies", tuple(rows)
    )


def _count_variants(pairs: set[tuple[str, str]]) -> Counter[str]:
    """Count the pairs of an original and its copy, by the copy's variant."""
    variants = [{parse_folder(folder)[1] for folder in pair} for pair in pairs]
    return Counter(variant for each in variants if "original" in each for variant in each)
