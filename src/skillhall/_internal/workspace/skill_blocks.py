"""Conversion of bundles to block contents, with findings."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

from skillhall._internal.policy.effects import Effect
from skillhall._internal.policy.profiles import SKILL_IMPORT
from skillhall._internal.skill.bundle import Bundle, RelativePath, SkillFile
from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.frontmatter_locator import SKILL_MD, is_skill_md
from skillhall._internal.skill.parsed import Frontmatter
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.skill.risks.scanner import scan_bundle
from skillhall._internal.skill.token_count import estimate_tokens
from skillhall._internal.storage.records import SkillOrigin, Zone
from skillhall._internal.workspace.block_types import SKILL_TYPE
from skillhall._internal.workspace.session_archive import PortableSession, read_portable_session
from skillhall._internal.workspace.validation import build_content
from skillhall.errors import SkillhallError, SkillRejected

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.storage.records import BlockContent

LOCAL_SOURCE, UPLOAD_SOURCE, URL_SOURCE = "local", "upload", "url"
_INVALID_PREFIX = "Not a valid SKILL.md: "
_REJECTION_REASONS = {
    Code.NO_FRONTMATTER: f"{_INVALID_PREFIX}missing frontmatter",
    Code.NAME_MISSING: f"{_INVALID_PREFIX}missing required 'name' field",
    Code.FLAT_NAME_MISSING: f"{_INVALID_PREFIX}missing required 'name' field",
}


class Provenance(NamedTuple):
    """Where imported skills come from."""

    source_type: str  # local, upload or url
    source_ref: str


class BlockCandidate(NamedTuple):
    """A skill that may be imported as a block."""

    id: str  # the folder name
    name: str
    description: str
    body: str
    tokens: int  # estimated
    findings: tuple[JudgedFinding, ...]
    portable_session: PortableSession | None = None  # if the bundle is an exported session
    error: str = ""  # why the bundle cannot be read or used
    local_path: str = ""  # of the skill's folder, if it was scanned

    @property
    def reasons(self) -> list[str]:
        """Return the reasons for the rejection; empty if the candidate is accepted."""
        rejecting = [judged.finding for judged in self.findings if judged.effect is Effect.REJECT]
        reasons = [_REJECTION_REASONS.get(each.code, each.message) for each in rejecting]
        return [*reasons, self.error] if self.error else reasons

    def reject(self, rule: str) -> Self:
        """Return the candidate, rejected if a rule holds the skill."""
        return self._replace(error=f"A rule holds the skill: {rule}") if rule else self

    def build_contents(self, zone: Zone | None, origin: Provenance) -> list[BlockContent]:
        """Return the content of one block, or of all blocks of an exported session.

        Raises: TextRefused, TooLarge.
        """
        if self.portable_session is not None:
            return [*self.portable_session.contents]
        source_ref = self.local_path or origin.source_ref
        skill = SkillOrigin(self.name, self.description, origin.source_type, source_ref)
        return [build_content(SKILL_TYPE, zone or Zone.STABLE, self.body, skill)]


def read_candidate(bundle: Bundle) -> BlockCandidate:
    """Return the bundle as a candidate; problems become its findings or its `error`."""
    identity = bundle.folder.replace("\\", "/").rstrip("/").rpartition("/")[2] or "skill"
    file = next((bundle.files[path] for path in sorted(bundle.files) if is_skill_md(path)), None)
    if file is None:
        return BlockCandidate(identity, "", "", "", 0, (), error=f"No {SKILL_MD} found")
    parsed = parse_skill(file.read(), identity, SKILL_IMPORT.key_case)
    front = parsed.frontmatter
    name, description = SKILL_IMPORT.name_policy(front.name, front.description, identity)
    findings = (*parsed.findings, *scan_bundle(bundle, front), *bundle.findings)
    judged = SKILL_IMPORT.load_policy.judge(
        finding.with_location(f"{identity}/{finding.path or SKILL_MD}", name)
        for finding in findings
    )
    shown = tuple(finding for finding in judged if finding.effect is not Effect.ACCEPT)
    tokens = estimate_tokens(parsed.body)
    candidate = BlockCandidate(identity, name, description, parsed.body, tokens, shown)
    try:
        return candidate._replace(portable_session=read_portable_session(bundle))
    except SkillhallError as error:
        return candidate._replace(error=str(error))


def find_risks(text: str) -> tuple[JudgedFinding, ...]:
    """Return the warnings about the text of a block, by the rules for imported skills."""
    data = text.encode("utf-8", "replace")
    file = SkillFile(RelativePath.parse(SKILL_MD), len(data), executable=False, read=lambda: data)
    findings = scan_bundle(Bundle("", {SKILL_MD: file}), Frontmatter({}))
    judged = SKILL_IMPORT.load_policy.judge(finding._replace(path="") for finding in findings)
    return tuple(finding for finding in judged if finding.effect is not Effect.ACCEPT)


def filter_accepted(candidates: Sequence[BlockCandidate]) -> list[BlockCandidate]:
    """Return the accepted candidates. Raises: SkillRejected if there are none."""
    accepted = [candidate for candidate in candidates if not candidate.reasons]
    if not accepted:
        first = next(iter(candidates), None)
        reasons = first.reasons if first else [f"No {SKILL_MD} found"]
        raise SkillRejected(first.id if first else "the source", reasons)
    return accepted
