"""DSSE envelope: a signed JSON document other than the signature of a skill."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from typing import Any

from skillhall._internal.skill.signatures.sigstore_bundle import SigstoreBundle
from skillhall._internal.skill.signatures.statement import SignatureInvalid
from skillhall._internal.strict_json import render_json

ENVELOPE_TYPE = "application/vnd.dsse.envelope.v1+json"


def render_envelope(signed: SigstoreBundle) -> bytes:
    """Return a signed document as JSON."""
    signature = {"sig": _encode(signed.signature), "keyid": signed.key_hint}
    document = {
        "payload": _encode(signed.statement),
        "payloadType": signed.payload_type,
        "signatures": [signature],
    }
    return render_json(document) + b"\n"


def is_envelope(value: object) -> bool:
    """Whether JSON values look like an envelope."""
    return isinstance(value, dict) and "payloadType" in value


def read_envelope(value: Any, payload_type: str) -> SigstoreBundle:  # noqa: ANN401 - untrusted JSON
    """Read an envelope from JSON values, without checking the signature.

    Raises: SignatureInvalid, which names the field.
    """
    if value["payloadType"] != payload_type:
        raise SignatureInvalid(f"payloadType is not {payload_type}")
    signatures = value.get("signatures")
    if not isinstance(signatures, list) or len(signatures) != 1:
        raise SignatureInvalid("signatures is not a list with one signature")
    signature = signatures[0] if isinstance(signatures[0], dict) else {}
    key_id = signature.get("keyid", "")
    if not isinstance(key_id, str):
        raise SignatureInvalid("signatures[0].keyid is not a string")
    return SigstoreBundle(
        _decode(value.get("payload"), "payload"),
        _decode(signature.get("sig"), "signatures[0].sig"),
        key_hint=key_id,
        payload_type=payload_type,
    )


def _encode(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def _decode(text: object, field: str) -> bytes:
    try:
        if isinstance(text, str):
            return b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        pass
    raise SignatureInvalid(f"{field} is not Base64")
