import json
from pathlib import Path

import pytest

from skillhall._internal.installer.mcp_clients.client_config import (
    ConfigFile,
    apply_edit,
    find_config_file,
    plan_install,
    plan_uninstall,
)
from skillhall._internal.installer.mcp_clients.mcp_client_table import MCP_CLIENTS
from skillhall._internal.settings import Settings
from skillhall.errors import ConfigInvalid, Conflict
from tests.support.agents import make_settings

COMMAND = ["skillhall", "mcp", "/skills"]
EARLIER = {
    "json": '{\n  // mine\n  "theme": "dark",\n  "%s": {\n    "b": {"command": "b"},\n  },\n}\n',
    "toml": '# mine\nmodel = "x"\n\n[mcp_servers.b]\ncommand = "b"',
}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return make_settings(tmp_path, home=str(tmp_path / "home"))


def find(settings: Settings, client: str, *, is_user: bool = False) -> ConfigFile:
    Path(settings.home).mkdir(exist_ok=True)
    return find_config_file(settings, MCP_CLIENTS[client], "linux", is_user=is_user)


def install(settings: Settings, file: ConfigFile, command: list[str] = COMMAND) -> str:
    edit = plan_install(settings, file, "skills", command)
    apply_edit(settings, edit)
    return edit.action


def uninstall(settings: Settings, file: ConfigFile) -> str:
    edit = plan_uninstall(settings, file, "skills")
    apply_edit(settings, edit)
    return edit.action


@pytest.mark.parametrize("client", MCP_CLIENTS)
def test_uninstall_restores_the_bytes_of_every_client_file(client: str, settings: Settings) -> None:
    file = find(settings, client, is_user=client != "roo")
    earlier = EARLIER["toml" if client == "codex" else "json"]
    path = Path(file.location)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(earlier % file.client.key if "%s" in earlier else earlier, encoding="utf-8")
    before = path.read_bytes()
    path.chmod(0o640)
    assert install(settings, file) == "add"
    assert install(settings, file) == "none"
    assert install(settings, file, ["skillhall", "mcp"]) == "update"
    assert uninstall(settings, file) == "remove"
    assert uninstall(settings, file) == "none"
    assert path.read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("client", ["cursor", "codex"])
def test_uninstall_removes_a_file_that_install_created(client: str, settings: Settings) -> None:
    file = find(settings, client)
    install(settings, file)
    install(settings, file, ["skillhall", "mcp", "/others"])
    uninstall(settings, file)
    assert not Path(file.location).exists()


def test_uninstall_keeps_what_the_client_has_added_since(settings: Settings) -> None:
    file = find(settings, "cursor")
    install(settings, file)
    path = Path(file.location)
    fields = json.loads(path.read_text(encoding="utf-8"))
    fields["mcpServers"]["b"] = {"command": "b"}
    path.write_text(json.dumps(fields), encoding="utf-8")
    uninstall(settings, file)
    assert json.loads(path.read_text(encoding="utf-8")) == {"mcpServers": {"b": {"command": "b"}}}


def test_entry_of_another_program_is_neither_replaced_nor_removed(settings: Settings) -> None:
    file = find(settings, "cursor")
    Path(file.location).parent.mkdir()
    Path(file.location).write_text('{"mcpServers": {"skills": {"command": "b"}}}', encoding="utf-8")
    with pytest.raises(Conflict):
        plan_install(settings, file, "skills", COMMAND)
    with pytest.raises(Conflict):
        plan_uninstall(settings, file, "skills")


@pytest.mark.parametrize(
    ("client", "text"),
    [
        ("cursor", "not json"),
        ("cursor", '{"mcpServers": []}'),
        ("codex", "a ="),
        ("codex", "mcp_servers = {}"),
    ],
)
def test_file_that_cannot_be_edited_as_text_is_left_alone(
    client: str, text: str, settings: Settings
) -> None:
    file = find(settings, client)
    Path(file.location).parent.mkdir()
    Path(file.location).write_text(text, encoding="utf-8")
    with pytest.raises(ConfigInvalid):
        plan_install(settings, file, "skills", COMMAND)


def test_error_for_an_inline_table_has_the_text_to_paste(settings: Settings) -> None:
    file = find(settings, "codex")
    Path(file.location).parent.mkdir()
    Path(file.location).write_text("mcp_servers = {}", encoding="utf-8")
    with pytest.raises(ConfigInvalid) as caught:
        plan_install(settings, file, "skills", COMMAND)
    assert '[mcp_servers.skills]\ncommand = "skillhall"' in caught.value.hint


def test_link_in_a_project_is_not_followed(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / ".cursor").symlink_to(tmp_path / "outside")
    file = find(settings, "cursor")
    with pytest.raises(ConfigInvalid):
        install(settings, file)
    assert not [*(tmp_path / "outside").iterdir()]


def test_file_that_changed_after_the_plan_is_not_overwritten(settings: Settings) -> None:
    file = find(settings, "claude-code")
    edit = plan_install(settings, file, "skills", COMMAND)
    Path(file.location).write_text("{}", encoding="utf-8")
    with pytest.raises(ConfigInvalid, match="changed"):
        apply_edit(settings, edit)


def test_diff_shows_no_other_line_of_the_file(settings: Settings) -> None:
    file = find(settings, "claude-code")
    Path(file.location).write_text('{"token": "secret", "mcpServers": {}}', encoding="utf-8")
    edit = plan_install(settings, file, "skills", COMMAND)
    assert not any("secret" in line for line in edit.iter_diff())


def test_root_in_the_project_stays_relative(settings: Settings, tmp_path: Path) -> None:
    assert find(settings, "gemini-cli").build_root(str(tmp_path / "a/b")) == "./a/b"
    assert find(settings, "cursor").build_root(str(tmp_path / "a")) == "${workspaceFolder}/a"
    assert find(settings, "cursor", is_user=True).build_root(str(tmp_path)) == str(tmp_path)
    assert find(settings, "cursor").build_root("/elsewhere") == "/elsewhere"
