"""Skills of many shapes that the reference tool of OpenSSF Model Signing signed and verified.

`tests/support/record_signed_skills.py` records its signatures and its verdicts. The files of the
skills are made here, so that nothing else is recorded.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from tests.support.skills import make_skill_md

Files: TypeAlias = dict[str, bytes]
RECORDED = Path(__file__).parent / "recorded_signed_skills.json"
RECORDED_KEYLESS = Path(__file__).parent / "recorded_keyless_skills.json"
SIGNATURE = "skill.oms.sig"
KEY, OTHER_KEY = "signer", "other"
EXECUTABLE = "scripts/run.sh"  # has an execute bit, which signatures do not cover
_SCRIPT = {EXECUTABLE: b"#!/bin/sh\nexit 0\n"}

# Besides the SKILL.md of each.
SHAPES: Mapping[str, Files] = {
    "only-skill-md": {},
    "script": _SCRIPT,
    "reference": {"references/forms.md": b"# Forms\n"},
    "empty-file": {"empty.md": b""},
    "empty-nested-file": {"a/b/empty": b""},
    "hidden-file": {".env.example": b"KEY=\n"},
    "hidden-folder": {".hidden/rules.md": b"x"},
    "hidden-and-nested": {".config/.deep/.rc": b"1", **_SCRIPT},
    "nested-deeply": {f"{'/'.join('abcdefgh')}/{n}.md": b"%d" % n for n in range(3)},
    "same-content-twice": {"one.md": b"same", "two.md": b"same"},
    "binary": {"data.bin": bytes(range(256)) * 16},
    "no-final-newline": {"a.txt": b"no newline"},
    "windows-line-ends": {"a.md": b"one\r\ntwo\r\n"},
    "names-with-spaces": {"my notes/first file.md": b"x"},
    "names-with-punctuation": {"a+b=c, d!.md": b"x", "(1).md": b"y", "a--b.md": b"z"},
    "unicode-composed": {"caf\u00e9.md": b"x", "\u8cc7\u6599/\u8aaa\u660e.md": b"y"},
    "unicode-decomposed": {"cafe\u0301.md": b"x"},
    "emoji": {"\U0001f680.md": b"x"},
    "upper-and-lower-case": {"README.md": b"x", "assets/Logo.SVG": b"<svg/>"},
    "order-of-paths": {"a/b.md": b"1", "a-b.md": b"2", "a.md": b"3", "ab.md": b"4", "A.md": b"5"},
    "many-files": {f"references/{n:03}.md": b"%d\n" % n for n in range(120)},
    "large-file": {"large.txt": b"0123456789abcde\n" * 65_536},
}


# Those that are also signed with the identity of a workflow; `DAMAGES` needs the first four.
KEYLESS_SHAPES = (
    "only-skill-md",
    "script",
    "reference",
    "binary",
    "hidden-and-nested",
    "unicode-composed",
    "order-of-paths",
)


def make_files(shape: str) -> Files:
    """Return the files of a skill, in code-point order."""
    skill_md = make_skill_md("pdf-tools", f"A skill of the shape {shape}.")
    return dict(sorted({"SKILL.md": skill_md, **SHAPES[shape]}.items()))


# Damaged after signing


def _edit(path: str, data: bytes) -> Callable[[Files], object]:
    return lambda files: files.__setitem__(path, data)


def _edit_payload(files: Files) -> None:
    """Replace the digest of a file in the signed statement; the signature stays."""
    signature = json.loads(files[SIGNATURE])
    payload = signature["dsseEnvelope"]["payload"]
    signature["dsseEnvelope"]["payload"] = f"{payload[:-8]}AAAA{payload[-4:]}"
    files[SIGNATURE] = json.dumps(signature).encode()


def _edit_signature_bytes(files: Files) -> None:
    signature = json.loads(files[SIGNATURE])
    [one] = signature["dsseEnvelope"]["signatures"]
    one["sig"] = f"{one['sig'][:10]}{'A' if one['sig'][10] != 'A' else 'B'}{one['sig'][11:]}"
    files[SIGNATURE] = json.dumps(signature).encode()


def _rename(files: Files) -> None:
    files["references/other.md"] = files.pop("references/forms.md")


# What is done to which shape; all of these are rejected.
DAMAGES: Mapping[str, tuple[str, Callable[[Files], object]]] = {
    "edited-file": ("script", _edit(EXECUTABLE, b"#!/bin/sh\nexit 1\n")),
    "edited-skill-md": ("only-skill-md", _edit("SKILL.md", make_skill_md("pdf-tools", "Evil."))),
    "emptied-file": ("binary", _edit("data.bin", b"")),
    "extra-file": ("reference", _edit("extra.md", b"x")),
    "extra-hidden-file": ("reference", _edit(".extra", b"x")),
    "missing-file": ("script", lambda files: files.pop(EXECUTABLE)),
    "renamed-file": ("reference", _rename),
    "edited-payload": ("only-skill-md", _edit_payload),
    "edited-signature": ("only-skill-md", _edit_signature_bytes),
    "cut-bundle": ("only-skill-md", lambda f: f.__setitem__(SIGNATURE, f[SIGNATURE][:-40])),
    "signed-with-another-key": ("only-skill-md", lambda _: None),
}
# The reference tool accepts these, because the format leaves out the files of git and GitHub.
UNSIGNED_FILES: Mapping[str, tuple[str, Callable[[Files], object]]] = {
    "extra-file-of-github": ("reference", _edit(".github/evil.md", b"x")),
    "extra-gitignore": ("reference", _edit(".gitignore", b"x")),
}


def make_cases(signatures: Mapping[str, Mapping[str, bytes]]) -> dict[str, Files]:
    """Return the files of every case with their signatures, given by key and shape."""
    signed = signatures[KEY]
    cases = {
        name: {**make_files(name), SIGNATURE: signed[name]} for name in SHAPES if name in signed
    }
    for name, (shape, damage) in {**DAMAGES, **UNSIGNED_FILES}.items():
        key = OTHER_KEY if name == "signed-with-another-key" else KEY
        cases[name] = {**make_files(shape), SIGNATURE: signatures[key][shape]}
        damage(cases[name])
    return cases


def read_recording(path: Path = RECORDED) -> Any:  # noqa: ANN401 - JSON
    """Return the recorded key, signatures and verdicts."""
    return json.loads(path.read_text(encoding="utf-8"))


def render_signatures(recording: Any) -> dict[str, dict[str, bytes]]:  # noqa: ANN401 - JSON
    """Return the recorded signatures as files, by key and shape."""
    return {
        key: {shape: json.dumps(signature).encode() for shape, signature in by_shape.items()}
        for key, by_shape in recording["signatures"].items()
    }
