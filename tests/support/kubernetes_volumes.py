"""Kubernetes volumes of a ConfigMap or Secret: every file is a link into `..data`."""

from collections.abc import Mapping
from pathlib import Path
from shutil import rmtree

DATA = "..data"


def mount(folder: Path, files: Mapping[str, bytes], version: int = 1) -> Path:
    """Mount files, or update a mount in the order of the kubelet."""
    folder.mkdir(parents=True, exist_ok=True)
    old = (folder / DATA).readlink() if (folder / DATA).is_symlink() else None
    name = f"..2024_05_17_10_20_{version:02}.1234567{version:02}"
    for path, data in files.items():
        file = folder / name / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    (folder / "..data_tmp").symlink_to(name)
    (folder / "..data_tmp").rename(folder / DATA)
    for top in sorted({path.partition("/")[0] for path in files}):
        if not (folder / top).is_symlink():
            (folder / top).symlink_to(f"{DATA}/{top}")
    if old is not None:
        rmtree(folder / old)
    return folder
