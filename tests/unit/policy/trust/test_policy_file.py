"""Policy files: what they say, and errors with lines."""

from pathlib import Path

import pytest

from skillhall._internal.config_file.nodes import read_config_document
from skillhall._internal.policy.trust.policy_file import (
    Denial,
    PolicyFile,
    Requirement,
    ServerEntry,
    SignerEntry,
    parse_policy,
)
from skillhall._internal.policy.trust.trust_action import TrustAction
from skillhall._internal.skill.risks.levels import RiskLevel
from skillhall.errors import ConfigInvalid

DIGEST = f"sha256:{'0' * 64}"


def parse(folder: Path, *lines: str) -> PolicyFile:
    file = folder / "policy.toml"
    file.write_text("\n".join(["version = 1", *lines]), encoding="utf-8")
    return parse_policy(read_config_document(file))


def test_empty_policy_changes_nothing(tmp_path: Path) -> None:
    assert parse(tmp_path) == PolicyFile()


def test_complete_policy(tmp_path: Path) -> None:
    policy = parse(
        tmp_path,
        'trust = { project = "hold", changed = "block" }',
        'require = [{ source = "github.com/acme/*", signer = ["acme-ci"] }]',
        'deny = [{ risk = "L3", unless_signer = ["acme-ci"] }, { name = "miner*" }]',
        f'allow = ["{DIGEST}"]',
        "[[signer]]",
        'name = "acme-ci"',
        'key = "acme.pub"',
        "approves = true",
        "[[signer]]",
        'name = "acme"',
        'certificate = "roots.pem"',
        'subject = "CN=Acme"',
    )
    assert policy == PolicyFile(
        TrustAction.HOLD,
        TrustAction.BLOCK,
        (Requirement("github.com/acme/*", ("acme-ci",)),),
        (Denial(risk=RiskLevel.L3, unless_signers=("acme-ci",)), Denial(name="miner*")),
        frozenset([DIGEST]),
        (
            SignerEntry("acme-ci", approves=True, key="acme.pub"),
            SignerEntry("acme", certificate="roots.pem", subject="CN=Acme"),
        ),
    )


def test_policy_about_revocations_and_reviews(tmp_path: Path) -> None:
    policy = parse(
        tmp_path,
        'stale = "hold"',
        'review = { L2 = "365d", L3 = "90d" }',
        "[[server]]",
        'url = "https://skills.acme.org/"',
        'signer = ["acme-ci"]',
    )
    assert policy == PolicyFile(
        servers=(ServerEntry("https://skills.acme.org", ("acme-ci",)),),
        holds_stale=True,
        review_days={RiskLevel.L2: 365, RiskLevel.L3: 90},
    )


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('stale = "block"', "'stale' must be one of: warn, hold"),
        ('review = { L3 = "soon" }', "'review.L3' must be a number of days, such as 90d"),
        ('review = { L4 = "90d" }', "unknown key 'review.L4'"),
        ('server = [{ signer = ["a"] }]', "'server[0].url' must be set"),
        ('server = [{ url = "http://a.example" }]', "must start with https://"),
        ("trusts = {}", "unknown key 'trusts'"),
        ('trust = { projects = "hold" }', "unknown key 'trust.projects'"),
        ('trust = { project = "maybe" }', "'trust.project' must be one of: load, warn, ask"),
        ("trust = 1", "'trust' must be an object"),
        ('require = [{ source = "a" }]', "'require[0].signer' must be set"),
        ('require = [{ source = "a", signer = [] }]', "must name at least one signer"),
        ("deny = [{}]", "'deny[0]' must have a 'digest', 'name', 'source' or 'risk'"),
        ('deny = [{ digest = "x" }]', "'deny[0].digest' must be a digest"),
        ('deny = [{ risk = "L9" }]', "'deny[0].risk' must be one of: L0, L1, L2, L3"),
        ('deny = [{ nam = "x" }]', "unknown key 'deny[0].nam'"),
        ('allow = ["x"]', "'allow[0]' must be a digest"),
        ("signer = [{}]", "'signer[0].name' must be set"),
        ('signer = [{ name = "a" }]', "must have one of 'key', 'certificate' and 'identity'"),
        ('signer = [{ name = "a", certificate = "x" }]', "'certificate' and 'subject' together"),
        ('signer = [{ name = "a", identity = "x" }]', "'identity' and 'issuer' together"),
        (
            'signer = [{ name = "a", key = "x" }, { name = "a", key = "y" }]',
            "'signer[1].name' must be unique",
        ),
    ],
)
def test_error_names_the_key_and_its_line(line: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid) as error:
        parse(tmp_path, line)
    assert problem in str(error.value)
    assert error.value.line == 2


@pytest.mark.parametrize("version", ["", "version = 2", 'version = "1"', "version = true"])
def test_other_versions_are_rejected(version: str, tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(version, encoding="utf-8")
    with pytest.raises(ConfigInvalid, match="'version' must be"):
        parse_policy(read_config_document(file))
