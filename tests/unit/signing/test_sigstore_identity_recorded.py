"""Signatures of workflows in the public Sigstore, verified without network.

`tests/support/record_identities.py` says where they come from.
"""

import json

import pytest

from skillhall._internal.signing.signers import IdentitySigner
from skillhall._internal.skill.signatures.sigstore_bundle import parse_bundle
from skillhall._internal.skill.signatures.statement import SignatureInvalid
from tests.support.record_identities import RECORDED
from tests.support.signatures import edit_signature, edit_statement
from tests.support.sigstore_instance import GITHUB, SigstoreInstance

GITLAB = "https://gitlab.com"
RELEASE = (
    "https://github.com/trailofbits/pypi-attestations/.github/workflows/release.yml"
    "@refs/tags/v0.0.19"
)
PIPELINE = "https://gitlab.com/facutuesca/gitlab-oidc-project//.gitlab-ci.yml@refs/heads/main"
TAGS = RELEASE.removesuffix("v0.0.19") + "*"


def accepts(name: str, identity: str, issuer: str, root: bytes = b"") -> bool:
    signer = IdentitySigner("acme-ci", identity, issuer, root, "root.json")
    return signer.accepts(parse_bundle((RECORDED / f"{name}.json").read_bytes()))


@pytest.mark.parametrize(
    ("name", "identity", "issuer"),
    [
        ("github-release", RELEASE, GITHUB),
        ("github-release", TAGS, GITHUB),
        ("github-provenance", "https://github.com/trailofbits/*/release.yml@refs/tags/v*", GITHUB),
        ("gitlab", PIPELINE, GITLAB),
        ("gitlab", "https://gitlab.com/facutuesca/*@refs/heads/main", GITLAB),
    ],
)
def test_workflow_is_known_by_its_identity(name: str, identity: str, issuer: str) -> None:
    assert accepts(name, identity, issuer)


@pytest.mark.parametrize(
    ("name", "identity", "issuer"),
    [
        ("github-release", RELEASE.replace("trailofbits", "acme"), GITHUB),
        ("github-release", RELEASE.replace("release.yml", "tests.yml"), GITHUB),
        ("github-release", TAGS.replace("tags", "heads"), GITHUB),
        ("github-release", TAGS.replace("*", "v1.*"), GITHUB),
        ("github-release", RELEASE.replace("v0.0.19", "v0.0.1"), GITHUB),
        ("github-release", RELEASE, GITLAB),
        ("gitlab", PIPELINE, GITHUB),
        ("gitlab", PIPELINE.replace("main", "release"), GITLAB),
    ],
)
def test_other_identity_issuer_or_tag_is_not_accepted(
    name: str, identity: str, issuer: str
) -> None:
    assert not accepts(name, identity, issuer)


def test_private_sigstore_does_not_know_the_public_one() -> None:
    assert not accepts("github-release", "*", GITHUB, SigstoreInstance().trusted_root)


def test_edited_statement_of_a_workflow_is_broken() -> None:
    data = (RECORDED / "github-release.json").read_bytes()
    edited = edit_statement(data, lambda one: one["subject"][0].update(name="evil"))
    with pytest.raises(SignatureInvalid):
        IdentitySigner("acme-ci", TAGS, GITHUB).accepts(parse_bundle(edited))


def test_certificate_of_another_workflow_is_not_accepted() -> None:
    other = json.loads((RECORDED / "gitlab.json").read_bytes())["verificationMaterial"]
    data = (RECORDED / "github-release.json").read_bytes()
    swapped = edit_signature(
        data, lambda one: one["verificationMaterial"].update(certificate=other["certificate"])
    )
    signer = IdentitySigner("acme-ci", "*", GITLAB)
    with pytest.raises(SignatureInvalid):
        signer.accepts(parse_bundle(swapped))


def test_verification_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    assert accepts("github-release", TAGS, GITHUB)
    assert capfd.readouterr() == ("", "")
