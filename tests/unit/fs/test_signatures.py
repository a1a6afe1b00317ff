import os
from pathlib import Path

import pytest

from skillhall._internal.fs.signatures import (
    SIGNATURE_SIZE,
    get_last_change,
    get_size,
    pack_signature,
)

YEAR = 365 * 24 * 3600 * 10**9  # nanoseconds


@pytest.mark.parametrize("years", [-10, 0, 30, 330])
def test_every_time_of_a_file_can_be_packed(tmp_path: Path, years: int) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    os.utime(file, ns=(0, years * YEAR))
    signature = pack_signature(file.stat())
    assert len(signature) == SIGNATURE_SIZE
    assert get_size(signature) == 5


def test_last_change_is_the_later_one_of_both_times(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    os.utime(file, ns=(0, -YEAR))
    assert get_last_change(pack_signature(file.stat())) == file.stat().st_ctime_ns
    os.utime(file, ns=(0, 100 * YEAR))
    assert get_last_change(pack_signature(file.stat())) == 100 * YEAR
