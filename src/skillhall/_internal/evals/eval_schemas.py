"""The JSON Schemas of eval files and result files, which ship with the package."""

from pathlib import Path

_FOLDER = Path(__file__).with_name("schemas")
_SUFFIX = ".schema.json"
# The file that each schema describes, by the name of the schema.
SCHEMAS = {
    "evals": "evals/evals.json of a skill",
    "triggers": "evals/triggers.json of a skill",
    "run": "run.json of a run",
    "timing": "timing.json of a run",
    "grading": "grading.json of a run",
    "verdicts": "verdicts.json of a run",
    "benchmark": "benchmark.json of an iteration",
    "summary": "summary.json of an iteration",
    "trigger-result": "triggers.json of an iteration",
}


def get_schema_path(name: str) -> Path:
    """Return the path of a schema in `SCHEMAS`."""
    return _FOLDER / f"{name}{_SUFFIX}"


def read_schema(name: str) -> str:
    """Return the text of a schema in `SCHEMAS`."""
    return get_schema_path(name).read_text(encoding="utf-8")
