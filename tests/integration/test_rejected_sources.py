"""Rejected archives, URLs and references: one error, and no folder is changed."""

import pytest

from tests.support.archives import SKILL, zip_of
from tests.support.cli_sandbox import ADD, IMPORT, PASSWORD, CliSandbox, snapshot
from tests.support.hostile_archives import HostileArchive, hostile_archives

ARCHIVES = dict(hostile_archives())


def test_checks_of_this_module_detect_changes(sandbox: CliSandbox) -> None:
    before = snapshot(sandbox.folder)
    result = sandbox.run(*ADD, "--json", sandbox.source("pdf.zip", zip_of({"SKILL.md": SKILL})))
    assert result.code == 0
    assert {path for path in snapshot(sandbox.folder) if path not in before} >= {
        "project/.agents/skills/pdf/SKILL.md",
        "project/skillhall-lock.json",
        "sources/pdf.zip",
    }
    for output in (f"x {sandbox.project}", PASSWORD, "Traceback", "\x1b[0m"):
        with pytest.raises(AssertionError):
            sandbox.check_output(result._replace(out=output))


@pytest.mark.parametrize("hostile", ARCHIVES.values(), ids=ARCHIVES)
def test_hostile_archive_is_rejected(sandbox: CliSandbox, hostile: HostileArchive) -> None:
    source = sandbox.source(hostile.name, hostile.data)
    for command in (ADD, IMPORT):
        result = sandbox.check_rejected(command, [source], hostile.code)
        assert hostile.code == "too_large" or hostile.name in result.error["message"]


def test_error_names_archive_without_path(sandbox: CliSandbox) -> None:
    sandbox.source("pdf.zip", b"")
    result = sandbox.check_rejected(ADD, [str(sandbox.sources / "pdf.zip")], "archive_rejected")
    assert "pdf.zip" in result.error["message"]
    assert str(sandbox.sources) not in result.out


def test_hostile_archive_leaves_project_unchanged(sandbox: CliSandbox) -> None:
    assert sandbox.run(*ADD, sandbox.skill("notes"), "-a", "claude-code", "-a", "cursor").code == 0
    evil = sandbox.source("evil.zip", zip_of({"notes/SKILL.md": SKILL, "../evil": b"x"}))
    sandbox.check_rejected(ADD, [evil, "--overwrite", "-a", "*"], "archive_rejected")
    sandbox.check_rejected(IMPORT, [evil, "--replace"], "archive_rejected")


# Source references

TEXTS = {
    "an option of git": "--upload-pack=touch evil",
    "a setting of git": "-c core.sshCommand=evil",
    "an option as the ref": "acme/skills@--upload-pack=evil",
    "a ref with two dots": "acme/skills@a..b",
    "a ref that asks the log": "acme/skills@main@{1}",
    "a ref that begins with a dash": "acme/skills@-x",
    "a ref that forces": "acme/skills@+main",
    "a program as the transport": "ext::sh -c touch% evil",
    "a descriptor as the transport": "fd::17",
    "a file by its URL": "file:///etc/passwd",
    "git without encryption": "git://host.example/a/b.git",
    "http": "http://host.example/a/b.git",
    "an archive over http": "http://host.example/x.zip",
    "an option as the host of ssh": "ssh://-oProxyCommand=evil/a/b.git",
    "an option as the host of scp": "git@-oProxyCommand=evil:a/b.git",
    "a password": f"https://ada:{PASSWORD}@host.example/a/b.git",
    "a password over ssh": f"ssh://git:{PASSWORD}@host.example/a/b.git",
    "a password before an archive": f"https://ada:{PASSWORD}@host.example/x.zip",
    "a token in the query": f"https://host.example/x.zip?token={PASSWORD}",
    "a token in the fragment": f"https://host.example/x.zip#{PASSWORD}",
    "a host that looks like another": f"https://github.com:{PASSWORD}@evil.example/a/b",
    "a zone": "https://[fe80::1%25eth0]/x.zip",
    "a backslash before the host": "https://host.example\\@evil.example/x.zip",
    "a line break": "https://host.example/x.zip\r\nX: y",
    "an escape": "acme/\x1b[2Jskills",
    "a path that climbs out": "acme/skills/../../etc",
    "a path that climbs out when decoded": "acme/skills/%2e%2e/x",
    "the inside of git": "acme/skills/.git/config",
    "a package that is a path": "python:../x",
    "nothing": "",
}
HOSTS = {
    "loopback": "127.0.0.1",
    "loopback by IPv6": "[::1]",
    "loopback inside IPv6": "[::ffff:127.0.0.1]",
    "loopback in short": "127.1",
    "loopback as a number": "2130706433",
    "loopback in base 16": "0x7f.1",
    "loopback in base 8": "0177.0.0.1",
    "loopback by its name": "localhost",
    "this host": "0.0.0.0",  # noqa: S104 - no server listens
    "a private network": "10.0.0.1",
    "a private network by IPv6": "[fd00::1]",
    "metadata of a cloud": "169.254.169.254",
    "a multicast group": "224.0.0.1",
    "loopback through NAT64": "[64:ff9b::7f00:1]",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_invalid_reference_is_rejected(sandbox: CliSandbox, text: str) -> None:
    for command in (ADD, IMPORT):
        sandbox.check_rejected(command, ["--", text], "source_rejected")


@pytest.mark.parametrize("form", ["https://{}/x.zip", "https://{}/a/b.git", "ssh://git@{}/a/b.git"])
@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
def test_non_public_address_is_rejected(sandbox: CliSandbox, host: str, form: str) -> None:
    for command in (ADD, IMPORT):
        sandbox.check_rejected(command, [form.format(host)], "source_rejected")
