"""Policy files of the machine, the user and the project, in commands."""

import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from skillhall._internal import settings
from skillhall._internal.agents.agent_gate import open_gate
from skillhall._internal.agents.agent_skills import GatedAgentSkills, build_default_agent
from skillhall._internal.agents.agent_tools import AgentTools
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.signing.keys import create_key_pair
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.skill.signatures.sigstore_bundle import render_bundle
from skillhall._internal.skill.signatures.statement import build_statement
from tests.support.certificates import SUBJECT, Authority, sign_with_certificate
from tests.support.project_cli import Cli, make_cli
from tests.support.signatures import KEYS, sign
from tests.support.skills import make_skill, make_skill_md

PDF = make_skill_md("pdf", "Reads PDF files.")
RISKY = b"---\nname: risky\ndescription: Runs.\n---\nRun: claude --dangerously-skip-permissions\n"


class Policed(NamedTuple):
    """A cloned project with the skill `pdf`, and the places of policy files."""

    cli: Cli
    skills: Path
    machine: Path
    user: Path
    project: Path

    def write(self, path: Path, *lines: str) -> None:
        """Write a policy file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.parent.chmod(0o755)
        path.write_text("\n".join(["version = 1", *lines]), encoding="utf-8")
        path.chmod(0o644)

    def check(self, name: str = "pdf") -> dict[str, str]:
        """Return what `policy check` says about a skill."""
        [skill] = self.cli("policy", "check", name, "--json").data["skills"]
        result: dict[str, str] = skill
        return result

    def is_used(self, name: str = "pdf", *options: str) -> bool:
        """Whether a model gets the skill, by `prompt`, `mcp` and `read`."""
        outputs = [self.cli(command, "--json", *options) for command in ("prompt", "mcp")]
        used = {any(one["name"] == name for one in out.data["skills"]) for out in outputs}
        used.add(self.cli("read", name, *options).code == 0)
        [answer] = used
        return answer


@pytest.fixture
def policed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Policed:
    cli = make_cli(tmp_path, monkeypatch, capsys)
    machine = tmp_path / "etc/policy.toml"
    monkeypatch.setattr(settings, "MACHINE_POLICY", str(machine))
    project = tmp_path / "project"
    make_skill(project / ".agents/skills", "pdf", data=PDF)
    return Policed(
        cli,
        project / ".agents/skills",
        machine,
        Path.home() / ".config/skillhall/policy.toml",
        project / "skillhall-policy.toml",
    )


def digest_of(policed: Policed, name: str = "pdf") -> str:
    digest: str = policed.cli("trust", "show", name, "--json").data["digest"]
    return digest


# Whose policy may do what


def test_looser_project_policy_has_no_effect(policed: Policed) -> None:
    policed.write(
        policed.project,
        'trust = { project = "load" }',
        f'allow = ["{digest_of(policed)}"]',
    )
    assert not policed.is_used()
    for command in (["prompt"], ["mcp", "--check"], ["read", "pdf"], ["policy", "check"]):
        err = policed.cli(*command).err
        assert "skillhall-policy.toml: 'allow' has no effect" in err
        assert "skillhall-policy.toml: 'trust.project' has no effect" in err


def test_project_policy_can_tighten(policed: Policed) -> None:
    policed.cli("trust", "--yes")
    policed.write(policed.project, 'deny = [{ name = "p*" }]')
    assert not policed.is_used()
    assert policed.check()["reason"] == f"deny[0] of {policed.project}"
    assert policed.cli("prompt").err == ""


def test_user_policy_loosens_the_default_within_the_bounds_of_the_machine(
    policed: Policed,
) -> None:
    policed.write(policed.user, 'trust = { project = "load" }')
    assert policed.is_used()
    policed.write(policed.machine, 'trust = { project = "hold" }')
    assert not policed.is_used()
    assert not policed.is_used("pdf", "--trust-project")
    assert policed.check()["reason"].endswith(f"trust.project of {policed.machine}")


def test_action_warn_uses_the_skill_with_a_warning(policed: Policed) -> None:
    policed.write(policed.user, 'trust = { project = "warn" }')
    assert policed.is_used()
    assert "warning: used without an approval: pdf" in policed.cli("prompt").err


def test_machine_allows_a_digest(policed: Policed) -> None:
    policed.write(policed.machine, f'allow = ["{digest_of(policed)}"]')
    assert policed.is_used()
    skill_md = policed.skills / "pdf/SKILL.md"
    skill_md.write_bytes(skill_md.read_bytes() + b"x\n")
    assert not policed.is_used()


def test_denied_skill_is_used_in_no_folder_and_with_no_profile(policed: Policed) -> None:
    policed.write(policed.machine, 'deny = [{ name = "pdf" }]')
    shutil.move(policed.skills / "pdf", Path.home() / ".agents/skills/pdf")
    assert not policed.is_used()
    assert not policed.is_used("pdf", "--trust-project")
    named = policed.cli("prompt", str(Path.home() / ".agents/skills"), "--json").data
    assert named["skills"] == []
    assert policed.cli("prompt", "--profile", "specification").out == ""


def test_environment_does_not_replace_the_policy_of_the_machine() -> None:
    variables = dict.fromkeys(
        ("SKILLHALL_MACHINE_POLICY", "SKILLHALL_POLICY", "PROGRAMDATA", "XDG_CONFIG_DIRS"), "/tmp"
    )
    assert settings.Settings.read(variables).machine_policy == settings.MACHINE_POLICY
    assert settings.Settings.read({"XDG_CONFIG_HOME": "/c"}).user_policy == (
        str(Path("/c/skillhall/policy.toml"))
    )


# Policies that cannot be used


@pytest.mark.parametrize("level", ["machine", "user", "project"])
def test_broken_policy_holds_everything_that_was_found(policed: Policed, level: str) -> None:
    make_skill(Path.home() / ".agents/skills", "personal")
    policed.cli("init", "mine", "--dir", ".agents/skills")
    policed.cli("trust", "--yes")
    path: Path = getattr(policed, level)
    policed.write(path, "", 'trust = { project = "maybe" }')
    result = policed.cli("prompt", "--json")
    assert [skill["name"] for skill in result.data["skills"]] == ["mine"]
    assert {skill["name"] for skill in result.data["held"]} == {"pdf", "personal"}
    assert f"{path}:3: 'trust.project' must be one of" in result.err
    assert policed.cli("prompt", str(policed.skills), "--json").data["held"] == []
    checked = policed.cli("policy", "check", "--json")
    assert checked.code != 0
    assert f"{path}:3" in json.loads(checked.out)["error"]["message"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
@pytest.mark.parametrize("is_folder", [False, True])
def test_machine_policy_that_others_may_write_holds_everything_found(
    policed: Policed,
    is_folder: bool,
) -> None:
    policed.cli("trust", "--yes")
    policed.write(policed.machine, f'allow = ["{digest_of(policed)}"]')
    assert policed.is_used()
    (policed.machine.parent if is_folder else policed.machine).chmod(0o777)
    assert not policed.is_used()
    assert not policed.is_used("pdf", "--trust-project")
    assert f"{policed.machine}: others can write to it" in policed.cli("prompt").err


def test_project_policy_that_is_a_link_holds_everything_found(
    policed: Policed, tmp_path: Path
) -> None:
    policed.cli("trust", "--yes")
    policed.write(tmp_path / "elsewhere.toml")
    policed.project.symlink_to(tmp_path / "elsewhere.toml")
    assert not policed.is_used()


def test_policy_in_a_folder_that_cannot_be_read_holds_everything_found(policed: Policed) -> None:
    policed.cli("trust", "--yes")
    policed.machine.parent.symlink_to(policed.machine.parent.name)  # a loop
    assert not policed.is_used()
    assert f"{policed.machine}: cannot be read" in policed.cli("prompt").err


def test_list_shows_the_states_that_policies_give(policed: Policed) -> None:
    def read_state() -> str:
        [skill] = policed.cli("list", "--json").data["skills"]
        state: str = skill["trust"]
        return state

    assert read_state() == "new"
    policed.cli("trust", "--yes")
    assert read_state() == "approved"
    policed.write(policed.user, 'deny = [{ name = "pdf" }]')
    assert read_state() == "blocked"
    policed.user.unlink()
    assert read_state() == "approved"


def test_user_policy_may_be_a_link(policed: Policed, tmp_path: Path) -> None:
    policed.write(tmp_path / "dotfiles/policy.toml", 'trust = { project = "load" }')
    policed.user.parent.mkdir(parents=True)
    policed.user.symlink_to(tmp_path / "dotfiles/policy.toml")
    assert policed.is_used()


def test_running_agent_notices_changes_of_policies_and_files(policed: Policed) -> None:
    personal = make_skill(Path.home() / ".agents/skills", "personal", files={"a.md": b"Fine.\n"})
    current = settings.Settings.read()._replace(log_usage=False)
    gate = open_gate(current, LENIENT.trust_policy)
    tools = AgentTools(GatedAgentSkills(build_default_agent(), current, gate))

    def is_loaded() -> bool:
        tools.reset()
        return not tools.call("load_skill", {"name": "personal"}).is_error

    assert is_loaded()
    policed.write(policed.machine, 'deny = [{ name = "personal" }]')
    assert not is_loaded()
    policed.write(policed.machine, 'deny = [{ risk = "L3" }]')
    assert is_loaded()
    (personal / "a.md").write_bytes(b"Better.\n")
    assert is_loaded()
    (personal / "a.md").write_bytes(RISKY)
    assert not is_loaded()


# Risk levels


def test_risk_level_is_shown_and_can_be_denied(policed: Policed) -> None:
    make_skill(policed.skills, "risky", data=RISKY)
    question = policed.cli("prompt", typed="n\n").err
    assert "pdf (L0), risky (L3)" in question
    assert "(risk L3)" in policed.cli("trust", "show", "risky").out
    policed.cli("trust", "--yes")
    policed.write(policed.user, 'deny = [{ risk = "L2" }]')
    assert policed.is_used("pdf")
    assert not policed.is_used("risky")
    assert policed.check("risky")["risk"] == "L3"
    assert policed.check("risky")["state"] == "blocked"


def test_risk_in_a_hidden_file_counts(policed: Policed) -> None:
    (policed.skills / "pdf/.extra.md").write_bytes(RISKY)
    assert policed.check()["risk"] == "L3"


def test_file_that_becomes_risky_is_not_read(policed: Policed) -> None:
    policed.write(policed.machine, 'deny = [{ risk = "L3" }]')
    personal = make_skill(Path.home() / ".agents/skills", "personal", files={"a.md": b"Fine.\n"})
    assert policed.cli("read", "personal", "a.md").out == "Fine.\n"
    (personal / "a.md").write_bytes(RISKY)
    assert policed.cli("read", "personal", "a.md").code == 3


# Signers


def make_signed_skill(folder: Path) -> Path:
    shutil.rmtree(folder / "pdf", ignore_errors=True)
    files = sign({"SKILL.md": PDF, "a.md": b"a\n"}, KEYS)
    return make_skill(folder, "pdf", data=files.pop("SKILL.md"), files=files)


SIGNER = ("[[signer]]", 'name = "acme-ci"', 'key = "acme.pub"', "approves = true")


def add_signer(policed: Policed, path: Path, *lines: str) -> None:
    policed.write(path, *lines, *SIGNER)
    (path.parent / "acme.pub").write_bytes(KEYS.public)


def test_signer_approves_what_it_signed(policed: Policed) -> None:
    make_signed_skill(policed.skills)
    add_signer(policed, policed.project)
    assert not policed.is_used()
    assert "'approves' of the signer 'acme-ci' has no effect" in policed.cli("prompt").err
    add_signer(policed, policed.user)
    assert policed.is_used()
    assert policed.check()["signer"] == "acme-ci"
    assert policed.check()["reason"] == f"signer acme-ci of {policed.user}"
    assert "signed by acme-ci" in policed.cli("trust", "show", "pdf").out
    (policed.skills / "pdf/a.md").write_bytes(b"b\n")
    assert not policed.is_used()


def test_signer_is_known_by_certificate_and_subject(policed: Policed) -> None:
    root, digests = Authority.create("root"), {"SKILL.md": sha256_hex(PDF)}
    signature = sign_with_certificate(root, build_statement("pdf", digests))
    (policed.skills / "pdf/skill.oms.sig").write_bytes(render_bundle(signature))
    entry = ("[[signer]]", 'name = "acme"', 'certificate = "roots.pem"', "approves = true")
    policed.write(policed.user, *entry, f'subject = "{SUBJECT}"')
    (policed.user.parent / "roots.pem").write_bytes(root.pem)
    assert policed.is_used()
    assert policed.check()["signer"] == "acme"
    policed.write(policed.user, *entry, 'subject = "CN=Someone else"')
    assert not policed.is_used()


def test_requirement_blocks_installed_skills_that_are_not_signed(
    policed: Policed, tmp_path: Path
) -> None:
    shutil.rmtree(policed.skills)
    source = make_signed_skill(tmp_path / "source")
    assert policed.cli("add", str(source), "--yes").code == 0
    require = f'require = [{{ source = "{tmp_path}/*", signer = ["acme-ci"] }}]'
    policed.write(policed.machine, require)
    assert not policed.is_used()
    add_signer(policed, policed.project)
    assert "its signer is not known" in policed.check()["reason"]
    add_signer(policed, policed.machine, require)
    assert policed.is_used()
    (policed.skills / "pdf/skill.oms.sig").unlink()
    policed.cli("trust", "--yes")
    assert not policed.is_used()
    assert policed.check()["reason"] == (
        f"require[0] of {policed.machine}: it is not signed; it must be signed by acme-ci"
    )


def test_requirement_without_the_package_for_signatures_blocks(
    policed: Policed, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_signed_skill(policed.skills)
    add_signer(policed, policed.machine, 'require = [{ source = "*", signer = ["acme-ci"] }]')
    assert policed.is_used()
    for name in [name for name in sys.modules if name.startswith("skillhall._internal.signing")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    assert not policed.is_used()
    assert "pip install 'skillhall[signing]'" in policed.check()["reason"]


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ('key = "missing.pub"', "missing.pub: cannot be read"),
        ('key = "policy.toml"', "policy.toml: it is not a public key"),
        ('certificate = "policy.toml"\nsubject = "CN=x"', "it contains no PEM certificate"),
        ('identity = "x"\nissuer = "y"', "its signer is not known"),
    ],
)
def test_signer_that_cannot_be_used_never_matches(
    policed: Policed, entry: str, problem: str
) -> None:
    make_signed_skill(policed.skills)
    require = 'require = [{ source = "*", signer = ["ci"] }]'
    policed.write(policed.machine, require, "[[signer]]", 'name = "ci"', entry)
    assert problem in policed.check()["reason"]
    assert not policed.is_used()


# Installing


def break_signature(skill: Path) -> None:
    (skill / "a.md").write_bytes(b"b\n")


def remove_signature(skill: Path) -> None:
    (skill / "skill.oms.sig").unlink()


def sign_with_another_key(skill: Path) -> None:
    files = sign({"SKILL.md": PDF, "a.md": b"a\n"}, create_key_pair())
    (skill / "skill.oms.sig").write_bytes(files["skill.oms.sig"])


SPOILERS = [break_signature, remove_signature, sign_with_another_key]


@pytest.fixture
def source(policed: Policed, tmp_path: Path) -> Path:
    """A signed skill of a source whose skills must be signed."""
    shutil.rmtree(policed.skills)
    require = f'require = [{{ source = "{tmp_path}/*", signer = ["acme-ci"] }}]'
    add_signer(policed, policed.machine, require)
    return make_signed_skill(tmp_path / "source")


def test_known_signer_is_shown_by_add(policed: Policed, source: Path) -> None:
    result = policed.cli("add", str(source), "--yes")
    assert result.code == 0
    assert "note: pdf: signed by acme-ci" in result.err


@pytest.mark.parametrize("spoil", SPOILERS)
def test_required_signature_is_checked_before_anything_is_written(
    policed: Policed, source: Path, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    assert policed.cli("add", str(source), "--yes").code == 0
    project = policed.project.parent
    spoil(source)
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    assert policed.cli("add", str(source), "--yes", "--overwrite").code == 3
    assert policed.cli("add", str(source), "--yes", "--dir", str(tmp_path / "other")).code == 3
    assert policed.cli("update").code != 0
    assert {path: path.read_bytes() for path in project.rglob("*") if path.is_file()} == before
    assert not (tmp_path / "other").exists()
    shutil.rmtree(policed.skills)
    assert policed.cli("install").code != 0
    assert not policed.skills.exists()


def test_locked_skill_is_not_installed_without_a_required_signature(
    policed: Policed, tmp_path: Path
) -> None:
    shutil.rmtree(policed.skills)
    source = make_skill(tmp_path / "source", "pdf", data=PDF)
    assert policed.cli("add", str(source), "--yes").code == 0
    shutil.rmtree(policed.skills)
    require = f'require = [{{ source = "{tmp_path}/*", signer = ["acme-ci"] }}]'
    add_signer(policed, policed.machine, require)
    result = policed.cli("install", "--frozen")
    assert result.code != 0
    assert "it is not signed; it must be signed by acme-ci" in result.out + result.err
    assert not policed.skills.exists()


def test_skills_of_other_sources_need_no_signature(
    policed: Policed, source: Path, tmp_path: Path
) -> None:
    del source
    require = 'require = [{ source = "github.com/acme/*", signer = ["acme-ci"] }]'
    add_signer(policed, policed.machine, require)
    other = make_skill(tmp_path / "source", "csv")
    assert policed.cli("add", str(other), "--yes").code == 0


def test_nothing_is_added_while_a_policy_is_broken(policed: Policed, source: Path) -> None:
    policed.write(policed.machine, "deny = 1")
    result = policed.cli("add", str(source), "--yes")
    assert result.code == 3
    assert f"{policed.machine}:2" in result.err


def test_review_dates_are_listed_when_due_and_never_block(policed: Policed) -> None:
    assert policed.cli("trust", "pdf", "--yes").code == 0
    policed.write(policed.user, 'review = { L0 = "90d" }')
    assert policed.cli("trust", "list", "--json").data["due"] == []
    records = Path("../data/trust.json")
    old = re.sub(r'"at": "20..-', '"at": "2020-', records.read_text(encoding="utf-8"))
    records.write_text(old, encoding="utf-8")
    result = policed.cli("trust", "list")
    assert "warning: pdf (L0) has been due for a review since 202" in result.err
    assert policed.is_used()
    assert policed.cli("trust", "pdf", "--yes").code == 0
    assert policed.cli("trust", "list", "--json").data["due"] == []
