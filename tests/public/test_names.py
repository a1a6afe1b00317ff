"""Public names show their public path, and values are frozen and built by keywords."""

import dataclasses
import inspect
from importlib import import_module

import pytest

import skillhall
from skillhall import types
from tests.support.library_reference import MODULES

PUBLIC_MODULES = ["skillhall", "skillhall.errors", *(f"skillhall.{name}" for name in MODULES)]
# Named tuples: a load creates them for every skill, and many functions unpack them.
TUPLES = {"Finding", "Profile", "JudgedFinding", "Frontmatter", "ParsedSkill"}


@pytest.mark.parametrize("module", PUBLIC_MODULES)
def test_public_name_shows_its_public_path(module: str) -> None:
    for name in import_module(module).__all__:
        value = getattr(import_module(module), name)
        if inspect.isclass(value) or inspect.isfunction(value):
            home = import_module(value.__module__)
            assert value.__module__ in PUBLIC_MODULES, name
            assert getattr(home, value.__name__) is value


@pytest.mark.parametrize("module", ["skillhall", "skillhall.types", "skillhall.chat"])
def test_value_is_a_frozen_dataclass_with_keyword_arguments(module: str) -> None:
    for name in set(import_module(module).__all__) - TUPLES - {"Document"}:
        value = getattr(import_module(module), name)
        assert not hasattr(value, "_fields"), name  # a named tuple
        if dataclasses.is_dataclass(value):
            assert vars(value)["__dataclass_params__"].frozen, name
            assert all(field.kw_only for field in dataclasses.fields(value)), name


def test_founding_functions_are_those_of_the_compatibility_module() -> None:
    names = set(skillhall.__all__) & set(import_module("skillhall.compat").__all__)
    assert names == {
        "create_skill_tool",
        "discover_skills",
        "fetch_skill",
        "fetch_skills",
        "load_skill_bundle",
        "load_skill_bundles",
        "parse_skill_metadata",
        "setup_agent_environment",
        "skills_to_xml",
    }


def test_types_has_the_type_of_every_result() -> None:
    assert {"Change", "Progress", "SearchHit", "Tool", "ToolResult"} <= set(types.__all__)
