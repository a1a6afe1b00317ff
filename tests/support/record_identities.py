"""Records signatures of the public Sigstore, so that tests verify them without network.

The sdist of the package `pypi-attestations` (Apache-2.0, https://github.com/pypi/pypi-attestations)
contains attestations of published packages, each signed by a workflow of GitHub or GitLab in the
public Sigstore. This script converts them to Sigstore bundles; statements, certificates and entries
of the transparency log stay as they are.

    pip download --no-deps --no-binary :all: pypi-attestations==0.0.30
    tar -xzf pypi_attestations-0.0.30.tar.gz
    python -m tests.support.record_identities pypi_attestations-0.0.30/test/assets
"""

import json
import sys
from pathlib import Path

from skillhall._internal.skill.signatures.sigstore_bundle import MEDIA_TYPE, PAYLOAD_TYPE

RECORDED = Path(__file__).parent / "recorded_identities"
NAMES = {
    "github-release": "pypi_attestations-0.0.19.tar.gz.publish.attestation",
    "github-provenance": "pypi_attestations-0.0.19.tar.gz.slsa.attestation",
    "gitlab": "gitlab_oidc_project-0.0.3.tar.gz.publish.attestation",
}


def record(assets: Path) -> None:
    """Write the bundles of the attestations in a folder."""
    RECORDED.mkdir(exist_ok=True)
    for name, file in NAMES.items():
        attestation = json.loads((assets / file).read_bytes())
        envelope, material = attestation["envelope"], attestation["verification_material"]
        bundle = {
            "mediaType": MEDIA_TYPE,
            "verificationMaterial": {
                "certificate": {"rawBytes": material["certificate"]},
                "tlogEntries": material["transparency_entries"],
            },
            "dsseEnvelope": {
                "payload": envelope["statement"],
                "payloadType": PAYLOAD_TYPE,
                "signatures": [{"sig": envelope["signature"]}],
            },
        }
        text = json.dumps(bundle, indent=1) + "\n"
        (RECORDED / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    record(Path(sys.argv[1]))
