"""Signatures of workflows in the public Sigstore, verified without network.

`tests/support/record_identities.py` and `public_skills.py` say where they come from.
"""

import json

import pytest

from skillhall._internal.signing.signers import IdentitySigner
from skillhall._internal.skill.signatures.file_check import read_signature
from skillhall._internal.skill.signatures.sigstore_bundle import parse_bundle
from skillhall._internal.skill.signatures.statement import SignatureInvalid
from tests.support import public_skills
from tests.support.bundles import make_bundle
from tests.support.public_skills import FILES_DIFFER, REJECTED, find_verdict
from tests.support.record_identities import RECORDED
from tests.support.signatures import edit_signature, edit_statement
from tests.support.signed_skills import (
    DAMAGES,
    KEYLESS_SHAPES,
    RECORDED_KEYLESS,
    UNSIGNED_FILES,
    make_cases,
    read_recording,
    render_signatures,
)
from tests.support.sigstore_instance import GITHUB, WORKFLOW, SigstoreInstance

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


# Skills that the reference tool of OpenSSF Model Signing signed with the identity of a workflow, in
# the Sigstore of `tests/support/record_keyless_skills.py`.
KEYLESS = read_recording(RECORDED_KEYLESS)
KEYLESS_CASES = make_cases(render_signatures(KEYLESS))


def knows(case: str, identity: str = WORKFLOW, issuer: str = GITHUB) -> bool:
    root = json.dumps(KEYLESS["trusted_root"]).encode()
    signer = IdentitySigner("acme-ci", identity, issuer, root, "root.json")
    try:
        return signer.accepts(read_signature(make_bundle(KEYLESS_CASES[case])))
    except SignatureInvalid:
        return False


@pytest.mark.parametrize("case", [*KEYLESS_SHAPES, *DAMAGES])
def test_verdict_on_a_keyless_skill_is_that_of_the_reference_tool(case: str) -> None:
    assert KEYLESS["accepted"][case] is (case in KEYLESS_SHAPES)
    assert knows(case) is KEYLESS["accepted"][case]


@pytest.mark.parametrize("case", UNSIGNED_FILES)
def test_unsigned_file_in_a_keyless_skill_is_rejected(case: str) -> None:
    assert KEYLESS["accepted"][case]
    assert not knows(case)


@pytest.mark.parametrize(
    ("identity", "issuer", "is_known"),
    [
        (WORKFLOW.replace("@refs/tags/v1", "@refs/tags/*"), GITHUB, True),
        (WORKFLOW.replace("@refs/tags/v1", "@refs/heads/*"), GITHUB, False),
        (WORKFLOW.replace("@refs/tags/v1", "@refs/tags/v2*"), GITHUB, False),
        (WORKFLOW.replace("acme", "evil"), GITHUB, False),
        (WORKFLOW, GITLAB, False),
    ],
)
def test_keyless_skill_is_of_its_identity_alone(identity: str, issuer: str, is_known: bool) -> None:
    assert knows("script", identity, issuer) is is_known


def test_reference_tool_accepts_our_keyless_signatures() -> None:
    assert KEYLESS["accepted_of_ours"] == dict.fromkeys(KEYLESS_SHAPES, True)


# Models and skills that their authors and their workflows signed in the public Sigstore.
IBM = "https://sigstore.verify.ibm.com/oauth2"
AUTHOR = IdentitySigner("author", "*@us.ibm.com", IBM)
SIGN_SKILLS = (
    "https://github.com/akunzai/agent-skills/.github/workflows/sign-skills.yml@refs/heads/main"
)
PERIOP = (
    "https://github.com/tijoseymathew/periop-companion/.github/workflows/skills.yml@refs/heads/main"
)
PUBLIC_SIGNERS = {
    "skill-aube": IdentitySigner("aube", SIGN_SKILLS, GITHUB),
    "skill-periop": IdentitySigner("periop", PERIOP, GITHUB),
}
PUBLIC_CASES = public_skills.make_keyless_cases()


@pytest.mark.parametrize("case", PUBLIC_CASES)
def test_verdict_on_a_public_keyless_signature_is_that_of_the_reference_tool(case: str) -> None:
    verdict = find_verdict(PUBLIC_SIGNERS.get(case, AUTHOR), PUBLIC_CASES[case])
    assert verdict == public_skills.RECORDING["keyless_verdicts"][case]


@pytest.mark.parametrize(
    ("case", "identity", "issuer", "verdict"),
    [
        ("skill-aube", SIGN_SKILLS.replace("main", "*"), GITHUB, FILES_DIFFER),
        ("skill-aube", "https://github.com/akunzai/*", GITHUB, FILES_DIFFER),
        ("skill-aube", SIGN_SKILLS.replace("heads/main", "tags/*"), GITHUB, REJECTED),
        ("skill-aube", SIGN_SKILLS.replace("main", "release"), GITHUB, REJECTED),
        ("skill-aube", SIGN_SKILLS.replace("sign-skills", "tests"), GITHUB, REJECTED),
        ("skill-aube", SIGN_SKILLS, GITLAB, REJECTED),
        ("skill-aube", PERIOP, GITHUB, REJECTED),
        ("skill-periop", PERIOP.replace("heads/main", "tags/v1"), GITHUB, REJECTED),
        ("model-1.1.0", "*@example.com", IBM, REJECTED),
        ("model-1.1.0", "*@us.ibm.com", GITHUB, REJECTED),
        ("model-0.3.1", "*@us.ibm.com.example.com", IBM, REJECTED),
    ],
)
def test_public_keyless_signature_is_of_its_identity_alone(
    case: str, identity: str, issuer: str, verdict: str
) -> None:
    assert find_verdict(IdentitySigner("ci", identity, issuer), PUBLIC_CASES[case]) == verdict
