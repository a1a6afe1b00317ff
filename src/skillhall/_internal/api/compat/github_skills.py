"""Skills from GitHub. This is a separate module because it imports network code."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

from skillhall._internal.api.compat.skills_module import SkillBundle, read_skill_bundle
from skillhall._internal.settings import Settings
from skillhall._internal.sources.github.github_ref import GitHubRef
from skillhall._internal.sources.opener import open_reference, parse_source_ref
from skillhall.errors import SourceRejected

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_PARALLEL = 8  # concurrent downloads
_ONE_SKILL_HINT = "write owner/repo/skill to name one skill in a GitHub repository"


def fetch_skill(ref: str, *, settings: Settings | None = None) -> SkillBundle:
    """Fetch a skill from GitHub: `owner/repo/skill[@ref]` or `owner/repo/path[@ref]`.

    All files are fetched, or none; links are skipped with a finding. The token in GITHUB_TOKEN is
    used, if set. Raises: SourceRejected, SourceNotFound, NoSkillThere, SkillNotFound, RateLimited,
    SourceUnavailable, SkillParseError, TooLarge.

    ```python
    from skillhall import fetch_skill

    bundle = fetch_skill("acme/skills/pdf@v2")
    print(bundle.name, list(bundle.files))
    ```
    """
    reference = parse_source_ref(ref)
    if not isinstance(reference, GitHubRef):
        raise SourceRejected("path", ref, "it is not a skill on GitHub", _ONE_SKILL_HINT)
    bundles = open_reference(reference, settings or Settings.read()).bundles
    if len(bundles) > 1:
        folders = ", ".join(bundle.folder for bundle in bundles)
        raise SourceRejected("path", ref, f"it contains several skills: {folders}", _ONE_SKILL_HINT)
    return read_skill_bundle(bundles[0], bundles[0].folder or ref)


def fetch_skills(
    refs: str | Iterable[str], *, settings: Settings | None = None
) -> list[SkillBundle]:
    """Fetch several skills concurrently, in the order of `refs`; a string is one ref.

    Raises: the same errors as `fetch_skill`, for the first ref that fails, after all have finished.

    ```python
    from skillhall import fetch_skills

    pdf, lint = fetch_skills(["acme/skills/pdf", "acme/skills/lint"])
    ```
    """
    settings = settings or Settings.read()
    all_refs = (refs,) if isinstance(refs, str) else refs
    with ThreadPoolExecutor(MAX_PARALLEL) as pool:
        futures = [pool.submit(fetch_skill, ref, settings=settings) for ref in all_refs]
        wait(futures)
    return [future.result() for future in futures]
