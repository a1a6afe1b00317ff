"""Factories for skills: bytes of a SKILL.md, and a folder on disk that holds one."""

from pathlib import Path

from skillhall._internal.skill.yaml.quoting import format_scalar


def make_skill_md(
    name: str | None = "pdf-tools",
    description: str | None = "Reads PDF files.",
    body: str = "# Steps\n",
    **fields: str,
) -> bytes:
    """A SKILL.md; `None` leaves a field out, `fields` are YAML text as it should stand there.

    An underscore in the name of a field is written as a hyphen: `allowed_tools="Read"`.
    """
    given = {"name": name, "description": description}
    lines = [f"{key}: {format_scalar(text)}" for key, text in given.items() if text is not None]
    lines += [f"{key.replace('_', '-')}: {text}" for key, text in fields.items()]
    return "\n".join(["---", *lines, "---", body]).encode()


def make_skill(
    root: Path,
    folder: str = "pdf-tools",
    *,
    data: bytes | None = None,
    files: dict[str, bytes] | None = None,
) -> Path:
    """A skill's folder below `root`, with a SKILL.md named like it unless `data` is given."""
    place = root / folder
    place.mkdir(parents=True)
    written = {"SKILL.md": make_skill_md(folder) if data is None else data, **(files or {})}
    for path, content in written.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(content)
    return place
