"""Approvals in `trust.json`: private, replaced atomically, and never lost."""

import json
import threading
from pathlib import Path

import pytest

from skillhall._internal.policy.trust.trust_decision import EVERYWHERE, ApprovalDecision
from skillhall._internal.skill.approved_files import ApprovedFile, compute_approved_digest
from skillhall._internal.storage.trust_store import Approval, TrustRecords, TrustStore
from skillhall.errors import ConfigInvalid

FILES = {"SKILL.md": ApprovedFile("0" * 64, 3, executable=False)}
PDF = Approval(
    compute_approved_digest(FILES), "pdf", "/project", ApprovalDecision.APPROVE, files=FILES
)
OWN = Approval("", "mine", "/project", ApprovalDecision.APPROVE, folder="/project/mine")
LINK = PDF._replace(folder="/elsewhere/pdf")


@pytest.fixture
def store(tmp_path: Path) -> TrustStore:
    return TrustStore(str(tmp_path / "data"))


def test_missing_file_has_no_records(store: TrustStore) -> None:
    assert store.read() == TrustRecords()
    assert TrustStore("").read() == TrustRecords()


def test_records_are_read_in_order(store: TrustStore) -> None:
    store.add([PDF])
    store.add([OWN, LINK])
    assert store.read().approvals == (PDF, OWN, LINK)
    assert Path(store.path).stat().st_mode & 0o777 == 0o600


def test_record_that_says_nothing_new_is_not_added(store: TrustStore) -> None:
    block = PDF._replace(decision=ApprovalDecision.BLOCK)
    for record in (PDF, PDF._replace(at="later"), OWN, block, block, PDF):
        store.add([record])
    assert store.read().approvals == (PDF, OWN, block, PDF)


def test_nothing_is_written_without_records_or_a_folder(store: TrustStore) -> None:
    store.add([])
    TrustStore("").add([PDF])
    assert not Path(store.path).exists()


def test_concurrent_writers_lose_nothing(store: TrustStore) -> None:
    names = [f"skill-{number}" for number in range(12)]
    threads = [
        threading.Thread(target=store.add, args=([PDF._replace(name=name)],)) for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one.name for one in store.read().approvals) == sorted(names)


def broken(**changes: object) -> bytes:
    record = {**OWN._asdict(), "decision": "approve", "files": [], **changes}
    return json.dumps({"version": 1, "approvals": [record]}).encode()


FILE = {"path": "a", "sha256": "0" * 64, "size": 1, "mode": "100644"}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"{", "trust.json: line 1 is not JSON"),
        (b"[]", "trust.json: top level is not an object"),
        (b'{"version": 1, "approvals": {}}', "trust.json: 'approvals' is not a list"),
        (b'{"version": 2, "approvals": []}', "trust.json: version is not 1"),
        (b'{"version": 1, "approvals": [1]}', "trust.json: approvals[0] is not an object"),
        (broken(name=1), "trust.json: approvals[0].name is not a string"),
        (
            broken(decision="maybe"),
            "approvals[0].decision is not one of approve, block, decline, forget",
        ),
        (broken(files=None), "trust.json: approvals[0].files is not a list"),
        (broken(files=[1]), "trust.json: approvals[0].files[0] is not an object"),
        (broken(files=[{**FILE, "sha256": "x"}]), "approvals[0].files[0].sha256 is malformed"),
        (broken(files=[{**FILE, "size": -1}]), "files[0].size is not a non-negative integer"),
        (broken(files=[{**FILE, "mode": "1"}]), "files[0].mode is not one of 100644, 100755"),
        (broken(files=[FILE]), "trust.json: approvals[0].digest does not match the files"),
    ],
)
def test_malformed_file_is_named_and_never_overwritten(
    store: TrustStore, data: bytes, problem: str
) -> None:
    path = Path(store.path)
    path.parent.mkdir()
    path.write_bytes(data)
    with pytest.raises(ConfigInvalid) as error:
        store.read()
    assert problem in str(error.value)
    with pytest.raises(ConfigInvalid):
        store.add([PDF])
    assert path.read_bytes() == data


def test_link_in_place_of_the_file_is_rejected(store: TrustStore, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    Path(store.path).symlink_to(tmp_path / "other.json")
    (tmp_path / "other.json").write_bytes(b"{}")
    with pytest.raises(ConfigInvalid, match=r"trust\.json: not a regular file"):
        store.read()


def test_latest_record_about_a_folder_counts() -> None:
    forgotten = OWN._replace(decision=ApprovalDecision.FORGET)
    assert TrustRecords((OWN, LINK)).find_own_folders("/project") == {"/project/mine"}
    assert TrustRecords((OWN, forgotten)).find_own_folders("/project") == set()
    assert TrustRecords((OWN, LINK)).find_linked_folders("/project") == {"/elsewhere/pdf"}
    assert TrustRecords((OWN, LINK)).find_linked_folders("/other") == set()


def test_latest_and_approved_records_are_found_by_name() -> None:
    block = PDF._replace(decision=ApprovalDecision.BLOCK, where=EVERYWHERE)
    records = TrustRecords((PDF, OWN, block))
    assert records.find_latest("pdf", "/project") == block
    assert records.find_base("pdf", "/project") == PDF
    assert records.find_base("pdf", "/other") is None
    assert records.find_latest("csv", "/project") is None
    assert records.has_blocks("/other")
    assert not TrustRecords((PDF,)).has_blocks("/project")


def test_approval_with_other_execute_bits_is_of_another_version() -> None:
    executable = {"SKILL.md": FILES["SKILL.md"]._replace(executable=True)}
    records = TrustRecords((PDF, OWN, PDF._replace(name="csv", digest="")))
    [same], [other] = (
        records.list_approved(PDF.digest, "pdf", files) for files in (FILES, executable)
    )
    assert same.digest == PDF.digest != other.digest
    block = PDF._replace(decision=ApprovalDecision.BLOCK)
    assert TrustRecords((block, OWN)).list_approved("", "pdf", executable)[0].digest == PDF.digest
