"""Records what the reference tool of OpenSSF Model Signing says about `public_skills`.

    python3 -m venv /tmp/reference
    /tmp/reference/bin/pip install model-signing==1.1.1 pyOpenSSL
    python -m tests.support.record_public_verdicts /tmp/reference/bin/model_signing

It needs no network: the trusted root of the public Sigstore comes with the package `sigstore`. 63
starts of the tool take two minutes.
"""

import json
import subprocess
import sys
import tempfile
from base64 import b64decode
from importlib.resources import files
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from tests.support.public_skills import (
    ACCEPTED,
    FILES_DIFFER,
    KEYLESS,
    RECORDED,
    RECORDING,
    REJECTED,
    find_keyless,
    make_cases,
    make_keyless_cases,
    read_keyless,
)
from tests.support.record_signed_skills import write_skill
from tests.support.signed_skills import SIGNATURE

_ISSUER = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.1")
_CONFIG_TYPE = "application/vnd.dev.sigstore.clienttrustconfig.v0.1+json"


def record(tool: str, folder: Path) -> None:
    """Write the verdicts."""
    root, config = folder / "root.pem", folder / "sigstore.json"
    *_, certificate = RECORDING["certificates"]
    root.write_bytes(_load(certificate).public_bytes(Encoding.PEM))
    config.write_text(_read_trust_config(), encoding="utf-8")
    by_certificate = ("certificate", "--certificate_chain", str(root))
    by_identity = {
        name: ("sigstore", "--trust_config", str(config), *_read_identity(name)) for name in KEYLESS
    }
    verdicts = {
        case: _verify(tool, by_certificate, write_skill(folder / "certificate" / str(n), content))
        for n, (case, content) in enumerate(make_cases().items())
    }
    keyless_verdicts = {
        case: _verify(
            tool,
            by_identity[find_keyless(case)],
            write_skill(folder / "keyless" / case, content),
        )
        for case, content in make_keyless_cases().items()
    }
    recording = {**RECORDING, "verdicts": verdicts, "keyless_verdicts": keyless_verdicts}
    RECORDED.write_text(json.dumps(recording, indent=1) + "\n", encoding="utf-8")


def _load(certificate: str) -> x509.Certificate:
    return x509.load_der_x509_certificate(b64decode(certificate))


def _read_identity(name: str) -> tuple[str, ...]:
    """Return the options for the identity in a certificate."""
    certificate = _load(read_keyless(name)["verificationMaterial"]["certificate"]["rawBytes"])
    [identity] = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    issuer = certificate.extensions.get_extension_for_oid(_ISSUER).value
    assert isinstance(issuer, x509.UnrecognizedExtension)
    return ("--identity", identity.value, "--identity_provider", issuer.value.decode())


def _read_trust_config() -> str:
    """Return the trust config of the public Sigstore, from the package `sigstore`."""
    store = files("sigstore") / "_store" / "https%3A%2F%2Ftuf-repo-cdn.sigstore.dev"
    config = {
        "mediaType": _CONFIG_TYPE,
        "trustedRoot": json.loads((store / "trusted_root.json").read_bytes()),
        "signingConfig": json.loads((store / "signing_config.v0.2.json").read_bytes()),
    }
    return json.dumps(config)


def _verify(tool: str, signer: tuple[str, ...], folder: Path) -> str:
    command = (tool, "verify", *signer, "--signature", str(folder / SIGNATURE), str(folder))
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    if not result.returncode:
        return ACCEPTED
    return FILES_DIFFER if "Signature mismatch" in result.stdout + result.stderr else REJECTED


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        record(sys.argv[1], Path(temporary))
