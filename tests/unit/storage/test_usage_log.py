import json
import os
import stat
from pathlib import Path

import pytest

from skillhall._internal.storage import usage_log as module
from skillhall._internal.storage.usage_log import CURRENT_FILE, ROTATED_FILE, UsageLog, UsageRecord

LOADED = UsageRecord("2026-01-01T00:00:00+00:00", "coding", "loaded", ("pdf",), 12)


def test_what_is_noted_is_read_in_order(tmp_path: Path) -> None:
    log = UsageLog(str(tmp_path))
    offered = LOADED._replace(event="offered", skills=("pdf", "naïve"))
    log.record(offered)
    log.record(LOADED)
    assert [*log.read()] == [offered, LOADED]


def test_nothing_is_noted_yet(tmp_path: Path) -> None:
    assert [*UsageLog(str(tmp_path)).read()] == []


@pytest.mark.skipif(os.name == "nt", reason="modes of Unix")
def test_the_log_is_for_its_owner_alone(tmp_path: Path) -> None:
    log = UsageLog(str(tmp_path))
    log.record(LOADED)
    assert stat.S_IMODE((Path(log.directory) / CURRENT_FILE).stat().st_mode) == 0o600
    assert stat.S_IMODE(Path(log.directory).stat().st_mode) == 0o700


def test_a_full_log_becomes_the_older_of_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_LOG", 300)
    log = UsageLog(str(tmp_path))
    for number in range(40):
        log.record(LOADED._replace(tokens=number))
    sizes = [(Path(log.directory) / name).stat().st_size for name in (ROTATED_FILE, CURRENT_FILE)]
    assert max(sizes) < 300 + 200
    assert [*log.read()][-1].tokens == 39


def test_a_line_of_somebody_else_is_passed_over(tmp_path: Path) -> None:
    log = UsageLog(str(tmp_path))
    log.record(LOADED)
    strange = [b"", b"\xff", b"[1]", b"{}", b'{"at":1,"agent":2,"event":"x","skills":[]}']
    strange.append(json.dumps({**LOADED._asdict(), "skills": "pdf"}).encode())
    with (Path(log.directory) / CURRENT_FILE).open("ab") as file:
        file.write(b"\n".join(strange))
    assert [*log.read()] == [LOADED]


def test_a_line_with_too_many_names_keeps_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_LINE", 500)
    log = UsageLog(str(tmp_path))
    log.record(LOADED._replace(skills=tuple(f"skill-{n}" for n in range(1_000))))
    (noted,) = log.read()
    assert noted.skills[0] == "skill-0"
    assert 0 < len(noted.skills) < 60


def test_a_folder_that_cannot_be_made_fails_nobody(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"a file")
    log = UsageLog(str(tmp_path / "data"))
    log.record(LOADED)
    assert [*log.read()] == []
