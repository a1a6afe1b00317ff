"""Policy files: which skills agents may use, as TOML.

```toml
version = 1
trust = { project = "hold", changed = "hold" }        # load, warn, ask, hold or block
require = [{ source = "github.com/acme/*", signer = ["acme-ci"] }]
deny = [{ risk = "L3", unless_signer = ["acme-ci"] }, { name = "miner" }]
allow = ["sha256:…"]

stale = "hold"                                        # or warn: if a list of revocations expires
review = { L3 = "90d" }                               # approvals are listed when due

[[signer]]
name = "acme-ci"
key = "acme.pub"
approves = true

[[server]]
url = "https://skills.acme.org"                       # asked for its revocations
signer = ["acme-ci"]
```
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from skillhall._internal.policy.trust.trust_action import TrustAction
from skillhall._internal.skill.risks.levels import RiskLevel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.config_file.nodes import ConfigNode

VERSION = 1
_LOOPBACK_URLS = ("http://127.0.0.1:", "http://localhost:", "http://[::1]:")
_DIGEST = re.compile("sha256:[0-9a-f]{64}")
_DAYS = re.compile("([1-9][0-9]{0,3})d")
_STALE_ACTIONS = (TrustAction.WARN, TrustAction.HOLD)
_E = TypeVar("_E", bound=StrEnum)
_KEYS = (
    "version",
    "trust",
    "require",
    "deny",
    "allow",
    "signer",
    "server",
    "stale",
    "review",
)


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
    identity: str = ""  # pattern, such as the URL of a CI workflow
    issuer: str = ""
    trusted_root: str = ""  # path of a private Sigstore's root, relative to the policy file


class ServerEntry(NamedTuple):
    """A server whose revocations apply. With signers, one of them must sign its list."""

    url: str
    signers: tuple[str, ...] = ()


class PolicyFile(NamedTuple):
    """The rules of one file. `None` keeps the action of the level below."""

    project: TrustAction | None = None  # for skills found in a project
    changed: TrustAction | None = None  # for skills that changed after they were approved
    requirements: tuple[Requirement, ...] = ()
    denials: tuple[Denial, ...] = ()
    allowed: frozenset[str] = frozenset()  # digests
    signers: tuple[SignerEntry, ...] = ()
    servers: tuple[ServerEntry, ...] = ()
    holds_stale: bool = False  # whether skills are held once a list of revocations has expired
    review_days: Mapping[RiskLevel, int] = {}  # until an approval is due for a review


def parse_policy(document: ConfigNode) -> PolicyFile:
    """Parse the document of a policy file. Raises: ConfigInvalid."""
    document.reject_unknown_keys(_KEYS)
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
        servers=tuple(map(_read_server, document.child("server").as_list())),
        holds_stale=_read_stale(document.child("stale")) is TrustAction.HOLD,
        review_days=_read_review_days(document.child("review")),
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
    texts = ("key", "certificate", "subject", "identity", "issuer", "trusted_root")
    node.reject_unknown_keys(("name", "approves", *texts))
    signer = SignerEntry(
        node.child("name").require().as_string(),
        node.child("approves").as_bool(),
        *(node.child(key).as_string() for key in texts),
    )
    kinds = (signer.key, signer.certificate, signer.identity)
    if sum(map(bool, kinds)) != 1:
        raise node.build_requirement_error("have one of 'key', 'certificate' and 'identity'")
    # An issuer has many certificates and identities: only the name in them tells who signed.
    if bool(signer.certificate) != bool(signer.subject):
        raise node.build_requirement_error("have 'certificate' and 'subject' together")
    if bool(signer.identity) != bool(signer.issuer):
        raise node.build_requirement_error("have 'identity' and 'issuer' together")
    if signer.trusted_root and not signer.identity:
        raise node.build_requirement_error("have 'trusted_root' only with 'identity'")
    return signer


def _read_server(node: ConfigNode) -> ServerEntry:
    node.reject_unknown_keys(("url", "signer"))
    url, signers = node.child("url").require(), node.child("signer").as_strings() or ()
    text = url.as_string().rstrip("/")
    # Without a signature, only TLS tells who sent the list.
    is_safe = text.startswith(("https://", *_LOOPBACK_URLS))
    if not is_safe and not (signers and text.startswith("http://")):
        raise url.build_requirement_error("start with https://, or have a 'signer'")
    return ServerEntry(text, signers)


def _read_stale(node: ConfigNode) -> TrustAction | None:
    action = _read_choice(node, TrustAction)
    if action is not None and action not in _STALE_ACTIONS:
        raise node.build_requirement_error(f"be one of: {', '.join(_STALE_ACTIONS)}")
    return action


def _read_review_days(node: ConfigNode) -> dict[RiskLevel, int]:
    if node.value is None:
        return {}
    node.reject_unknown_keys([*RiskLevel])
    days = {}
    for level in RiskLevel:
        child = node.child(level)
        if child.value is not None:
            match = _DAYS.fullmatch(child.as_string())
            if match is None:
                raise child.build_requirement_error("be a number of days, such as 90d")
            days[level] = int(match[1])
    return days


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
