"""Our verifier and the reference tool of OpenSSF Model Signing agree about signed skills."""

import pytest

from skillhall._internal.signing import keys
from skillhall._internal.signing.signers import KeySigner
from skillhall._internal.skill.signatures.file_check import read_signature
from skillhall._internal.skill.signatures.statement import SignatureInvalid
from tests.support.bundles import make_bundle
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
