"""A private Sigstore: a certificate authority, two transparency logs and their trusted root.

It runs in this process. `serve` adds the HTTP endpoints that clients need to sign, including the
endpoint where a workflow of GitHub gets its identity token.
"""

from __future__ import annotations

import hashlib
import json
import struct
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from skillhall._internal.skill.signatures.sigstore_bundle import PAYLOAD_TYPE, SigstoreBundle

GITHUB = "https://token.actions.githubusercontent.com"
WORKFLOW = "https://github.com/acme/skills/.github/workflows/release.yml@refs/tags/v1"
_SCT_LIST = ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2")
_ISSUER = ObjectIdentifier("1.3.6.1.4.1.57264.1.8")
_OLD_ISSUER = ObjectIdentifier("1.3.6.1.4.1.57264.1.1")
_ORIGIN = "rekor.test"


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _sign(key: ec.EllipticCurvePrivateKey, data: bytes) -> bytes:
    return key.sign(data, ec.ECDSA(hashes.SHA256()))


def _spki(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def _key_id(key: ec.EllipticCurvePrivateKey) -> bytes:
    return hashlib.sha256(_spki(key)).digest()


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def _encode_der(tag: int, data: bytes) -> bytes:
    size = len(data)
    length = bytes([size]) if size < 0x80 else b"\x82" + struct.pack("!H", size)
    return bytes([tag]) + length + data


@dataclass
class SigstoreInstance:
    """Issues certificates and logs signatures."""

    authority_key: ec.EllipticCurvePrivateKey = field(default_factory=_new_key)
    certificate_log_key: ec.EllipticCurvePrivateKey = field(default_factory=_new_key)
    signature_log_key: ec.EllipticCurvePrivateKey = field(default_factory=_new_key)
    now: datetime = field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))
    identity: str = WORKFLOW  # of the workflow that signs over HTTP
    url: str = ""  # while it is served

    def __post_init__(self) -> None:
        """Issue the certificate of the authority."""
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sigstore")])
        self.authority = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(self.authority_key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(self.now - timedelta(days=1))
            .not_valid_after(self.now + timedelta(days=10))
            .add_extension(x509.BasicConstraints(ca=True, path_length=1), critical=True)
            .add_extension(_build_key_usage(is_authority=True), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(self.authority_key.public_key()),
                critical=False,
            )
            .sign(self.authority_key, hashes.SHA256())
        )

    # The formats of Sigstore's files

    @property
    def trusted_root(self) -> bytes:
        """The file that verifiers need."""
        return json.dumps(self._trusted_root).encode()

    @property
    def trust_config(self) -> bytes:
        """The file that signers need, while it is served."""
        service = {
            "url": self.url,
            "majorApiVersion": 1,
            "validFor": {"start": _format_time(self.now - timedelta(days=1))},
            "operator": "test",
        }
        prefix = "application/vnd.dev.sigstore"
        signing = {
            "mediaType": f"{prefix}.signingconfig.v0.2+json",
            "caUrls": [service],
            "oidcUrls": [service],
            "rekorTlogUrls": [service],
            "rekorTlogConfig": {"selector": "ANY"},
            "tsaUrls": [],
            "tsaConfig": {"selector": "ANY"},
        }
        config = {
            "mediaType": f"{prefix}.clienttrustconfig.v0.1+json",
            "trustedRoot": self._trusted_root,
            "signingConfig": signing,
        }
        return json.dumps(config).encode()

    @property
    def _trusted_root(self) -> dict[str, Any]:
        start = {"start": _format_time(self.now - timedelta(days=1))}
        certificate = self.authority.public_bytes(serialization.Encoding.DER)

        def describe_log(key: ec.EllipticCurvePrivateKey) -> dict[str, Any]:
            public = {
                "rawBytes": _base64(_spki(key)),
                "keyDetails": "PKIX_ECDSA_P256_SHA_256",
                "validFor": start,
            }
            return {
                "baseUrl": "https://rekor.test",
                "hashAlgorithm": "SHA2_256",
                "publicKey": public,
                "logId": {"keyId": _base64(_key_id(key))},
            }

        return {
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [describe_log(self.signature_log_key)],
            "ctlogs": [describe_log(self.certificate_log_key)],
            "certificateAuthorities": [
                {
                    "subject": {"organization": "test", "commonName": "sigstore"},
                    "uri": "https://fulcio.test",
                    "certChain": {"certificates": [{"rawBytes": _base64(certificate)}]},
                    "validFor": start,
                }
            ],
            "timestampAuthorities": [],
        }

    # Signing

    def sign(
        self, statement: bytes, identity: str = WORKFLOW, issuer: str = GITHUB
    ) -> dict[str, Any]:
        """Return the bundle of a statement that an identity signed."""
        key = _new_key()
        certificate = self.issue_certificate(key.public_key(), identity, issuer)
        signature = _sign(key, SigstoreBundle(statement, b"").signed_bytes)
        entry = self.log_signature(statement, signature, certificate)
        proof = entry["verification"]["inclusionProof"]
        logged = {
            "logIndex": str(entry["logIndex"]),
            "logId": {"keyId": _base64(bytes.fromhex(entry["logID"]))},
            "kindVersion": {"kind": "dsse", "version": "0.0.1"},
            "integratedTime": str(entry["integratedTime"]),
            "inclusionPromise": {
                "signedEntryTimestamp": entry["verification"]["signedEntryTimestamp"]
            },
            "inclusionProof": {
                "logIndex": str(proof["logIndex"]),
                "rootHash": _base64(bytes.fromhex(proof["rootHash"])),
                "treeSize": str(proof["treeSize"]),
                "hashes": proof["hashes"],
                "checkpoint": {"envelope": proof["checkpoint"]},
            },
            "canonicalizedBody": entry["body"],
        }
        der = certificate.public_bytes(serialization.Encoding.DER)
        return {
            "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
            "verificationMaterial": {
                "certificate": {"rawBytes": _base64(der)},
                "tlogEntries": [logged],
            },
            "dsseEnvelope": {
                "payload": _base64(statement),
                "payloadType": PAYLOAD_TYPE,
                "signatures": [{"sig": _base64(signature)}],
            },
        }

    def issue_certificate(
        self, key: ec.EllipticCurvePublicKey, identity: str, issuer: str
    ) -> x509.Certificate:
        """Issue a certificate for an identity, logged in the certificate log."""
        serial = x509.random_serial_number()
        # The log signs the certificate without the timestamp that it returns.
        draft = self._build_certificate(key, identity, issuer, serial, b"\0" * 64)
        data = draft.tbs_precertificate_bytes
        milliseconds = int(self.now.timestamp()) * 1000
        entry = _key_id(self.authority_key) + struct.pack("!I", len(data))[1:] + data
        signed = struct.pack("!BBQH", 0, 0, milliseconds, 1) + entry + b"\0\0"
        signature = _sign(self.certificate_log_key, signed)
        return self._build_certificate(key, identity, issuer, serial, signature)

    def _build_certificate(
        self,
        key: ec.EllipticCurvePublicKey,
        identity: str,
        issuer: str,
        serial: int,
        timestamp_signature: bytes,
    ) -> x509.Certificate:
        milliseconds = int(self.now.timestamp()) * 1000
        timestamp = struct.pack(
            "!B32sQHBBH",
            0,
            _key_id(self.certificate_log_key),
            milliseconds,
            0,
            4,
            3,
            len(timestamp_signature),
        )
        timestamp += timestamp_signature
        timestamps = struct.pack("!HH", len(timestamp) + 2, len(timestamp)) + timestamp
        is_url = "://" in identity
        name = x509.UniformResourceIdentifier(identity) if is_url else x509.RFC822Name(identity)
        extensions: list[tuple[x509.ExtensionType, bool]] = [
            (_build_key_usage(is_authority=False), True),
            (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), False),
            (x509.SubjectKeyIdentifier.from_public_key(key), False),
            (
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.authority_key.public_key()),
                False,
            ),
            (x509.SubjectAlternativeName([name]), True),
            (x509.UnrecognizedExtension(_ISSUER, _encode_der(0x0C, issuer.encode())), False),
            (x509.UnrecognizedExtension(_OLD_ISSUER, issuer.encode()), False),
            (x509.UnrecognizedExtension(_SCT_LIST, _encode_der(0x04, timestamps)), False),
        ]
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([]))
            .issuer_name(self.authority.subject)
            .public_key(key)
            .serial_number(serial)
            .not_valid_before(self.now - timedelta(minutes=1))
            # Real certificates expire after 10 minutes, but tests may run longer on a busy machine.
            .not_valid_after(self.now + timedelta(hours=12))
        )
        for extension, is_critical in extensions:
            builder = builder.add_extension(extension, critical=is_critical)
        certificate = builder.sign(self.authority_key, hashes.SHA256())
        # Parsed again, because extensions are known by their content only then.
        return x509.load_der_x509_certificate(certificate.public_bytes(serialization.Encoding.DER))

    def log_signature(
        self, statement: bytes, signature: bytes, certificate: x509.Certificate
    ) -> dict[str, Any]:
        """Return the entry of a signature, in a log that contains nothing else."""
        verifier = _base64(certificate.public_bytes(serialization.Encoding.PEM))
        digest = {"algorithm": "sha256", "value": hashlib.sha256(statement).hexdigest()}
        spec = {
            "envelopeHash": digest,
            "payloadHash": digest,
            "signatures": [{"signature": _base64(signature), "verifier": verifier}],
        }
        body = _render_canonical({"apiVersion": "0.0.1", "kind": "dsse", "spec": spec})
        root = hashlib.sha256(b"\0" + body).digest()
        note = f"{_ORIGIN}\n1\n{_base64(root)}\n"
        key_id = _key_id(self.signature_log_key)
        note_signature = key_id[:4] + _sign(self.signature_log_key, note.encode())
        entry: dict[str, Any] = {
            "body": _base64(body),
            "integratedTime": int(self.now.timestamp()),
            "logID": key_id.hex(),
            "logIndex": 0,
        }
        promise = _sign(self.signature_log_key, _render_canonical(entry))
        entry["verification"] = {
            "signedEntryTimestamp": _base64(promise),
            "inclusionProof": {
                "logIndex": 0,
                "treeSize": 1,
                "rootHash": root.hex(),
                "hashes": [],
                "checkpoint": f"{note}\n— {_ORIGIN} {_base64(note_signature)}\n",
            },
        }
        return entry

    # HTTP

    @contextmanager
    def serve(self) -> Iterator[Mapping[str, str]]:
        """Serve the endpoints; yield the variables of a workflow that may sign."""
        server = ThreadingHTTPServer(
            ("127.0.0.1", 0), type("Handler", (_Handler,), {"instance": self})
        )
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield {
                "GITHUB_ACTIONS": "true",
                "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "request",
                "ACTIONS_ID_TOKEN_REQUEST_URL": f"{self.url}/token",
            }
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def answer(self, path: str, request: dict[str, Any]) -> dict[str, Any]:
        """Return the response of an endpoint."""
        if path == "/.well-known/openid-configuration":  # the reference tool reads it
            return {
                "authorization_endpoint": f"{self.url}/auth",
                "token_endpoint": f"{self.url}/token",
            }
        if path.startswith("/token"):
            now = int(time.time())
            claims = {"iss": GITHUB, "aud": "sigstore", "iat": now, "exp": now + 60}
            claims |= {"sub": "repo:acme/skills", "job_workflow_ref": self.identity}
            return {"value": jwt.encode(claims, "k" * 32, algorithm="HS256")}
        if path == "/api/v2/signingCert":
            pem = b64decode(request["certificateSigningRequest"])
            key = x509.load_pem_x509_csr(pem).public_key()
            assert isinstance(key, ec.EllipticCurvePublicKey)
            chain = (self.issue_certificate(key, self.identity, GITHUB), self.authority)
            pems = [one.public_bytes(serialization.Encoding.PEM).decode() for one in chain]
            return {"signedCertificateEmbeddedSct": {"chain": {"certificates": pems}}}
        assert path == "/api/v1/log/entries"
        content = request["spec"]["proposedContent"]
        envelope = json.loads(content["envelope"])
        certificate = x509.load_pem_x509_certificate(b64decode(content["verifiers"][0]))
        signature = b64decode(envelope["signatures"][0]["sig"])
        entry = self.log_signature(b64decode(envelope["payload"]), signature, certificate)
        return {"0": entry}


class _Handler(BaseHTTPRequestHandler):
    instance: SigstoreInstance

    def do_GET(self) -> None:
        self._respond({})

    def do_POST(self) -> None:
        self._respond(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def _respond(self, request: dict[str, Any]) -> None:
        body = json.dumps(self.instance.answer(self.path, request)).encode()
        self.send_response(200 if self.command == "GET" else 201)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _format_time(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def _render_canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _build_key_usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )
