"""Sources of installed skills, as policies name them."""

import pytest

from skillhall._internal.installer.locked_sources import normalize_source
from skillhall._internal.settings import Settings
from skillhall._internal.sources.opener import parse_source_ref

SETTINGS = Settings("/project", "/cache")


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("acme/skills", "github.com/acme/skills"),
        ("github:acme/skills/pdf@v2", "github.com/acme/skills"),
        ("https://github.com/acme/skills.git", "github.com/acme/skills"),
        ("git@github.com:acme/skills.git", "github.com/acme/skills"),
        ("https://git.acme.org:8443/team/skills.git", "git.acme.org/team/skills"),
        ("ssh://git@git.acme.org:22/team/skills.git", "git.acme.org/team/skills"),
        ("https://acme.org/skills/SKILL.md", "acme.org/skills/SKILL.md"),
        ("python:acme", "python:acme"),
        ("mcp:acme/pdf", "mcp:acme/pdf"),
        ("./skills", "./skills"),
        ("npm:@acme/pdf@1.2.3", "npm:@acme/pdf"),
        ("s3://github.com/acme/skills", "s3://github.com/acme/skills"),
        ("npm:pdf@latest", "npm:pdf"),
        ("https://skills.acme.example/#pdf", "skills.acme.example"),
        ("https://acme.example/x/index.json#pdf", "acme.example/x/index.json"),
    ],
)
def test_source_has_neither_scheme_nor_ref(text: str, source: str) -> None:
    assert normalize_source(parse_source_ref(text), SETTINGS) == source


def test_short_names_belong_to_the_configured_github() -> None:
    settings = SETTINGS._replace(github_url="https://github.acme.org")
    assert normalize_source(parse_source_ref("acme/skills"), settings) == (
        "github.acme.org/acme/skills"
    )
