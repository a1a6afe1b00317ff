"""Keys for signatures: P-256, P-384, P-521 and Ed25519, in PEM.

New keys are P-256, which the reference tool of OpenSSF Model Signing also reads.
"""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple, TypeAlias

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from skillhall._internal.skill.signatures.statement import SignatureInvalid
from skillhall.errors import ConfigInvalid

PublicKey: TypeAlias = ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey
PrivateKey: TypeAlias = ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey

_CURVE_HASHES = {256: hashes.SHA256(), 384: hashes.SHA384(), 521: hashes.SHA512()}
_SUPPORTED = "use P-256, P-384, P-521 or Ed25519 in PEM format"


class KeyPair(NamedTuple):
    """A private key and its public key, in PEM."""

    private: bytes
    public: bytes


def create_key_pair(passphrase: bytes | None = None) -> KeyPair:
    """Create a P-256 key pair; with a passphrase, the private key is encrypted."""
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(passphrase)
        if passphrase
        else serialization.NoEncryption(),
    )
    return KeyPair(private, encode_public_key(key.public_key()))


def load_private_key(data: bytes, name: str, passphrase: bytes | None = None) -> PrivateKey:
    """Load a private key; `name` is its origin in errors. Raises: ConfigInvalid."""
    try:
        key = serialization.load_pem_private_key(data, passphrase)
    except TypeError:
        problem = "it is encrypted" if passphrase is None else "it is not encrypted"
        hint = "set" if passphrase is None else "unset"
        raise ConfigInvalid(name, problem, f"{hint} SKILLHALL_SIGNING_PASSPHRASE") from None
    except (ValueError, UnsupportedAlgorithm):
        problem = "it is not a private key, or the passphrase is wrong"
        raise ConfigInvalid(name, problem, _SUPPORTED) from None
    if not isinstance(key, PrivateKey):
        raise ConfigInvalid(name, "this type of key is not supported", _SUPPORTED)
    _require_supported(key.public_key(), name)
    return key


def load_public_key(data: bytes, name: str) -> PublicKey:
    """Load a public key; `name` is its origin in errors. Raises: ConfigInvalid."""
    try:
        key = serialization.load_pem_public_key(data)
    except (ValueError, UnsupportedAlgorithm):
        raise ConfigInvalid(name, "it is not a public key", _SUPPORTED) from None
    return _require_supported(key, name)


def _require_supported(key: object, name: str) -> PublicKey:
    if isinstance(key, ec.EllipticCurvePublicKey) and key.key_size in _CURVE_HASHES:
        return key
    if isinstance(key, ed25519.Ed25519PublicKey):
        return key
    raise ConfigInvalid(name, "this type of key is not supported", _SUPPORTED)


def encode_public_key(key: PublicKey) -> bytes:
    """Return a public key in PEM."""
    return key.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def compute_key_hint(key: PublicKey) -> str:
    """Return the identifier of a key in a signature: the SHA-256 of its PEM."""
    return sha256(encode_public_key(key)).hexdigest()


def sign(key: PrivateKey, data: bytes) -> bytes:
    """Return the signature of `data`."""
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return key.sign(data)
    return key.sign(data, ec.ECDSA(_CURVE_HASHES[key.key_size]))


def verify(key: object, signature: bytes, data: bytes) -> None:
    """Check the signature of `data`. Raises: SignatureInvalid."""
    try:
        if isinstance(key, ed25519.Ed25519PublicKey):
            key.verify(signature, data)
        elif isinstance(key, ec.EllipticCurvePublicKey) and key.key_size in _CURVE_HASHES:
            key.verify(signature, data, ec.ECDSA(_CURVE_HASHES[key.key_size]))
        else:
            raise SignatureInvalid("the type of the signing key is not supported")
    except InvalidSignature:
        raise SignatureInvalid("the signature does not match the signed statement") from None
