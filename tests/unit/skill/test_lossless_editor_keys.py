import pytest

from skillhall._internal.skill.lossless_editor import Document, EditRefused


def test_renaming_a_key_changes_only_its_bytes() -> None:
    before = b"---\r\nName:   a # why\r\ndescription: b\r\n---\r\nName: body\r\n"
    after = Document(before).with_renamed_field("Name", "name")
    assert after.data == before.replace(b"Name:   a", b"name:   a")


def test_renaming_a_quoted_key_is_refused() -> None:
    with pytest.raises(EditRefused):
        Document(b'---\n"Name": a\n---\n').with_renamed_field("Name", "name")


@pytest.mark.parametrize(("key", "new"), [("Gone", "gone"), ("Name", "name"), ("Name", "a b")])
def test_renaming_to_an_invalid_or_existing_key_is_refused(key: str, new: str) -> None:
    with pytest.raises(EditRefused):
        Document(b"---\nName: a\nname: b\n---\n").with_renamed_field(key, new)


def test_key_of_invalid_yaml_is_renamed() -> None:
    after = Document(b"---\nName: a\ndescription: b: c\n---\n").with_renamed_field("Name", "name")
    assert after.data == b"---\nname: a\ndescription: b: c\n---\n"
