"""Lists of revocations on a machine."""

import json
from pathlib import Path

import pytest

from skillhall._internal.policy.trust.revocations import Revocation, RevocationList
from skillhall._internal.storage.revocation_store import RevocationStore, StoredList
from skillhall.errors import ConfigInvalid

DIGEST = f"sha256:{'1' * 64}"
EARLY, LATE = "2026-11-18T09:00:00Z", "2026-11-25T09:00:00Z"
SERVER = "https://skills.acme.org"


def make_list(number: int, issued: str = EARLY) -> StoredList:
    revocations = RevocationList(number, issued, LATE, (Revocation(DIGEST, reason="bad"),))
    return StoredList(issued, issued, '"etag"', "acme", revocations)


@pytest.fixture
def store(tmp_path: Path) -> RevocationStore:
    return RevocationStore(str(tmp_path))


def test_list_is_stored_and_read_again(store: RevocationStore) -> None:
    store.put(SERVER, make_list(3))
    known = store.read()
    assert known.lists == {SERVER: make_list(3)}
    assert known.reasons == {DIGEST: "bad"}
    assert Path(store.path).stat().st_mode & 0o777 == 0o600


def test_list_with_a_lower_number_is_refused(store: RevocationStore) -> None:
    store.put(SERVER, make_list(3))
    with pytest.raises(ConfigInvalid, match="its number 2 is lower than the last known number 3"):
        store.put(SERVER, make_list(2, LATE))
    assert store.read().lists[SERVER] == make_list(3)
    store.put("https://other.example", make_list(2))


def test_older_copy_of_the_same_list_keeps_the_newer_one(store: RevocationStore) -> None:
    store.put(SERVER, make_list(3, LATE))
    store.put(SERVER, make_list(3, EARLY))
    assert store.read().lists[SERVER].revocations == make_list(3, LATE).revocations


def test_missing_answer_keeps_the_last_list(store: RevocationStore) -> None:
    store.put(SERVER, make_list(3))
    store.put(SERVER, StoredList(LATE))
    assert store.read().lists[SERVER] == make_list(3)._replace(asked=LATE)


def test_expired_lists_are_found(store: RevocationStore) -> None:
    store.put(SERVER, make_list(3))
    store.put("https://silent.example", StoredList(EARLY))
    assert store.read().find_expired(EARLY) == []
    assert store.read().find_expired(LATE) == [SERVER]


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("asked", "now", "asked is not a time"),
        ("etag", None, "etag is not a string"),
        ("revocations", {"number": "x"}, "revocations.number is not"),
    ],
)
def test_damaged_file_is_reported_with_its_field(
    store: RevocationStore, field: str, value: object, problem: str
) -> None:
    store.put(SERVER, make_list(3))
    document = json.loads(Path(store.path).read_bytes())
    document["servers"][SERVER][field] = value
    Path(store.path).write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(ConfigInvalid, match=r"revocations\.json: servers") as caught:
        store.read()
    assert problem in str(caught.value)


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"servers": {}, "version": 2}'])
def test_unreadable_file_is_reported(store: RevocationStore, data: bytes) -> None:
    Path(store.path).write_bytes(data)
    with pytest.raises(ConfigInvalid, match=r"revocations\.json"):
        store.read()


def test_without_a_data_folder_nothing_is_stored() -> None:
    store = RevocationStore("")
    store.put(SERVER, make_list(3))
    assert (store.path, store.read().lists) == ("", {})
