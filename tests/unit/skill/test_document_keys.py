import pytest

from skillhall._internal.skill.document import Document, EditRefused


def test_renaming_a_key_changes_its_bytes_alone() -> None:
    before = b"---\r\nName:   a # why\r\ndescription: b\r\n---\r\nName: body\r\n"
    after = Document(before).with_renamed_field("Name", "name")
    assert after.data == before.replace(b"Name:   a", b"name:   a")


def test_a_quoted_key_is_not_renamed() -> None:
    with pytest.raises(EditRefused):
        Document(b'---\n"Name": a\n---\n').with_renamed_field("Name", "name")


@pytest.mark.parametrize(("key", "new"), [("Gone", "gone"), ("Name", "name"), ("Name", "a b")])
def test_a_key_that_is_not_there_or_would_collide_is_refused(key: str, new: str) -> None:
    with pytest.raises(EditRefused):
        Document(b"---\nName: a\nname: b\n---\n").with_renamed_field(key, new)


def test_a_key_of_a_broken_block_can_be_renamed() -> None:
    after = Document(b"---\nName: a\ndescription: b: c\n---\n").with_renamed_field("Name", "name")
    assert after.data == b"---\nname: a\ndescription: b: c\n---\n"
