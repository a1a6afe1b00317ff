"""Who signed a skill: keys and certificates."""

from collections.abc import Sequence

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from skillhall._internal.signing import keys
from skillhall._internal.signing.certificates import load_certificates
from skillhall._internal.signing.signer import sign_files
from skillhall._internal.signing.signers import CertificateSigner, KeySigner, Signer
from skillhall._internal.skill.signatures.file_check import read_signature
from skillhall._internal.skill.signatures.sigstore_bundle import SigstoreBundle, parse_bundle
from skillhall._internal.skill.signatures.statement import SIGNATURE_FILE, SignatureInvalid
from skillhall.errors import ConfigInvalid, SkillRejected
from tests.support.bundles import make_bundle
from tests.support.certificates import SUBJECT, Authority, sign_with_certificate
from tests.support.signatures import (
    KEYS,
    RECORDED_FILES,
    RECORDED_KEY,
    RECORDED_SIGNATURE,
    make_signed_bundle,
    sign,
)


def find_signer(bundle: SigstoreBundle, signers: Sequence[Signer]) -> str:
    return next((signer.name for signer in signers if signer.accepts(bundle)), "")


def make_key_signer(name: str, public_key: bytes) -> KeySigner:
    return KeySigner(name, keys.load_public_key(public_key, f"{name}.pub"))


def encode_private_key(key: keys.PrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def test_signer_is_found_by_key() -> None:
    others = make_key_signer("other", keys.create_key_pair().public)
    signature = read_signature(make_signed_bundle())
    assert find_signer(signature, [others, make_key_signer("acme", KEYS.public)]) == "acme"
    assert not find_signer(signature, [others])


def test_signature_of_the_reference_tool_is_valid() -> None:
    bundle = make_bundle({**RECORDED_FILES, SIGNATURE_FILE: RECORDED_SIGNATURE})
    signers = [make_key_signer("acme", RECORDED_KEY)]
    assert find_signer(read_signature(bundle), signers) == "acme"


@pytest.mark.parametrize(
    "key",
    [
        ec.generate_private_key(ec.SECP256R1()),
        ec.generate_private_key(ec.SECP384R1()),
        ec.generate_private_key(ec.SECP521R1()),
        ed25519.Ed25519PrivateKey.generate(),
    ],
)
def test_supported_keys_sign_and_verify(key: keys.PrivateKey) -> None:
    pair = keys.KeyPair(encode_private_key(key), keys.encode_public_key(key.public_key()))
    signature = read_signature(make_signed_bundle(pair))
    assert find_signer(signature, [make_key_signer("acme", pair.public)]) == "acme"


def test_edited_statement_of_a_known_key_is_rejected() -> None:
    signature = read_signature(make_signed_bundle())
    forged = signature._replace(statement=signature.statement.replace(b"pdf-tools", b"pdf-t00ls"))
    with pytest.raises(SignatureInvalid, match="does not match"):
        find_signer(forged, [make_key_signer("acme", KEYS.public)])


def test_signature_without_a_key_hint_is_compared_with_each_key() -> None:
    signature = read_signature(make_signed_bundle())._replace(key_hint="")
    others = make_key_signer("other", keys.create_key_pair().public)
    assert find_signer(signature, [others, make_key_signer("acme", KEYS.public)]) == "acme"
    assert not find_signer(signature, [others])


def test_unsupported_and_malformed_keys_are_rejected() -> None:
    key = rsa.generate_private_key(65537, 2048)
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    with pytest.raises(ConfigInvalid, match=r"a\.key: this type of key is not supported"):
        keys.load_private_key(encode_private_key(key), "a.key")
    with pytest.raises(ConfigInvalid, match="this type of key is not supported"):
        keys.load_public_key(public, "a.pub")
    with pytest.raises(ConfigInvalid, match="it is not a private key"):
        keys.load_private_key(b"x", "a.key")
    with pytest.raises(ConfigInvalid, match="it is not a public key"):
        keys.load_public_key(KEYS.private, "a.pub")


def test_encrypted_key_needs_its_passphrase() -> None:
    pair = keys.create_key_pair(b"correct horse")
    key = keys.load_private_key(pair.private, "a.key", b"correct horse")
    assert keys.encode_public_key(key.public_key()) == pair.public
    with pytest.raises(ConfigInvalid, match="it is encrypted"):
        keys.load_private_key(pair.private, "a.key")
    with pytest.raises(ConfigInvalid, match="the passphrase is wrong"):
        keys.load_private_key(pair.private, "a.key", b"battery")
    with pytest.raises(ConfigInvalid, match="it is not encrypted"):
        keys.load_private_key(KEYS.private, "a.key", b"battery")


def test_files_that_the_format_ignores_cannot_be_signed() -> None:
    with pytest.raises(SkillRejected, match=r"'\.gitignore' cannot be signed"):
        sign({**RECORDED_FILES, ".gitignore": b"x"})


def make_certificate_signer(authority: Authority, subject: str = SUBJECT) -> CertificateSigner:
    return CertificateSigner("acme", load_certificates(authority.pem, "roots.pem"), subject)


def test_signer_is_found_by_certificate() -> None:
    root = Authority.create("root")
    intermediate = root.issue_authority("intermediate")
    signature = sign_with_certificate(intermediate, chain=[intermediate])
    assert find_signer(signature, [make_certificate_signer(root)]) == "acme"
    assert not find_signer(signature, [make_certificate_signer(root, "CN=Someone else")])
    assert not find_signer(signature, [make_certificate_signer(Authority.create("root"))])
    assert not find_signer(signature, [make_key_signer("acme", KEYS.public)])


@pytest.mark.parametrize("fault", ["not an authority", "expired", "path too long", "no purpose"])
def test_faulty_chain_is_not_accepted(fault: str) -> None:
    root = Authority.create("root", path_length=0 if fault == "path too long" else None)
    intermediate = root.issue_authority(
        "intermediate", is_authority=fault != "not an authority", is_expired=fault == "expired"
    )
    signature = sign_with_certificate(
        intermediate, chain=[intermediate], for_signatures=fault != "no purpose"
    )
    assert not find_signer(signature, [make_certificate_signer(root)])


def test_edited_statement_with_a_valid_certificate_is_rejected() -> None:
    root = Authority.create("root")
    signature = sign_with_certificate(root)
    with pytest.raises(SignatureInvalid, match="does not match"):
        find_signer(signature._replace(statement=b"{}"), [make_certificate_signer(root)])


def test_malformed_certificates_are_not_accepted() -> None:
    signature = SigstoreBundle(b"{}", b"", certificates=(b"x",))
    assert not find_signer(signature, [make_certificate_signer(Authority.create("root"))])
    with pytest.raises(ConfigInvalid, match="it contains no PEM certificate"):
        load_certificates(b"x", "roots.pem")


def test_signature_is_the_same_for_files_in_another_order() -> None:
    digests = {"b": "1" * 64, "a": "2" * 64}
    key = keys.load_private_key(KEYS.private, "a.key")
    first, second = (
        parse_bundle(sign_files("x", dict(pairs), key)).statement
        for pairs in (digests.items(), reversed(digests.items()))
    )
    assert first == second
