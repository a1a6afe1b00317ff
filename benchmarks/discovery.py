"""Discovery compared with `find`: cold and warm listings, memory, cost per skill.

Also `validate` compared with `list`.
"""

import filecmp
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks.harness import BenchmarkError, Contender, Rounds, Sample, run_rounds, run_to_file
from benchmarks.plan import Plan
from benchmarks.report import Bar, Judged, Report, Row
from benchmarks.trees import Tree, TreeSpec, ensure_tree

# Cold and warm, by the layout of the tree.
BARS = {
    "registry": (Bar(3.0, Judged.CPU), Bar(1.0, Judged.CPU)),
    "mirror": (Bar(2.0, Judged.CPU), Bar(0.8, Judged.CPU)),
}
MEMORY = Bar(120, Judged.MEMORY)
LOAD_BAR = Bar(1.0, Judged.CPU)
GROWTH = Bar(1.2, Judged.CPU)
VALIDATE_BAR = Bar(6.0, Judged.CPU)
SHORT_REPEATS = 10  # runs per round of commands that take milliseconds
BYTES_PER_SKILL = 60  # no listing with skills and findings is shorter

FIND, COLD_LIST, WARM_LIST = "find", "list --no-index --json", "list --json, index present"
VALIDATE = "validate --json"
COLD_LOAD, WARM_LOAD = "discovery, cold", "discovery, index present"
# A program that only discovers: the catalog with all findings, nothing printed.
LOAD = """
import os, sys
from skillhall import Skills
os.environ["SKILLHALL_CACHE_DIR"] = sys.argv[2]
Skills.load(sys.argv[1], cache=sys.argv[3] == "index")
"""


def run(plan: Plan) -> Iterator[Report]:
    """Yield the reports on the registry, its growth, and the mirror."""
    yield from _registry_reports(plan)
    yield from _mirror_reports(plan)


def _registry_reports(plan: Plan) -> Iterator[Report]:
    tree = ensure_tree(plan.data, TreeSpec("registry", plan.scale.registry))
    with _caches() as caches:
        contenders = [*_standard(plan, tree, caches), *_growth_contenders(plan, caches)]
        # Not of the largest tree, which would take minutes.
        contenders.append(_validate(plan, _growth_tree(plan).root))
        _fill_and_compare(tree, contenders, caches)
        rounds = run_rounds(contenders, plan.rounds, tree.spec.folder)
    yield _standard_report(tree, rounds)
    yield _growth_report(plan, rounds)
    yield _validate_report(_growth_tree(plan), rounds, "middle")


def _mirror_reports(plan: Plan) -> Iterator[Report]:
    tree = ensure_tree(plan.data, TreeSpec("mirror", plan.scale.mirror))
    with _caches() as caches:
        contenders = [*_standard(plan, tree, caches), _validate(plan, tree.root)]
        _fill_and_compare(tree, contenders, caches)
        rounds = run_rounds(contenders, plan.rounds, tree.spec.folder)
    yield _standard_report(tree, rounds)
    yield _validate_report(tree, rounds, COLD_LIST)


@contextmanager
def _caches() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="skillhall-index-") as folder:
        yield Path(folder)


def _find(name: str, root: Path, repeat: int = 1) -> Contender:
    return Contender(name, ("find", str(root), "-name", "SKILL.md"), repeat=repeat)


def _cold(plan: Plan, name: str, root: Path, caches: Path, repeat: int = 1) -> Contender:
    command = (str(plan.executable), "list", str(root), "--no-index", "--json")
    return Contender(name, command, {"SKILLHALL_CACHE_DIR": str(caches)}, repeat)


def _validate(plan: Plan, root: Path) -> Contender:
    command = (str(plan.executable), "validate", str(root), "--json")
    # The exit code is 1 if a skill is rejected.
    return Contender(VALIDATE, command, {"SKILLHALL_INDEX": "0"}, exit_codes=(0, 1))


def _standard(plan: Plan, tree: Tree, caches: Path) -> list[Contender]:
    warm = (str(plan.executable), "list", str(tree.root), "--json")
    python = (str(plan.executable.parent / "python"), "-c", LOAD, str(tree.root), str(caches))
    return [
        _find(FIND, tree.root),
        Contender(COLD_LOAD, (*python, "no index")),
        Contender(WARM_LOAD, (*python, "index")),
        _cold(plan, COLD_LIST, tree.root, caches),
        Contender(WARM_LIST, warm, {"SKILLHALL_CACHE_DIR": str(caches)}),
    ]


def _fill_and_compare(tree: Tree, contenders: list[Contender], caches: Path) -> None:
    """Fill the cache, then check that cold and warm listings are complete and equal."""
    by_name = {contender.name: contender for contender in contenders}
    cold, warm = caches / "cold.json", caches / "warm.json"
    tree.wait_until_settled()
    for name, output in ((WARM_LIST, warm), (COLD_LIST, cold), (WARM_LIST, warm)):
        run_to_file(by_name[name], output)
    if not filecmp.cmp(cold, warm, shallow=False):
        message = f"listings of {tree.spec.folder!r} with and without the index differ"
        raise BenchmarkError(message)
    if cold.stat().st_size < BYTES_PER_SKILL * tree.spec.skills:
        message = f"the listing of {tree.spec.folder!r} is too short for {tree.spec.skills} skills"
        raise BenchmarkError(message)


def _standard_report(tree: Tree, rounds: Rounds) -> Report:
    cold, warm = BARS[tree.spec.layout]
    peak = max(rounds.peak_mb(name) for name in (COLD_LIST, WARM_LIST, COLD_LOAD, WARM_LOAD))
    rows = (
        _ratio_row(rounds, FIND, None),
        _ratio_row(rounds, COLD_LIST, cold),
        _ratio_row(rounds, WARM_LIST, warm),
        _ratio_row(rounds, COLD_LOAD, None),
        _ratio_row(rounds, WARM_LOAD, LOAD_BAR if tree.spec.layout == "mirror" else None),
        Row(name="memory, all four", peak_mb=peak, bar=MEMORY),
    )
    return Report(
        f"discovery, {tree.spec.layout} tree of {tree.spec.skills:,} skills, against find", rows
    )


def _validate_report(tree: Tree, rounds: Rounds, baseline: str) -> Report:
    rows = [
        Row(
            name=COLD_LIST if name == baseline else name,
            wall=rounds.wall_ratio(name, baseline),
            cpu=rounds.cpu_ratio(name, baseline),
            peak_mb=rounds.peak_mb(name),
            median_ms=rounds.wall(name) * 1e3,
            bar=VALIDATE_BAR if name == VALIDATE else None,
        )
        for name in (baseline, VALIDATE)
    ]
    title = f"validate, {tree.spec.layout} tree of {tree.spec.skills:,} skills, against list"
    return Report(title, tuple(rows))


def _ratio_row(rounds: Rounds, name: str, bar: Bar | None) -> Row:
    return Row(
        name=name,
        wall=rounds.wall_ratio(name, FIND),
        cpu=rounds.cpu_ratio(name, FIND),
        peak_mb=rounds.peak_mb(name),
        median_ms=rounds.wall(name) * 1e3,
        bar=bar,
    )


def _growth_tree(plan: Plan) -> Tree:
    return ensure_tree(plan.data, TreeSpec("registry", plan.scale.growth_by))


def _growth_contenders(plan: Plan, caches: Path) -> list[Contender]:
    empty = plan.data / "empty"
    empty.mkdir(exist_ok=True)
    small = ensure_tree(plan.data, TreeSpec("registry", plan.scale.growth_from)).root
    middle = _growth_tree(plan).root
    return [
        _find("find empty", empty, SHORT_REPEATS),
        _find("find small", small, SHORT_REPEATS),
        _cold(plan, "empty", empty, caches, SHORT_REPEATS),
        _cold(plan, "small", small, caches, SHORT_REPEATS),
        _cold(plan, "middle", middle, caches),
    ]


def _growth_report(plan: Plan, rounds: Rounds) -> Report:
    small, middle, large = plan.scale.growth_from, plan.scale.growth_by, plan.scale.registry
    first = _PerSkill("small", "empty", small)
    to_middle = _PerSkill("middle", "small", middle - small)
    to_large = _PerSkill(COLD_LIST, "small", large - small)
    all_large = _PerSkill(COLD_LIST, "empty", large)
    find_first = _PerSkill("find small", "find empty", small)
    find_large = _PerSkill(FIND, "find empty", large)
    rows = (
        _growth_row(rounds, f"list, {small:,} to {large:,}", first, all_large, GROWTH),
        _growth_row(
            rounds, f"list, slope to {middle:,} and {large:,}", to_middle, to_large, GROWTH
        ),
        _growth_row(rounds, f"find, {small:,} to {large:,}", find_first, find_large, None),
    )
    return Report("growth of the cost per skill, registries, list --no-index", rows)


class _PerSkill:
    """Cost per additional skill, from two contenders of the same command."""

    def __init__(self, name: str, fewer: str, skills: int) -> None:
        self._name, self._fewer, self._skills = name, fewer, skills

    def cpu(self, samples: Mapping[str, Sample]) -> float:
        """Seconds of CPU per skill."""
        return (samples[self._name].cpu - samples[self._fewer].cpu) / self._skills

    def wall(self, samples: Mapping[str, Sample]) -> float:
        """Seconds of wall clock per skill."""
        return (samples[self._name].wall - samples[self._fewer].wall) / self._skills


def _growth_row(
    rounds: Rounds, name: str, start: _PerSkill, end: _PerSkill, bar: Bar | None
) -> Row:
    return Row(
        name=name,
        wall=rounds.median(lambda samples: end.wall(samples) / start.wall(samples)),
        cpu=rounds.median(lambda samples: end.cpu(samples) / start.cpu(samples)),
        bar=bar,
    )
