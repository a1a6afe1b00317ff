"""Source references: accepted and rejected texts."""

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skillhall._internal.sources.base import Ref
from skillhall._internal.sources.git.git_ref import GitRef
from skillhall._internal.sources.github.github_ref import GitHubRef
from skillhall._internal.sources.local_ref import ArchiveRef, LocalRef
from skillhall._internal.sources.mcp.mcp_ref import McpRef
from skillhall._internal.sources.npm.npm_ref import NpmRef
from skillhall._internal.sources.oci.oci_ref import LayoutRef, OciRef
from skillhall._internal.sources.opener import parse_source_ref
from skillhall._internal.sources.python_package import PackageRef
from skillhall._internal.sources.s3.s3_ref import S3Ref
from skillhall._internal.sources.site.site_ref import SiteRef
from skillhall._internal.sources.source_text import is_commit_id
from skillhall._internal.sources.url_ref import UrlRef
from skillhall.errors import SourceRejected

COMMIT = "0123456789abcdef0123456789abcdef01234567"
DIGEST = f"sha256:{'0123456789abcdef' * 4}"
LAB = "https://gitlab.com"

ACCEPTED: list[tuple[str, Ref]] = [
    # Local paths
    (".", LocalRef(".")),
    ("..", LocalRef("..")),
    ("./x", LocalRef("./x")),
    ("./x/", LocalRef("./x")),
    ("../x", LocalRef("../x")),
    ("/", LocalRef("/")),
    ("/x/y", LocalRef("/x/y")),
    ("~", LocalRef("~")),
    ("~/x", LocalRef("~/x")),
    (".agents/skills", LocalRef(".agents/skills")),
    ("skills/", LocalRef("./skills")),
    ("./-x", LocalRef("./-x")),
    ("./my skills", LocalRef("./my skills")),
    ("./a@b", LocalRef("./a@b")),
    ("./技能", LocalRef("./技能")),
    ("C:\\x", LocalRef("C:\\x")),
    ("c:/x", LocalRef("c:/x")),
    ("C:\\", LocalRef("C:\\")),
    ("C:/", LocalRef("C:/")),
    (".\\x", LocalRef(".\\x")),
    ("./x.zip", ArchiveRef("./x.zip")),
    ("x.zip", ArchiveRef("./x.zip")),
    ("a/b/x.TGZ", ArchiveRef("./a/b/x.TGZ")),
    ("/x/y.tar.gz", ArchiveRef("/x/y.tar.gz")),
    ("my@file.zip", ArchiveRef("./my@file.zip")),
    ("C:\\x.zip", ArchiveRef("C:\\x.zip")),
    # GitHub
    ("acme/skills", GitHubRef("acme", "skills")),
    ("acme/skills/", GitHubRef("acme", "skills")),
    ("acme/skills.git", GitHubRef("acme", "skills")),
    ("acme/skills/pdf", GitHubRef("acme", "skills", "pdf")),
    ("acme/skills/a/b/pdf@v1.0", GitHubRef("acme", "skills", "a/b/pdf", "v1.0")),
    ("acme/skills@feature/x", GitHubRef("acme", "skills", "", "feature/x")),
    (f"acme/skills@{COMMIT}", GitHubRef("acme", "skills", "", COMMIT)),
    ("acme/skills@@scope/x@1.0.0", GitHubRef("acme", "skills", "", "@scope/x@1.0.0")),
    ("acme/skills/@scope/x", GitHubRef("acme", "skills", "@scope/x")),
    ("acme/skills/@scope/x@main", GitHubRef("acme", "skills", "@scope/x", "main")),
    ("acme/skills/my%20skill@main", GitHubRef("acme", "skills", "my skill", "main")),
    ("acme/skills/a%40b", GitHubRef("acme", "skills", "a@b")),
    ("acme/skills/技能", GitHubRef("acme", "skills", "技能")),
    ("acme/skills/pdf/SKILL.md", GitHubRef("acme", "skills", "pdf")),
    ("acme/skills/SKILL.md@main", GitHubRef("acme", "skills", "", "main")),
    ("acme/skills/notes.md", GitHubRef("acme", "skills", "notes.md")),
    ("acme/skills@v1.zip", GitHubRef("acme", "skills", "", "v1.zip")),
    ("acme/.github", GitHubRef("acme", ".github")),
    ("github:acme/skills", GitHubRef("acme", "skills")),
    ("github:acme/skills/", GitHubRef("acme", "skills")),
    ("github:acme/skills/a/pdf@v1.0", GitHubRef("acme", "skills", "a/pdf", "v1.0")),
    ("github:acme/skills.zip", GitHubRef("acme", "skills.zip")),
    ("github.com/acme/skills", GitHubRef("acme", "skills")),
    ("https://github.com/acme/skills", GitHubRef("acme", "skills")),
    ("HTTPS://GitHub.com/acme/skills", GitHubRef("acme", "skills")),
    ("https://www.github.com:443/acme/skills/", GitHubRef("acme", "skills")),
    ("https://github.com/acme/skills.git", GitHubRef("acme", "skills")),
    ("https://github.com/acme/skills.git/pdf@v1", GitHubRef("acme", "skills", "pdf", "v1")),
    ("https://github.com/acme/skills@v1", GitHubRef("acme", "skills", "", "v1")),
    ("https://github.com/acme/skills?tab=readme-ov-file#use", GitHubRef("acme", "skills")),
    ("https://github.com/acme/x.zip", GitHubRef("acme", "x.zip")),
    ("https://github.com/acme/skills.git/x.zip", GitHubRef("acme", "skills", "x.zip")),
    ("https://github.com/acme/skills/tree/main", GitHubRef("acme", "skills", "", "main")),
    ("https://github.com/acme/skills/tree/main/a/b/", GitHubRef("acme", "skills", "a/b", "main")),
    ("https://github.com/acme/skills/tree/a%2Fb/c", GitHubRef("acme", "skills", "c", "a/b")),
    (
        "https://github.com/acme/skills/blob/main/pdf/SKILL.md?plain=1#L3",
        GitHubRef("acme", "skills", "pdf", "main"),
    ),
    ("https://github.com/acme/skills/raw/main/x.md", GitHubRef("acme", "skills", "x.md", "main")),
    (
        "https://github.com/acme/skills/tree/main/a@b/c%20d%23",
        GitHubRef("acme", "skills", "a@b/c d#", "main"),
    ),
    (
        "https://raw.githubusercontent.com/acme/skills/main/pdf/SKILL.md",
        GitHubRef("acme", "skills", "pdf", "main"),
    ),
    (
        "https://raw.githubusercontent.com/acme/skills/refs/heads/main/pdf/SKILL.md",
        GitHubRef("acme", "skills", "pdf", "main"),
    ),
    # Other git hosts
    (f"{LAB}/acme/skills", GitRef(f"{LAB}/acme/skills")),
    (f"{LAB}/acme/team/skills", GitRef(f"{LAB}/acme/team/skills")),
    (f"{LAB}/acme/team/skills.git", GitRef(f"{LAB}/acme/team/skills.git")),
    (
        f"{LAB}/acme/team/skills/-/tree/main/pdf?ref_type=heads",
        GitRef(f"{LAB}/acme/team/skills.git", "pdf", "main"),
    ),
    (f"{LAB}/a/b/-/blob/v1/pdf/SKILL.md", GitRef(f"{LAB}/a/b.git", "pdf", "v1")),
    (f"{LAB}/a/b/-/raw/v1/x.md", GitRef(f"{LAB}/a/b.git", "x.md", "v1")),
    (
        "https://codeberg.org/a/b/src/branch/main/pdf",
        GitRef("https://codeberg.org/a/b.git", "pdf", "main"),
    ),
    (
        "https://bitbucket.org/a/b/raw/main/pdf/SKILL.md",
        GitRef("https://bitbucket.org/a/b.git", "pdf", "main"),
    ),
    ("https://git.example/x.git", GitRef("https://git.example/x.git")),
    ("https://git.example:8443/a/b", GitRef("https://git.example:8443/a/b")),
    ("https://github.com:8443/a/b", GitRef("https://github.com:8443/a/b")),
    ("https://git.example/a/b@v1", GitRef("https://git.example/a/b", "", "v1")),
    ("https://git.example/a/b.git/c/d@e/f", GitRef("https://git.example/a/b.git", "c/d", "e/f")),
    ("https://git.example/a/b.git/tree/x/y", GitRef("https://git.example/a/b.git", "tree/x/y")),
    ("https://8.8.8.8/a/b", GitRef("https://8.8.8.8/a/b")),
    ("https://[2606:4700:0::1]/a/b", GitRef("https://[2606:4700::1]/a/b")),
    ("ssh://git@host.example/a/b.git", GitRef("ssh://git@host.example/a/b.git")),
    ("ssh://host.example:2222/~a/b", GitRef("ssh://host.example:2222/~a/b")),
    ("SSH://git@Host.example:22/a/b.git", GitRef("ssh://git@host.example/a/b.git")),
    ("git@host.example:a/b.git", GitRef("git@host.example:a/b.git")),
    ("git@host.example:a/b.git/c@v1", GitRef("git@host.example:a/b.git", "c", "v1")),
    ("git@github.com:acme/skills.git", GitRef("git@github.com:acme/skills.git")),
    # Files and packages
    ("https://example.com/SKILL.md", UrlRef("https://example.com/SKILL.md")),
    ("https://example.com/a/x.zip", UrlRef("https://example.com/a/x.zip")),
    (
        "https://example.com/api/v1/skills/pdf/archive",
        UrlRef("https://example.com/api/v1/skills/pdf/archive"),
    ),
    ("https://example.com/a/x.zip/", UrlRef("https://example.com/a/x.zip")),
    ("https://example.com/a%20b/x.tar.gz", UrlRef("https://example.com/a%20b/x.tar.gz")),
    (
        "https://github.com/acme/skills/archive/refs/heads/main.zip",
        UrlRef("https://github.com/acme/skills/archive/refs/heads/main.zip"),
    ),
    ("https://h.example", SiteRef("https://h.example/.well-known/")),
    ("https://h.example/.well-known/#pdf", SiteRef("https://h.example/.well-known/", "pdf")),
    ("https://h.example:8443/#%E6%8A%80", SiteRef("https://h.example:8443/.well-known/", "技")),
    ("https://h.example/docs/.well-known/", SiteRef("https://h.example/docs/.well-known/")),
    ("https://h.example/a/index.json", SiteRef("https://h.example/a/index.json")),
    ("https://h.example/a/index.json#x", SiteRef("https://h.example/a/index.json", "x")),
    ("https://h.example/a.git/index.json", GitRef("https://h.example/a.git", "index.json")),
    ("s3://team-skills", S3Ref("team-skills")),
    ("s3://team-skills/", S3Ref("team-skills")),
    ("s3://team.skills/a b/技能/", S3Ref("team.skills", "a b/技能")),
    ("s3://team-skills/x.zip", S3Ref("team-skills", "x.zip")),
    ("oci://ghcr.example/acme/skills", OciRef("ghcr.example", "acme/skills", "latest")),
    ("oci://ghcr.example/acme/skills:1.0", OciRef("ghcr.example", "acme/skills", "1.0")),
    ("OCI://GHCR.example:443/a__b/c.d-e:V_1", OciRef("ghcr.example", "a__b/c.d-e", "V_1")),
    ("oci://127.0.0.1:5000/skills", OciRef("127.0.0.1:5000", "skills", "latest")),
    (f"oci://h.example/a@{DIGEST}", OciRef("h.example", "a", digest=DIGEST)),
    (f"oci://h.example/a:1.0@{DIGEST}", OciRef("h.example", "a", digest=DIGEST)),
    ("oci:./dist/oci", LayoutRef("./dist/oci")),
    ("oci:/srv/image/", LayoutRef("/srv/image")),
    ("oci:~/image", LayoutRef("~/image")),
    ("npm:is-odd", NpmRef("is-odd")),
    ("npm:@acme/skills", NpmRef("@acme/skills")),
    ("npm:@acme/skills@1.2.3-rc.1+7", NpmRef("@acme/skills", "1.2.3-rc.1+7")),
    ("npm:skills@next", NpmRef("skills", "next")),
    ("python:my_package", PackageRef("my_package")),
    ("python:a.b-c", PackageRef("a.b-c")),
    ("mcp:acme", McpRef("acme")),
    ("mcp:acme/", McpRef("acme")),
    ("mcp:acme/pdf", McpRef("acme", "pdf")),
    ("mcp:acme-2/office/pdf/", McpRef("acme-2", "office/pdf")),
    ("mcp:acme/skill://pdf", McpRef("acme", "skill://pdf/SKILL.md")),
    ("mcp:acme/skill://office/pdf/SKILL.md", McpRef("acme", "skill://office/pdf/SKILL.md")),
]

# Rejected by `git check-ref-format --branch`, forced fetches, or too long.
BAD_REFS = [
    *["", "a..b", ".a", "a/.b", "a.lock", "a.lock/b", "a~1", "a^", "a:b", "a*", "a[b", "/a"],
    *["a//b", "a.", "@", "a@{1}", "%20", "a%20b", "a%5cb", "a%2F", "-a", "+a", "x" * 256],
]

REFUSED: list[tuple[str, str]] = [
    ("", "url"),
    ("x" * 5000, "url"),
    ("pdf", "path"),
    ("pdf@v1", "path"),
    # Options
    ("-x", "path"),
    ("--upload-pack=touch x", "path"),
    ("acme/-x", "path"),
    ("-acme/x", "path"),
    ("acme/skills/-x", "path"),
    ("acme/skills@-x", "ref"),
    ("acme/skills@--upload-pack=x", "ref"),
    ("acme/skills@+main", "ref"),
    ("https://github.com/acme/skills/tree/--x/y", "ref"),
    ("https://-host.example/a/b.git", "host"),
    ("https://host.example/-a/b.git", "path"),
    ("ssh://-oProxyCommand=x/a/b.git", "host"),
    ("ssh://-x@host.example/a/b.git", "host"),
    ("git@-oProxyCommand:a/b.git", "host"),
    ("-x@host.example:a/b.git", "path"),
    ("git@host.example:-a/b.git", "path"),
    # Schemes
    ("ext::sh -c touch% x", "scheme"),
    ("fd::17", "scheme"),
    ("file:///etc/passwd", "scheme"),
    ("file:x", "scheme"),
    ("git://host.example/a/b.git", "scheme"),
    ("git+https://host.example/a/b.git", "scheme"),
    ("http://host.example/a/b.git", "scheme"),
    ("http://127.0.0.1/a/b.git", "scheme"),
    ("ftp://host.example/x.zip", "scheme"),
    ("data:text/plain,x", "scheme"),
    ("javascript:x", "scheme"),
    ("host.example:a/b", "scheme"),
    ("C:x", "scheme"),
    # Hosts
    ("https://user@host.example/a/b.git", "host"),
    ("https://user:pw@host.example/a/b.git", "host"),
    ("https://github.com@evil.example/a/b", "host"),
    ("https://@host.example/a/b", "host"),
    ("ssh://git:pw@host.example/a/b.git", "host"),
    ("https://host%2eexample/a/b", "host"),
    ("https://1٢7.0.0.1/a/b", "url"),
    ("https://gıthub.com/a/b", "url"),
    ("https://host。example/a/b", "url"),
    ("git@gıthub.com:a/b.git", "url"),
    ("https://host.example./a/b", "host"),
    ("https://host..example/a/b", "host"),
    ("https:///a/b", "host"),
    ("https://127.1/a/b", "host"),
    ("https://2130706433/a/b", "host"),
    ("https://0x7f000001/a/b", "host"),
    ("https://0177.0.0.1/a/b", "host"),
    ("https://[fe80::1%25eth0]/a/b", "host"),
    ("https://[::1/a/b", "host"),
    ("https://::1/a/b", "host"),
    ("https://host.example:/a/b", "host"),
    ("https://host.example:x/a/b", "host"),
    ("https://host.example:0/a/b", "host"),
    ("https://host.example:65536/a/b", "host"),
    (f"https://{'a' * 64}.example/a/b", "host"),
    (f"https://{'a.' * 130}example/a/b", "host"),
    # Characters
    ("acme/skills\n", "url"),
    ("acme/skills\x00", "url"),
    ("acme/\x1b[2Jskills", "url"),
    ("\udcffx", "url"),
    (" acme/skills", "path"),
    ("acme/my skills", "path"),
    ("acme/skills/a b", "url"),
    ("acme\\skills", "path"),
    ("\\\\server\\share", "path"),
    ("//server/share", "path"),
    ("https://host.example\\@evil.example/a/b", "url"),
    ("https://host.example/a\tb", "url"),
    ("https://host.example/a b.zip", "url"),
    ("https://host.example/%zz.zip", "url"),
    ("https://host.example/%00.zip", "url"),
    ("https://host.example/%0d%0ax.zip", "url"),
    ("https://host.example/%ff.zip", "url"),
    ("acme/skills/%", "url"),
    ("acme/skills/a\u202eb", "path"),
    ("acme/skills/a\u3000b", "path"),
    # Paths
    ("acme/skills/../x", "path"),
    ("acme/skills/%2e%2e/x", "path"),
    ("acme/..", "path"),
    ("acme/skills//x", "path"),
    ("acme/skills/.git/config", "path"),
    ("acme/skills/con", "path"),
    ("acme/skills/a:b", "path"),
    ("acme/.git", "path"),
    ("acme.example/skills", "path"),
    ("~ada/skills", "path"),
    ("https://github.com/acme/skills/tree/main/../x", "path"),
    ("https://github.com/acme/skills/tree/main/a%2F..%2Fb", "path"),
    ("https://host.example/a/../x.zip", "path"),
    ("https://host.example/a/%2e%2e/x.zip", "path"),
    ("https://host.example/a%2f..%2fx.zip", "path"),
    ("https://host.example//x.zip", "path"),
    ("https://host.example/.git", "path"),
    ("https://github.com", "path"),
    ("https://github.com/a/b/c.git", "path"),
    ("python:", "path"),
    ("python:../x", "path"),
    ("python:a b", "path"),
    ("python:-x", "path"),
    ("oci:", "url"),
    ("oci:acme/skills", "path"),
    ("oci:-x", "path"),
    ("oci://", "host"),
    ("oci://ghcr.example", "path"),
    ("oci://ghcr.example/", "path"),
    ("oci://ghcr.example/Acme/skills", "path"),
    ("oci://ghcr.example/a//b", "path"),
    ("oci://ghcr.example/../a", "path"),
    ("oci://ghcr.example/a/:1", "path"),
    ("oci://ghcr.example/a?b=c", "path"),
    (f"oci://ghcr.example/{'a' * 256}", "path"),
    ("oci://ada:secret@ghcr.example/a", "host"),
    ("oci://ghcr.example:0/a", "host"),
    ("oci://127.1/a", "host"),
    ("oci://ghcr.example/a:", "ref"),
    ("oci://ghcr.example/a:-x", "ref"),
    ("oci://ghcr.example/a:../x", "ref"),
    ("oci://ghcr.example/a@v1", "ref"),
    (f"oci://ghcr.example/a@sha512:{'0' * 128}", "ref"),
    (f"oci://ghcr.example/a@sha256:{'A' * 64}", "ref"),
    ("npm:", "path"),
    ("npm:../x", "path"),
    ("npm:@acme", "path"),
    ("npm:@acme/..", "path"),
    ("npm:a/b", "path"),
    ("npm:.a", "path"),
    ("npm:a?b", "path"),
    (f"npm:{'a' * 215}", "path"),
    ("npm:a@", "ref"),
    ("npm:a@^1.0.0", "ref"),
    ("npm:a@1.0", "ref"),
    ("npm:a@../../x", "ref"),
    ("npm:a@https://h.example/x.tgz", "ref"),
    # Buckets
    ("s3://", "host"),
    ("s3://ab", "host"),
    ("s3://Team/x", "host"),
    ("s3://a..b/x", "host"),
    ("s3://a@evil.example/x", "host"),
    ("s3://key:secret@bucket/x", "host"),
    ("s3://bucket/../x", "path"),
    ("s3://bucket/a//b", "path"),
    ("s3://bucket/./b", "path"),
    ("s3:bucket/x", "scheme"),
    # Sites
    ("https://h.example/?token=x", "url"),
    ("https://h.example/#a/b", "url"),
    ("https://h.example/#..", "url"),
    ("https://h.example/#%ff", "url"),
    ("https://h.example/a/../index.json", "path"),
    ("http://h.example", "scheme"),
    ("https://gitlab.com", "path"),
    # URLs without a source
    ("https:", "url"),
    ("https:/host.example/a/b", "url"),
    ("https://host.example/a/b/c", "url"),
    ("https://github.com/acme/skills/issues/1", "url"),
    ("https://raw.githubusercontent.com/acme/skills", "url"),
    ("https://host.example/x.zip?token=1", "url"),
    ("https://host.example/x.zip#a", "url"),
    ("https://host.example/a/b.git?x", "url"),
    ("https://host.example/a/b.git#main", "url"),
    ("https://github.com/acme/skills?token=x", "url"),
    ("acme/skills?x", "path"),
    ("acme/skills/a#b", "url"),
    ("ssh://host.example/a/b.git?x", "url"),
    ("ssh://host.example", "url"),
    ("git@host.example:a/b.git?x", "url"),
    *[(f"acme/skills@{ref}", "ref") for ref in BAD_REFS],
]


def describe(text: str, *, allow_loopback_http: bool) -> str:
    """Return the kind and canonical text of a reference, or the reason for its rejection."""
    try:
        reference = parse_source_ref(text, allow_loopback_http=allow_loopback_http)
    except SourceRejected as error:
        return f"{error.reason}: {error.problem}" + (f" ({error.hint})" if error.hint else "")
    return f"{type(reference).__name__} {reference.text}"


def test_every_recorded_text_keeps_its_meaning() -> None:
    # The order in which kinds are tried decides what a text means. Lock files depend on it.
    path = Path(__file__).with_name("parsed_texts.json")
    recorded = json.loads(path.read_text("utf-8"))  # a pair: without and with loopback http
    for text, meaning in recorded.items():
        expected = [meaning, meaning] if isinstance(meaning, str) else meaning
        actual = [describe(text, allow_loopback_http=allowed) for allowed in (False, True)]
        assert actual == expected, text


@pytest.mark.parametrize(("text", "meaning"), ACCEPTED)
def test_parse_source_ref_text_gives_reference(text: str, meaning: Ref) -> None:
    assert parse_source_ref(text) == meaning


@pytest.mark.parametrize("meaning", [meaning for _, meaning in ACCEPTED], ids=str)
def test_canonical_text_parses_to_the_same_reference(meaning: Ref) -> None:
    assert parse_source_ref(meaning.text) == meaning


@pytest.mark.parametrize(
    ("meaning", "text"),
    [
        (GitHubRef("a", "b", "c d/@e@f", "g#h"), "a/b/c%20d/@e%40f@g%23h"),
        (GitHubRef("a", "x.zip"), "https://github.com/a/x.zip.git"),
        (GitRef("https://h.example/b.git", "技", "v"), "https://h.example/b.git/%E6%8A%80@v"),
    ],
)
def test_special_characters_are_percent_encoded(meaning: Ref, text: str) -> None:
    assert meaning.text == text
    assert parse_source_ref(text) == meaning


@pytest.mark.parametrize(("text", "reason"), REFUSED)
def test_invalid_text_is_rejected_with_reason(text: str, reason: str) -> None:
    with pytest.raises(SourceRejected) as caught:
        parse_source_ref(text)
    assert (caught.value.reason, caught.value.code) == (reason, "source_rejected")
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "text",
    [
        "https://SECRET@host.example/a/b.git",
        "https://user:SECRET@host.example/a/b.git@v1",
        "https://user:SEC@RET/SECRET@host.example/a/b.git",
        "https://user:SECRET/x@host.example/a/b.git",
        "ssh://git:SECRET@host.example/a/b.git",
        "user:SECRET@host.example:a/b.git",
        "user:SECRET@host.example//a/b.git",
        "SECRET@github.com/acme/skills",
        "https://host.example/x.zip?token=SECRET",
        "https://host.example/x.zip#SECRET",
        "https://" + "SECRET" * 100 + "@host.example/a",
        "http://user:SECRET@host.example/a/b\n",
    ],
)
def test_rejection_does_not_repeat_secrets(text: str) -> None:
    with pytest.raises(SourceRejected) as caught:
        parse_source_ref(text)
    assert "SECRET" not in str(caught.value)
    assert "SECRET" not in caught.value.text
    assert "***" in caught.value.text or "?" in text or "#" in text


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost", "[::1]:1"])
def test_loopback_http_is_accepted_on_request(host: str) -> None:
    text = f"http://{host}/a/b.git"
    assert parse_source_ref(text, allow_loopback_http=True) == GitRef(text)
    with pytest.raises(SourceRejected, match="'http' is not safe"):
        parse_source_ref(text)


@pytest.mark.parametrize("host", ["host.example", "8.8.8.8", "127.evil.example", "10.0.0.1"])
def test_http_to_other_hosts_is_rejected(host: str) -> None:
    with pytest.raises(SourceRejected, match="'http' is not safe"):
        parse_source_ref(f"http://{host}/a/b.git", allow_loopback_http=True)


def test_page_of_branch_with_slashes_has_several_interpretations() -> None:
    first = GitHubRef("a", "b", "x/skills/pdf", "feature")
    assert list(first.interpretations()) == [
        first,
        GitHubRef("a", "b", "skills/pdf", "feature/x"),
        GitHubRef("a", "b", "pdf", "feature/x/skills"),
        GitHubRef("a", "b", "", "feature/x/skills/pdf"),
    ]
    page = GitRef("https://h.example/b.git", "x", "f")
    assert list(page.interpretations()) == [page, GitRef("https://h.example/b.git", "", "f/x")]


@pytest.mark.parametrize(("path", "ref"), [("", "main"), ("x", ""), ("a/-x", "f"), ("a.lock", "f")])
def test_reference_without_longer_ref_has_one_interpretation(path: str, ref: str) -> None:
    assert len(list(GitHubRef("a", "b", path, ref).interpretations())) == 1
    assert len(list(GitRef("https://h.example/b.git", path, ref).interpretations())) == 1


def test_is_commit_id_accepts_full_ids_only() -> None:
    assert is_commit_id(COMMIT)
    assert not is_commit_id(COMMIT[:7])


def test_github_ref_url_is_https() -> None:
    assert GitHubRef("acme", "skills", "pdf").git_url() == "https://github.com/acme/skills.git"


PIECES = [
    *["https://", "http://", "ssh://", "git@", "github.com", "gitlab.com", "raw.githubusercontent"],
    *["h.example", "127.0.0.1", "[::1]", ":", ":443", "/", "//", "@", "a", "b.git", ".git", "-"],
    *["tree", "blob", "raw", "src", "branch", "refs", "heads", "main", "SKILL.md", ".md", ".zip"],
    *["%20", "%2F", "%40", "%", "..", ".", "~", "?", "#", "\\", " ", "python:", "技", "é", "+"],
]
texts = st.one_of(
    st.text(max_size=60),
    st.lists(st.sampled_from(PIECES), max_size=14).map("".join),
    st.builds("a/b/{}".format, st.lists(st.sampled_from(PIECES), max_size=8).map("".join)),
    st.builds("https://github.com/a/b/tree/{}".format, st.text(max_size=20)),
    st.builds("https://h.example/a/b.git/{}".format, st.text("ab/.@%2F0~-!", max_size=20)),
)


@given(texts)
@example("https://github.com/a/b.git.git.git")
@example("a/b/SKILL.md/SKILL.md")
@example("https://h.example/a/x.zip/")
def test_parsing_any_text_gives_stable_reference_or_rejection(text: str) -> None:
    try:
        result = parse_source_ref(text)
    except SourceRejected:
        return
    assert parse_source_ref(result.text) == result
    assert parse_source_ref(result.text).text == result.text
