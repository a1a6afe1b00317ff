"""Whether the skill for a task is in a prompt with a budget, among many skills."""

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.finding.evaluation_set import Half, Query, load_set
from benchmarks.finding.quality import finding_tree
from benchmarks.plan import Plan
from benchmarks.report import Bar, Judged, Report, Row
from benchmarks.trees import ensure_tree

TASKS = 20
BUDGET = 2_000  # tokens
BAR = Bar(18 / TASKS, Judged.RATE)


def run(plan: Plan) -> Iterator[Report]:
    """Yield the share of tasks whose right skill is in the prompt."""
    if not _can_select(plan.executable):
        return
    root = ensure_tree(plan.data, finding_tree(plan.scale.finding_many)).root
    tasks = choose_tasks(load_set().prompts(Half(plan.half)))
    found = sum(_is_in_prompt(plan.executable, root, task) for task in tasks)
    count = f"{found} of {len(tasks)}"
    title = (
        f"prompts of {BUDGET:,} tokens from {plan.scale.finding_many:,} skills, {plan.half} half"
    )
    yield Report(title, (Row(name=f"right skill, {count}", rate=found / len(tasks), bar=BAR),))


def choose_tasks(prompts: Sequence[Query]) -> list[Query]:
    """Return prompts at equal distances, so that they come from many domains."""
    return [prompts[len(prompts) * number // TASKS] for number in range(TASKS)]


def _can_select(executable: Path) -> bool:
    shown = subprocess.run([executable, "prompt", "--help"], capture_output=True, check=True)
    return b"--for " in shown.stdout  # not --format


def _is_in_prompt(executable: Path, root: Path, task: Query) -> bool:
    command = [str(executable), "prompt", str(root), "--for", task.text, "--budget", str(BUDGET)]
    shown = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    listed = {line[2:].partition(": ")[0] for line in shown.splitlines() if line[:2] == "- "}
    return not listed.isdisjoint(task.right)
