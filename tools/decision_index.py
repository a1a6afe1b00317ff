"""The list of decision records, generated from their titles."""

from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "decisions"
HEAD = """\
# Decisions

Each record states the context of a decision, the choice, the alternatives, and the consequences.
Records are not rewritten: a later decision gets a new one.

"""


def build_decision_index() -> str:
    """Return the list as a Markdown page."""
    lines = []
    for record in sorted(FOLDER.glob("[0-9]*.md")):
        title = record.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        number, _, name = title.partition(": ")
        lines.append(f"- [{number}]({record.name}): {name}\n")
    return HEAD + "".join(lines)
