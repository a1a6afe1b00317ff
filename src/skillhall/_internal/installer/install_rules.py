"""Requirements of policies for skills from a source, checked before they are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.installer.locked_sources import normalize_source
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.storage.revocation_store import RevocationStore

if TYPE_CHECKING:
    from skillhall._internal.catalog.trust.policy_loader import LoadedPolicies
    from skillhall._internal.settings import Settings
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.sources.base import Ref


class InstallRules(NamedTuple):
    """The requirements of policies for skills from one source."""

    loaded: LoadedPolicies | None = None  # `None` if there are no policy files
    source: str = ""
    revoked: Mapping[str, str] = {}  # reasons by digest

    def check(self, bundle: Bundle) -> Iterator[Finding]:
        """Yield a finding if the skill is revoked, or does not meet a requirement."""
        if self.revoked and (reason := self.revoked.get(bundle.digest())):
            yield Finding(Code.REVOKED, f"it is revoked: {reason}")
        if self.loaded is None:
            return
        if problem := self.loaded.find_unmet_requirement(bundle, self.source):
            yield Finding(Code.POLICY_UNMET, f"a policy rejects the skill: {problem}")

    def find_signer(self, bundle: Bundle) -> str:
        """Return who signed the skill; "" if no known signer did."""
        return "" if self.loaded is None else self.loaded.check_signature(bundle).format_signers()


NO_RULES = InstallRules()


def load_install_rules(reference: Ref, settings: Settings) -> InstallRules:
    """Load the policies for skills from a source."""
    rules = NO_RULES
    if settings.has_revocations:
        revoked = RevocationStore(settings.data_directory).read().reasons
        rules = rules._replace(revoked=revoked)
    if not settings.has_policy:
        return rules
    # Most machines have no policy files, and the import takes 7 ms of CPU.
    from skillhall._internal.catalog.trust.policy_loader import load_policies  # noqa: PLC0415

    loaded, source = load_policies(settings.policy_files), normalize_source(reference, settings)
    return rules._replace(loaded=loaded, source=source)
