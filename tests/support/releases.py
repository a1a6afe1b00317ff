"""This checkout as a fresh clone has it, to be built like a release."""

import os
import shutil
import subprocess
from pathlib import Path

import dev

ROOT = dev.ROOT


def export_checkout(folder: Path) -> Path:
    """Copy the files of a fresh clone, without the tests.

    New files that git does not ignore are included, so that a change can be tested before it is
    committed.
    """
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z", "-co", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    ).stdout
    for name in set(os.fsdecode(listed).split("\0")) - {""}:
        if (ROOT / name).is_file() and not name.startswith("tests/"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder
