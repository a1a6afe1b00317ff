"""Approvals of skills on this machine: `trust.json` in the data folder.

A record is never edited; the latest one about a digest or a folder counts. The file is replaced
atomically under a lock, and only its owner can read it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from operator import itemgetter
from typing import Final, NamedTuple

from skillhall._internal.fs.handles import open_root, read_below
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.policy.trust.trust_decision import EVERYWHERE, ApprovalDecision, Approved
from skillhall._internal.settings import TRUST_FILE
from skillhall._internal.skill.approved_files import ApprovedFile, compute_approved_digest
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.strict_json import InvalidJson, JsonObject, render_json
from skillhall.errors import ConfigInvalid, NotAFile, SkillFileNotFound, TooLarge, UnsafePath

MAX_TRUST_SIZE: Final = 16 * 1024 * 1024  # bytes
_VERSION: Final = 1
_MODE: Final = 0o600
_SHA256 = re.compile(r"[0-9a-f]{64}")
_FIX_HINT: Final = "correct it, or delete the file to approve the skills again"


class Approval(NamedTuple):
    """A user's decision about one version of a skill, or about a folder of their own."""

    digest: str  # "" for a folder whose edits are not asked about
    name: str
    where: str  # a project, or `EVERYWHERE`
    decision: ApprovalDecision
    origin: str = ""
    source: str = ""
    commit: str = ""
    by: str = ""
    at: str = ""
    via: str = ""  # the command
    reason: str = ""
    folder: str = ""  # the user's own, or the target of a link out of the searched folders
    files: Mapping[str, ApprovedFile] = {}

    def applies_in(self, project: str) -> bool:
        """Whether the record applies to a project."""
        return self.where in (project, EVERYWHERE)


_TEXT_FIELDS = tuple(field for field in Approval._fields if field not in ("decision", "files"))


class TrustRecords(NamedTuple):
    """All approval records, in the order in which they were made."""

    approvals: tuple[Approval, ...] = ()

    def list_approved(
        self, digest: str, name: str, files: Mapping[str, ApprovedFile]
    ) -> list[Approved]:
        """Return the records for `decide`, about a skill with these files or with this name.

        The digest does not cover execute bits. A record with different bits is about another
        version, unless it blocks or forgets the content.
        """
        executables = {path for path, file in files.items() if file.executable}
        rows = []
        for one in self.approvals:
            if not one.digest or (one.digest != digest and one.name != name):
                continue
            others = {path for path, file in one.files.items() if file.executable}
            is_bound = one.decision in (ApprovalDecision.APPROVE, ApprovalDecision.DECLINE)
            is_same = not is_bound or others == executables
            version = one.digest if is_same else f"{one.digest} {sorted(others)}"
            rows.append(Approved(version, one.name, one.where, one.decision))
        return rows

    def has_blocks(self, project: str) -> bool:
        """Whether a record may block a skill of the project."""
        return any(
            one.decision is ApprovalDecision.BLOCK and one.applies_in(project)
            for one in self.approvals
        )

    def has_latest(self, approval: Approval, *, same_day: bool = False) -> bool:
        """Whether the latest record about the same files or folder says the same."""
        subject = itemgetter(*map(Approval._fields.index, ("digest", "folder", "name", "where")))
        for one in reversed(self.approvals):
            if subject(one) == subject(approval):
                is_current = not same_day or one.at[:10] == approval.at[:10]
                is_same = one.decision is approval.decision and one.files == approval.files
                return is_same and is_current
        return False

    def find_own_folders(self, project: str) -> set[str]:
        """Return the folders of skills that the user is writing."""
        return self._find_folders(project, is_own=True)

    def find_linked_folders(self, project: str) -> set[str]:
        """Return the approved targets of links that lead out of the searched folders."""
        return self._find_folders(project, is_own=False)

    def find_latest(self, name: str, project: str) -> Approval | None:
        """Return the latest record about a skill with this name."""
        for one in reversed(self.approvals):
            if one.name == name and one.applies_in(project):
                return one
        return None

    def find_base(self, name: str, project: str) -> Approval | None:
        """Return the version of a skill that was approved last."""
        for one in reversed(self.approvals):
            is_approved = one.decision is ApprovalDecision.APPROVE and one.digest
            if one.name == name and is_approved and one.applies_in(project):
                return one
        return None

    def _find_folders(self, project: str, *, is_own: bool) -> set[str]:
        latest: dict[str, bool] = {}
        for one in self.approvals:
            if one.folder and bool(one.digest) is not is_own and one.applies_in(project):
                latest[one.folder] = one.decision is ApprovalDecision.APPROVE
        return {folder for folder, is_approved in latest.items() if is_approved}


@dataclass(frozen=True, slots=True)
class TrustStore:
    """The records in a data folder; without a data folder, there are none."""

    directory: str

    @property
    def path(self) -> str:
        """The path of the file, which may not exist."""
        return os.path.join(self.directory, TRUST_FILE)

    def read(self) -> TrustRecords:
        """Read the records. Raises: ConfigInvalid, OSError."""
        if not self.directory or not os.path.lexists(self.path):
            return TrustRecords()
        try:
            with suppress(FileNotFoundError, SkillFileNotFound):
                with open_root(self.directory) as root:
                    data = read_below(root, RelativePath.parse(TRUST_FILE), MAX_TRUST_SIZE)
                return parse_records(data)
        except TooLarge:
            raise ConfigInvalid(TRUST_FILE, f"larger than {MAX_TRUST_SIZE} bytes") from None
        except (NotAFile, UnsafePath):
            raise ConfigInvalid(TRUST_FILE, "not a regular file") from None
        return TrustRecords()

    def add(self, approvals: Iterable[Approval], *, renew: bool = False) -> None:
        """Append records. A file that cannot be read is left unchanged.

        With `renew`, a record is added even if the latest one says the same, once a day.

        Raises: ConfigInvalid, NotAFile, OSError.
        """
        new = tuple(approvals)
        if not new or not self.directory:
            return
        os.makedirs(self.directory, exist_ok=True)
        with WritableFolder(self.directory) as folder, folder.lock():
            folder.recover()
            records = self.read()
            added = [one for one in new if not records.has_latest(one, same_day=renew)]
            if not added:
                return
            data = render_records(TrustRecords((*records.approvals, *added)))
            parse_records(data)  # never write a file that we could not read again
            folder.write_file(TRUST_FILE, data, _MODE)

    def merge(self, saved: bytes) -> bytes:
        """Return the records of a saved file and those of this machine, by time, as a file.

        A later decision counts, wherever it was made. Raises: ConfigInvalid, OSError.
        """
        present = self.read().approvals
        missing = [one for one in parse_records(saved).approvals if one not in present]
        return render_records(TrustRecords(tuple(sorted([*missing, *present], key=_get_time))))


def _get_time(approval: Approval) -> str:
    return approval.at


def render_records(records: TrustRecords) -> bytes:
    """Render the records as JSON."""
    approvals = [
        {
            **{field: getattr(one, field) for field in _TEXT_FIELDS},
            "decision": one.decision.value,
            "files": [
                {
                    "path": path,
                    "sha256": file.sha256,
                    "size": file.size,
                    "mode": "100755" if file.executable else "100644",
                }
                for path, file in sorted(one.files.items())
            ],
        }
        for one in records.approvals
    ]
    return render_json({"version": _VERSION, "approvals": approvals}) + b"\n"


def parse_records(data: bytes) -> TrustRecords:
    """Parse the file. Raises: ConfigInvalid, which names the field."""
    try:
        document = JsonObject.parse(data)
        if document.require("version", int) != _VERSION:
            raise ConfigInvalid(TRUST_FILE, f"version is not {_VERSION}", "update Skillhall")
        return TrustRecords(tuple(map(_parse_approval, document.require_objects("approvals"))))
    except InvalidJson as error:
        raise ConfigInvalid(TRUST_FILE, str(error), _FIX_HINT) from None


def _parse_approval(record: JsonObject) -> Approval:
    texts = {field: record.require(field, str) for field in _TEXT_FIELDS}
    decision = ApprovalDecision(record.require_choice("decision", *ApprovalDecision))
    files = {
        file.require("path", str): ApprovedFile(
            file.require_match("sha256", _SHA256),
            file.require("size", int),
            file.require_choice("mode", "100644", "100755") == "100755",
        )
        for file in record.require_objects("files")
    }
    if files and compute_approved_digest(files) != texts["digest"]:
        raise record.build_error("digest", "does not match the files")
    return Approval(**texts, decision=decision, files=files)
