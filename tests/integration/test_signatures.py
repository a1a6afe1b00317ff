"""Signed skills in `add`, `update`, `install` and `verify`, and in imports of a server."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from skillhall._internal import settings
from skillhall._internal.settings import Settings
from skillhall._internal.skill_store.collection import Collection
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall.errors import SkillRejected
from tests.support.actors import ACTOR
from tests.support.archives import zip_of
from tests.support.project_cli import Cli, make_cli
from tests.support.signatures import KEYS, sign
from tests.support.skills import make_skill_md

SKILL = {"SKILL.md": make_skill_md("pdf", "Reads PDF files."), "a.md": b"a\n"}
SIGNED = sign(SKILL)
BROKEN = {**SIGNED, "a.md": b"evil\n"}
PROBLEM = "signature is broken: the files differ from the signed ones (changed: 'a.md')"
KEY = ".agents/skills/pdf"


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    monkeypatch.setattr(settings, "MACHINE_POLICY", str(tmp_path / "etc/policy.toml"))
    return make_cli(tmp_path, monkeypatch, capsys)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return tmp_path / "source/pdf"


def write(folder: Path, files: dict[str, bytes]) -> str:
    shutil.rmtree(folder, ignore_errors=True)
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return str(folder)


def know_signer(*lines: str) -> None:
    """Write a policy of the user that names the signer `acme-ci`."""
    folder = Path.home() / ".config/skillhall"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "acme.pub").write_bytes(KEYS.public)
    signer = ("[[signer]]", 'name = "acme-ci"', 'key = "acme.pub"')
    text = "\n".join(["version = 1", *lines, *signer])
    (folder / "policy.toml").write_text(text, encoding="utf-8")


def read_entry() -> dict[str, Any]:
    lock = json.loads(Path("skillhall-lock.json").read_text(encoding="utf-8"))
    entry: dict[str, Any] = lock["skills"][KEY]
    return entry


def hide_cryptography(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    for name in [name for name in sys.modules if name.startswith("skillhall._internal.signing")]:
        monkeypatch.delitem(sys.modules, name)


def test_known_signer_is_in_the_lock_file(cli: Cli, source: Path) -> None:
    know_signer()
    added = cli("add", write(source, SIGNED), "--json").data
    assert added["added"][0]["signer"] == "acme-ci"
    assert added["notes"] == ["pdf: signed by acme-ci"]
    assert read_entry()["signer"] == "acme-ci"
    assert "pdf\tskill.oms.sig\tsigned by acme-ci" in cli("verify").out


def test_unknown_signer_counts_as_unsigned(cli: Cli, source: Path) -> None:
    assert "note: pdf: signed by an unknown key" in cli("add", write(source, SIGNED)).err
    assert "signer" not in read_entry()
    assert cli("verify", "--json").data["places"][0]["signature"] == "signed by an unknown key"


def test_unsigned_skill_gets_no_message(cli: Cli, source: Path) -> None:
    assert "sign" not in cli("add", write(source, SKILL)).err
    assert cli("verify").out == f"{KEY}\t\tok\n"


def test_broken_signature_is_refused_unless_taken_as_unsigned(
    cli: Cli, source: Path, tmp_path: Path
) -> None:
    refused = cli("add", write(source, BROKEN))
    assert refused.code == 3
    assert PROBLEM in refused.err
    assert not Path(KEY).exists()
    taken = cli("add", str(source), "--unsigned")
    assert taken.code == 0
    assert f"warn[signature-broken]: the {PROBLEM}" in taken.err
    assert read_entry()["unsigned"] is True
    [approval] = json.loads((tmp_path / "data/trust.json").read_bytes())["approvals"]
    assert approval["reason"] == "its signature is broken; treated as unsigned"
    verified = cli("verify")
    assert (verified.code, f"treated as unsigned: {PROBLEM}" in verified.out) == (0, True)


@pytest.mark.parametrize("path", ["more.md", ".hidden", ".github/evil.md", ".gitignore"])
def test_file_that_was_not_signed_is_not_installed(cli: Cli, source: Path, path: str) -> None:
    refused = cli("add", write(source, {**SIGNED, path: b"evil\n"}))
    assert (refused.code, f"not signed: '{path}'" in refused.err) == (3, True)
    assert not Path(KEY).exists()


@pytest.mark.parametrize("target", ["/etc/hostname", "SKILL.md", "../copy.md"])
def test_signed_file_that_became_a_link_is_not_installed(
    cli: Cli, source: Path, target: str
) -> None:
    write(source, SIGNED)
    (source.parent / "copy.md").write_bytes(SIGNED["a.md"])
    (source / "a.md").unlink()
    (source / "a.md").symlink_to(target)
    assert cli("add", str(source)).code == 3
    assert not Path(KEY).exists()


def test_additional_link_in_a_signed_skill_is_not_installed(cli: Cli, source: Path) -> None:
    write(source, SIGNED)
    (source / "link.md").symlink_to("a.md")
    added = cli("add", str(source))
    assert (added.code, "link.md" in added.out + added.err) == (0, True)
    assert {one.name for one in Path(KEY).iterdir()} == {*SIGNED}


def test_update_refuses_a_broken_signature(cli: Cli, source: Path) -> None:
    cli("add", write(source, SIGNED))
    write(source, BROKEN)
    refused = cli("update")
    assert (refused.code, PROBLEM in refused.err) == (3, True)
    assert Path(KEY, "a.md").read_bytes() == b"a\n"
    assert cli("update", "--unsigned").code == 0
    assert Path(KEY, "a.md").read_bytes() == b"evil\n"
    assert read_entry()["unsigned"] is True
    write(source, SIGNED)
    assert cli("update").code == 0
    assert "unsigned" not in read_entry()


def test_install_takes_broken_signatures_that_the_lock_file_names(cli: Cli, source: Path) -> None:
    cli("add", write(source, BROKEN), "--unsigned")
    lock = Path("skillhall-lock.json")
    before = lock.read_bytes()
    shutil.rmtree(KEY)
    assert cli("install", "--frozen").code == 0
    assert lock.read_bytes() == before
    shutil.rmtree(KEY)
    lock.write_bytes(before.replace(b',\n      "unsigned": true', b""))
    refused = cli("install")
    assert (refused.code, PROBLEM in refused.err, Path(KEY).exists()) == (3, True, False)
    assert cli("install", "--unsigned").code == 0
    assert read_entry()["unsigned"] is True


def test_verify_finds_a_file_that_was_changed_after_signing(cli: Cli, source: Path) -> None:
    cli("add", write(source, SIGNED))
    Path(KEY, "a.md").write_bytes(b"evil\n")
    verified = cli("verify")
    assert verified.code == 1
    assert f"{KEY}\tskill.oms.sig\t{PROBLEM}" in verified.out
    assert f"{KEY}\ta.md\tchanged" in verified.out


def test_requirement_refuses_a_broken_signature_even_as_unsigned(cli: Cli, source: Path) -> None:
    know_signer(f'require = [{{ source = "{source.parent}/*", signer = ["acme-ci"] }}]')
    refused = cli("add", write(source, BROKEN), "--unsigned")
    assert refused.code == 3
    assert "policy-unmet" in refused.err
    assert not Path(KEY).exists()


def test_without_the_package_signatures_are_not_checked(
    cli: Cli, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    know_signer()
    hide_cryptography(monkeypatch)
    assert "note: pdf: signed, not checked" in cli("add", write(source, SIGNED)).err
    assert "signed, not checked" in cli("verify").out
    assert cli("add", write(source, BROKEN), "--overwrite").code == 3


@pytest.mark.parametrize(
    ("files", "problem"),
    [(SKILL, "it is not signed"), (BROKEN, PROBLEM), (sign(SKILL), "")],
)
def test_import_on_a_server_meets_requirements(
    tmp_path: Path, cli: Cli, files: dict[str, bytes], problem: str
) -> None:
    del cli  # it makes the home folder of the test
    know_signer('require = [{ source = "*", signer = ["acme-ci"] }]')
    (tmp_path / "run").mkdir()
    collection = Collection(FolderStore(tmp_path / "run"), Settings.read())
    archive = zip_of({f"pdf/{path}": data for path, data in files.items()})
    if not problem:
        report, _ = collection.import_archive(archive, "pdf.zip", actor=ACTOR)
        assert [skill.id for skill in report.imported] == ["pdf"]
        return
    with pytest.raises(SkillRejected) as caught:
        collection.import_archive(archive, "pdf.zip", actor=ACTOR)
    assert problem in str(caught.value)
    assert not (tmp_path / "run/.agents/skills/pdf").exists()
