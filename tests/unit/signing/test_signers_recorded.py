"""Our verifier and the reference tool of OpenSSF Model Signing agree about signed skills."""

from base64 import b64decode

import pytest
from cryptography import x509

from skillhall._internal.signing import keys
from skillhall._internal.signing.signers import CertificateSigner, KeySigner
from skillhall._internal.skill.signatures.file_check import read_signature
from skillhall._internal.skill.signatures.statement import SignatureInvalid
from tests.support import public_skills
from tests.support.bundles import make_bundle
from tests.support.public_skills import FILES_DIFFER, REJECTED, find_verdict
from tests.support.signed_skills import (
    DAMAGES,
    SHAPES,
    UNSIGNED_FILES,
    make_cases,
    read_recording,
    render_signatures,
)

RECORDING = read_recording()
SIGNER = KeySigner("acme", keys.load_public_key(RECORDING["key"].encode(), "recorded.pub"))
CASES = make_cases(render_signatures(RECORDING))


def accepts(case: str) -> bool:
    try:
        return SIGNER.accepts(read_signature(make_bundle(CASES[case])))
    except SignatureInvalid:
        return False


@pytest.mark.parametrize("case", [*SHAPES, *DAMAGES])
def test_verdict_is_that_of_the_reference_tool(case: str) -> None:
    assert RECORDING["accepted"][case] is (case in SHAPES)
    assert accepts(case) is RECORDING["accepted"][case]


@pytest.mark.parametrize("case", UNSIGNED_FILES)
def test_files_that_the_format_leaves_out_are_rejected(case: str) -> None:
    assert RECORDING["accepted"][case]
    assert not accepts(case)


def test_reference_tool_accepts_our_signatures() -> None:
    assert RECORDING["accepted_of_ours"] == dict.fromkeys(SHAPES, True)


# Skills that NVIDIA published.
PUBLIC = public_skills.RECORDING
PUBLIC_CASES = public_skills.make_cases()
ROOT = x509.load_der_x509_certificate(b64decode(PUBLIC["certificates"][-1]))
SUBJECT = "CN=NVIDIA Agent Skills Signing 001,O=NVIDIA Corporation,C=US"
NVIDIA = CertificateSigner("nvidia", [ROOT], SUBJECT)


@pytest.mark.parametrize("case", PUBLIC_CASES)
def test_verdict_on_a_public_skill_is_that_of_the_reference_tool(case: str) -> None:
    assert find_verdict(NVIDIA, PUBLIC_CASES[case]) == PUBLIC["verdicts"][case]


def test_signatures_of_public_skills_are_valid() -> None:
    verdicts = {PUBLIC["verdicts"][name] for name in PUBLIC["signatures"]}
    assert (len(PUBLIC["signatures"]), verdicts) == (30, {FILES_DIFFER})


def test_ten_damaged_signatures_of_a_public_skill_are_rejected() -> None:
    assert [*PUBLIC["verdicts"].values()].count(REJECTED) == 10


def test_public_skill_is_of_its_subject_and_root_alone() -> None:
    files = PUBLIC_CASES["NVIDIA/cuopt routing-formulation"]
    other_subject = CertificateSigner("evil", [ROOT], SUBJECT.replace("001", "002"))
    other_root = CertificateSigner("evil", [], SUBJECT)
    assert find_verdict(other_subject, files) == find_verdict(other_root, files) == REJECTED
