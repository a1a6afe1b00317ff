"""Skillhall: Agent Skills for agent builders, teams and curators.

The public names of the library. Each is imported when it is first used, so that `import skillhall`
costs next to nothing.

```python
from skillhall import Skills

print(Skills.load("skills").listing())
```
"""

from __future__ import annotations

from importlib import import_module

from skillhall._version import VERSION as __version__  # noqa: N811 - the name tools look for

# Type checkers treat this name like `typing.TYPE_CHECKING`, which would cost an import of `typing`.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from skillhall._internal.agents.agent_skills import AgentSkills
    from skillhall._internal.api.compat.github_skills import fetch_skill, fetch_skills
    from skillhall._internal.api.compat.sandbox import setup_agent_environment
    from skillhall._internal.api.compat.skill_tool import create_skill_tool
    from skillhall._internal.api.compat.skills_module import (
        discover_skills,
        load_skill_bundle,
        load_skill_bundles,
        parse_skill_metadata,
        skills_to_xml,
    )
    from skillhall._internal.api.functions import scan, validate
    from skillhall._internal.api.installer import Installer
    from skillhall._internal.api.python_skills import PythonSkills
    from skillhall._internal.api.skills import Skill, Skills
    from skillhall._internal.policy.profiles import Profile
    from skillhall._internal.skill.finding import Finding
    from skillhall._internal.skill.lossless_editor import Document
    from skillhall._internal.skill.parser import parse_skill
    from skillhall._internal.skill.token_count import estimate_tokens
    from skillhall.errors import (
        InstallError,
        InvalidSkillError,
        SkillhallError,
        SkillNotFound,
        SourceError,
        StoreError,
    )

_NAMES_BY_MODULE = {
    "_internal.agents.agent_skills": ("AgentSkills",),
    "_internal.api.compat.github_skills": ("fetch_skill", "fetch_skills"),
    "_internal.api.compat.sandbox": ("setup_agent_environment",),
    "_internal.api.compat.skill_tool": ("create_skill_tool",),
    "_internal.api.compat.skills_module": (
        "discover_skills",
        "load_skill_bundle",
        "load_skill_bundles",
        "parse_skill_metadata",
        "skills_to_xml",
    ),
    "_internal.api.functions": ("scan", "validate"),
    "_internal.api.installer": ("Installer",),
    "_internal.api.python_skills": ("PythonSkills",),
    "_internal.api.skills": ("Skill", "Skills"),
    "_internal.policy.profiles": ("Profile",),
    "_internal.skill.lossless_editor": ("Document",),
    "_internal.skill.finding": ("Finding",),
    "_internal.skill.parser": ("parse_skill",),
    "_internal.skill.token_count": ("estimate_tokens",),
    "errors": (
        "InstallError",
        "InvalidSkillError",
        "SkillNotFound",
        "SkillhallError",
        "SourceError",
        "StoreError",
    ),
}
_MODULE_BY_NAME = {name: home for home, names in _NAMES_BY_MODULE.items() for name in names}

__all__ = [
    "AgentSkills",
    "Document",
    "Finding",
    "InstallError",
    "Installer",
    "InvalidSkillError",
    "Profile",
    "PythonSkills",
    "Skill",
    "SkillNotFound",
    "SkillhallError",
    "Skills",
    "SourceError",
    "StoreError",
    "__version__",
    "create_skill_tool",
    "discover_skills",
    "estimate_tokens",
    "fetch_skill",
    "fetch_skills",
    "load_skill_bundle",
    "load_skill_bundles",
    "parse_skill",
    "parse_skill_metadata",
    "scan",
    "setup_agent_environment",
    "skills_to_xml",
    "validate",
]


def __getattr__(name: str) -> object:
    home = _MODULE_BY_NAME.get(name)
    if home is None:
        return _find_deprecated(name)
    value = getattr(import_module(f"skillhall.{home}"), name)
    if home != "errors":
        value.__module__ = __name__  # tracebacks and `repr` show the path that programs import
    globals()[name] = value
    return value


def _find_deprecated(name: str) -> object:
    names = import_module("skillhall._deprecated")
    if name not in names.DEPRECATED:
        raise AttributeError(f"module 'skillhall' has no attribute {name!r}")
    place, replacement = names.DEPRECATED[name]
    names.warn_deprecated(
        f"skillhall.{name}",
        replacement,
        names.REMOVED_IN,
        stacklevel=2,  # the caller of `__getattr__`
    )
    module, _, attribute = place.partition(":")
    value: object = getattr(import_module(f"skillhall.{module}"), attribute)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
