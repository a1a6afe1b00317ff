"""Signed skills, and a signature that the reference tool of OpenSSF Model Signing made."""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

from skillhall._internal.signing.keys import KeyPair, create_key_pair, load_private_key
from skillhall._internal.signing.signer import sign_files
from skillhall._internal.skill.bundle import Bundle, sha256_hex
from skillhall._internal.skill.signatures.statement import SIGNATURE_FILE
from tests.support.bundles import make_bundle

_RECORDED = Path(__file__).parent / "recorded_signature"
# What `model_signing sign key` of version 1.1.1 signed.
RECORDED_FILES = {
    ".env.example": b"A=1\n",
    "SKILL.md": b"---\nname: pdf-tools\ndescription: Reads PDF files.\n---\nRead it.\n",
    "scripts/read.py": b"print(1)\n",
}
RECORDED_SIGNATURE = (_RECORDED / SIGNATURE_FILE).read_bytes()
RECORDED_KEY = (_RECORDED / "signer.pub").read_bytes()
KEYS = create_key_pair()


def sign(files: dict[str, bytes], keys: KeyPair = KEYS) -> dict[str, bytes]:
    """Return the files with their signature."""
    digests = {path: sha256_hex(data) for path, data in files.items()}
    signature = sign_files("pdf-tools", digests, load_private_key(keys.private, "test.key"))
    return {**files, SIGNATURE_FILE: signature}


def make_signed_bundle(keys: KeyPair = KEYS) -> Bundle:
    """Create the bundle of a signed skill."""
    return make_bundle(sign(RECORDED_FILES, keys))


def edit_signature(signature: bytes, edit: Callable[[Any], object]) -> bytes:
    """Return a signature file after an edit of its JSON."""
    document = json.loads(signature)
    edit(document)
    return json.dumps(document).encode()


def edit_statement(signature: bytes, edit: Callable[[Any], object]) -> bytes:
    """Return a signature file after an edit of its signed statement."""

    def edit_payload(document: dict[str, Any]) -> None:
        statement = json.loads(b64decode(document["dsseEnvelope"]["payload"]))
        edit(statement)
        payload = b64encode(json.dumps(statement).encode()).decode()
        document["dsseEnvelope"]["payload"] = payload

    return edit_signature(signature, edit_payload)
