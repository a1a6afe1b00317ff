"""Signatures and requirements of policies for new skills, checked before they are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.catalog.trust.policy_loader import (
    NO_POLICIES,
    LoadedPolicies,
    load_policies,
)
from skillhall._internal.installer.locked_sources import normalize_source
from skillhall._internal.policy.effects import Effect
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.policy.trust.policies import UNKNOWN_KEY, KnownEvidence, SignatureStatus
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.signatures.statement import SIGNATURE_FILE
from skillhall._internal.storage.revocation_store import RevocationStore
from skillhall.errors import SkillRejected

if TYPE_CHECKING:
    from skillhall._internal.policy.effects import LoadPolicy
    from skillhall._internal.policy.trust.policies import SignatureCheck
    from skillhall._internal.settings import Settings
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.sources.base import Ref

_BROKEN_HINT = (
    "get the skill from its author again; if you know why it is broken, accept it with --unsigned"
)


class CheckedSignature(NamedTuple):
    """Result of checking the signature of a new skill."""

    signer: str = ""  # names of known signers
    is_ignored: bool = False  # it is broken, and the user accepts the skill as unsigned
    note: str = ""  # for the user
    status: str = ""  # a `SignatureStatus`; "" if there is no signature


NO_SIGNATURE = CheckedSignature()


class InstallRules(NamedTuple):
    """The checks of new skills from one source."""

    loaded: LoadedPolicies | None = None  # `None` if there are no policy files
    source: str = ""
    accepts_broken: bool = False  # whether a broken signature counts as none
    revoked: Mapping[str, str] = {}  # reasons by digest

    def check(self, bundle: Bundle) -> Iterator[Finding]:
        """Yield findings about a revocation, the signature, or an unmet requirement."""
        if self.revoked and (reason := self.revoked.get(bundle.digest())):
            yield Finding(Code.REVOKED, f"it is revoked: {reason}")
        if self.loaded is None and SIGNATURE_FILE not in bundle.files:
            return
        signature = self._check_signature(bundle)
        if signature.status is SignatureStatus.BROKEN:
            message = f"the {signature.describe()}"
            yield Finding(Code.SIGNATURE_BROKEN, message, hint=_BROKEN_HINT, path=SIGNATURE_FILE)
        elif signature.shown_status is SignatureStatus.UNKNOWN:
            yield Finding(Code.SIGNATURE_UNKNOWN, f"it is {UNKNOWN_KEY}", path=SIGNATURE_FILE)
        if self.loaded is not None:
            evidence = KnownEvidence(self.source, signature=signature)
            problem = self.loaded.problem or self.loaded.policies.find_unmet_requirement(evidence)
            if problem:
                yield Finding(Code.POLICY_UNMET, f"a policy rejects the skill: {problem}")

    def inspect_signature(self, bundle: Bundle) -> CheckedSignature:
        """Return what to record about the signature of an accepted skill."""
        if SIGNATURE_FILE not in bundle.files:
            return NO_SIGNATURE
        signature = self._check_signature(bundle)
        if signature.status is SignatureStatus.BROKEN:
            note = "its signature is broken; treated as unsigned"
            return CheckedSignature("", is_ignored=True, note=note, status=signature.status)
        signers, status = signature.format_signers(), signature.shown_status
        return CheckedSignature(signers, note=signature.describe(), status=status)

    def require_accepted(self, name: str, bundle: Bundle) -> CheckedSignature:
        """Return what to record about the signature. Raises: SkillRejected."""
        judged = self.load_policy.judge(self.check(bundle))
        if problems := [one.message for one in judged if one.effect is Effect.REJECT]:
            raise SkillRejected(name, problems)
        return self.inspect_signature(bundle)

    def describe_signature(self, bundle: Bundle) -> str:
        """Return who signed the files of a signed skill, or why the signature is broken."""
        return self._check_signature(bundle).describe()

    @property
    def load_policy(self) -> LoadPolicy:
        """The effects of findings about new skills."""
        policy = LENIENT.load_policy
        return policy.warn_about(Code.SIGNATURE_BROKEN) if self.accepts_broken else policy

    def _check_signature(self, bundle: Bundle) -> SignatureCheck:
        return (self.loaded or NO_POLICIES).check_signature(bundle)


NO_RULES = InstallRules()


def load_install_rules(
    reference: Ref | None, settings: Settings, *, accepts_broken: bool = False
) -> InstallRules:
    """Load the rules for skills from a source, which is unknown for uploads."""
    rules = InstallRules(accepts_broken=accepts_broken)
    if settings.has_revocations:
        revoked = RevocationStore(settings.data_directory).read().reasons
        rules = rules._replace(revoked=revoked)
    if not settings.has_policy:
        return rules
    source = "" if reference is None else normalize_source(reference, settings)
    return rules._replace(loaded=load_policies(settings.policy_files), source=source)
