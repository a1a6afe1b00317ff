"""Records the signatures and verdicts of the reference tool of OpenSSF Model Signing.

    python3 -m venv /tmp/reference
    /tmp/reference/bin/pip install model-signing==1.1.1 pyOpenSSL
    python -m tests.support.record_signed_skills /tmp/reference/bin/model_signing

It signs every skill of `signed_skills` with new keys, and verifies all of them, also the damaged
ones. It then verifies those that we signed, and fails if it rejects one. The private keys are not
stored. 70 starts of the tool take two minutes.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from skillhall._internal.signing.keys import KeyPair, create_key_pair
from tests.support.signatures import KEYS, sign
from tests.support.signed_skills import (
    EXECUTABLE,
    KEY,
    OTHER_KEY,
    RECORDED,
    SHAPES,
    SIGNATURE,
    Files,
    make_cases,
    make_files,
)

_SIGNED_BY_OTHER = "only-skill-md"  # the only shape that the other key signs


def record(tool: str, folder: Path) -> bool:
    """Write the recording; return whether the tool accepts our signatures."""
    pairs = {name: create_key_pair() for name in (KEY, OTHER_KEY)}
    signatures = {
        KEY: {shape: _sign(tool, folder / shape, shape, pairs[KEY]) for shape in SHAPES},
        OTHER_KEY: {
            _SIGNED_BY_OTHER: _sign(tool, folder / "other", _SIGNED_BY_OTHER, pairs[OTHER_KEY])
        },
    }
    verdicts = {
        name: _verify(tool, write_skill(folder / f"case-{name}", files), pairs[KEY])
        for name, files in make_cases(signatures).items()
    }
    ours = {
        shape: _verify(tool, write_skill(folder / f"ours-{shape}", sign(make_files(shape))), None)
        for shape in SHAPES
    }
    recording = {
        "tool": "model-signing 1.1.1",
        "key": pairs[KEY].public.decode(),
        "signatures": {
            key: {shape: json.loads(data) for shape, data in by_shape.items()}
            for key, by_shape in signatures.items()
        },
        "accepted": verdicts,
        "accepted_of_ours": ours,
    }
    RECORDED.write_text(json.dumps(recording, indent=1) + "\n", encoding="utf-8")
    return all(ours.values())


def write_skill(folder: Path, files: Files) -> Path:
    """Write the files of a skill; return its folder."""
    for path, data in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        file.chmod(0o755 if path == EXECUTABLE else 0o644)
    return folder


def _sign(tool: str, folder: Path, shape: str, pair: KeyPair) -> bytes:
    write_skill(folder, make_files(shape))
    with tempfile.NamedTemporaryFile(suffix=".key") as key:
        key.write(pair.private)
        key.flush()
        options = ("--private_key", key.name, "--signature", str(folder / SIGNATURE))
        subprocess.run((tool, "sign", "key", *options, str(folder)), check=True)
    return (folder / SIGNATURE).read_bytes()


def _verify(tool: str, folder: Path, pair: KeyPair | None) -> bool:
    """Return whether the tool accepts a skill; without a key pair, ours signed it."""
    with tempfile.NamedTemporaryFile(suffix=".pub") as key:
        key.write((pair or KEYS).public)
        key.flush()
        options = ("--public_key", key.name, "--signature", str(folder / SIGNATURE))
        command = (tool, "verify", "key", *options, str(folder))
        return subprocess.run(command, check=False, capture_output=True).returncode == 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(0 if record(sys.argv[1], Path(temporary)) else 1)
