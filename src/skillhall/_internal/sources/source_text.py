"""Syntax of the text that names a source, shared by the kinds of sources.

Each kind recognizes its own texts; see `opener`. In a path or ref, characters with a special
meaning are percent-encoded: `%20`, `%40`.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import parse_qsl, unquote_to_bytes

from skillhall._internal.net.addresses import is_loopback
from skillhall._internal.net.url import BAD_PERCENT, WebUrl
from skillhall._internal.skill.bundle import RelativePath
from skillhall.errors import SourceRejected, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_SOURCE_TEXT = 4096  # characters
MAX_REF_LENGTH = 255  # characters; the limit of file names
ARCHIVE_EXTENSIONS: Final = (".zip", ".tar.gz", ".tgz")
FILE_EXTENSIONS: Final = (".md", *ARCHIVE_EXTENSIONS)
GITHUB_HOST: Final = "github.com"
RAW_GITHUB_HOST: Final = "raw.githubusercontent.com"

# Hosts whose URLs are recognized without a scheme.
_SCHEMELESS_HOSTS = (GITHUB_HOST, f"www.{GITHUB_HOST}", "gitlab.com", RAW_GITHUB_HOST)
# Query parameters that change how a page is displayed, not its content.
_DISPLAY_PARAMETERS = {"plain", "raw", "ref_type", "inline", "tab"}
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_LOCAL_PATH = re.compile(r"\.|~(?:[/\\]|$)|/(?![/\\])|[A-Za-z]:[\\/]")
_SCP = re.compile(r"[^/:@]*@[^/:@]*:.*", re.DOTALL)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
# Rejected by `git check-ref-format`; also a leading dash (an option) and plus (a forced fetch).
_BAD_REF = re.compile(
    r"^[-+/]|[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|(?:^|/)\.|\.lock(?:/|$)|[./]$|^@$"
)
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class TextForm(Enum):
    """Form of a source text, which determines the kinds of sources it can name."""

    PATH = auto()  # ./folder, ~/folder, /folder, C:\folder
    SCP = auto()  # user@host:path
    SCHEME = auto()  # https://…, ssh://…, mcp:…
    NAME = auto()  # anything else: owner/repo, skills.zip, github.com/owner/repo


class SourceText(NamedTuple):
    """Text that names a source, without control characters or a leading dash."""

    text: str
    form: TextForm
    allow_loopback_http: bool = False

    @classmethod
    def parse(cls, text: str, *, allow_loopback_http: bool = False) -> SourceText:
        """Check the text and find its form. Raises: SourceRejected."""
        if not text or len(text) > MAX_SOURCE_TEXT:
            raise SourceRejected("url", text, "it is empty" if not text else "it is too long")
        if _CONTROL.search(text):
            raise SourceRejected("url", text, "it contains control characters")
        if text.startswith("-"):
            raise SourceRejected("path", text, "it starts with a dash", "write ./ before it")
        if _LOCAL_PATH.match(text):
            form = TextForm.PATH
        elif _SCP.fullmatch(text):
            form = TextForm.SCP
        elif _SCHEME.match(text):
            form = TextForm.SCHEME
        elif "\\" in text:
            hint = "write ./ before a folder"
            raise SourceRejected("path", text, "it contains a backslash", hint)
        else:
            form = TextForm.NAME
        return cls(text, form, allow_loopback_http)

    @property
    def scheme(self) -> str:
        """Scheme in lowercase; "" if the text does not start with a scheme."""
        return self.text.partition(":")[0].lower() if self.form is TextForm.SCHEME else ""

    def split_name(self) -> tuple[list[str], str | None]:
        """Split a text of the form NAME into path segments and an optional ref.

        Both are still percent-encoded. Raises: SourceRejected.
        """
        head, ref = split_ref(self.text.rstrip("/"), self.text)
        return head.split("/"), ref

    def parse_web_url(self) -> WebUrl | None:
        """Return the URL if the text is one, with or without a scheme, else `None`.

        Raises: SourceRejected.
        """
        if self.form is TextForm.NAME:
            names, _ = self.split_name()
            is_url = len(names) > 1 and names[0].lower() in _SCHEMELESS_HOSTS
            return WebUrl.parse(f"https://{self.text}") if is_url else None
        if self.scheme not in {"https", "http"}:
            return None
        url = WebUrl.parse(self.text)
        is_allowed = self.allow_loopback_http and is_loopback(url.host)
        if self.scheme == "http" and not is_allowed:
            raise SourceRejected("scheme", self.text, "'http' is not safe", "use https")
        return url

    def build_rejection(self) -> SourceRejected:
        """Return the error for a text that no kind of source recognizes."""
        if self.form is TextForm.NAME:
            hint = "write ./name for a folder, owner/repo for a repository on GitHub"
            return SourceRejected("path", self.text, "it is not a path, a URL or owner/repo", hint)
        problem = f"{self.scheme!r} is not supported"
        return SourceRejected("scheme", self.text, problem, "use https or ssh")


def is_relative_name(text: str) -> bool:
    """Whether the text looks like a relative path: no prefix, scheme or host."""
    head = text.partition("/")[0].lower()
    is_plain = not (_LOCAL_PATH.match(text) or _SCHEME.match(text) or _CONTROL.search(text))
    return is_plain and bool(head) and head not in _SCHEMELESS_HOSTS and not text.startswith("-")


def is_commit_id(ref: str) -> bool:
    """Whether a ref is a full commit id, which is immutable."""
    return _COMMIT.fullmatch(ref) is not None


def is_valid_ref(ref: str) -> bool:
    """Whether the text is a valid git ref and cannot be read as an option or refspec."""
    return len(ref) <= MAX_REF_LENGTH and ref.isprintable() and not _BAD_REF.search(ref)


class RepositoryLocation(NamedTuple):
    """Segments of a repository's path on its host, and a path and ref inside it."""

    names: Sequence[str]
    path: str
    ref: str


def is_github(url: WebUrl) -> bool:
    """Whether the URL is on github.com, or on its host for raw files."""
    hosts = {GITHUB_HOST, f"www.{GITHUB_HOST}", RAW_GITHUB_HOST}
    return url.host in hosts and url.authority == url.host and url.scheme == "https"


def parse_repository_url(url: WebUrl) -> RepositoryLocation | None:
    """Parse the URL of a repository or of a page in it; `None` for the URL of a file.

    Raises: SourceRejected if the URL is invalid or none of these.
    """
    text = url.without_query.rstrip("/")
    all_names = split_path(url.path, text)
    head, ref = split_ref("/".join(all_names), text)
    names, page = head.split("/"), _find_page(all_names, url)
    git = _find_git_suffix(names)
    if git is not None and (page is None or git <= len(page[0])):
        reject_query(url)
        return locate_repository(names, ref, text)
    if page is not None:
        reject_query(url, _DISPLAY_PARAMETERS)
        repository, (page_ref, *path) = page
        return RepositoryLocation(repository, join_path(path, text), parse_git_ref(page_ref, text))
    is_gitlab = url.host.startswith("gitlab.")
    is_repository = len(names) == 2 or (len(names) > 2 and is_gitlab)  # noqa: PLR2004
    is_file = (ref is None and head.lower().endswith(FILE_EXTENSIONS)) or _is_archive(all_names)
    if is_file and not (is_repository and is_github(url)):
        return None
    if not is_repository or url.host == RAW_GITHUB_HOST:
        problem = "it is neither a repository nor a Markdown file or archive"
        raise SourceRejected("url", url.without_query, problem)
    reject_query(url, _DISPLAY_PARAMETERS if is_github(url) or is_gitlab else ())
    return RepositoryLocation(names, "", parse_git_ref(ref, url.without_query))


def is_git_url(url: WebUrl) -> bool:
    """Whether the URL can only be that of a git repository or of a page in one.

    Raises: SourceRejected if its path is not normalized.
    """
    if url.host in _SCHEMELESS_HOSTS:
        return True
    names = [] if url.path == "/" else split_path(url.path, url.without_query)
    return _find_git_suffix(names) is not None or _find_page(names, url) is not None


def _is_archive(names: Sequence[str]) -> bool:
    """Whether a URL is that of a skill on a Skillhall server, as an archive."""
    return tuple(names[-5:-2]) == ("api", "v1", "skills") and names[-1] == "archive"


def _find_page(names: Sequence[str], url: WebUrl) -> tuple[Sequence[str], Sequence[str]] | None:
    """Split the URL of a page into the repository, and the ref with the path.

    A page is how a host displays a folder or file. Returns `None` for other URLs.
    """
    views, repository, start = {"tree", "blob", "raw"}, names[:2], 0  # `start` of the ref
    is_long = len(names) > 3  # noqa: PLR2004 - owner, repository, view and ref
    dash = next(
        (i for i in range(2, len(names) - 2) if names[i] == "-" and names[i + 1] in views), 0
    )
    if url.host == RAW_GITHUB_HOST:
        start = 2 if is_long else 0
    elif dash:  # GitLab: any number of groups, then a dash
        repository, start = names[:dash], dash + 2
    elif (
        not is_github(url)
        and len(names) > 4  # noqa: PLR2004 - Gitea has the kind of the ref, too
        and names[2] in {"src", "raw"}
        and names[3] in {"branch", "tag", "commit"}
    ):
        start = 4
    elif is_long and names[2] in views:
        start = 3
    if not start:
        return None
    location = names[start:]
    if len(location) > 2 and location[0] == "refs" and location[1] in {"heads", "tags"}:  # noqa: PLR2004
        location = location[2:]
    if not is_github(url):
        repository = [*repository[:-1], f"{repository[-1].removesuffix('.git')}.git"]
    return repository, location


def reject_query(url: WebUrl, allowed: set[str] | tuple[()] = ()) -> None:
    """Reject a query or fragment, because it may contain a secret.

    Parameters in `allowed` may be in the query; if it is not empty, a fragment is allowed, too.
    Raises: SourceRejected.
    """
    keys = {key for key, _ in parse_qsl(url.query, keep_blank_values=True)}
    if not keys <= set(allowed) or (url.query and not keys):
        hint = "remove the ? and everything after it"
        raise SourceRejected("url", url.without_query, "it has a query", hint)
    if url.fragment and not allowed:
        hint = "remove the # and everything after it"
        raise SourceRejected("url", url.without_query, "it has a fragment", hint)


def split_path(path: str, text: str) -> list[str]:
    """Split a URL's path into names, still percent-encoded. Raises: SourceRejected."""
    names = path.removeprefix("/").rstrip("/").split("/")
    decoded = [_percent_decode(name, text) for name in names]
    if "" in names or "\\" in path or not {".", ".."}.isdisjoint("/".join(decoded).split("/")):
        raise SourceRejected("path", text, "its path is not normalized")
    return names


def split_ref(text: str, source_text: str) -> tuple[str, str | None]:
    """Split the text into the part before its ref, and the ref or `None`.

    The ref follows the first @ that does not start a name: `v1` in `@scope/name@v1`.
    Raises: SourceRejected.
    """
    at = next((i for i, c in enumerate(text) if c == "@" and i > 0 and text[i - 1] != "/"), None)
    if at is None:
        return text, None
    if at == len(text) - 1:
        raise SourceRejected("ref", source_text, "its ref is empty")
    return text[:at], text[at + 1 :]


def _find_git_suffix(names: Sequence[str]) -> int | None:
    """Return how many names there are up to the first that ends in .git, or `None`."""
    return next((count for count, name in enumerate(names, 1) if name.endswith(".git")), None)


def locate_repository(names: Sequence[str], ref: str | None, text: str) -> RepositoryLocation:
    """Split names after the one that ends in .git, into a repository and a path in it.

    If there is no such name, all names belong to the repository. Raises: SourceRejected.
    """
    end = _find_git_suffix(names) or len(names)
    return RepositoryLocation(names[:end], join_path(names[end:], text), parse_git_ref(ref, text))


def join_path(names: Sequence[str], text: str) -> str:
    """Join names to a path in a repository; a SKILL.md is replaced by its folder.

    Raises: SourceRejected.
    """
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


def parse_git_ref(encoded: str | None, text: str) -> str:
    """Decode and check a ref; "" if there is none. Raises: SourceRejected."""
    if encoded is None:
        return ""
    ref = _percent_decode(encoded, text)
    if not is_valid_ref(ref):
        raise SourceRejected("ref", text, "its ref is not a valid branch, tag or commit")
    return ref


def _percent_decode(text: str, source_text: str) -> str:
    if BAD_PERCENT.search(text) or "?" in text or "#" in text or " " in text:
        problem = "it contains characters that must be percent-encoded"
        raise SourceRejected("url", source_text, problem)
    try:
        decoded = unquote_to_bytes(text).decode("utf-8")
    except UnicodeError:
        problem = "its percent-encoded characters are not UTF-8"
        raise SourceRejected("url", source_text, problem) from None
    if _CONTROL.search(decoded):
        raise SourceRejected("url", source_text, "it contains percent-encoded control characters")
    return decoded


def format_suffix(path: str, ref: str) -> str:
    """Return the path and ref in the form that follows a repository in a source text."""
    names = _percent_encode(path).split("/") if path else []
    # A leading @ needs no encoding: it does not start a ref.
    suffix = "".join(f"/{name[:1]}{name[1:].replace('@', '%40')}" for name in names)
    return f"{suffix}@{_percent_encode(ref)}" if ref else suffix


def _percent_encode(text: str) -> str:
    for character in "% #?":  # % must be first, because the other replacements contain it
        text = text.replace(character, f"%{ord(character):02X}")
    return text
