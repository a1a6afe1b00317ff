"""`fetch_skill` and `fetch_skills` with a fake GitHub."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import skillhall
from skillhall._internal.settings import Secret, Settings
from skillhall.errors import (
    ConfigInvalid,
    NoSkillThere,
    RateLimited,
    SkillhallError,
    SkillNotInSource,
    SkillParseError,
    SourceNotFound,
    SourceRejected,
)
from tests.support.github_api_server import (
    LINK,
    GitHubApiServer,
    RepoFile,
    Repository,
    run_github_api_server,
)
from tests.support.skills import make_skill_md

TOKEN = "s3cr3t-t0ken"  # noqa: S105 - a fake token


@pytest.fixture
def github() -> Iterator[GitHubApiServer]:
    with run_github_api_server() as site:
        repository = site.repositories["acme/skills"] = Repository()
        names = [f"s{number}" for number in range(12)]
        files: dict[str, bytes | RepoFile] = {
            "skills/s1/data.bin": b"\x00\xff",
            "skills/s1/link": RepoFile(b"/etc", LINK),
            "docs/a.md": b"x",
            "bad/SKILL.md": b"no fences",
        }
        repository.commit(
            files | {f"skills/{name}/SKILL.md": make_skill_md(name) for name in names}
        )
        yield site


@pytest.fixture
def settings(github: GitHubApiServer, tmp_path: Path) -> Settings:
    return Settings(
        str(tmp_path),
        str(tmp_path / "cache"),
        allowed_networks=("127.0.0.0/8",),
        use_git=False,
        github_api_url=github.api_url,
    )


@pytest.mark.parametrize(
    "ref", ["acme/skills/s1", "acme/skills/skills/s1", "acme/skills/s1@main", "acme/skills/s1/"]
)
def test_fetch_skill_returns_all_files(settings: Settings, ref: str) -> None:
    bundle = skillhall.fetch_skill(ref, settings=settings)
    assert bundle.name == "s1"
    assert bundle.files == {"SKILL.md": make_skill_md("s1"), "data.bin": b"\x00\xff"}
    assert [finding.path for finding in bundle.findings] == ["link"]


def test_fetch_skills_keeps_order(settings: Settings) -> None:
    names = [f"s{number}" for number in (11, 3, 7, 0, 5, 9, 1, 2, 10, 4)]
    result = skillhall.fetch_skills((f"acme/skills/{name}" for name in names), settings=settings)
    assert [bundle.name for bundle in result] == names


def test_fetch_skills_without_refs_returns_nothing(settings: Settings) -> None:
    assert skillhall.fetch_skills([], settings=settings) == []


def test_fetch_skills_raises_first_error_after_all_finished(
    github: GitHubApiServer, settings: Settings
) -> None:
    refs = ["acme/skills/s1", "acme/nothing/x", "acme/skills/none", "acme/skills/s2"]
    with pytest.raises(SourceNotFound, match="acme/nothing"):
        skillhall.fetch_skills(refs, settings=settings)
    assert len([target for target in github.requested_targets if "blobs" in target]) == 3


@pytest.mark.parametrize(
    ("ref", "error"),
    [
        ("", SourceRejected),
        ("pdf", SourceRejected),
        ("./folder", SourceRejected),
        ("skills.zip", SourceRejected),
        ("python:package", SourceRejected),
        ("https://example.org/owner/repo.git", SourceRejected),
        ("acme/skills/../../etc", SourceRejected),
        ("acme/skills/s1@--upload-pack=x", SourceRejected),
        ("acme/skills/s1@v..2", SourceRejected),
        ("-x/skills/s1", SourceRejected),
        ("acme/skills/s99", SkillNotInSource),
        ("acme/skills/docs", NoSkillThere),
        ("acme/skills/bad", SkillParseError),
        ("acme/skills/s1@v9", SourceNotFound),
    ],
)
def test_each_failure_has_its_own_error(
    settings: Settings, ref: str, error: type[SkillhallError]
) -> None:
    with pytest.raises(error) as caught:
        skillhall.fetch_skill(ref, settings=settings)
    assert type(caught.value) is error


def test_other_source_gives_hint(settings: Settings) -> None:
    with pytest.raises(SourceRejected) as caught:
        skillhall.fetch_skill("./folder", settings=settings)
    assert "owner/repo/skill" in caught.value.hint


def test_reference_to_several_skills_lists_them(settings: Settings) -> None:
    with pytest.raises(SourceRejected, match="skills/s0, skills/s1, skills/s10") as caught:
        skillhall.fetch_skill("acme/skills/skills", settings=settings)
    assert "owner/repo/skill" in caught.value.hint


def test_folder_with_linked_skill_md_is_not_a_skill(
    github: GitHubApiServer, settings: Settings
) -> None:
    link = RepoFile(b"/etc/passwd", LINK)
    github.repositories["acme/skills"].commit({"x/SKILL.md": link, "x/README.md": b"x"})
    with pytest.raises(NoSkillThere):
        skillhall.fetch_skill("acme/skills/x", settings=settings)


def test_root_skill_is_fetched(github: GitHubApiServer, settings: Settings) -> None:
    repository = github.repositories["acme/pdf"] = Repository()
    repository.commit({"SKILL.md": make_skill_md("pdf"), "a/b": b"x"})
    bundle = skillhall.fetch_skill("acme/pdf", settings=settings)
    assert (bundle.name, sorted(bundle.files)) == ("pdf", ["SKILL.md", "a/b"])


def test_broken_root_skill_is_named_by_reference(
    github: GitHubApiServer, settings: Settings
) -> None:
    github.repositories["acme/pdf"] = repository = Repository()
    repository.commit({"SKILL.md": b"no fences"})
    with pytest.raises(SkillParseError, match=r"acme/pdf/SKILL\.md"):
        skillhall.fetch_skill("acme/pdf", settings=settings)


def test_token_of_settings_is_sent_and_not_shown(
    github: GitHubApiServer, settings: Settings
) -> None:
    github.is_rate_limited = True
    github.tokens.add(TOKEN)
    tokens = {f"127.0.0.1:{github.api.port}": Secret(TOKEN)}
    with pytest.raises(RateLimited) as caught:
        skillhall.fetch_skill("acme/skills/s1", settings=settings._replace(tokens=tokens))
    assert github.api.requests[0].headers["authorization"] == f"Bearer {TOKEN}"
    assert TOKEN not in f"{caught.value!r} {caught.value.hint}"


def test_settings_default_to_environment(
    github: GitHubApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    github.tokens.add(TOKEN)
    monkeypatch.setenv("SKILLHALL_GIT", "off")
    monkeypatch.setenv("SKILLHALL_GITHUB_API_URL", github.api_url)
    monkeypatch.setenv("SKILLHALL_ALLOW_NETWORKS", "127.0.0.0/8")
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    assert skillhall.fetch_skill("acme/skills/s1").name == "s1"
    assert github.api.requests[0].headers["authorization"] == f"Bearer {TOKEN}"


def test_private_address_is_rejected_unless_allowed(
    github: GitHubApiServer, settings: Settings
) -> None:
    with pytest.raises(SourceRejected):
        skillhall.fetch_skill("acme/skills/s1", settings=settings._replace(allowed_networks=()))
    assert github.api.requests == []


def test_invalid_network_raises_config_invalid(settings: Settings) -> None:
    with pytest.raises(ConfigInvalid, match="SKILLHALL_ALLOW_NETWORKS"):
        skillhall.fetch_skill("a/b/c", settings=settings._replace(allowed_networks=("10.0.0",)))
