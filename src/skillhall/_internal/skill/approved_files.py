"""The approved files of a skill. Everything read from the skill is compared with them."""

from __future__ import annotations

import marshal
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, Self

from skillhall._internal.skill.bundle import Bundle, SkillFile, compute_digest, sha256_hex
from skillhall.errors import SkillNotApproved

CHANGED_REASON = "it has changed since it was approved"


class ApprovedFile(NamedTuple):
    """One file: its content, and whether it is executable."""

    sha256: str
    size: int
    executable: bool


def hash_files(bundle: Bundle) -> dict[str, ApprovedFile]:
    """Read and hash all files of a bundle. Raises: SkillhallError."""
    return {
        path: ApprovedFile(sha256_hex(data), len(data), file.executable)
        for path, file in bundle.files.items()
        for data in (file.read(),)
    }


class ApprovedFiles(NamedTuple):
    """The files of the approved version of a skill, by path.

    A file whose stat signature is in `signatures` had the approved content at that time.
    """

    name: str  # of the skill, for errors
    files: Mapping[str, ApprovedFile]
    signatures: Mapping[str, tuple[int, int, int, int] | None]

    def encode(self) -> bytes:
        """Return the files for a cache file."""
        rows = [(path, *file, self.signatures.get(path)) for path, file in self.files.items()]
        return marshal.dumps(rows)

    @classmethod
    def decode(cls, name: str, data: bytes) -> Self:
        """Decode the files of a cache file; `data` must be from a trusted file."""
        rows = marshal.loads(data)  # noqa: S302 - as above
        files = {path: ApprovedFile(sha256, size, bit) for path, sha256, size, bit, _ in rows}
        return cls(name, files, {row[0]: row[4] for row in rows})

    def check_data(self, path: str, data: bytes) -> bytes:
        """Return `data` if it is the approved content of the file. Raises: SkillNotApproved."""
        approved = self.files.get(path)
        if approved is None or sha256_hex(data) != approved.sha256:
            raise SkillNotApproved(self.name, CHANGED_REASON)
        return data

    def check_bundle(self, bundle: Bundle) -> Bundle:
        """Return the bundle, with checked reads, if its files are the approved ones.

        Only files whose stat signature has changed are read.
        Raises: SkillNotApproved, SkillhallError.
        """
        if bundle.files.keys() != self.files.keys():
            raise SkillNotApproved(self.name, CHANGED_REASON)
        checked = {}
        for path, file in bundle.files.items():
            approved, read = self.files[path], partial(self._read, path, file.read)
            if file.executable != approved.executable or file.size != approved.size:
                raise SkillNotApproved(self.name, CHANGED_REASON)
            if file.stat_signature is None or file.stat_signature != self.signatures.get(path):
                read()
            # As `replace(file, read=read)`, in a third of the time.
            signature = file.stat_signature
            checked[path] = SkillFile(file.path, file.size, file.executable, read, signature)
        return Bundle(bundle.folder, checked, bundle.findings, bundle.path)

    def _read(self, path: str, read: Callable[[], bytes]) -> bytes:
        return self.check_data(path, read())


def compute_approved_digest(files: Mapping[str, ApprovedFile]) -> str:
    """Compute the digest of a skill with these files."""
    return compute_digest((path, file.size, file.sha256) for path, file in files.items())
