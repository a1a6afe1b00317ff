"""Requirements of policies for skills from a source, checked before they are written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.installer.locked_sources import normalize_source
from skillhall._internal.skill.finding import Code, Finding

if TYPE_CHECKING:
    from skillhall._internal.catalog.trust.policy_loader import LoadedPolicies
    from skillhall._internal.settings import Settings
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.sources.base import Ref


class InstallRules(NamedTuple):
    """What policies require of skills from one source."""

    loaded: LoadedPolicies | None = None  # `None` if there are no policy files
    source: str = ""

    def check(self, bundle: Bundle) -> Iterator[Finding]:
        """Yield a finding if the skill does not meet a requirement."""
        if self.loaded is None:
            return
        # Most machines have no policy files.
        from skillhall._internal.policy.trust.policies import KnownEvidence  # noqa: PLC0415

        evidence = KnownEvidence(self.source, signature=self.loaded.check_signature(bundle))
        problem = self.loaded.problem or self.loaded.policies.find_unmet_requirement(evidence)
        if problem:
            yield Finding(Code.POLICY_UNMET, f"a policy rejects the skill: {problem}")

    def find_signer(self, bundle: Bundle) -> str:
        """Return who signed the skill; "" if no known signer did."""
        return "" if self.loaded is None else self.loaded.check_signature(bundle).format_signers()


NO_RULES = InstallRules()


def load_install_rules(reference: Ref, settings: Settings) -> InstallRules:
    """Load the policies for skills from a source."""
    if not settings.has_policy:
        return NO_RULES
    from skillhall._internal.catalog.trust.policy_loader import load_policies  # noqa: PLC0415

    return InstallRules(load_policies(settings.policy_files), normalize_source(reference, settings))
