r"""The texts that name a source, and what they mean. Nothing is opened or looked up here.

```text
./folder  ~/folder  C:\folder  folder/             LocalRef
./skills.zip  skills.tar.gz                        ArchiveRef
owner/repo[/path][@ref]                            GitHubRef, as are pages of github.com
github:owner/repo[/path][@ref]                     the same, even if there is a folder owner/repo
https://host/owner/repo[.git[/path]][@ref]         GitRef, as are pages of GitLab, Gitea and others
ssh://git@host/repo.git  git@host:owner/repo.git   GitRef, with the same [/path][@ref]
https://host/SKILL.md  https://host/skills.zip     UrlRef
python:package                                     PackageRef
mcp:label  mcp:label/skill  mcp:label/skill://…    McpRef
```

A character of a path or ref that would be read as grammar is written as in URLs: `%20`, `%40`.
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
MAX_REF_LENGTH = 255  # characters; file systems hold no longer name
ARCHIVE_EXTENSIONS: Final = (".zip", ".tar.gz", ".tgz")
FILE_EXTENSIONS: Final = (".md", *ARCHIVE_EXTENSIONS)
GITHUB_HOST: Final = "github.com"

_RAW_GITHUB = "raw.githubusercontent.com"
_SCHEMELESS_HOSTS = (
    GITHUB_HOST,
    f"www.{GITHUB_HOST}",
    "gitlab.com",
    _RAW_GITHUB,
)  # pasted without a scheme
_DISPLAY_PARAMETERS = {
    "plain",
    "raw",
    "ref_type",
    "inline",
    "tab",
}  # how a page is shown, not what it holds
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_LOCAL_PATH = re.compile(r"\.|~(?:[/\\]|$)|/(?![/\\])|[A-Za-z]:[\\/]")
_SCP = re.compile(r"([^/:@]*)@([^/:@]*):(.*)", re.DOTALL)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_SSH = re.compile(r"ssh://(?:([^@/]*)@)?([^/@]*)/([^?#]*)", re.IGNORECASE)
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_OWNER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,38}")
_REPOSITORY = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9._-]{0,99}")
_REPOSITORY_SEGMENT = re.compile(
    r"[A-Za-z0-9._~+][A-Za-z0-9._~+-]*"
)  # of a repository's place on any host
_PACKAGE = re.compile(r"[A-Za-z0-9_]+(?:[.-][A-Za-z0-9_]+)*")
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?")
# What `git check-ref-format` refuses, a leading dash (an option) and plus (a forced fetch).
_BAD_REF = re.compile(
    r"^[-+/]|[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|(?:^|/)\.|\.lock(?:/|$)|[./]$|^@$"
)
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class LocalRef:
    """A folder or file on this machine, not resolved: relative, below ~, or absolute."""

    path: str

    @property
    def text(self) -> str:
        """The text that parses to this value."""
        return self.path


@dataclass(frozen=True, slots=True)
class ArchiveRef:
    """A zip or tar.gz file on this machine, not resolved."""

    path: str

    @property
    def text(self) -> str:
        """The text that parses to this value."""
        return self.path


@dataclass(frozen=True, slots=True)
class GitHubRef:
    """A repository on github.com, and a place in it; no `path` is all of it, no `ref` its HEAD."""

    owner: str
    repository: str
    path: str = ""
    ref: str = ""

    @property
    def text(self) -> str:
        """The text that parses to this value."""
        name = f"{self.owner}/{self.repository}"
        if not self.ref and (self.path or self.repository).lower().endswith(ARCHIVE_EXTENSIONS):
            # The short form would be the name of an archive.
            return f"https://{GITHUB_HOST}/{name}.git{_format_suffix(self.path, '')}"
        return name + _format_suffix(self.path, self.ref)

    @property
    def url(self) -> str:
        """Where git finds the repository."""
        return f"https://{GITHUB_HOST}/{self.owner}/{self.repository}.git"

    def with_longer_ref(self) -> GitHubRef | None:
        """The next reading of a page whose branch may hold slashes: `a`, then `a/b`."""
        longer = _lengthen_ref(self.path, self.ref)
        return GitHubRef(self.owner, self.repository, *longer) if longer else None

    def interpretations(self) -> Iterator[GitHubRef]:
        """All that it may mean: on pages, a ref with slashes looks like the start of a path."""
        reading: GitHubRef | None = self
        while reading is not None:
            yield reading
            reading = reading.with_longer_ref()


@dataclass(frozen=True, slots=True)
class GitRef:
    """A repository on any host, by https or ssh, and a place in it."""

    url: str
    path: str = ""
    ref: str = ""

    @property
    def text(self) -> str:
        """The text that parses to this value."""
        return self.url + quote(_format_suffix(self.path, self.ref), safe="/@%!$&'()*+,;=")

    def with_longer_ref(self) -> GitRef | None:
        """The next reading of a page whose branch may hold slashes: `a`, then `a/b`."""
        longer = _lengthen_ref(self.path, self.ref)
        return GitRef(self.url, *longer) if longer else None

    def interpretations(self) -> Iterator[GitRef]:
        """All that it may mean: on pages, a ref with slashes looks like the start of a path."""
        reading: GitRef | None = self
        while reading is not None:
            yield reading
            reading = reading.with_longer_ref()


@dataclass(frozen=True, slots=True)
class UrlRef:
    """One Markdown file or archive, by https."""

    url: str

    @property
    def text(self) -> str:
        """The text that parses to this value."""
        return self.url


@dataclass(frozen=True, slots=True)
class PackageRef:
    """The skills that an installed Python package brings along."""

    package: str

    @property
    def text(self) -> str:
        """The text that parses to this value."""
        return f"python:{self.package}"


@dataclass(frozen=True, slots=True)
class McpRef:
    """An MCP server that the person gave a label, and a skill of it: by URI, path or name."""

    label: str
    skill: str = ""  # "" is all of them

    @property
    def text(self) -> str:
        """The text that parses to this value."""
        return f"mcp:{self.label}/{self.skill}" if self.skill else f"mcp:{self.label}"


SourceRef: TypeAlias = LocalRef | ArchiveRef | GitHubRef | GitRef | UrlRef | PackageRef | McpRef


def is_commit_id(ref: str) -> bool:
    """Whether a ref is a whole commit id, which never moves."""
    return _COMMIT.fullmatch(ref) is not None


def parse_source_ref(text: str, *, allow_loopback_http: bool = False) -> SourceRef:
    """What the text names; plain http only to this machine, and only if asked.

    Raises: SourceRejected.
    """
    if not text or len(text) > MAX_SOURCE_TEXT:
        raise SourceRejected("url", text, "it is empty" if not text else "it is too long")
    if _CONTROL.search(text):
        raise SourceRejected("url", text, "it holds control characters")
    if text.startswith("-"):
        raise SourceRejected("path", text, "it starts with a dash", "write ./ before it")
    if _LOCAL_PATH.match(text):
        return _parse_local(text)
    if (read := _PREFIX_PARSERS.get(text.partition(":")[0])) and ":" in text:
        return read(text)
    if scp := _SCP.fullmatch(text):
        return _parse_scp(text, *scp.groups())
    if scheme := _SCHEME.match(text):
        return _parse_with_scheme(text, scheme[1].lower(), allow_loopback_http=allow_loopback_http)
    return _parse_short(text)


# This machine


def _parse_local(text: str) -> LocalRef | ArchiveRef:
    path = text.rstrip("/") or "/"
    path = f"{path}/" if path.endswith(":") else path
    return ArchiveRef(path) if path.lower().endswith(ARCHIVE_EXTENSIONS) else LocalRef(path)


def _parse_package(text: str) -> PackageRef:
    name = text.removeprefix("python:")
    if not _PACKAGE.fullmatch(name):
        raise SourceRejected("path", text, "it names no Python package")
    return PackageRef(name)


# MCP servers


def check_mcp_label(text: str) -> str:
    """What a person may call an MCP server; it also names a folder. Raises: SourceRejected."""
    try:
        if _LABEL.fullmatch(text):
            return RelativePath.parse(text).text
    except UnsafePath:
        pass
    hint = "take 1 to 32 small letters, digits and hyphens"
    raise SourceRejected("path", text, "it is no label of an MCP server", hint)


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


# owner/repo


def _parse_short(text: str) -> SourceRef:
    if "\\" in text:
        raise SourceRejected("path", text, "it holds a backslash", "write ./ before a folder")
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
    place = _RepositoryLocation(_join_path(names[2:], text), _parse_git_ref(ref, text))
    return _build_github_ref(names[:2], place, text)


def is_relative_name(text: str) -> bool:
    """Whether the text is written as a relative path is: without a prefix, scheme or host."""
    head = text.partition("/")[0].lower()
    is_plain = not (_LOCAL_PATH.match(text) or _SCHEME.match(text) or _CONTROL.search(text))
    return is_plain and bool(head) and head not in _SCHEMELESS_HOSTS and not text.startswith("-")


def _parse_github_prefix(text: str) -> GitHubRef:
    head, ref = _split_ref(text.removeprefix("github:").rstrip("/"), text)
    names = head.split("/")
    if len(names) == 1:
        raise SourceRejected("path", text, "it names no repository", "write github:owner/repo")
    return _build_github_ref(
        names[:2], _RepositoryLocation(_join_path(names[2:], text), _parse_git_ref(ref, text)), text
    )


def _build_github_ref(names: Sequence[str], location: _RepositoryLocation, text: str) -> GitHubRef:
    owner, repository = names[0], names[1].removesuffix(".git")
    if not _OWNER.fullmatch(owner):
        raise SourceRejected("path", text, f"{owner!r} is no account on GitHub")
    is_name = _REPOSITORY.fullmatch(repository) and not repository.endswith(".git")
    if not is_name or repository in {".", ".."}:
        raise SourceRejected("path", text, f"{repository!r} is no repository on GitHub")
    return GitHubRef(owner, repository, *location)


# URLs


def _parse_with_scheme(text: str, scheme: str, *, allow_loopback_http: bool) -> SourceRef:
    if scheme == "ssh":
        return _parse_ssh_url(text)
    if scheme not in {"https", "http"}:
        raise SourceRejected("scheme", text, f"{scheme!r} is not spoken here", "use https or ssh")
    url = WebUrl.parse(text)
    if scheme == "http" and not (allow_loopback_http and is_loopback(url.host)):
        raise SourceRejected("scheme", text, "'http' is not safe", "use https")
    return _build_web_ref(url)


def _build_web_ref(url: WebUrl) -> GitHubRef | GitRef | UrlRef:
    text = url.place.rstrip("/")
    names = _split_path(url.path, text)
    head, ref = _split_ref("/".join(names), text)
    git, page = _find_git_suffix(head.split("/")), _find_page(names, url)
    if git is not None and (page is None or git <= len(page.repository)):
        _reject_query(url)
        return _build_repository_ref(url, *_split_at_git_suffix(head, ref, git, text))
    if page is not None:
        _reject_query(url, _DISPLAY_PARAMETERS)
        repository = page.repository if _is_github(url) else _with_git_suffix(page.repository)
        place = _RepositoryLocation(_join_path(page.path, text), _parse_git_ref(page.ref, text))
        return _build_repository_ref(url, repository, place)
    return _build_plain_url_ref(url, head, ref)


def _build_plain_url_ref(url: WebUrl, head: str, ref: str | None) -> GitHubRef | GitRef | UrlRef:
    """A URL that is neither a page of a file nor ends in .git: a file, or a repository's page."""
    names = head.split("/")
    is_repository = len(names) == 2 or (len(names) > 2 and url.host.startswith("gitlab."))  # noqa: PLR2004
    is_file = ref is None and head.lower().endswith(FILE_EXTENSIONS)
    if is_file and not (is_repository and _is_github(url)):
        _reject_query(url)
        return UrlRef(url.place.rstrip("/"))
    if not is_repository or url.host == _RAW_GITHUB:
        problem = "it is neither a repository nor a Markdown file or archive"
        raise SourceRejected("url", url.place, problem)
    _reject_query(
        url, _DISPLAY_PARAMETERS if _is_github(url) or url.host.startswith("gitlab.") else ()
    )
    return _build_repository_ref(
        url, names, _RepositoryLocation("", _parse_git_ref(ref, url.place))
    )


def _build_repository_ref(
    url: WebUrl, names: Sequence[str], location: _RepositoryLocation
) -> GitHubRef | GitRef:
    if _is_github(url):
        if len(names) != 2:  # noqa: PLR2004 - owner and repository
            raise SourceRejected("path", url.place, "it is no repository on GitHub")
        return _build_github_ref(names, location, url.place)
    _check_repository_path(names, url.place)
    return GitRef(f"{url.scheme}://{url.authority}/{'/'.join(names)}", *location)


def _is_github(url: WebUrl) -> bool:
    hosts = {GITHUB_HOST, f"www.{GITHUB_HOST}", _RAW_GITHUB}
    return url.host in hosts and url.authority == url.host and url.scheme == "https"


def _reject_query(url: WebUrl, allowed: set[str] | tuple[()] = ()) -> None:
    """Leave out what only says how a page is shown; anything else could be a secret."""
    keys = {key for key, _ in parse_qsl(url.query, keep_blank_values=True)}
    if not keys <= set(allowed) or (url.query and not keys):
        raise SourceRejected("url", url.place, "it has a query", "leave out what follows the ?")
    if url.fragment and not allowed:
        raise SourceRejected("url", url.place, "it has a fragment", "leave out what follows the #")


class _WebPage(NamedTuple):
    repository: Sequence[str]
    ref: str
    path: Sequence[str]


def _find_page(names: Sequence[str], url: WebUrl) -> _WebPage | None:
    """A host's page of a folder or file: owner/repo, how it is shown, ref, path."""
    if url.host == _RAW_GITHUB:
        return _build_page(names[:2], names[2:]) if len(names) > 3 else None  # noqa: PLR2004
    marks = {"tree", "blob", "raw"}
    for at in range(2, len(names) - 2):  # GitLab: any number of groups, then a dash
        if names[at] == "-" and names[at + 1] in marks:
            return _build_page(names[:at], names[at + 2 :])
    if not _is_github(url) and _is_gitea_page(names):
        return _build_page(names[:2], names[4:])
    return _build_page(names[:2], names[3:]) if len(names) > 3 and names[2] in marks else None  # noqa: PLR2004


def _is_gitea_page(names: Sequence[str]) -> bool:
    shown, kinds = {"src", "raw"}, {"branch", "tag", "commit"}
    return len(names) > 4 and names[2] in shown and names[3] in kinds  # noqa: PLR2004


def _build_page(repository: Sequence[str], names: Sequence[str]) -> _WebPage:
    if len(names) > 2 and names[0] == "refs" and names[1] in {"heads", "tags"}:  # noqa: PLR2004
        names = names[2:]
    return _WebPage(repository, names[0], names[1:])


# ssh


def _parse_ssh_url(text: str) -> GitRef:
    found = _SSH.fullmatch(checked_characters(text))
    if found is None:
        raise SourceRejected("url", text, "it is not an ssh URL")
    user, authority, path = found.groups()
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
    names, place = _split_at_git_suffix(head, ref, git, text)
    _check_repository_path(names, text)
    return GitRef(prefix + "/".join(names), *place)


def _check_user(user: str, text: str) -> str:
    if not _USER.fullmatch(user):
        raise SourceRejected("host", text, "its user name is not a plain one")
    return user


# Places in repositories


class _RepositoryLocation(NamedTuple):
    path: str
    ref: str


def _split_path(path: str, text: str) -> list[str]:
    """The names between the slashes of a URL's path, still encoded."""
    names = path.removeprefix("/").rstrip("/").split("/")
    decoded = [_percent_decode(name, text) for name in names]
    if "" in names or "\\" in path or not {".", ".."}.isdisjoint("/".join(decoded).split("/")):
        raise SourceRejected("path", text, "its path is not a plain one")
    return names


def _split_ref(text: str, source_text: str) -> tuple[str, str | None]:
    """What stands before and after the @; one that begins a name belongs to that name."""
    at = next((i for i, c in enumerate(text) if c == "@" and i > 0 and text[i - 1] != "/"), None)
    if at is None:
        return text, None
    if at == len(text) - 1:
        raise SourceRejected("ref", source_text, "its ref is empty")
    return text[:at], text[at + 1 :]


def _find_git_suffix(names: Sequence[str]) -> int | None:
    """How many names lead up to and include the one that ends in .git."""
    ends = (at for at, name in enumerate(names, start=1) if name.endswith(".git"))
    return next(ends, None)


def _split_at_git_suffix(
    head: str, ref: str | None, suffix_end: int | None, text: str
) -> tuple[Sequence[str], _RepositoryLocation]:
    names = head.split("/")
    suffix_end = len(names) if suffix_end is None else suffix_end
    return names[:suffix_end], _RepositoryLocation(
        _join_path(names[suffix_end:], text), _parse_git_ref(ref, text)
    )


def _with_git_suffix(names: Sequence[str]) -> Sequence[str]:
    return [*names[:-1], f"{names[-1].removesuffix('.git')}.git"]


def _check_repository_path(names: Sequence[str], text: str) -> None:
    if not all(_REPOSITORY_SEGMENT.fullmatch(name) for name in names) or names[-1] == ".git":
        raise SourceRejected("path", text, "it names no repository")


def _join_path(names: Sequence[str], text: str) -> str:
    """The path of a folder or file in a repository; a SKILL.md stands for its folder."""
    if not names:
        return ""
    path = _percent_decode("/".join(names), text)
    if not path.isprintable() or path.startswith("-"):
        raise SourceRejected("path", text, f"{path!a} is not a plain path")
    try:
        parts = list(RelativePath.parse(path).parts)
    except UnsafePath as error:
        raise SourceRejected("path", text, f"of its path, {error.reason}") from None
    if any(part.lower() == ".git" for part in parts):
        raise SourceRejected("path", text, "its path leads into git's own files")
    while parts and parts[-1].lower() == "skill.md":
        del parts[-1]
    return "/".join(parts)


def _percent_decode(text: str, source_text: str) -> str:
    """The text without percent-encoding."""
    if BAD_PERCENT.search(text) or "?" in text or "#" in text or " " in text:
        raise SourceRejected(
            "url", source_text, "it holds characters that are written with % in paths"
        )
    try:
        decoded = unquote_to_bytes(text).decode("utf-8")
    except UnicodeError:
        raise SourceRejected("url", source_text, "it is not UTF-8 behind its % signs") from None
    if _CONTROL.search(decoded):
        raise SourceRejected("url", source_text, "it hides control characters")
    return decoded


def _parse_git_ref(encoded: str | None, text: str) -> str:
    """A branch, tag or commit that git takes for one."""
    if encoded is None:
        return ""
    ref = _percent_decode(encoded, text)
    if not is_valid_ref(ref):
        raise SourceRejected("ref", text, "git has no such names for branches, tags and commits")
    return ref


def is_valid_ref(ref: str) -> bool:
    """Whether git takes the text for a branch, tag or commit, and for nothing else."""
    return len(ref) <= MAX_REF_LENGTH and ref.isprintable() and not _BAD_REF.search(ref)


def _format_suffix(path: str, ref: str) -> str:
    """The path and ref as they follow a repository."""
    written = "".join(f"/{name[:1]}{name[1:].replace('@', '%40')}" for name in _encode_names(path))
    return f"{written}@{_percent_encode(ref)}" if ref else written


def _encode_names(path: str) -> list[str]:
    return _percent_encode(path).split("/") if path else []


def _percent_encode(text: str) -> str:
    for character in "% #?":  # the percent sign first: it begins what the others become
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
