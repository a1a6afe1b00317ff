import json
import os
import stat
from pathlib import Path

import pytest

from skillhall._internal.storage import usage_log as module
from skillhall._internal.storage.usage_log import CURRENT_FILE, ROTATED_FILE, UsageLog, UsageRecord

LOADED = UsageRecord("2026-01-01T00:00:00+00:00", "coding", "loaded", ("pdf",), 12)


def test_records_are_read_in_order(tmp_path: Path) -> None:
    log = UsageLog(str(tmp_path))
    offered = LOADED._replace(event="offered", skills=("pdf", "naïve"))
    log.record(offered)
    log.record(LOADED)
    assert [*log.read()] == [offered, LOADED]


def test_new_log_is_empty(tmp_path: Path) -> None:
    assert [*UsageLog(str(tmp_path)).read()] == []


@pytest.mark.skipif(os.name == "nt", reason="modes of Unix")
def test_log_is_readable_only_by_its_owner(tmp_path: Path) -> None:
    log = UsageLog(str(tmp_path))
    log.record(LOADED)
    assert stat.S_IMODE((Path(log.directory) / CURRENT_FILE).stat().st_mode) == 0o600
    assert stat.S_IMODE(Path(log.directory).stat().st_mode) == 0o700


def test_full_log_is_rotated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_LOG", 300)
    log = UsageLog(str(tmp_path))
    for number in range(40):
        log.record(LOADED._replace(tokens=number))
    sizes = [(Path(log.directory) / name).stat().st_size for name in (ROTATED_FILE, CURRENT_FILE)]
    assert max(sizes) < 300 + 200
    assert [*log.read()][-1].tokens == 39


def test_invalid_lines_are_skipped(tmp_path: Path) -> None:
    log = UsageLog(str(tmp_path))
    log.record(LOADED)
    invalid = [b"", b"\xff", b"[1]", b"{}", b'{"at":1,"agent":2,"event":"x","skills":[]}']
    invalid.append(json.dumps({**LOADED._asdict(), "skills": "pdf"}).encode())
    with (Path(log.directory) / CURRENT_FILE).open("ab") as file:
        file.write(b"\n".join(invalid))
    assert [*log.read()] == [LOADED]


def test_too_long_record_keeps_the_first_skills(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_LINE", 500)
    log = UsageLog(str(tmp_path))
    log.record(LOADED._replace(skills=tuple(f"skill-{n}" for n in range(1_000))))
    (record,) = log.read()
    assert record.skills[0] == "skill-0"
    assert 0 < len(record.skills) < 60


def test_unusable_folder_does_not_raise(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"a file")
    log = UsageLog(str(tmp_path / "data"))
    log.record(LOADED)
    assert [*log.read()] == []
