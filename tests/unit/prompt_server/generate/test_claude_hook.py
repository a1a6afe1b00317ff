"""Hook in Claude Code's settings: added, updated and removed without other changes."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from skillhall._internal.installer.project import Project
from skillhall._internal.prompt_server.generate.claude_hook import (
    build_hook_command,
    install_hook,
    remove_hook,
)
from skillhall.errors import ConfigInvalid, UnsafePath
from tests.support.projects import make_project_settings
from tests.support.trees import read_identity

OPTIONS = ["--agent=claude-code", "--server=http://127.0.0.1:1"]
OTHERS = {
    "model": "opus",
    "hooks": {
        "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}],
        "SessionStart": [
            {"matcher": "resume", "hooks": [{"type": "command", "command": "git fetch"}]},
            "odd",
        ],
    },
    "permissions": {"allow": ["Bash(ls)"], "ratio": 1.5, "none": None},
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project.from_settings(make_project_settings(tmp_path))


def get_settings_path(project: Project) -> Path:
    return Path(project.root, ".claude/settings.json")


def write_settings(project: Project, text: str) -> None:
    get_settings_path(project).parent.mkdir(exist_ok=True)
    get_settings_path(project).write_bytes(text.encode())


def read_settings(project: Project) -> Any:  # noqa: ANN401 - JSON
    return json.loads(get_settings_path(project).read_bytes())


def list_commands(project: Project) -> list[str]:
    groups = [group for group in read_settings(project)["hooks"]["SessionStart"] if group != "odd"]
    return [hook["command"] for group in groups for hook in group["hooks"]]


def test_missing_settings_are_created(project: Project) -> None:
    report = install_hook(project, OPTIONS)
    assert (report.change, report.backup) == ("added", "")
    hook = {"type": "command", "command": build_hook_command(OPTIONS)}
    assert read_settings(project) == {"hooks": {"SessionStart": [{"hooks": [hook]}]}}
    assert get_settings_path(project).stat().st_mode & 0o777 == 0o644


def test_user_settings_are_in_the_home_folder(tmp_path: Path) -> None:
    project = Project.from_settings(make_project_settings(tmp_path), user=True)
    assert install_hook(project, []).path == str(tmp_path / "home/.claude/settings.json")
    variables = {"CLAUDE_CONFIG_DIR": str(tmp_path / "config")}
    moved = Project.from_settings(
        make_project_settings(tmp_path)._replace(variables=variables), user=True
    )
    assert install_hook(moved, []).path == str(tmp_path / "config/settings.json")
    assert (tmp_path / "config/settings.json").is_file()


@pytest.mark.parametrize("indent", [2, 4, "\t", None])
@pytest.mark.parametrize("end", ["", "\n"])
def test_other_settings_keep_their_order_and_format(
    project: Project, indent: int | str | None, end: str
) -> None:
    before = json.dumps(OTHERS, indent=indent) + end
    write_settings(project, before)
    assert install_hook(project, OPTIONS).change == "added"
    text = get_settings_path(project).read_text(encoding="utf-8")
    assert list_commands(project) == ["git fetch", build_hook_command(OPTIONS)]
    assert text == json.dumps(read_settings(project), indent=indent) + end
    assert list(read_settings(project)) == list(OTHERS)
    assert remove_hook(project).change == "removed"
    assert get_settings_path(project).read_text(encoding="utf-8") == before


def test_windows_newlines_and_bom_are_preserved(project: Project) -> None:
    write_settings(project, '\ufeff{\r\n  "a": "é"\r\n}\r\n')
    install_hook(project, OPTIONS)
    data = get_settings_path(project).read_bytes()
    assert data.startswith(b'\xef\xbb\xbf{\r\n  "a": "\xc3\xa9",\r\n')
    assert data.count(b"\n") == data.count(b"\r\n")


def test_installing_the_same_hook_changes_nothing(project: Project) -> None:
    install_hook(project, OPTIONS)
    before = read_identity(get_settings_path(project))
    assert install_hook(project, OPTIONS).change == "unchanged"
    assert read_identity(get_settings_path(project)) == before


def test_existing_hook_is_updated_in_place(project: Project) -> None:
    write_settings(project, json.dumps(OTHERS))
    install_hook(project, ["--agent=cursor"])
    assert install_hook(project, OPTIONS).change == "updated"
    assert list_commands(project) == ["git fetch", build_hook_command(OPTIONS)]


def test_hook_written_by_the_user_is_not_changed(project: Project) -> None:
    own = {"type": "command", "command": "skillhall generate --agent cursor"}
    write_settings(project, json.dumps({"hooks": {"SessionStart": [{"hooks": [own]}]}}))
    assert remove_hook(project).change == "unchanged"
    install_hook(project, OPTIONS)
    assert list_commands(project) == [own["command"], build_hook_command(OPTIONS)]


def test_settings_are_backed_up_before_a_change(project: Project) -> None:
    write_settings(project, '{"a": 1}')
    backup = Path(install_hook(project, OPTIONS).backup)
    assert backup.read_text(encoding="utf-8") == '{"a": 1}'
    assert backup.is_relative_to(project.settings.data_directory)


def test_removing_a_missing_hook_creates_nothing(project: Project) -> None:
    assert remove_hook(project).change == "unchanged"
    assert list(Path(project.root).iterdir()) == []


def test_removing_the_only_hook_removes_empty_keys(project: Project) -> None:
    write_settings(project, "{}\n")
    install_hook(project, OPTIONS)
    remove_hook(project)
    assert read_settings(project) == {}


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, // a comment\n}',
        '{"a": 1',
        "[]",
        '{"a": 1, "a": 2}',
        '{"a": NaN}',
        '{"hooks": []}',
        '{"hooks": {"SessionStart": {}}}',
        '{"hooks": null}',
    ],
)
def test_invalid_settings_are_not_changed(project: Project, text: str) -> None:
    write_settings(project, text)
    with pytest.raises(ConfigInvalid, match=r"settings\.json: .*nothing was changed"):
        install_hook(project, OPTIONS)
    with pytest.raises(ConfigInvalid, match=r"settings\.json: .*nothing was changed"):
        remove_hook(project)
    assert get_settings_path(project).read_text(encoding="utf-8") == text
    assert not Path(project.settings.data_directory).exists()


def test_linked_settings_are_not_written(project: Project, tmp_path: Path) -> None:
    target = tmp_path / "target.json"
    target.write_text("{}", encoding="utf-8")
    get_settings_path(project).parent.mkdir()
    get_settings_path(project).symlink_to(target)
    with pytest.raises(ConfigInvalid, match="link"):
        install_hook(project, OPTIONS)
    assert target.read_text(encoding="utf-8") == "{}"
    assert get_settings_path(project).is_symlink()


def test_settings_folder_outside_the_project_is_rejected(project: Project, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    get_settings_path(project).parent.symlink_to(tmp_path / "outside")
    with pytest.raises(UnsafePath):
        install_hook(project, OPTIONS)
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.parametrize("option", ["a b", "$(touch x)", "a'b\"c", "`x`", "*", "a;b"])
def test_hook_options_are_quoted_for_the_shell(option: str) -> None:
    command = build_hook_command([f"--include={option}"])
    assert shlex.split(command) == ["skillhall", "generate", "--as-hook", f"--include={option}"]
