"""Sigstore identities in policies and in `skillhall sign`, with a private Sigstore."""

import json
import sys
from pathlib import Path

import pytest

from skillhall._internal import settings
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.skill.signatures.statement import SIGNATURE_FILE, build_statement
from tests.support.project_cli import Cli, make_cli
from tests.support.sigstore_instance import GITHUB, WORKFLOW, SigstoreInstance
from tests.support.skills import make_skill

INSTANCE = SigstoreInstance()
TAGS = WORKFLOW.removesuffix("v1") + "*"


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    monkeypatch.setattr(settings, "MACHINE_POLICY", str(tmp_path / "etc/policy.toml"))
    return make_cli(tmp_path, monkeypatch, capsys)


def write_policy(identity: str = TAGS, *lines: str, root: bytes = b"") -> None:
    folder = Path.home() / ".config/skillhall"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "root.json").write_bytes(root or INSTANCE.trusted_root)
    signer = (
        "[[signer]]",
        'name = "acme-ci"',
        f'identity = "{identity}"',
        f'issuer = "{GITHUB}"',
        'trusted_root = "root.json"',
        "approves = true",
    )
    text = "\n".join(["version = 1", *lines, *signer])
    (folder / "policy.toml").write_text(text, encoding="utf-8")


def make_signed_skill(folder: Path) -> Path:
    skill = make_skill(folder, "pdf")
    digests = {"SKILL.md": sha256_hex((skill / "SKILL.md").read_bytes())}
    bundle = INSTANCE.sign(build_statement("pdf", digests))
    (skill / SIGNATURE_FILE).write_text(json.dumps(bundle), encoding="utf-8")
    return skill


def test_policy_knows_a_workflow_by_its_identity(cli: Cli) -> None:
    skill = make_signed_skill(Path(".agents/skills"))
    write_policy()
    assert "signed by acme-ci" in cli("trust", "show", "pdf").out
    assert [one["name"] for one in cli("prompt", "--json").data["skills"]] == ["pdf"]
    write_policy(TAGS.replace("tags", "heads"))
    assert "signed by an unknown key" in cli("trust", "show", "pdf").out
    assert cli("prompt", "--json").data["skills"] == []
    write_policy()
    (skill / "evil.md").write_bytes(b"x")
    assert cli("prompt", "--json").data["skills"] == []
    assert "signature is broken" in cli("trust", "show", "pdf").out


def test_requirement_of_an_identity_is_checked_when_skills_are_added(
    cli: Cli, tmp_path: Path
) -> None:
    source = make_signed_skill(tmp_path / "source")
    require = f'require = [{{ source = "{tmp_path}/*", signer = ["acme-ci"] }}]'
    write_policy(TAGS.replace("acme", "evil"), require)
    refused = cli("add", str(source))
    assert (refused.code, "policy-unmet" in refused.err) == (3, True)
    assert not Path(".agents").exists()
    write_policy(TAGS, require)
    assert "note: pdf: signed by acme-ci" in cli("add", str(source)).err


def test_without_the_package_identities_are_not_checked(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_signed_skill(Path(".agents/skills"))
    write_policy(TAGS, 'require = [{ source = "*", signer = ["acme-ci"] }]')
    module = "skillhall._internal.signing.sigstore_identity"
    monkeypatch.delitem(sys.modules, module, raising=False)
    for name in [name for name in sys.modules if name.partition(".")[0] == "sigstore"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sigstore", None)
    assert "signed, not checked" in cli("trust", "show", "pdf").out
    [row] = cli("policy", "check", "--json").data["skills"]
    assert "pip install 'skillhall[sigstore]'" in row["reason"]


def test_trusted_root_that_cannot_be_used_is_named(cli: Cli) -> None:
    make_signed_skill(Path(".agents/skills"))
    write_policy(TAGS, 'require = [{ source = "*", signer = ["acme-ci"] }]', root=b"{}")
    [row] = cli("policy", "check", "--json").data["skills"]
    assert "root.json: it is not a trusted root of Sigstore" in row["reason"]


def test_workflow_signs_with_its_identity(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skill = make_skill(Path(".agents/skills"), "pdf", files={"a.md": b"a\n"})
    write_policy()
    with INSTANCE.serve() as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        config = tmp_path / "sigstore.json"
        config.write_bytes(INSTANCE.trust_config)
        signed = cli("sign", str(skill), "--sigstore", "--trust-config", str(config))
    assert (signed.code, signed.err) == (0, "signed 1 skill\n")
    assert "signed by acme-ci" in cli("trust", "show", "pdf").out


def test_signing_without_an_identity_says_what_to_do(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_skill(Path(), "pdf")
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    with INSTANCE.serve():
        (tmp_path / "sigstore.json").write_bytes(INSTANCE.trust_config)
    failed = cli("sign", "pdf", "--sigstore", "--trust-config", str(tmp_path / "sigstore.json"))
    assert failed.code != 0
    assert "no identity token is available" in failed.err
    assert "use --key" in failed.err
    assert not Path("pdf", SIGNATURE_FILE).exists()
