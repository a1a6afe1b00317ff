"""Properties of new local skills and of the files that agents may read."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillhall._internal.agents.file_tools import ReadTools
from skillhall._internal.policy.profiles import LOCAL_SKILLS
from skillhall._internal.settings import Settings
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.skill_store.input_checks import parse_skill_id, prepare_new_skill
from skillhall.errors import SkillhallError
from tests.support.skills import make_skill
from tests.support.strategies import any_text

# Printable text, and strings with a meaning in YAML or Markdown.
_printable = st.characters(categories=("L", "M", "N", "P", "S", "Zs"))
_tricky = st.sampled_from(
    ["- a", "a: b", "#", "'", '"', "---", "null", "0123", "[a", "{a", "|", ">", "\\", "🙂", " x "]
)
_names = st.lists(st.one_of(_tricky, st.text(_printable, max_size=10)), max_size=4).map("".join)
_descriptions = st.lists(
    st.one_of(_tricky, st.just("\n"), st.just("\t"), st.text(_printable, max_size=20)), max_size=8
).map("".join)


@given(_names.filter(str.strip), _descriptions.filter(str.strip), any_text)
def test_new_skill_round_trips(name: str, description: str, body: str) -> None:
    try:
        prepared = prepare_new_skill("pdf", name, description, body)
    except SkillhallError:
        assert any(c == "\0" or "\ud800" <= c <= "\udfff" for c in body)
        return
    data, mode = prepared.files["SKILL.md"]
    parsed = parse_skill(data, "pdf", LOCAL_SKILLS.key_case)
    assert parsed.frontmatter.name == name.strip()
    assert parsed.frontmatter.description == description.rstrip()
    assert (prepared.skill.name, prepared.skill.description) == parsed.frontmatter[1:]
    assert data.endswith(body.encode())
    assert mode == 0o644


@given(any_text, any_text)
def test_any_input_round_trips_or_is_rejected(name: str, description: str) -> None:
    try:
        prepared = prepare_new_skill("pdf", name, description, "")
    except SkillhallError:
        return
    front = parse_skill(prepared.files["SKILL.md"][0]).frontmatter
    assert (front.name, front.description) == (name.strip(), description.rstrip())


@given(any_text)
def test_skill_id_is_one_safe_name_or_rejected(text: str) -> None:
    try:
        identity = parse_skill_id(text)
    except SkillhallError:
        return
    assert RelativePath.parse(identity).parts == (identity,)
    assert not identity.startswith(".")
    assert parse_skill_id(identity) == identity


PRIVATE = "This text is private."


@pytest.fixture(scope="module")
def tools() -> Iterator[ReadTools]:
    """A run directory with secrets next to it and in every private path."""
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        run = top / "run"
        make_skill(run / ".agents" / "skills", "pdf", files={"a.md": b"open"})
        for path in (
            *("secret.md", "run-x/a.md", "run/.git/a.md", "run/.env.json", "run/.env", "run/.a.md"),
            *("run/sub/.git/a.md", "run/.agents/.env.md", "run/.agents/skills/pdf/.a.md"),
            *("run/skillhall.toml", "run/skillhall.db.json", "run/skillhall-lock.json"),
            *("run/cache/a.md", "run/.skillhall/a.md", "run/key.pem", "run/sub/skillhall.db.md"),
        ):
            (top / path).parent.mkdir(parents=True, exist_ok=True)
            (top / path).write_text(PRIVATE, encoding="utf-8")
        (run / "a.md").write_text("open", encoding="utf-8")
        links = {"out": "..", "up.md": "../secret.md", "g": ".git", "e.md": ".env.json", "l": "sub"}
        links |= {"c": "cache", "k.md": "key.pem", "here": ".", "sub/up": "..", "abs": str(top)}
        for name, target in links.items():
            (run / name).symlink_to(target)
        yield ReadTools(str(run), settings=Settings(str(run), str(run / "cache")))


_parts = st.sampled_from(
    [
        *("..", ".", "", "run", "run-x", "secret.md", ".git", ".GIT", ".env.json", ".env", "a.md"),
        *(".agents", "skills", "pdf", ".a.md", "sub", "cache", "Cache", "skillhall.toml", "A.MD"),
        *("skillhall.db.json", "skillhall-lock.json", ".skillhall", "out", "up.md", "g", "e.md"),
        *("l", "c", "k.md", "key.pem", "here", "up", "abs", ".env.md", "skillhall.db.md", "~"),
        *("%2e%2e", "..\\", "\0", "a.md ", "a.md.", "a.md::$DATA", "C:", "file:", "\u200b"),
    ]
)
_paths = st.one_of(
    st.lists(_parts, min_size=1, max_size=7).map("/".join),
    st.lists(st.one_of(_parts, any_text), max_size=4).map("/".join),
    any_text,
)


@given(_paths)
def test_no_path_reads_a_secret(tools: ReadTools, path: str) -> None:
    result = tools.read_file(path)
    assert PRIVATE not in result
    assert result == "open" or result.startswith(("Error: ", "---\nname: pdf\n"))
