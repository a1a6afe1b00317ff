"""Evidence about a skill for policies: its source, risk level and signer."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING

from skillhall._internal.catalog.skill_content import ALL_FILES_SCAN, with_bundle
from skillhall._internal.catalog.trust.policy_loader import NO_POLICIES
from skillhall._internal.policy.trust.policies import KnownEvidence, SignatureCheck
from skillhall._internal.skill.approved_files import ApprovedFiles
from skillhall._internal.skill.frontmatter_locator import is_skill_md
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.skill.risks.levels import RiskLevel, rate_risk
from skillhall._internal.skill.risks.scanner import scan_bundle
from skillhall._internal.skill.signatures.statement import SIGNATURE_FILE
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillhall._internal.catalog.catalog import CatalogSkill
    from skillhall._internal.catalog.trust.file_hashes import HashedFiles
    from skillhall._internal.catalog.trust.policy_loader import LoadedPolicies
    from skillhall._internal.catalog.trust.state_cache import TrustCacheFile
    from skillhall._internal.skill.bundle import Bundle


_MAX_CACHED = 10_000  # risk levels of a project


class EvidenceFinder:
    """Finds evidence about skills; risk levels are cached on disk, by content."""

    def __init__(
        self,
        loaded: LoadedPolicies | None,
        risks_file: TrustCacheFile | None,
        open_sources: Callable[[], Callable[[str], str]],
    ) -> None:
        """Create a finder.

        `open_sources` returns a function that maps a folder to a source.
        """
        self._loaded = loaded
        self._risks_file = risks_file
        self._open_sources = open_sources
        self._risks: dict[str, str] | None = None
        self._is_changed = False

    def examine(self, skill: CatalogSkill, hashed: HashedFiles) -> FoundEvidence:
        """Return evidence about the hashed files, computed on access."""
        return FoundEvidence(self, skill, hashed)

    def examine_bundle(self, bundle: Bundle, source: str) -> KnownEvidence:
        """Return the evidence about files in memory. Raises: SkillhallError."""
        main_file = next((path for path in sorted(bundle.files) if is_skill_md(path)), "")
        return KnownEvidence(source, rate_bundle(main_file, bundle), self.check_signature(bundle))

    def save(self) -> None:
        """Write new risk levels to the cache; problems are ignored."""
        if self._is_changed and self._risks_file is not None:
            self._is_changed = False
            newest = [*(self._risks or {}).items()][-_MAX_CACHED:]
            self._risks_file.save(dict(newest))

    @cached_property
    def find_source(self) -> Callable[[str], str]:
        """The function that maps the folder of a skill to its source; opened on first use."""
        return self._open_sources()

    def check_signature(self, bundle: Bundle) -> SignatureCheck:
        """Return who signed the files of a skill. Raises: SkillhallError."""
        return (self._loaded or NO_POLICIES).check_signature(bundle)

    def find_risk(self, hashed: HashedFiles, rate: Callable[[], RiskLevel]) -> RiskLevel:
        """Return the risk level of files; `rate` computes it. Raises: as `rate`."""
        if self._risks is None:
            self._risks = (self._risks_file and self._risks_file.load()) or {}
        # The digest does not cover execute bits, but the level does.
        executables = sorted(path for path, file in hashed.files.items() if file.executable)
        key = "\0".join((hashed.digest, *executables))
        if key not in self._risks:
            self._risks[key] = rate().value
            self._is_changed = True
        return RiskLevel(self._risks[key])


class FoundEvidence:
    """Evidence about the hashed files of a skill, each fact computed on access."""

    def __init__(self, finder: EvidenceFinder, skill: CatalogSkill, hashed: HashedFiles) -> None:
        # Reading other files than the hashed ones is an error.
        self._skill = skill.with_approved(ApprovedFiles(skill.name, hashed.files, {}))
        self._hashed = hashed
        self._finder = finder

    @cached_property
    def source(self) -> str:
        """Where the skill was installed from; "" if unknown."""
        return self._finder.find_source(self._skill.directory)

    @cached_property
    def risk(self) -> RiskLevel:
        """The risk level; the highest if the files have changed since they were hashed."""
        try:
            return self._finder.find_risk(self._hashed, self._rate)
        except (SkillhallError, OSError):
            return RiskLevel.L3

    @cached_property
    def signature(self) -> SignatureCheck:
        """Who signed the files."""
        if SIGNATURE_FILE not in self._hashed.files:
            return SignatureCheck()
        try:
            return with_bundle(self._skill, ALL_FILES_SCAN, self._finder.check_signature)
        except (SkillhallError, OSError):
            return SignatureCheck(problem="its files cannot be read")

    def _rate(self) -> RiskLevel:
        return with_bundle(self._skill, ALL_FILES_SCAN, partial(rate_bundle, self._skill.file))


def rate_bundle(main_file: str, bundle: Bundle) -> RiskLevel:
    """Return the risk level of the files of a skill. Raises: SkillhallError."""
    file = bundle.files.get(main_file)
    if file is None:  # the bundle exceeds the limits and was not scanned
        return RiskLevel.L3
    front = parse_skill(file.read()).frontmatter
    findings = (*scan_bundle(bundle, front), *bundle.findings)
    return rate_risk(finding.code for finding in findings)
