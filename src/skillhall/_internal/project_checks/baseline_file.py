"""Baseline files: findings that are known, so that only new ones make a run fail."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.project_checks.check_findings import CheckFinding, relative_posix_path
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.sources.folder.bundle_reader import read_file_at
from skillhall._internal.strict_json import InvalidJson, parse_json, render_json
from skillhall.errors import ConfigInvalid

_VERSION = 1
_MAX_BYTES = 64 * 1024 * 1024
_HINT = "write it again with --update-baseline"


@dataclass(frozen=True, slots=True)
class Baseline:
    """The known findings: how often each fingerprint occurs.

    Paths are relative to `base`.
    """

    base: str
    counts: Counter[str]

    def mark_known(self, findings: Sequence[CheckFinding]) -> tuple[CheckFinding, ...]:
        """Return the findings, of which the known ones are marked."""
        left = Counter(self.counts)
        marked = []
        for one in findings:
            key = one.fingerprint(self.base)
            marked.append(replace(one, is_known=left[key] > 0))
            left[key] -= 1
        return tuple(marked)

    def count_gone(self, findings: Sequence[CheckFinding]) -> int:
        """Return the number of known findings that no longer occur."""
        return (self.counts - Counter(one.fingerprint(self.base) for one in findings)).total()


def get_baseline_folder(path: str) -> str:
    """Return the folder that the paths in a baseline file are relative to."""
    return os.path.dirname(os.path.realpath(path))


def read_baseline(path: str) -> Baseline:
    """Read a baseline file. Raises: SkillFileNotFound, TooLarge, ConfigInvalid."""
    folder, name = os.path.split(os.path.realpath(path))
    data = read_file_at(FolderHandle(folder), RelativePath.parse(name), _MAX_BYTES)
    try:
        document = parse_json(data, unique_keys=True)
    except InvalidJson as error:
        raise ConfigInvalid(path, f"not valid JSON: {error}", _HINT) from None
    if not isinstance(document, dict) or document.get("version") != _VERSION:
        raise ConfigInvalid(path, f"not a baseline of version {_VERSION}", _HINT)
    counts: Counter[str] = Counter()
    entries = document.get("findings")
    for entry in entries if isinstance(entries, list) else [None]:
        key, count = (
            (entry.get("fingerprint"), entry.get("count", 1))
            if isinstance(entry, dict)
            else (None, 0)
        )
        if not isinstance(key, str) or not isinstance(count, int) or count < 1:
            raise ConfigInvalid(path, "'findings' has an invalid entry", _HINT)
        counts[key] += count
    return Baseline(folder, counts)


def write_baseline(path: str, findings: Sequence[CheckFinding]) -> None:
    """Write the findings that are not notes as a baseline. Raises: OSError, SkillhallError."""
    folder, name = os.path.split(os.path.realpath(path))
    entries: dict[str, dict[str, object]] = {}
    counts: Counter[str] = Counter()
    for one in findings:
        if one.level == "note":
            continue
        key = one.fingerprint(folder)
        counts[key] += 1
        # Only the fingerprint is compared; the rest is for reviewers.
        entries[key] = {
            "check": one.kind.value,
            "code": one.finding.code.value,
            "path": relative_posix_path(one.finding.path, folder),
            "fingerprint": key,
            "count": counts[key],
        }
    rows = sorted(entries.values(), key=lambda row: [str(value) for value in row.values()])
    with WritableFolder(folder) as root:
        root.write_file(name, render_json({"version": _VERSION, "findings": rows}))
