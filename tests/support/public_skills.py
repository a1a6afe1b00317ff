"""Signatures of published skills and models, with the verdicts of the reference tool.

`recorded_public_skills.json` has the signatures of 30 skills of NVIDIA, by repository on GitHub and
folder. `recorded_identities` has keyless signatures: four of models, from the tests of
https://github.com/sigstore/model-transparency (Apache-2.0), and two of skills, from workflows of
https://github.com/tijoseymathew/periop-companion and https://github.com/akunzai/agent-skills.

The texts of these skills are not stored. Cases have other texts under the signed names, so that a
valid signature leads to `FILES_DIFFER`. The two files of the models contain their names.
`record_public_verdicts.py` records what the reference tool says about each case.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from skillhall._internal.signing.signers import Signer
from skillhall._internal.skill.signatures.file_check import read_signature
from skillhall._internal.skill.signatures.sigstore_bundle import parse_bundle
from skillhall._internal.skill.signatures.statement import SignatureInvalid
from tests.support.bundles import make_bundle
from tests.support.record_identities import RECORDED as IDENTITIES
from tests.support.signed_skills import SIGNATURE, Files

RECORDED = Path(__file__).parent / "recorded_public_skills.json"
RECORDING: Any = json.loads(RECORDED.read_text(encoding="utf-8"))
ACCEPTED, FILES_DIFFER, REJECTED = "accepted", "files differ", "rejected"
MODELS = ("model-0.3.1", "model-1.0.0", "model-1.0.1", "model-1.1.0")
KEYLESS = (*MODELS, "skill-aube", "skill-periop")
_DAMAGED = "NVIDIA/cuopt routing-formulation"
_DAMAGED_MODEL = "model-1.1.0"
_FIRST, _SECOND = "signme-1", "signme-2"
_MODEL_FILES = {_FIRST: b"signme-1", _SECOND: b"signme-2"}


def make_cases() -> dict[str, Files]:
    """Return the files of the cases that are signed with certificates."""
    bundles = {name: _build_bundle(one) for name, one in RECORDING["signatures"].items()}
    files = {name: _make_other_files(one) for name, one in bundles.items()}
    cases = {name: _add(files[name], one) for name, one in bundles.items()}
    for name, damage in {**_DAMAGES, **_CHAIN_DAMAGES}.items():
        cases[name] = _add(files[_DAMAGED], _edit(bundles[_DAMAGED], damage))
    cases["cut-bundle"] = _cut(cases[_DAMAGED])
    return cases


def make_keyless_cases() -> dict[str, Files]:
    """Return the files of the keyless cases."""
    bundles = {name: read_keyless(name) for name in KEYLESS}
    model = bundles[_DAMAGED_MODEL]
    cases = {
        name: _add(_MODEL_FILES if name in MODELS else _make_other_files(one), one)
        for name, one in bundles.items()
    }
    for name, damage in {**_DAMAGES, **_LOG_DAMAGES}.items():
        cases[name] = _add(_MODEL_FILES, _edit(model, damage))
    for name, files in _FILE_DAMAGES.items():
        cases[name] = _add(files, model)
    cases["cut-bundle"] = _cut(cases[_DAMAGED_MODEL])
    return cases


def find_verdict(signer: Signer, files: Files) -> str:
    """Return our verdict, in the terms of the recorded ones."""
    try:
        if not signer.accepts(parse_bundle(files[SIGNATURE])):
            return REJECTED
    except SignatureInvalid:
        return REJECTED
    try:
        read_signature(make_bundle(files))
    except SignatureInvalid:
        return FILES_DIFFER
    return ACCEPTED


def find_keyless(case: str) -> str:
    """Return the name of the signature that a keyless case has."""
    return case if case in KEYLESS else _DAMAGED_MODEL


def read_keyless(name: str) -> Any:  # noqa: ANN401 - JSON
    """Return a recorded keyless signature."""
    return json.loads((IDENTITIES / f"{name}.json").read_bytes())


def _build_bundle(one: Mapping[str, str]) -> dict[str, Any]:
    chain = [{"rawBytes": certificate} for certificate in RECORDING["certificates"]]
    material = {"x509CertificateChain": {"certificates": chain}, "tlogEntries": []}
    return {
        "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
        "verificationMaterial": material,
        "dsseEnvelope": {
            "payload": one["payload"],
            "payloadType": "application/vnd.in-toto+json",
            "signatures": [{"sig": one["sig"], "keyid": ""}],
        },
    }


def _make_other_files(bundle: Any) -> Files:  # noqa: ANN401 - JSON
    statement = json.loads(b64decode(bundle["dsseEnvelope"]["payload"]))
    return {one["name"]: b"other text\n" for one in statement["predicate"]["resources"]}


def _add(files: Files, bundle: Any) -> Files:  # noqa: ANN401 - JSON
    return {**files, SIGNATURE: json.dumps(bundle).encode()}


def _cut(files: Files) -> Files:
    return {**files, SIGNATURE: files[SIGNATURE][:-60]}


def _edit(bundle: Any, damage: Callable[[Any], object]) -> Any:  # noqa: ANN401 - JSON
    copy = json.loads(json.dumps(bundle))
    damage(copy)
    return copy


def _edit_name(bundle: Any) -> None:  # noqa: ANN401 - JSON
    envelope = bundle["dsseEnvelope"]
    payload = b64decode(envelope["payload"]).replace(b'"name": "', b'"name": "x', 1)
    envelope["payload"] = b64encode(payload).decode()


def _edit_signature(bundle: Any) -> None:  # noqa: ANN401 - JSON
    [one] = bundle["dsseEnvelope"]["signatures"]
    one["sig"] = f"{one['sig'][:20]}{'A' if one['sig'][20] != 'A' else 'B'}{one['sig'][21:]}"


def _edit_chain(damage: Callable[[list[Any]], object]) -> Callable[[Any], object]:
    def edit(bundle: Any) -> None:  # noqa: ANN401 - JSON
        damage(bundle["verificationMaterial"]["x509CertificateChain"]["certificates"])

    return edit


def _set_material(bundle: Any, **fields: object) -> None:  # noqa: ANN401 - JSON
    bundle["verificationMaterial"].update(fields)


def _take_from_other(field: str) -> Callable[[Any], None]:
    other = read_keyless("model-1.0.1")["verificationMaterial"][field]
    return lambda bundle: _set_material(bundle, **{field: other})


def _edit_proof(bundle: Any) -> None:  # noqa: ANN401 - JSON
    bundle["verificationMaterial"]["tlogEntries"][0]["inclusionProof"]["hashes"].reverse()


# Rejected by the reference tool, except for the chain without its root.
_DAMAGES: Mapping[str, Callable[[Any], object]] = {
    "edited-name": _edit_name,
    "edited-signature": _edit_signature,
    "no-signature": lambda one: one["dsseEnvelope"]["signatures"].clear(),
    "other-payload-type": lambda one: one["dsseEnvelope"].update(payloadType="application/json"),
}
_CHAIN_DAMAGES: Mapping[str, Callable[[Any], object]] = {
    "chain-without-root": _edit_chain(lambda chain: chain.pop()),
    "chain-without-intermediate": _edit_chain(lambda chain: chain.pop(1)),
    "signer-alone": _edit_chain(lambda chain: chain.__delitem__(slice(1, None))),
    "intermediate-as-signer": _edit_chain(lambda chain: chain.pop(0)),
    "reversed-chain": _edit_chain(lambda chain: chain.reverse()),
    "no-certificates": _edit_chain(lambda chain: chain.clear()),
}
_LOG_DAMAGES: Mapping[str, Callable[[Any], object]] = {
    "other-certificate": _take_from_other("certificate"),
    "other-log-entry": _take_from_other("tlogEntries"),
    "no-log-entry": lambda one: _set_material(one, tlogEntries=[]),
    "edited-proof": _edit_proof,
}
_FILE_DAMAGES: Mapping[str, Files] = {
    "edited-file": {**_MODEL_FILES, _SECOND: b"signme-2\n"},
    "emptied-file": {**_MODEL_FILES, _SECOND: b""},
    "swapped-files": {_FIRST: _MODEL_FILES[_SECOND], _SECOND: _MODEL_FILES[_FIRST]},
    "missing-file": {_FIRST: _MODEL_FILES[_FIRST]},
    "renamed-file": {_FIRST: _MODEL_FILES[_FIRST], "signme-3": _MODEL_FILES[_SECOND]},
    "extra-file": {**_MODEL_FILES, "extra.md": b"x"},
    "extra-hidden-file": {**_MODEL_FILES, ".extra": b"x"},
}
