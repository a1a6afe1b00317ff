"""Lists of revocations: rendering, parsing and what counts."""

import json
from typing import Any

import pytest

from skillhall._internal.policy.trust.revocations import (
    MAX_LIST_SIZE,
    Revocation,
    RevocationEntry,
    RevocationList,
    build_revocation_list,
    parse_revocation_list,
    render_revocation_list,
)
from skillhall.errors import ConfigInvalid

ONE, OTHER = (f"sha256:{digit * 64}" for digit in "12")
ISSUED, EXPIRES = "2026-11-18T09:00:00Z", "2026-11-25T09:00:00Z"
URL = "https://skills.acme.org"
LIST = RevocationList(7, ISSUED, EXPIRES, (Revocation(ONE, "pdf", "steals keys", ISSUED, "pdf@4"),))


def make_entry(number: int, digest: str = ONE, *, is_revoked: bool = True) -> RevocationEntry:
    return RevocationEntry(number, digest, "pdf", "r", ISSUED, "", "dev1", is_revoked=is_revoked)


def test_list_has_the_latest_number_and_what_is_still_revoked() -> None:
    entries = [make_entry(3), make_entry(5, OTHER), make_entry(8, is_revoked=False)]
    built = build_revocation_list(entries, ISSUED, EXPIRES)
    assert (built.number, [one.digest for one in built.revoked]) == (8, [OTHER])
    assert build_revocation_list([], ISSUED, EXPIRES).number == 0


def test_list_does_not_name_who_revoked() -> None:
    assert b"dev1" not in render_revocation_list(
        build_revocation_list([make_entry(3)], ISSUED, EXPIRES)
    )


def test_rendered_list_is_parsed_to_the_same_list() -> None:
    assert parse_revocation_list(render_revocation_list(LIST), URL) == LIST


def test_unknown_fields_are_ignored_and_texts_are_optional() -> None:
    document = {"number": 1, "issued": ISSUED, "expires": EXPIRES, "new": 1}
    data = json.dumps({**document, "revoked": [{"digest": ONE, "severity": 9}]}).encode()
    assert parse_revocation_list(data, URL).revoked == (Revocation(ONE),)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"number": -1}, "'number' is not a non-negative integer"),
        ({"number": True}, "'number' is not a non-negative integer"),
        ({"number": 2**60}, "'number' is larger than"),
        ({"issued": "yesterday"}, "'issued' is not a time"),
        ({"expires": "2026-99-25T09:00:00Z"}, "'expires' is not a time"),
        ({"revoked": {}}, "'revoked' is not a list"),
        ({"revoked": [1]}, "revoked[0] is not an object"),
        ({"revoked": [{"digest": "sha256:abc"}]}, "revoked[0].digest is not sha256:"),
        ({"revoked": [{"digest": ONE, "reason": 1}]}, "revoked[0].reason is not a string"),
    ],
)
def test_malformed_list_is_rejected_with_url_and_field(
    change: dict[str, Any], problem: str
) -> None:
    document = {**json.loads(render_revocation_list(LIST)), **change}
    with pytest.raises(ConfigInvalid) as caught:
        parse_revocation_list(json.dumps(document).encode(), URL)
    assert str(caught.value).startswith(f"{URL}: {problem}")


@pytest.mark.parametrize("data", [b"[", b"[]", b'{"number": 1, "number": 2}', b"\xff"])
def test_other_documents_are_rejected(data: bytes) -> None:
    with pytest.raises(ConfigInvalid, match=URL):
        parse_revocation_list(data, URL)
    with pytest.raises(ConfigInvalid, match="larger"):
        parse_revocation_list(b" " * (MAX_LIST_SIZE + 1), URL)


def test_list_expires() -> None:
    assert not LIST.is_expired("2026-11-25T08:59:59Z")
    assert LIST.is_expired(EXPIRES)


def test_description_names_the_version_to_use_instead() -> None:
    assert LIST.revoked[0].describe() == "steals keys; use pdf@4 instead"
    assert Revocation(ONE).describe() == "no reason was given"
