"""Sigstore bundle, version 0.3: a file with a signature and its signer."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from typing import Any, NamedTuple

from skillhall._internal.skill.signatures.statement import SignatureInvalid
from skillhall._internal.strict_json import InvalidJson, parse_json, render_json

MEDIA_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
MAX_BUNDLE_SIZE = 1024 * 1024  # bytes; the largest public one of a skill has less than a tenth
MAX_CERTIFICATES = 8


class SigstoreBundle(NamedTuple):
    """A signed statement, and the data needed to verify the signature."""

    statement: bytes
    signature: bytes
    key_hint: str = ""  # SHA-256 of the public key in PEM, if signed with a key
    certificates: tuple[bytes, ...] = ()  # in DER, the signer's first
    is_keyless: bool = False  # signed with a Sigstore identity
    payload_type: str = PAYLOAD_TYPE
    data: bytes = b""  # the file

    @property
    def signed_bytes(self) -> bytes:
        """The bytes that are signed: the pre-authentication encoding of DSSE."""
        size = len(self.statement)
        head = f"DSSEv1 {len(self.payload_type)} {self.payload_type} {size} "
        return head.encode("ascii") + self.statement


def parse_bundle(data: bytes) -> SigstoreBundle:
    """Parse a bundle, without checking the signature. Raises: SignatureInvalid."""
    if len(data) > MAX_BUNDLE_SIZE:
        raise SignatureInvalid(f"the file is larger than {MAX_BUNDLE_SIZE} bytes")
    try:
        return _read_bundle(parse_json(data, unique_keys=True))._replace(data=data)
    except InvalidJson as error:
        raise SignatureInvalid(f"the file is not valid JSON: {error}") from None
    except (KeyError, TypeError, AttributeError):
        raise SignatureInvalid("the file lacks a field of a Sigstore bundle") from None
    except (ValueError, binascii.Error) as error:
        if isinstance(error, SignatureInvalid):
            raise
        raise SignatureInvalid("the file contains invalid Base64") from None


def _read_bundle(bundle: Any) -> SigstoreBundle:  # noqa: ANN401 - untrusted JSON
    if bundle["mediaType"] != MEDIA_TYPE:
        raise SignatureInvalid("the file is not a Sigstore bundle of version 0.3")
    envelope = bundle["dsseEnvelope"]
    if envelope["payloadType"] != PAYLOAD_TYPE:
        raise SignatureInvalid("the file does not contain an in-toto statement")
    signatures = envelope["signatures"]
    if len(signatures) != 1:
        raise SignatureInvalid(f"the file has {len(signatures)} signatures instead of one")
    statement, signature = _decode(envelope["payload"]), _decode(signatures[0]["sig"])
    material = bundle["verificationMaterial"]
    if "x509CertificateChain" in material:
        chain = material["x509CertificateChain"]["certificates"]
        if not 1 <= len(chain) <= MAX_CERTIFICATES:
            supported = f"1 to {MAX_CERTIFICATES} are supported"
            raise SignatureInvalid(f"the file has {len(chain)} certificates; {supported}")
        certificates = tuple(_decode(one["rawBytes"]) for one in chain)
        return SigstoreBundle(statement, signature, certificates=certificates)
    if "publicKey" in material:
        hint = material["publicKey"].get("hint") or ""
        return SigstoreBundle(statement, signature, key_hint=str(hint))
    certificate = _decode(material["certificate"]["rawBytes"])
    return SigstoreBundle(statement, signature, certificates=(certificate,), is_keyless=True)


def _decode(text: str) -> bytes:
    return b64decode(text, validate=True)


def render_bundle(bundle: SigstoreBundle) -> bytes:
    """Return the content of the file."""
    material: dict[str, object] = {"publicKey": {"hint": bundle.key_hint}}
    if bundle.certificates:
        chain = [{"rawBytes": _encode(one)} for one in bundle.certificates]
        material = {"x509CertificateChain": {"certificates": chain}}
    envelope = {
        "payload": _encode(bundle.statement),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [{"sig": _encode(bundle.signature), "keyid": ""}],
    }
    document = {
        "mediaType": MEDIA_TYPE,
        "verificationMaterial": {**material, "tlogEntries": []},
        "dsseEnvelope": envelope,
    }
    return render_json(document) + b"\n"


def _encode(data: bytes) -> str:
    return b64encode(data).decode("ascii")
