"""Malformed policies, approvals, revocations and signatures: named, held, and left as they are."""

import json
import os
import stat
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pytest

from skillhall._internal import settings
from skillhall._internal.skill.signatures.statement import SIGNATURE_FILE
from tests.support.project_cli import Cli, make_cli
from tests.support.signatures import sign
from tests.support.skills import make_skill, make_skill_md

SKILL = ".agents/skills/pdf"
SIGNED = sign({"SKILL.md": make_skill_md("pdf", "Reads PDF files.")})
NAMES = ("machine policy", "user policy", "project policy", "approvals", "revocations")

Damage: TypeAlias = Callable[[Path], object]


def write(data: bytes) -> Damage:
    return lambda path: path.write_bytes(data)


def edit(change: Callable[[bytes], bytes]) -> Damage:
    return lambda path: path.write_bytes(change(path.read_bytes()))


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def make_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def link_to(target: str) -> Damage:
    def replace(path: Path) -> None:
        path.unlink()
        path.symlink_to(target)

    return replace


DAMAGES: Mapping[str, Damage] = {
    "empty": write(b""),
    "truncated": edit(lambda data: data[: len(data) // 2]),
    "without the end": edit(lambda data: data.rstrip()[:-1]),
    "not UTF-8": edit(lambda data: data + b"\xff\xfe"),
    "NUL": edit(lambda data: b"\0" + data),
    "UTF-16": edit(lambda data: data.decode().encode("utf-16")),
    "text": write(b"hello"),
    "HTML": write(b"<!doctype html><title>404</title>"),
    "number": write(b"1"),
    "list": write(b"[]"),
    "null": write(b"null"),
    "empty object": write(b"{}"),
    "wrong types": write(b'{"version": 1, "approvals": 7, "servers": 7, "number": "x"}'),
    "deep nesting": write(b"[" * 200_000),
    "deep objects": write(b'{"a":' * 100_000),
    "deep TOML": write(b"version = 1\nallow = " + b"[" * 200_000),
    "deep keys": write(b"a" + b".a" * 100_000 + b" = 1\n"),
    "large": write(b" " * (65 * 1024 * 1024)),
    "large number": write(b'{"version": ' + b"9" * 10_000 + b"}"),
    "folder": make_folder,
    "pipe": make_pipe,
    "device": link_to("/dev/zero"),
    "link to itself": link_to("policy.toml"),
}

# A signature that is too large to be a file of a skill, or no file, is none.
SIGNATURE_DAMAGES = [*DAMAGES.keys() - {"large", "folder", "pipe", "device", "link to itself"}]


class Rules(NamedTuple):
    """A project with an approved skill, and a path for each kind of file."""

    cli: Cli
    paths: Mapping[str, Path]

    def is_used(self) -> bool:
        """Whether agents get the skill."""
        return "<name>pdf</name>" in self.cli("prompt").out


@pytest.fixture
def rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Rules:
    machine = tmp_path / "etc/policy.toml"
    monkeypatch.setattr(settings, "MACHINE_POLICY", str(machine))
    cli = make_cli(tmp_path, monkeypatch, capsys)
    make_skill(Path(".agents/skills"), "pdf")
    user = Path.home() / ".config/skillhall/policy.toml"
    paths = (machine, user, Path("skillhall-policy.toml"), tmp_path / "data/trust.json")
    found = dict(zip(NAMES, (*paths, tmp_path / "data/revocations.json"), strict=True))
    for path in (machine, user):
        path.parent.mkdir(parents=True)
    for name in NAMES[:3]:
        found[name].write_bytes(b'version = 1\ntrust = { project = "ask" }\n')
    cli("trust", "--yes")
    document = {"number": 1, "issued": "2026-01-01T00:00:00Z", "expires": "9999-01-01T00:00:00Z"}
    known = tmp_path / "list.json"
    known.write_text(json.dumps({**document, "revoked": []}), encoding="utf-8")
    assert cli("advisories", str(known)).code == 0
    return Rules(cli, found)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes and devices in folders")
@pytest.mark.parametrize("name", NAMES)
def test_file_that_cannot_be_used_is_named_and_holds_what_was_found(
    rules: Rules, name: str
) -> None:
    path = rules.paths[name]
    good = path.read_bytes()
    assert rules.is_used()
    for damage, apply in DAMAGES.items():
        apply(path)
        kind = stat.S_IFMT(path.lstat().st_mode)
        data = path.read_bytes() if kind == stat.S_IFREG else b""
        held = rules.cli("prompt", "--json")
        assert held.code == 0, damage
        assert [one["name"] for one in held.data["held"]] == ["pdf"], damage
        assert held.data["skills"] == [], damage
        assert path.name in held.err, damage
        assert stat.S_IFMT(path.lstat().st_mode) == kind, damage
        assert kind != stat.S_IFREG or path.read_bytes() == data, damage
        (path.rmdir if kind == stat.S_IFDIR else path.unlink)()
        path.write_bytes(good)
    assert rules.is_used()


def test_skill_with_a_malformed_signature_is_not_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cli = make_cli(tmp_path, monkeypatch, capsys)
    source = tmp_path / "source/pdf"
    source.mkdir(parents=True)
    for damage in SIGNATURE_DAMAGES:
        for path, data in SIGNED.items():
            (source / path).write_bytes(data)
        DAMAGES[damage](source / SIGNATURE_FILE)
        refused = cli("add", str(source))
        assert (refused.code, "signature" in refused.err) == (3, True), damage
        assert not Path(SKILL).exists(), damage
    for path, data in SIGNED.items():
        (source / path).write_bytes(data)
    assert cli("add", str(source)).code == 0
