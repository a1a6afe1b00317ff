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
from skillhall._internal.workspace.block_types import SKILL
from skillhall._internal.workspace.session_archive import PortableSession, read_portable
from skillhall._internal.workspace.validation import make_content
from skillhall.errors import SkillhallError, SkillRejected

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillhall._internal.policy.effects import Judged
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.storage.records import Content

LOCAL, UPLOAD, URL = "local", "upload", "url"
_INVALID = "Not a valid SKILL.md: "
_REASONS = {
    Code.NO_FRONTMATTER: f"{_INVALID}missing frontmatter",
    Code.NAME_MISSING: f"{_INVALID}missing required 'name' field",
    Code.FLAT_NAME_MISSING: f"{_INVALID}missing required 'name' field",
}


class Provenance(NamedTuple):
    """Where skills come from."""

    source_type: str  # local, upload or url
    source_ref: str


class Candidate(NamedTuple):
    """A skill that may become a block, as a checklist shows it."""

    id: str  # the folder, by which it is chosen
    name: str
    description: str
    body: str
    tokens: int  # an estimate
    findings: tuple[Judged, ...]
    portable: PortableSession | None = None  # what an exported session holds
    problem: str = ""  # what is wrong with that
    place: str = ""  # on this machine

    @property
    def reasons(self) -> list[str]:
        """Why it is no skill; nothing if it is one."""
        found = [
            _REASONS.get(one.finding.code, one.finding.message)
            for one in self.findings
            if one.effect is Effect.REJECT
        ]
        return [*found, self.problem] if self.problem else found

    def contents(self, zone: Zone | None, origin: Provenance) -> list[Content]:
        """What its blocks say: one block, or all of an exported session. Raises: TooLarge."""
        if self.portable is not None:
            return [*self.portable.contents]
        place = self.place or origin.source_ref
        skill = SkillOrigin(self.name, self.description, origin.source_type, place)
        return [make_content(SKILL, zone or Zone.STABLE, self.body, skill)]


def read_candidate(bundle: Bundle) -> Candidate:
    """A bundle as a candidate; what is wrong with it is part of the answer."""
    identity = _last_name(bundle.folder) or "skill"
    file = next((bundle.files[path] for path in sorted(bundle.files) if is_skill_md(path)), None)
    if file is None:
        return Candidate(identity, "", "", "", 0, (), problem=f"No {SKILL_MD} found")
    parsed = parse_skill(file.read(), identity, SKILL_IMPORT.keys)
    front = parsed.frontmatter
    name, description = SKILL_IMPORT.label(front.name, front.description, identity)
    noticed = (*parsed.findings, *scan_bundle(bundle, front), *bundle.findings)
    judged = SKILL_IMPORT.load.judge(
        found.at(f"{identity}/{found.path or SKILL_MD}", name) for found in noticed
    )
    told = tuple(one for one in judged if one.effect is not Effect.ACCEPT)
    candidate = Candidate(
        identity, name, description, parsed.body, estimate_tokens(parsed.body), told
    )
    try:
        return candidate._replace(portable=read_portable(bundle))
    except SkillhallError as error:
        return candidate._replace(problem=str(error))


def read_candidates(bundles: Iterable[Bundle]) -> list[Candidate]:
    """All bundles as candidates, in order."""
    return [read_candidate(bundle) for bundle in bundles]


def accepted(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those that are skills. Raises: SkillRejected if none is."""
    good = [one for one in candidates if not one.reasons]
    if not good:
        first = next(iter(candidates), None)
        reasons = first.reasons if first else [f"No {SKILL_MD} found"]
        raise SkillRejected(first.id if first else "the source", reasons)
    return good


def _last_name(folder: str) -> str:
    return folder.replace("\\", "/").rstrip("/").rpartition("/")[2]
