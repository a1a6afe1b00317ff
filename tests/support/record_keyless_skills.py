"""Records keyless signatures and verdicts of the reference tool of OpenSSF Model Signing.

    python3 -m venv /tmp/reference
    /tmp/reference/bin/pip install model-signing==1.1.1 pyOpenSSL
    python -m tests.support.record_keyless_skills /tmp/reference/bin/model_signing

The tool signs skills in a private Sigstore on this machine, with the identity of a workflow, and
verifies all of them, also the damaged ones. It then verifies those that `skillhall sign --sigstore`
signed, and the script fails if it rejects one. Private keys are not stored. 40 starts of the tool
take a minute.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from skillhall._internal.cli.runner import run
from tests.support.record_signed_skills import write_skill
from tests.support.signed_skills import (
    DAMAGES,
    KEY,
    KEYLESS_SHAPES,
    OTHER_KEY,
    RECORDED_KEYLESS,
    SIGNATURE,
    make_cases,
    make_files,
)
from tests.support.sigstore_instance import GITHUB, WORKFLOW, SigstoreInstance

OTHER_WORKFLOW = WORKFLOW.replace("acme", "evil")
_SIGNED_BY_OTHER = DAMAGES["signed-with-another-key"][0]


class _Recorder:
    def __init__(self, tool: str, folder: Path, instance: SigstoreInstance) -> None:
        self._tool, self._folder, self._instance = tool, folder, instance
        self._config = folder / "sigstore.json"
        self._config.write_bytes(instance.trust_config)

    def record(self) -> bool:
        """Write the recording; return whether the tool accepts our signatures."""
        signatures = {
            KEY: {shape: self._sign(shape, WORKFLOW) for shape in KEYLESS_SHAPES},
            OTHER_KEY: {_SIGNED_BY_OTHER: self._sign(_SIGNED_BY_OTHER, OTHER_WORKFLOW)},
        }
        verdicts = {
            name: self._verify(write_skill(self._folder / f"case-{name}", files))
            for name, files in make_cases(signatures).items()
        }
        ours = {shape: self._verify(self._sign_ourselves(shape)) for shape in KEYLESS_SHAPES}
        recording = {
            "tool": "model-signing 1.1.1",
            "trusted_root": json.loads(self._instance.trusted_root),
            "signatures": {
                key: {shape: json.loads(data) for shape, data in by_shape.items()}
                for key, by_shape in signatures.items()
            },
            "accepted": verdicts,
            "accepted_of_ours": ours,
        }
        RECORDED_KEYLESS.write_text(json.dumps(recording, indent=1) + "\n", encoding="utf-8")
        return all(ours.values())

    def _sign(self, shape: str, identity: str) -> bytes:
        self._instance.identity = identity
        folder = write_skill(self._folder / f"{identity.split('/')[3]}-{shape}", make_files(shape))
        token = str(self._instance.answer("/token", {})["value"])
        signature = ("--signature", str(folder / SIGNATURE))
        options = ("--trust_config", str(self._config), "--identity_token", token)
        subprocess.run((self._tool, "sign", "sigstore", *options, *signature, folder), check=True)
        return (folder / SIGNATURE).read_bytes()

    def _sign_ourselves(self, shape: str) -> Path:
        self._instance.identity = WORKFLOW
        folder = write_skill(self._folder / f"ours-{shape}", make_files(shape))
        assert run(["sign", str(folder), "--sigstore", "--trust-config", str(self._config)]) == 0
        return folder

    def _verify(self, folder: Path) -> bool:
        signature = ("--signature", str(folder / SIGNATURE))
        signer = ("--identity", WORKFLOW, "--identity_provider", GITHUB)
        options = ("--trust_config", str(self._config), *signer, *signature)
        command = (self._tool, "verify", "sigstore", *options, folder)
        return subprocess.run(command, check=False, capture_output=True).returncode == 0


def record(tool: str) -> bool:
    """Record with a new Sigstore; return whether the tool accepts our signatures."""
    instance = SigstoreInstance()
    with tempfile.TemporaryDirectory() as folder, instance.serve() as variables:
        os.environ.update(variables)
        return _Recorder(tool, Path(folder), instance).record()


if __name__ == "__main__":
    sys.exit(0 if record(sys.argv[1]) else 1)
