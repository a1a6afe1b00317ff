"""The kinds of sources, in the order in which their parsers are tried.

A kind is a `Ref` class and a function that parses the texts of this kind. To add one, write its
module, add its parser to `KINDS` and a case to `tests/contract/test_sources.py`, and document it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skillhall._internal.sources.git.git_ref import parse_git
from skillhall._internal.sources.github.github_ref import parse_github
from skillhall._internal.sources.local_ref import parse_local
from skillhall._internal.sources.mcp.mcp_ref import parse_mcp
from skillhall._internal.sources.python_package import parse_package
from skillhall._internal.sources.source_text import SourceText
from skillhall._internal.sources.url_ref import parse_url

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillhall._internal.sources.base import Ref

# A parser returns None for texts of other kinds. GitHub comes before other git hosts. The last
# parser accepts the remaining URLs: those of files.
KINDS: Final[tuple[Callable[[SourceText], Ref | None], ...]] = (
    parse_local,
    parse_package,
    parse_mcp,
    parse_github,
    parse_git,
    parse_url,
)


def parse_source_ref(text: str, *, allow_loopback_http: bool = False) -> Ref:
    """Parse the text that names a source. Raises: SourceRejected.

    Plain http is accepted only with `allow_loopback_http`, and only for loopback hosts.
    """
    source = SourceText.parse(text, allow_loopback_http=allow_loopback_http)
    for parse in KINDS:
        if (reference := parse(source)) is not None:
            return reference
    raise source.build_rejection()
