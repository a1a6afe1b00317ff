"""Factories for SKILL.md files and skill folders."""

from pathlib import Path

from skillhall._internal.skill.yaml.quoting import format_scalar


def make_skill_md(
    name: str | None = "pdf-tools",
    description: str | None = "Reads PDF files.",
    body: str = "# Steps\n",
    **fields: str,
) -> bytes:
    """Create a SKILL.md; `None` omits a field, `fields` are raw YAML values.

    Underscores in names of fields become hyphens: `allowed_tools="Read"`.
    """
    required = {"name": name, "description": description}
    lines = [f"{key}: {format_scalar(text)}" for key, text in required.items() if text is not None]
    lines += [f"{key.replace('_', '-')}: {text}" for key, text in fields.items()]
    return "\n".join(["---", *lines, "---", body]).encode()


def make_skill(
    root: Path,
    folder: str = "pdf-tools",
    *,
    data: bytes | None = None,
    files: dict[str, bytes] | None = None,
) -> Path:
    """Create a skill folder below `root`; by default, the skill has the folder's name."""
    skill = root / folder
    skill.mkdir(parents=True)
    contents = {"SKILL.md": make_skill_md(folder) if data is None else data, **(files or {})}
    for path, content in contents.items():
        (skill / path).parent.mkdir(parents=True, exist_ok=True)
        (skill / path).write_bytes(content)
    return skill
