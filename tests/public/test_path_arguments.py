"""The public functions accept one path or several, as `str` or `Path`, and omit hidden skills."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

import skillhall
from skillhall import compat
from skillhall._internal.catalog.catalog import CatalogSkill
from skillhall._internal.catalog.skill_content import activate, read_skill_file
from skillhall._internal.catalog.trust.gate import ClearedSkill
from skillhall._internal.render.listing import (
    ListingEntry,
    render_listing,
    render_markdown,
    serialize_listing,
)
from skillhall._internal.sources.folder.root import Paths
from skillhall._internal.wiring.catalog import load_catalog
from skillhall.errors import SkillhallError
from tests.support.agents import make_settings
from tests.support.skills import make_skill, make_skill_md


class Fspath:
    """A path of another library."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __fspath__(self) -> str:
        return str(self._path)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_skill(tmp_path / "skills", "pdf")
    hidden = make_skill_md("deploy", disable_model_invocation="true", body="# Ship it\n")
    make_skill(tmp_path / "skills", "deploy", data=hidden)
    return tmp_path / "skills"


FORMS: list[Callable[[Path], object]] = [
    str,
    Path,
    Fspath,
    lambda root: [str(root)],
    lambda root: (root,),
    lambda root: iter([Fspath(root)]),
]


@pytest.mark.parametrize("form", FORMS)
def test_loaders_accept_one_folder_or_several(root: Path, form: Callable[[Path], Paths]) -> None:
    assert [one.name for one in load_catalog(form(root))] == ["deploy", "pdf"]
    assert [one.name for one in skillhall.discover_skills(form(root))] == ["deploy", "pdf"]


def test_relative_folder_string_is_accepted(root: Path) -> None:
    settings = make_settings(root.parent)
    assert len(load_catalog("skills", settings=settings)) == 2
    assert len(skillhall.discover_skills("skills", cwd=root.parent)) == 2
    assert len(skillhall.discover_skills(Path("skills"), cwd=str(root.parent))) == 2


@pytest.mark.parametrize("form", [str, Path, Fspath])
def test_other_functions_accept_path_objects(
    root: Path, form: Callable[[Path], str | Path]
) -> None:
    settings = make_settings(root.parent)
    assert skillhall.load_skill_bundle(form(root / "pdf")).name == "pdf"
    assert compat.LocalSkills(form(root.parent)).list().items == ()
    assert "ReadFile" in compat.tools_for(form(root.parent), settings)
    skill = ClearedSkill(load_catalog(root).find("pdf"))
    assert read_skill_file(skill, form(Path("SKILL.md")))[:3] == b"---"
    assert "Skill directory: there\n" in activate(skill, directory=form(Path("there")))
    source = compat.InstructionSource(form(Path("skills")))
    assert "<name>pdf</name>" in compat.InstructionSkills([source], settings).text
    assert len(skillhall.AgentSkills.of(form(root), settings=settings).current_view()) == 1
    parsed = skillhall.parse_skill_metadata(make_skill_md("pdf"), form(root / "pdf/SKILL.md"))
    assert parsed.path == f"{root}/pdf/SKILL.md"


def test_single_string_is_one_item(root: Path) -> None:
    assert compat.Globs("pdf*", inline="deploy") == compat.Globs(("pdf*",), ("deploy",))
    skills = skillhall.discover_skills(root)
    guard = compat.ToolGuard([replace(skills[0], allowed_tools=("Read",))], always="Skill")
    guard.activate(skills[0].name)
    assert guard.refusal("Skill") is None
    assert guard.refusal("S") is not None
    with pytest.raises(SkillhallError, match="one-part"):
        skillhall.fetch_skills("one-part")


def test_list_as_single_root_is_an_error(root: Path) -> None:
    with pytest.raises(TypeError):
        skillhall.AgentSkills.of([str(root)])  # type: ignore[arg-type]  # the mistake itself


RENDERERS: list[Callable[[Iterable[CatalogSkill]], object]] = [
    render_listing,
    render_markdown,
    compat.render_local,
    skillhall.skills_to_xml,
    serialize_listing,
]


@pytest.mark.parametrize("render", RENDERERS)
def test_renderers_accept_a_catalog_and_omit_hidden_skills(
    root: Path, render: Callable[[Iterable[CatalogSkill]], object]
) -> None:
    catalog = load_catalog(root)
    assert render(catalog) == render(list(catalog)) == render(catalog.visible)
    assert "pdf" in str(render(catalog))
    assert "deploy" not in str(render(catalog))


def test_renderers_accept_discovered_skills_and_omit_hidden_ones(root: Path) -> None:
    skills = skillhall.discover_skills(root)
    for text in (render_listing(skills), render_markdown(skills)):
        assert "pdf" in text
        assert "deploy" not in text


def test_listing_of_only_hidden_skills_is_empty(root: Path) -> None:
    hidden = [load_catalog(root).find("deploy")]
    assert render_listing(hidden) == compat.render_local(hidden) == ""
    assert render_markdown(hidden) == ""


def test_entry_without_hidden_attribute_is_shown() -> None:
    class Plain:
        name, description, location = "a", "b", "/c"

    entry: ListingEntry = Plain()
    assert "<name>a</name>" in render_listing([entry])


def test_skill_tool_omits_hidden_skills(root: Path) -> None:
    skills = {one.name: one for one in skillhall.discover_skills(root)}
    tool = compat.SkillTool(skills)
    assert "deploy" not in str(tool.parameters)
    assert "deploy" not in str(tool("deploy"))[40:]
