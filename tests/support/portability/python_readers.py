"""Read skills with Python libraries; run by the interpreter of an environment that has one.

`python python_readers.py CLIENT ROOT` prints JSON: for each folder of ROOT the name and the
description that the library has, or null if it does not load the skill.
"""

import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path

Read = tuple[object, object]


def read_skills_ref(folder: Path) -> Read | None:
    from skills_ref.parser import read_properties  # noqa: PLC0415
    from skills_ref.validator import validate  # noqa: PLC0415

    if validate(folder):
        return None
    properties = read_properties(folder)
    return properties.name, properties.description


def read_skillport(folder: Path) -> Read | None:
    """Return what `skillport add` accepts; it has to pass the validation without fatal issues."""
    from skillport.modules.skills.internal.validation import (  # noqa: PLC0415
        validate_skill_record,
    )
    from skillport.shared.utils import parse_frontmatter  # noqa: PLC0415

    meta, _ = parse_frontmatter(folder / "SKILL.md")
    record = {**{key: meta.get(key, "") for key in ("name", "description")}, "path": str(folder)}
    if validate_skill_record(record, strict=True, meta=meta):
        return None
    return record["name"], record["description"]


def read_fastmcp(folder: Path) -> Read | None:
    from fastmcp.server.providers.skills import SkillProvider  # noqa: PLC0415

    info = SkillProvider(folder).skill_info
    return info.name, info.description


def read_adk(folder: Path) -> Read | None:
    from google.adk.skills import load_skill_from_dir  # noqa: PLC0415

    skill = load_skill_from_dir(folder)
    return skill.frontmatter.name, skill.frontmatter.description


def read_strands(folder: Path) -> Read | None:
    from strands.vended_plugins.skills import Skill  # noqa: PLC0415

    skill = Skill.from_file(folder)
    return skill.name, skill.description


def read_deepagents(folder: Path) -> Read | None:
    from deepagents.backends.filesystem import FilesystemBackend  # noqa: PLC0415
    from deepagents.middleware import skills  # noqa: PLC0415

    # `SkillsMiddleware` calls this function when an agent starts.
    root = str(folder.parent)
    backend = FilesystemBackend(root_dir=root, virtual_mode=False)
    for one in skills._list_skills(backend, root):  # noqa: SLF001
        if Path(one["path"]).parent == folder:
            return one["name"], one["description"]
    return None


def read_pydantic_ai_skills(folder: Path) -> Read | None:
    # The loader of the library that pydantic-ai-skills leaves the reading to.
    from pydantic_ai_harness.skills._loader import parse_skill  # noqa: PLC0415

    path = folder / "SKILL.md"
    skill = parse_skill(path.read_text("utf-8"), str(path))
    return skill.name, skill.description


READERS: dict[str, Callable[[Path], Read | None]] = {
    "skills-ref": read_skills_ref,
    "skillport": read_skillport,
    "fastmcp": read_fastmcp,
    "adk": read_adk,
    "strands": read_strands,
    "deepagents": read_deepagents,
    "pydantic-ai-skills": read_pydantic_ai_skills,
}


def read_all(client: str, root: Path) -> dict[str, Read | None]:
    """Read each folder of `root` with a client; what it refuses is `None`."""
    found: dict[str, Read | None] = {}
    logging.disable(logging.CRITICAL)
    try:
        for folder in sorted(root.iterdir()):
            try:
                found[folder.name] = READERS[client](folder)
            except Exception:  # noqa: BLE001 - of a foreign program, any error means: not loaded
                found[folder.name] = None
    finally:
        logging.disable(logging.NOTSET)
    return found


if __name__ == "__main__":
    print(json.dumps(read_all(sys.argv[1], Path(sys.argv[2])), default=repr))  # noqa: T201
