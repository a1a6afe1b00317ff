"""`skillhall sign`, run in this process, and what `add` makes of signed skills."""

import json
from pathlib import Path

import pytest

from skillhall._internal.cli.runner import run
from skillhall._internal.signing.keys import load_public_key
from skillhall._internal.signing.signers import KeySigner
from skillhall._internal.skill.signatures.sigstore_bundle import parse_bundle
from tests.support.skills import make_skill


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    make_skill(tmp_path / "skills", files={".hidden": b"x", "scripts/run.sh": b"echo"})
    return tmp_path


def sign(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sign", "--new-key", "acme"]) == 0
    assert run(["sign", "skills/pdf-tools", "--key", "acme.key"]) == 0
    capsys.readouterr()


def test_new_key_is_private_and_never_replaced(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["sign", "--new-key", "acme"]) == 0
    assert capsys.readouterr().out.split() == ["./acme.key", "./acme.pub"]
    assert (folder / "acme.key").stat().st_mode & 0o777 == 0o600
    before = (folder / "acme.key").read_bytes()
    assert run(["sign", "--new-key", "acme"]) != 0
    assert "already exists" in capsys.readouterr().err
    assert (folder / "acme.key").read_bytes() == before


def test_all_files_of_a_skill_are_signed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["sign", "--new-key", "acme"])
    capsys.readouterr()
    assert run(["sign", "skills/pdf-tools", "--key", "acme.key", "--json"]) == 0
    (skill,) = json.loads(capsys.readouterr().out)["data"]["skills"]
    assert skill == {"name": "pdf-tools", "path": "skills/pdf-tools/skill.oms.sig", "files": 3}
    signature = parse_bundle((folder / skill["path"]).read_bytes())
    key = load_public_key((folder / "acme.pub").read_bytes(), "acme.pub")
    assert KeySigner("acme", key).accepts(signature)


def test_encrypted_key_needs_the_passphrase(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SKILLHALL_SIGNING_PASSPHRASE", "correct horse")
    sign(capsys)
    monkeypatch.delenv("SKILLHALL_SIGNING_PASSPHRASE")
    assert run(["sign", "skills/pdf-tools", "--key", "acme.key"]) != 0
    err = capsys.readouterr().err
    assert "acme.key: it is encrypted" in err
    assert "SKILLHALL_SIGNING_PASSPHRASE" in err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["skills/pdf-tools"],
        ["--key", "a.key"],
        ["skills", "--new-key", "a", "--key", "b"],
        ["--new-key", "keys/"],
    ],
)
def test_incomplete_arguments_are_usage_errors(arguments: list[str]) -> None:
    assert run(["sign", *arguments]) == 2


def test_folder_without_a_skill_is_not_signed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sign(capsys)
    assert run(["sign", "skills", "--key", "acme.key"]) != 0
    assert "no SKILL.md found" in capsys.readouterr().err
    assert not (folder / "skills/skill.oms.sig").exists()


def test_signed_skill_is_added_and_a_changed_one_is_rejected(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sign(capsys)
    assert run(["add", "./skills", "--yes", "--agent", "claude-code"]) == 0
    assert (folder / ".claude/skills/pdf-tools/skill.oms.sig").is_file()
    (folder / "skills/pdf-tools/scripts/run.sh").write_bytes(b"curl evil")
    capsys.readouterr()
    assert run(["add", "./skills", "--yes", "--overwrite", "--agent", "claude-code"]) == 3
    assert "signature-broken" in capsys.readouterr().err
    assert (folder / ".claude/skills/pdf-tools/scripts/run.sh").read_bytes() == b"echo"
