import pytest

from skillhall._internal.installer.mcp_clients.json_members import (
    insert_member,
    parse_commented_json,
    remove_member,
)
from skillhall._internal.strict_json import InvalidJson

ENTRY = {"command": "skillhall", "args": ["mcp"]}
TEXTS = [
    "{}",
    "{\n}\n",
    '{"a": 1}',
    '{"mcpServers": {}}',
    '{\n  "mcpServers": {\n  }\n}\n',
    '{\n\t"mcpServers": {\n\t\t"other": {"command": "x"}\n\t}\n}\n',
    '{\r\n  "mcpServers": {\r\n    "other": {}\r\n  }\r\n}\r\n',
    '\ufeff// head\n{\n  // servers\n  "mcpServers": { // mine\n    "b": {}, /* b */\n  },\n}\n',
    '{"mcpServers": {"other": {"args": ["}", "//", "\\"{"]}}, "b": [1, {"c": null},]}',
]


def insert(text: str) -> str:
    change = insert_member(text, "mcpServers", "skills", ENTRY)
    return text[: change.start] + change.text + text[change.start :]


@pytest.mark.parametrize("text", TEXTS)
def test_inserted_member_is_the_only_difference_in_the_value(text: str) -> None:
    expected = parse_commented_json(text)
    servers = expected.setdefault("mcpServers", {})
    assert isinstance(servers, dict)
    servers["skills"] = ENTRY
    assert parse_commented_json(insert(text)) == expected


@pytest.mark.parametrize("text", TEXTS)
def test_insertion_is_one_piece_so_that_cutting_it_gives_the_text_back(text: str) -> None:
    change = insert_member(text, "mcpServers", "skills", ENTRY)
    assert insert(text).replace(change.text, "", 1) == text


def test_insertion_uses_the_indentation_and_line_breaks_of_the_file() -> None:
    assert insert('{\r\n\t"mcpServers": {\r\n\t\t"a": {}\r\n\t}\r\n}\r\n') == (
        '{\r\n\t"mcpServers": {\r\n\t\t"skills": {\r\n\t\t\t"command": "skillhall",\r\n'
        '\t\t\t"args": [\r\n\t\t\t\t"mcp"\r\n\t\t\t]\r\n\t\t},\r\n\t\t"a": {}\r\n\t}\r\n}\r\n'
    )


def test_comment_after_the_bracket_stays_on_its_line() -> None:
    text = '{\n  "mcpServers": { // mine\n    "a": {}\n  }\n}\n'
    assert '{ // mine\n    "skills": {' in insert(text)


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ('{"mcpServers": {"skills": {}}}', '{"mcpServers": {}}'),
        ('{"mcpServers": {"skills": {}, "a": 1}}', '{"mcpServers": { "a": 1}}'),
        ('{"mcpServers": {"a": 1, "skills": {}}}', '{"mcpServers": {"a": 1}}'),
        ('{"mcpServers": {\n  "a": 1,\n  "skills": {},\n}}', '{"mcpServers": {\n  "a": 1,\n}}'),
        ('{"mcpServers": {"skills": {} /* c */, "a": 1}}', '{"mcpServers": { /* c */ "a": 1}}'),
    ],
)
def test_member_written_by_hand_is_removed_with_its_comma(text: str, rest: str) -> None:
    for change in reversed(remove_member(text, "mcpServers", "skills")):
        text = text[: change.start] + text[change.start + len(change.text) :]
    assert text == rest


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"a" 1}',
        '{"a": 1 "b": 2}',
        '{"a": 1, "a": 2}',
        '{"a": yes}',
        '{"a": "x\ny"}',
        "{} x",
        "{} /* open",
        '{"a":' * 5000,
        '{"mcpServers": []}',
        '{"mcpServers": {"skills": {}}}',
    ],
)
def test_text_that_cannot_take_the_member_is_rejected(text: str) -> None:
    with pytest.raises(InvalidJson):
        insert_member(text, "mcpServers", "skills", ENTRY)
