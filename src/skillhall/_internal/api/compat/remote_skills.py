"""The skills module's way to skills on GitHub; apart, since it needs what speaks to networks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

from skillhall._internal.api.compat.skills_module import SkillBundle, read_skill_bundle
from skillhall._internal.settings import Settings
from skillhall._internal.sources.opener import open_reference
from skillhall._internal.sources.ref import GitHubRef, parse_source_ref
from skillhall.errors import SourceRejected

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillhall._internal.skill.bundle import Bundle

MAX_PARALLEL = 8  # skills that are fetched at the same time
_ONE_SKILL_HINT = "write owner/repo/skill for one skill of a repository on GitHub"


def fetch_skill(ref: str, *, settings: Settings | None = None) -> SkillBundle:
    """A skill on GitHub: `owner/repo/skill` or `owner/repo/path/to/skill`, with `@ref` if wanted.

    Every file arrives, or none: links alone are left out, with a finding. The token in GITHUB_TOKEN
    is used if there is one. Raises: SourceRejected, SourceNotFound, NoSkillThere, SkillNotFound,
    RateLimited, SourceUnavailable, SkillParseError, TooLarge.
    """
    bundles = _open_bundles(ref, Settings.read() if settings is None else settings)
    if len(bundles) > 1:
        folders = ", ".join(bundle.folder for bundle in bundles)
        raise SourceRejected("path", ref, f"it names several skills: {folders}", _ONE_SKILL_HINT)
    return read_skill_bundle(bundles[0], bundles[0].folder or ref)


def fetch_skills(
    refs: str | Iterable[str], *, settings: Settings | None = None
) -> list[SkillBundle]:
    """The same for several skills at once, in the order of `refs`; a text is one of them.

    Raises: as `fetch_skill`, for the first that fails; the others are waited for.
    """
    known = Settings.read() if settings is None else settings
    given = (refs,) if isinstance(refs, str) else refs
    with ThreadPoolExecutor(MAX_PARALLEL) as pool:
        fetched = [pool.submit(fetch_skill, ref, settings=known) for ref in given]
        wait(fetched)
    return [one.result() for one in fetched]


def _open_bundles(ref: str, settings: Settings) -> tuple[Bundle, ...]:
    """What the ref names, at least one."""
    reference = parse_source_ref(ref)
    if not isinstance(reference, GitHubRef):
        raise SourceRejected("path", ref, "it is not a skill on GitHub", _ONE_SKILL_HINT)
    return open_reference(reference, settings).bundles
