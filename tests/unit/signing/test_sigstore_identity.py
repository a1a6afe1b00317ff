"""Signatures with Sigstore identities, of a private Sigstore and without network."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from skillhall._internal.signing.signers import IdentitySigner
from skillhall._internal.skill.signatures.sigstore_bundle import parse_bundle
from skillhall._internal.skill.signatures.statement import SignatureInvalid, build_statement
from skillhall.errors import ConfigInvalid
from tests.support.signatures import edit_signature, edit_statement, make_signed_bundle
from tests.support.sigstore_instance import GITHUB, WORKFLOW, SigstoreInstance

INSTANCE = SigstoreInstance()
STATEMENT = build_statement("pdf", {"SKILL.md": "0" * 64})
SIGNED = json.dumps(INSTANCE.sign(STATEMENT)).encode()
TAGS = WORKFLOW.removesuffix("v1") + "*"


def make_signer(identity: str = TAGS, issuer: str = GITHUB) -> IdentitySigner:
    return IdentitySigner("acme-ci", identity, issuer, INSTANCE.trusted_root, "root.json")


@pytest.mark.parametrize(
    "identity", [WORKFLOW, TAGS, "https://github.com/acme/*", "*/release.yml@refs/tags/v*"]
)
def test_identity_is_accepted_by_its_pattern(identity: str) -> None:
    assert make_signer(identity).accepts(parse_bundle(SIGNED))


@pytest.mark.parametrize(
    ("identity", "issuer"),
    [
        (TAGS.replace("acme", "evil"), GITHUB),
        (TAGS.replace("tags", "heads"), GITHUB),
        (TAGS.replace("*", "v2*"), GITHUB),
        (TAGS.replace("https", "HTTPS"), GITHUB),
        (WORKFLOW.removesuffix("1"), GITHUB),
        (WORKFLOW.replace("release.yml", "release-yml"), GITHUB),
        (TAGS, "https://accounts.example.com"),
        (TAGS, GITHUB + "/"),
    ],
)
def test_another_identity_issuer_or_tag_is_not_accepted(identity: str, issuer: str) -> None:
    assert not make_signer(identity, issuer).accepts(parse_bundle(SIGNED))


def test_person_is_accepted_by_their_address() -> None:
    bundle = json.dumps(INSTANCE.sign(STATEMENT, "dev1@acme.org", "https://login.acme.org"))
    signer = make_signer("dev1@acme.org", "https://login.acme.org")
    assert signer.accepts(parse_bundle(bundle.encode()))


def test_edited_statement_is_broken() -> None:
    edited = edit_statement(SIGNED, lambda one: one["subject"][0].update(name="other"))
    with pytest.raises(SignatureInvalid):
        make_signer().accepts(parse_bundle(edited))


def _entry(document: dict[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = document["verificationMaterial"]["tlogEntries"][0]
    return entry


@pytest.mark.parametrize(
    "edit",
    [
        lambda one: one["verificationMaterial"].update(tlogEntries=[]),
        lambda one: _entry(one).pop("inclusionProof"),
        lambda one: _entry(one).pop("inclusionPromise"),
        lambda one: _entry(one).update(integratedTime="1"),
        lambda one: _entry(one)["inclusionProof"].update(rootHash="AAAA"),
        lambda one: _entry(one).update(canonicalizedBody="e30="),
        lambda one: _entry(one).update(
            _entry(INSTANCE.sign(build_statement("other", {"SKILL.md": "1" * 64})))
        ),
    ],
)
def test_signature_that_is_not_in_the_log_is_not_accepted(
    edit: Callable[[Any], object],
) -> None:
    assert not make_signer().accepts(parse_bundle(edit_signature(SIGNED, edit)))


def test_identity_of_another_sigstore_is_not_accepted() -> None:
    foreign = json.dumps(SigstoreInstance().sign(STATEMENT)).encode()
    assert not make_signer().accepts(parse_bundle(foreign))


def test_public_sigstore_does_not_know_a_private_one() -> None:
    assert not IdentitySigner("acme-ci", TAGS, GITHUB).accepts(parse_bundle(SIGNED))


def test_signature_with_a_key_has_no_identity() -> None:
    key_signed = make_signed_bundle().files["skill.oms.sig"].read()
    assert not make_signer("*", GITHUB).accepts(parse_bundle(key_signed))


def test_malformed_certificate_is_not_accepted() -> None:
    edited = edit_signature(
        SIGNED,
        lambda one: one["verificationMaterial"].update(certificate={"rawBytes": "AAAA"}),
    )
    assert not make_signer().accepts(parse_bundle(edited))


@pytest.mark.parametrize("root", [b"{", b"{}", b"[]", b"\xff"])
def test_malformed_trusted_root_is_named(root: bytes) -> None:
    signer = IdentitySigner("acme-ci", TAGS, GITHUB, root, "root.json")
    with pytest.raises(ConfigInvalid, match=r"root\.json"):
        signer.accepts(parse_bundle(SIGNED))
