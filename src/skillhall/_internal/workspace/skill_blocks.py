"""From bundles to contents of blocks: one parser for every source, and what it noticed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.policy.effects import Effect
from skillhall._internal.policy.profiles import SKILL_IMPORT
from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.frontmatter import SKILL_MD, is_skill_md
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.skill.risks.scanner import scan_bundle
from skillhall._internal.skill.token_count import estimate_tokens
from skillhall._internal.storage.records import SkillOrigin, Zone
from skillhall._internal.workspace.block_types import SKILL_TYPE
from skillhall._internal.workspace.session_archive import PortableSession, read_portable_session
from skillhall._internal.workspace.validation import build_content
from skillhall.errors import SkillhallError, SkillRejected

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.storage.records import BlockContent

LOCAL_SOURCE, UPLOAD_SOURCE, URL_SOURCE = "local", "upload", "url"
_INVALID_PREFIX = "Not a valid SKILL.md: "
_REJECTION_REASONS = {
    Code.NO_FRONTMATTER: f"{_INVALID_PREFIX}missing frontmatter",
    Code.NAME_MISSING: f"{_INVALID_PREFIX}missing required 'name' field",
    Code.FLAT_NAME_MISSING: f"{_INVALID_PREFIX}missing required 'name' field",
}


class Provenance(NamedTuple):
    """Where skills come from."""

    source_type: str  # local, upload or url
    source_ref: str


class BlockCandidate(NamedTuple):
    """A skill that may become a block, as a checklist shows it."""

    id: str  # the folder, by which it is chosen
    name: str
    description: str
    body: str
    tokens: int  # an estimate
    findings: tuple[JudgedFinding, ...]
    portable_session: PortableSession | None = None  # what an exported session holds
    error: str = ""  # what is wrong with that
    local_path: str = ""  # on this machine

    @property
    def reasons(self) -> list[str]:
        """Why it is no skill; nothing if it is one."""
        found = [
            _REJECTION_REASONS.get(one.finding.code, one.finding.message)
            for one in self.findings
            if one.effect is Effect.REJECT
        ]
        return [*found, self.error] if self.error else found

    def build_contents(self, zone: Zone | None, origin: Provenance) -> list[BlockContent]:
        """What its blocks say: one block, or all of an exported session. Raises: TooLarge."""
        if self.portable_session is not None:
            return [*self.portable_session.contents]
        place = self.local_path or origin.source_ref
        skill = SkillOrigin(self.name, self.description, origin.source_type, place)
        return [build_content(SKILL_TYPE, zone or Zone.STABLE, self.body, skill)]


def read_candidate(bundle: Bundle) -> BlockCandidate:
    """A bundle as a candidate; what is wrong with it is part of the answer."""
    identity = _last_path_part(bundle.folder) or "skill"
    file = next((bundle.files[path] for path in sorted(bundle.files) if is_skill_md(path)), None)
    if file is None:
        return BlockCandidate(identity, "", "", "", 0, (), error=f"No {SKILL_MD} found")
    parsed = parse_skill(file.read(), identity, SKILL_IMPORT.key_case)
    front = parsed.frontmatter
    name, description = SKILL_IMPORT.name_policy(front.name, front.description, identity)
    noticed = (*parsed.findings, *scan_bundle(bundle, front), *bundle.findings)
    judged = SKILL_IMPORT.load_policy.judge(
        found.with_location(f"{identity}/{found.path or SKILL_MD}", name) for found in noticed
    )
    told = tuple(one for one in judged if one.effect is not Effect.ACCEPT)
    candidate = BlockCandidate(
        identity, name, description, parsed.body, estimate_tokens(parsed.body), told
    )
    try:
        return candidate._replace(portable_session=read_portable_session(bundle))
    except SkillhallError as error:
        return candidate._replace(error=str(error))


def read_candidates(bundles: Iterable[Bundle]) -> list[BlockCandidate]:
    """All bundles as candidates, in order."""
    return [read_candidate(bundle) for bundle in bundles]


def filter_accepted(candidates: Sequence[BlockCandidate]) -> list[BlockCandidate]:
    """Those that are skills. Raises: SkillRejected if none is."""
    good = [one for one in candidates if not one.reasons]
    if not good:
        first = next(iter(candidates), None)
        reasons = first.reasons if first else [f"No {SKILL_MD} found"]
        raise SkillRejected(first.id if first else "the source", reasons)
    return good


def _last_path_part(folder: str) -> str:
    return folder.replace("\\", "/").rstrip("/").rpartition("/")[2]
