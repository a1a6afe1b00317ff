"""Policy files: which skills agents may use, as TOML.

```toml
version = 1
trust = { project = "hold", changed = "hold" }        # load, warn, ask, hold or block
require = [{ source = "github.com/acme/*", signer = ["acme-ci"] }]
deny = [{ risk = "L3", unless_signer = ["acme-ci"] }, { name = "miner" }]
allow = ["sha256:…"]

[[signer]]
name = "acme-ci"
key = "acme.pub"
approves = true
```
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from skillhall._internal.policy.trust.risk_level import RiskLevel
from skillhall._internal.policy.trust.trust_action import TrustAction

if TYPE_CHECKING:
    from skillhall._internal.config_file.nodes import ConfigNode

VERSION = 1
_DIGEST = re.compile("sha256:[0-9a-f]{64}")
_E = TypeVar("_E", bound=StrEnum)


class Requirement(NamedTuple):
    """Skills from a source must be signed by one of these signers."""

    source: str  # pattern, such as "github.com/acme/*"
    signers: tuple[str, ...]


class Denial(NamedTuple):
    """Skills that agents may not use: those that match every field that is set."""

    digest: str = ""
    name: str = ""  # pattern
    source: str = ""  # pattern
    risk: RiskLevel | None = None  # this level and higher ones
    unless_signers: tuple[str, ...] = ()


class SignerEntry(NamedTuple):
    """A known signer, by key, by certificate or by Sigstore identity."""

    name: str
    approves: bool = False  # whether skills that it signed count as approved
    key: str = ""  # path of a public key, relative to the policy file
    certificate: str = ""  # path of root certificates, relative to the policy file
    subject: str = ""  # of the signer's certificate
    identity: str = ""
    issuer: str = ""


class PolicyFile(NamedTuple):
    """The rules of one file. `None` keeps the action of the level below."""

    project: TrustAction | None = None  # for skills found in a project
    changed: TrustAction | None = None  # for skills that changed after they were approved
    requirements: tuple[Requirement, ...] = ()
    denials: tuple[Denial, ...] = ()
    allowed: frozenset[str] = frozenset()  # digests
    signers: tuple[SignerEntry, ...] = ()


def parse_policy(document: ConfigNode) -> PolicyFile:
    """Parse the document of a policy file. Raises: ConfigInvalid."""
    document.reject_unknown_keys(("version", "trust", "require", "deny", "allow", "signer"))
    version = document.child("version").require()
    if version.as_positive_int() != VERSION:
        raise version.build_requirement_error(f"be {VERSION}")
    trust = document.child("trust")
    trust.reject_unknown_keys(("project", "changed"))
    is_set = trust.value is not None
    return PolicyFile(
        project=_read_choice(trust.child("project"), TrustAction) if is_set else None,
        changed=_read_choice(trust.child("changed"), TrustAction) if is_set else None,
        requirements=tuple(map(_read_requirement, document.child("require").as_list())),
        denials=tuple(map(_read_denial, document.child("deny").as_list())),
        allowed=frozenset(map(_read_digest, document.child("allow").as_list())),
        signers=_read_signers(document.child("signer")),
    )


def _read_requirement(node: ConfigNode) -> Requirement:
    source, signers = node.child("source").require(), node.child("signer").require()
    node.reject_unknown_keys(("source", "signer"))
    if not (names := signers.as_strings()):
        raise signers.build_requirement_error("name at least one signer")
    return Requirement(source.as_string(), names)


def _read_denial(node: ConfigNode) -> Denial:
    digest = node.child("digest")
    denial = Denial(
        _read_digest(digest) if digest.value is not None else "",
        node.child("name").as_string(),
        node.child("source").as_string(),
        _read_choice(node.child("risk"), RiskLevel),
        node.child("unless_signer").as_strings() or (),
    )
    node.reject_unknown_keys(("digest", "name", "source", "risk", "unless_signer"))
    if not any(denial[:4]):  # it would deny everything
        raise node.build_requirement_error("have a 'digest', 'name', 'source' or 'risk'")
    return denial


def _read_signers(node: ConfigNode) -> tuple[SignerEntry, ...]:
    signers: dict[str, SignerEntry] = {}
    for entry in node.as_list():
        signer = _read_signer(entry)
        if signer.name in signers:
            raise entry.child("name").build_requirement_error("be unique")
        signers[signer.name] = signer
    return tuple(signers.values())


def _read_signer(node: ConfigNode) -> SignerEntry:
    texts = ("key", "certificate", "subject", "identity", "issuer")
    node.reject_unknown_keys(("name", "approves", *texts))
    signer = SignerEntry(
        node.child("name").require().as_string(),
        node.child("approves").as_bool(),
        *(node.child(key).as_string() for key in texts),
    )
    kinds = (signer.key, signer.certificate, signer.identity)
    if sum(map(bool, kinds)) != 1:
        raise node.build_requirement_error("have one of 'key', 'certificate' and 'identity'")
    # Many have a certificate or an identity of the same issuer: the name in it tells who signed.
    if bool(signer.certificate) != bool(signer.subject):
        raise node.build_requirement_error("have 'certificate' and 'subject' together")
    if bool(signer.identity) != bool(signer.issuer):
        raise node.build_requirement_error("have 'identity' and 'issuer' together")
    return signer


def _read_digest(node: ConfigNode) -> str:
    digest = node.as_string()
    if not _DIGEST.fullmatch(digest):
        raise node.build_requirement_error("be a digest: sha256: and 64 hexadecimal digits")
    return digest


def _read_choice(node: ConfigNode, choices: type[_E]) -> _E | None:
    if node.value is None:
        return None
    try:
        return choices(node.as_string())
    except ValueError:
        raise node.build_requirement_error(f"be one of: {', '.join(choices)}") from None
