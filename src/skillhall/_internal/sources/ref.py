r"""Source references: parsing of text that names a source. Nothing is opened here.

```text
./folder  ~/folder  C:\folder  folder/             LocalRef
./skills.zip  skills.tar.gz                        ArchiveRef
owner/repo[/path][@ref]                            GitHubRef, as are pages of github.com
github:owner/repo[/path][@ref]                     GitHubRef, even if a folder owner/repo exists
https://host/owner/repo[.git[/path]][@ref]         GitRef, as are pages of GitLab, Gitea and others
ssh://git@host/repo.git  git@host:owner/repo.git   GitRef, with the same [/path][@ref]
https://host/SKILL.md  https://host/skills.zip     UrlRef
python:package                                     PackageRef
mcp:label  mcp:label/skill  mcp:label/skill://…    McpRef
```

Characters of a path or ref that have a meaning here are percent-encoded: `%20`, `%40`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias
from urllib.parse import parse_qsl, quote, unquote_to_bytes

from skillhall._internal.net.addresses import is_loopback
from skillhall._internal.net.url import (
    BAD_PERCENT,
    PORTS,
    WebUrl,
    authority_of,
    checked_characters,
    host_and_port,
)
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.skill.frontmatter import SKILL_MD
from skillhall._internal.skill.skill_uri import SkillUri
from skillhall.errors import SourceRejected, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

MAX_SOURCE_TEXT = 4096  # characters
MAX_REF_LENGTH = 255  # characters; the limit of file names
ARCHIVE_EXTENSIONS: Final = (".zip", ".tar.gz", ".tgz")
FILE_EXTENSIONS: Final = (".md", *ARCHIVE_EXTENSIONS)
GITHUB_HOST: Final = "github.com"

_RAW_GITHUB = "raw.githubusercontent.com"
# Hosts whose URLs are recognized without a scheme.
_SCHEMELESS_HOSTS = (GITHUB_HOST, f"www.{GITHUB_HOST}", "gitlab.com", _RAW_GITHUB)
# Query parameters that change how a page is displayed, not its content.
_DISPLAY_PARAMETERS = {"plain", "raw", "ref_type", "inline", "tab"}
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_LOCAL_PATH = re.compile(r"\.|~(?:[/\\]|$)|/(?![/\\])|[A-Za-z]:[\\/]")
_SCP = re.compile(r"([^/:@]*)@([^/:@]*):(.*)", re.DOTALL)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_SSH = re.compile(r"ssh://(?:([^@/]*)@)?([^/@]*)/([^?#]*)", re.IGNORECASE)
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_OWNER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,38}")
_REPOSITORY = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9._-]{0,99}")
_REPOSITORY_SEGMENT = re.compile(r"[A-Za-z0-9._~+][A-Za-z0-9._~+-]*")  # of its path on any host
_PACKAGE = re.compile(r"[A-Za-z0-9_]+(?:[.-][A-Za-z0-9_]+)*")
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?")
# Rejected by `git check-ref-format`; also a leading dash (an option) and plus (a forced fetch).
_BAD_REF = re.compile(
    r"^[-+/]|[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|(?:^|/)\.|\.lock(?:/|$)|[./]$|^@$"
)
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class LocalRef:
    """Unresolved path of a local folder or file: relative, below ~, or absolute."""

    path: str

    @property
    def text(self) -> str:
        """The text that parses to this value."""
        return self.path


@dataclass(frozen=True, slots=True)
class ArchiveRef:
    """Unresolved path of a local zip or tar.gz file."""

    path: str

    @property
    def text(self) -> str:
        """The text that parses to this value."""
        return self.path


@dataclass(frozen=True, slots=True)
class GitHubRef:
    """Repository on github.com. An empty `path` is its root, an empty `ref` its HEAD."""

    owner: str
    repository: str
    path: str = ""
    ref: str = ""

    @property
    def text(self) -> str:
        """The text that parses to this value."""
        name = f"{self.owner}/{self.repository}"
        if not self.ref and (self.path or self.repository).lower().endswith(ARCHIVE_EXTENSIONS):
            # The short form would be parsed as the name of an archive.
            return f"https://{GITHUB_HOST}/{name}.git{_format_suffix(self.path, '')}"
        return name + _format_suffix(self.path, self.ref)

    @property
    def url(self) -> str:
        """URL for git."""
        return f"https://{GITHUB_HOST}/{self.owner}/{self.repository}.git"

    def with_longer_ref(self) -> GitHubRef | None:
        """Return the next interpretation if the branch has slashes: `a`, then `a/b`."""
        longer = _lengthen_ref(self.path, self.ref)
        return GitHubRef(self.owner, self.repository, *longer) if longer else None

    def interpretations(self) -> Iterator[GitHubRef]:
        """Yield all interpretations: in page URLs, a ref with slashes looks like a path."""
        reading: GitHubRef | None = self
        while reading is not None:
            yield reading
            reading = reading.with_longer_ref()


@dataclass(frozen=True, slots=True)
class GitRef:
    """Repository on any host, by https or ssh, with a path in it."""

    url: str
    path: str = ""
    ref: str = ""

    @property
    def text(self) -> str:
        """The text that parses to this value."""
        return self.url + quote(_format_suffix(self.path, self.ref), safe="/@%!$&'()*+,;=")

    def with_longer_ref(self) -> GitRef | None:
        """Return the next interpretation if the branch has slashes: `a`, then `a/b`."""
        longer = _lengthen_ref(self.path, self.ref)
        return GitRef(self.url, *longer) if longer else None

    def interpretations(self) -> Iterator[GitRef]:
        """Yield all interpretations: in page URLs, a ref with slashes looks like a path."""
        reading: GitRef | None = self
        while reading is not None:
            yield reading
            reading = reading.with_longer_ref()


@dataclass(frozen=True, slots=True)
class UrlRef:
    """URL of a Markdown file or archive."""

    url: str

    @property
    def text(self) -> str:
        """The text that parses to this value."""
        return self.url


@dataclass(frozen=True, slots=True)
class PackageRef:
    """Installed Python package with skills."""

    package: str

    @property
    def text(self) -> str:
        """The text that parses to this value."""
        return f"python:{self.package}"


@dataclass(frozen=True, slots=True)
class McpRef:
    """Configured MCP server, and one of its skills by URI, path or name."""

    label: str
    skill: str = ""  # "" is all skills

    @property
    def text(self) -> str:
        """The text that parses to this value."""
        return f"mcp:{self.label}/{self.skill}" if self.skill else f"mcp:{self.label}"


SourceRef: TypeAlias = LocalRef | ArchiveRef | GitHubRef | GitRef | UrlRef | PackageRef | McpRef


def is_commit_id(ref: str) -> bool:
    """Whether a ref is a full commit id, which is immutable."""
    return _COMMIT.fullmatch(ref) is not None


def parse_source_ref(text: str, *, allow_loopback_http: bool = False) -> SourceRef:
    """Parse the text that names a source. Raises: SourceRejected.

    Plain http is accepted for loopback hosts only, with `allow_loopback_http`.
    """
    if not text or len(text) > MAX_SOURCE_TEXT:
        raise SourceRejected("url", text, "it is empty" if not text else "it is too long")
    if _CONTROL.search(text):
        raise SourceRejected("url", text, "it contains control characters")
    if text.startswith("-"):
        raise SourceRejected("path", text, "it starts with a dash", "write ./ before it")
    if _LOCAL_PATH.match(text):
        return _parse_local(text)
    if (parse := _PREFIX_PARSERS.get(text.partition(":")[0])) and ":" in text:
        return parse(text)
    if scp := _SCP.fullmatch(text):
        return _parse_scp(text, *scp.groups())
    if scheme := _SCHEME.match(text):
        return _parse_with_scheme(text, scheme[1].lower(), allow_loopback_http=allow_loopback_http)
    return _parse_short(text)


def _parse_local(text: str) -> LocalRef | ArchiveRef:
    path = text.rstrip("/") or "/"
    path = f"{path}/" if path.endswith(":") else path
    return ArchiveRef(path) if path.lower().endswith(ARCHIVE_EXTENSIONS) else LocalRef(path)


def _parse_package(text: str) -> PackageRef:
    name = text.removeprefix("python:")
    if not _PACKAGE.fullmatch(name):
        raise SourceRejected("path", text, "it is not the name of a Python package")
    return PackageRef(name)


def check_mcp_label(text: str) -> str:
    """Return the label if it is valid; it also names a folder. Raises: SourceRejected."""
    try:
        if _LABEL.fullmatch(text):
            return RelativePath.parse(text).text
    except UnsafePath:
        pass
    hint = "use 1 to 32 lowercase letters, digits and hyphens"
    raise SourceRejected("path", text, "it is not a valid label of an MCP server", hint)


def _parse_mcp(text: str) -> McpRef:
    label, _, skill = text.removeprefix("mcp:").partition("/")
    try:
        return McpRef(check_mcp_label(label), _parse_mcp_skill(skill.rstrip("/")))
    except UnsafePath as error:
        raise SourceRejected("path", text, error.reason) from None


def _parse_mcp_skill(text: str) -> str:
    if "://" not in text:
        return RelativePath.parse(text).text if text else ""
    return SkillUri.parse(text if text.endswith(f"/{SKILL_MD}") else f"{text}/{SKILL_MD}").text


def _parse_short(text: str) -> SourceRef:
    if "\\" in text:
        raise SourceRejected("path", text, "it contains a backslash", "write ./ before a folder")
    head, ref = _split_ref(text.rstrip("/"), text)
    if (ref is None or "/" not in head) and text.rstrip("/").lower().endswith(ARCHIVE_EXTENSIONS):
        return _parse_local(f"./{text}")
    names = head.split("/")
    if names[0].lower() in _SCHEMELESS_HOSTS and len(names) > 1:
        return _build_web_ref(WebUrl.parse(f"https://{text}"))
    if len(names) == 1 and text.endswith("/") and ref is None:
        return _parse_local(f"./{text}")
    if len(names) == 1:
        hint = "write ./name for a folder, owner/repo for a repository on GitHub"
        raise SourceRejected("path", text, "it is only a name", hint)
    location = _RepositoryLocation(_join_path(names[2:], text), _parse_git_ref(ref, text))
    return _build_github_ref(names[:2], location, text)


def is_relative_name(text: str) -> bool:
    """Whether the text looks like a relative path: no prefix, scheme or host."""
    head = text.partition("/")[0].lower()
    is_plain = not (_LOCAL_PATH.match(text) or _SCHEME.match(text) or _CONTROL.search(text))
    return is_plain and bool(head) and head not in _SCHEMELESS_HOSTS and not text.startswith("-")


def _parse_github_prefix(text: str) -> GitHubRef:
    head, ref = _split_ref(text.removeprefix("github:").rstrip("/"), text)
    names = head.split("/")
    if len(names) == 1:
        raise SourceRejected(
            "path", text, "it does not name a repository", "write github:owner/repo"
        )
    location = _RepositoryLocation(_join_path(names[2:], text), _parse_git_ref(ref, text))
    return _build_github_ref(names[:2], location, text)


def _build_github_ref(names: Sequence[str], location: _RepositoryLocation, text: str) -> GitHubRef:
    owner, repository = names[0], names[1].removesuffix(".git")
    if not _OWNER.fullmatch(owner):
        raise SourceRejected("path", text, f"{owner!r} is not a valid GitHub account")
    is_name = _REPOSITORY.fullmatch(repository) and not repository.endswith(".git")
    if not is_name or repository in {".", ".."}:
        raise SourceRejected("path", text, f"{repository!r} is not a valid GitHub repository")
    return GitHubRef(owner, repository, *location)


def _parse_with_scheme(text: str, scheme: str, *, allow_loopback_http: bool) -> SourceRef:
    if scheme == "ssh":
        return _parse_ssh_url(text)
    if scheme not in {"https", "http"}:
        raise SourceRejected("scheme", text, f"{scheme!r} is not supported", "use https or ssh")
    url = WebUrl.parse(text)
    if scheme == "http" and not (allow_loopback_http and is_loopback(url.host)):
        raise SourceRejected("scheme", text, "'http' is not safe", "use https")
    return _build_web_ref(url)


def _build_web_ref(url: WebUrl) -> GitHubRef | GitRef | UrlRef:
    text = url.without_query.rstrip("/")
    names = _split_path(url.path, text)
    head, ref = _split_ref("/".join(names), text)
    git, page = _find_git_suffix(head.split("/")), _find_page(names, url)
    if git is not None and (page is None or git <= len(page.repository)):
        _reject_query(url)
        return _build_repository_ref(url, *_split_at_git_suffix(head, ref, git, text))
    if page is not None:
        _reject_query(url, _DISPLAY_PARAMETERS)
        repository = page.repository if _is_github(url) else _with_git_suffix(page.repository)
        location = _RepositoryLocation(_join_path(page.path, text), _parse_git_ref(page.ref, text))
        return _build_repository_ref(url, repository, location)
    return _build_plain_url_ref(url, head, ref)


def _build_plain_url_ref(url: WebUrl, head: str, ref: str | None) -> GitHubRef | GitRef | UrlRef:
    """Build the reference for a URL without a page or .git: a file or a repository."""
    names = head.split("/")
    is_repository = len(names) == 2 or (len(names) > 2 and url.host.startswith("gitlab."))  # noqa: PLR2004
    is_file = ref is None and head.lower().endswith(FILE_EXTENSIONS)
    if is_file and not (is_repository and _is_github(url)):
        _reject_query(url)
        return UrlRef(url.without_query.rstrip("/"))
    if not is_repository or url.host == _RAW_GITHUB:
        problem = "it is neither a repository nor a Markdown file or archive"
        raise SourceRejected("url", url.without_query, problem)
    has_pages = _is_github(url) or url.host.startswith("gitlab.")
    _reject_query(url, _DISPLAY_PARAMETERS if has_pages else ())
    location = _RepositoryLocation("", _parse_git_ref(ref, url.without_query))
    return _build_repository_ref(url, names, location)


def _build_repository_ref(
    url: WebUrl, names: Sequence[str], location: _RepositoryLocation
) -> GitHubRef | GitRef:
    if _is_github(url):
        if len(names) != 2:  # noqa: PLR2004 - owner and repository
            raise SourceRejected("path", url.without_query, "it is not a repository on GitHub")
        return _build_github_ref(names, location, url.without_query)
    _check_repository_path(names, url.without_query)
    return GitRef(f"{url.scheme}://{url.authority}/{'/'.join(names)}", *location)


def _is_github(url: WebUrl) -> bool:
    hosts = {GITHUB_HOST, f"www.{GITHUB_HOST}", _RAW_GITHUB}
    return url.host in hosts and url.authority == url.host and url.scheme == "https"


def _reject_query(url: WebUrl, allowed: set[str] | tuple[()] = ()) -> None:
    """Reject a query or fragment, except display parameters: it may contain a secret."""
    keys = {key for key, _ in parse_qsl(url.query, keep_blank_values=True)}
    if not keys <= set(allowed) or (url.query and not keys):
        raise SourceRejected(
            "url", url.without_query, "it has a query", "remove the part from ? on"
        )
    if url.fragment and not allowed:
        raise SourceRejected(
            "url", url.without_query, "it has a fragment", "remove the part from # on"
        )


class _WebPage(NamedTuple):
    repository: Sequence[str]
    ref: str
    path: Sequence[str]


def _find_page(names: Sequence[str], url: WebUrl) -> _WebPage | None:
    """Parse a web page of a folder or file: repository, view, ref, path."""
    if url.host == _RAW_GITHUB:
        return _build_page(names[:2], names[2:]) if len(names) > 3 else None  # noqa: PLR2004
    views = {"tree", "blob", "raw"}
    for index in range(2, len(names) - 2):  # GitLab: any number of groups, then a dash
        if names[index] == "-" and names[index + 1] in views:
            return _build_page(names[:index], names[index + 2 :])
    if not _is_github(url) and _is_gitea_page(names):
        return _build_page(names[:2], names[4:])
    return _build_page(names[:2], names[3:]) if len(names) > 3 and names[2] in views else None  # noqa: PLR2004


def _is_gitea_page(names: Sequence[str]) -> bool:
    views, kinds = {"src", "raw"}, {"branch", "tag", "commit"}
    return len(names) > 4 and names[2] in views and names[3] in kinds  # noqa: PLR2004


def _build_page(repository: Sequence[str], names: Sequence[str]) -> _WebPage:
    if len(names) > 2 and names[0] == "refs" and names[1] in {"heads", "tags"}:  # noqa: PLR2004
        names = names[2:]
    return _WebPage(repository, names[0], names[1:])


def _parse_ssh_url(text: str) -> GitRef:
    match = _SSH.fullmatch(checked_characters(text))
    if match is None:
        raise SourceRejected("url", text, "it is not an ssh URL")
    user, authority, path = match.groups()
    host, port = host_and_port(authority, text, PORTS["ssh"])
    login = f"{_check_user(user, text)}@" if user is not None else ""
    return _build_ssh_ref(f"ssh://{login}{authority_of(host, port, 'ssh')}/", path, text)


def _parse_scp(text: str, user: str, authority: str, path: str) -> GitRef:
    checked_characters(text)
    host, _ = host_and_port(authority, text, PORTS["ssh"])
    return _build_ssh_ref(f"{_check_user(user, text)}@{host}:", path, text)


def _build_ssh_ref(prefix: str, path: str, text: str) -> GitRef:
    if "?" in path or "#" in path:
        raise SourceRejected("url", text, "it has a query or a fragment")
    head, ref = _split_ref("/".join(_split_path(f"/{path}", text)), text)
    git = _find_git_suffix(head.split("/"))
    names, location = _split_at_git_suffix(head, ref, git, text)
    _check_repository_path(names, text)
    return GitRef(prefix + "/".join(names), *location)


def _check_user(user: str, text: str) -> str:
    if not _USER.fullmatch(user):
        raise SourceRejected("host", text, "its user name is not valid")
    return user


class _RepositoryLocation(NamedTuple):
    path: str
    ref: str


def _split_path(path: str, text: str) -> list[str]:
    """Split a URL's path into names, still percent-encoded."""
    names = path.removeprefix("/").rstrip("/").split("/")
    decoded = [_percent_decode(name, text) for name in names]
    if "" in names or "\\" in path or not {".", ".."}.isdisjoint("/".join(decoded).split("/")):
        raise SourceRejected("path", text, "its path is not normalized")
    return names


def _split_ref(text: str, source_text: str) -> tuple[str, str | None]:
    """Split the text at its first @ that does not start a name, as in `@scope/name`."""
    at = next((i for i, c in enumerate(text) if c == "@" and i > 0 and text[i - 1] != "/"), None)
    if at is None:
        return text, None
    if at == len(text) - 1:
        raise SourceRejected("ref", source_text, "its ref is empty")
    return text[:at], text[at + 1 :]


def _find_git_suffix(names: Sequence[str]) -> int | None:
    """Return the number of names up to and including the one that ends in .git."""
    return next((count for count, name in enumerate(names, 1) if name.endswith(".git")), None)


def _split_at_git_suffix(
    head: str, ref: str | None, suffix_end: int | None, text: str
) -> tuple[Sequence[str], _RepositoryLocation]:
    names = head.split("/")
    suffix_end = len(names) if suffix_end is None else suffix_end
    path = _join_path(names[suffix_end:], text)
    return names[:suffix_end], _RepositoryLocation(path, _parse_git_ref(ref, text))


def _with_git_suffix(names: Sequence[str]) -> Sequence[str]:
    return [*names[:-1], f"{names[-1].removesuffix('.git')}.git"]


def _check_repository_path(names: Sequence[str], text: str) -> None:
    if not all(_REPOSITORY_SEGMENT.fullmatch(name) for name in names) or names[-1] == ".git":
        raise SourceRejected("path", text, "it does not name a repository")


def _join_path(names: Sequence[str], text: str) -> str:
    """Join names to a path in a repository; a SKILL.md is replaced by its folder."""
    if not names:
        return ""
    path = _percent_decode("/".join(names), text)
    if not path.isprintable() or path.startswith("-"):
        raise SourceRejected("path", text, f"{path!a} is not a valid path")
    try:
        parts = list(RelativePath.parse(path).parts)
    except UnsafePath as error:
        raise SourceRejected("path", text, f"its path is not safe: {error.reason}") from None
    if any(part.lower() == ".git" for part in parts):
        raise SourceRejected("path", text, "its path is inside .git")
    while parts and parts[-1].lower() == "skill.md":
        del parts[-1]
    return "/".join(parts)


def _percent_decode(text: str, source_text: str) -> str:
    if BAD_PERCENT.search(text) or "?" in text or "#" in text or " " in text:
        problem = "it contains characters that must be percent-encoded"
        raise SourceRejected("url", source_text, problem)
    try:
        decoded = unquote_to_bytes(text).decode("utf-8")
    except UnicodeError:
        raise SourceRejected(
            "url", source_text, "its percent-encoded characters are not UTF-8"
        ) from None
    if _CONTROL.search(decoded):
        raise SourceRejected("url", source_text, "it contains percent-encoded control characters")
    return decoded


def _parse_git_ref(encoded: str | None, text: str) -> str:
    if encoded is None:
        return ""
    ref = _percent_decode(encoded, text)
    if not is_valid_ref(ref):
        raise SourceRejected("ref", text, "its ref is not a valid branch, tag or commit")
    return ref


def is_valid_ref(ref: str) -> bool:
    """Whether the text is a valid git ref and cannot be read as an option or refspec."""
    return len(ref) <= MAX_REF_LENGTH and ref.isprintable() and not _BAD_REF.search(ref)


def _format_suffix(path: str, ref: str) -> str:
    """Return the path and ref in the form that follows a repository."""
    names = _percent_encode(path).split("/") if path else []
    # A leading @ needs no encoding: it does not start a ref.
    suffix = "".join(f"/{name[:1]}{name[1:].replace('@', '%40')}" for name in names)
    return f"{suffix}@{_percent_encode(ref)}" if ref else suffix


def _percent_encode(text: str) -> str:
    for character in "% #?":  # % must be first, because the other replacements contain it
        text = text.replace(character, f"%{ord(character):02X}")
    return text


def _lengthen_ref(path: str, ref: str) -> _RepositoryLocation | None:
    first, _, rest = path.partition("/")
    longer = f"{ref}/{first}"
    if not ref or not first or rest.startswith("-") or not is_valid_ref(longer):
        return None
    return _RepositoryLocation(rest, longer)


_PREFIX_PARSERS: Final[Mapping[str, Callable[[str], SourceRef]]] = {
    "github": _parse_github_prefix,
    "mcp": _parse_mcp,
    "python": _parse_package,
}
