import tomllib

import pytest

from skillhall._internal.installer.mcp_clients.toml_tables import append_table, remove_table


@pytest.mark.parametrize("text", ["", "a = 1", "a = 1\n", "# only a comment\r\n"])
def test_appended_table_has_the_values_and_keeps_the_text(text: str) -> None:
    fields = {"command": 'C:\\x "y"\x7f', "args": ["mcp", "é"]}
    change = append_table(text, "mcp_servers", "skills", fields)
    assert change.start == len(text)
    assert tomllib.loads(text + change.text)["mcp_servers"] == {"skills": fields}


def test_removed_table_includes_its_subtables_and_no_others() -> None:
    text = '[mcp_servers.skills]\na = 1\n[mcp_servers."skills".env]\nb = 2\n[mcp_servers.skills2]\n'
    pieces = remove_table(text, "mcp_servers", "skills")
    assert [piece.text for piece in pieces] == [
        "[mcp_servers.skills]\na = 1\n",
        '[mcp_servers."skills".env]\nb = 2\n',
    ]
