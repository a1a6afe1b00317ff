"""The hook in Claude Code's settings: put in, updated, taken out, and nothing else changed."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from skillhall._internal.installer.project import Project
from skillhall._internal.prompts.generate.claude_hook import (
    build_hook_command,
    install_hook,
    remove_hook,
)
from skillhall.errors import ConfigInvalid, UnsafePath
from tests.support.projects import make_project_settings

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
def shelf(tmp_path: Path) -> Project:
    return Project.from_settings(make_project_settings(tmp_path))


def settings_file(shelf: Project) -> Path:
    return Path(shelf.root, ".claude/settings.json")


def write(shelf: Project, text: str) -> None:
    settings_file(shelf).parent.mkdir(exist_ok=True)
    settings_file(shelf).write_bytes(text.encode())


def read(shelf: Project) -> Any:  # noqa: ANN401 - whatever JSON holds
    return json.loads(settings_file(shelf).read_bytes())


def commands(shelf: Project) -> list[str]:
    groups = [group for group in read(shelf)["hooks"]["SessionStart"] if group != "odd"]
    return [hook["command"] for group in groups for hook in group["hooks"]]


def test_settings_are_made_where_there_are_none(shelf: Project) -> None:
    report = install_hook(shelf, OPTIONS)
    assert (report.change, report.backup) == ("added", "")
    hook = {"type": "command", "command": build_hook_command(OPTIONS)}
    assert read(shelf) == {"hooks": {"SessionStart": [{"hooks": [hook]}]}}
    assert settings_file(shelf).stat().st_mode & 0o777 == 0o644


def test_a_persons_own_settings_lie_in_the_home_folder(tmp_path: Path) -> None:
    shelf = Project.from_settings(make_project_settings(tmp_path), user=True)
    assert install_hook(shelf, []).path == str(tmp_path / "home/.claude/settings.json")
    elsewhere = {"CLAUDE_CONFIG_DIR": str(tmp_path / "config")}
    moved = Project.from_settings(
        make_project_settings(tmp_path)._replace(variables=elsewhere), user=True
    )
    assert install_hook(moved, []).path == str(tmp_path / "config/settings.json")
    assert (tmp_path / "config/settings.json").is_file()


@pytest.mark.parametrize("indent", [2, 4, "\t", None])
@pytest.mark.parametrize("end", ["", "\n"])
def test_everything_else_keeps_its_order_and_its_manner(
    shelf: Project, indent: int | str | None, end: str
) -> None:
    before = json.dumps(OTHERS, indent=indent) + end
    write(shelf, before)
    assert install_hook(shelf, OPTIONS).change == "added"
    text = settings_file(shelf).read_text(encoding="utf-8")
    assert commands(shelf) == ["git fetch", build_hook_command(OPTIONS)]
    assert text == json.dumps(read(shelf), indent=indent) + end
    assert list(read(shelf)) == list(OTHERS)
    assert remove_hook(shelf).change == "removed"
    assert settings_file(shelf).read_text(encoding="utf-8") == before


def test_windows_line_ends_and_marks_are_kept(shelf: Project) -> None:
    write(shelf, '\ufeff{\r\n  "a": "é"\r\n}\r\n')
    install_hook(shelf, OPTIONS)
    data = settings_file(shelf).read_bytes()
    assert data.startswith(b'\xef\xbb\xbf{\r\n  "a": "\xc3\xa9",\r\n')
    assert data.count(b"\n") == data.count(b"\r\n")


def test_the_same_hook_is_not_added_twice(shelf: Project) -> None:
    install_hook(shelf, OPTIONS)
    before = settings_file(shelf).stat()
    assert install_hook(shelf, OPTIONS).change == "unchanged"
    assert settings_file(shelf).stat() == before


def test_an_older_hook_of_ours_is_updated_where_it_stands(shelf: Project) -> None:
    write(shelf, json.dumps(OTHERS))
    install_hook(shelf, ["--agent=cursor"])
    assert install_hook(shelf, OPTIONS).change == "updated"
    assert commands(shelf) == ["git fetch", build_hook_command(OPTIONS)]


def test_a_hook_that_a_person_wrote_is_not_ours(shelf: Project) -> None:
    own = {"type": "command", "command": "skillhall generate --agent cursor"}
    write(shelf, json.dumps({"hooks": {"SessionStart": [{"hooks": [own]}]}}))
    assert remove_hook(shelf).change == "unchanged"
    install_hook(shelf, OPTIONS)
    assert commands(shelf) == [own["command"], build_hook_command(OPTIONS)]


def test_the_settings_as_they_were_are_kept(shelf: Project) -> None:
    write(shelf, '{"a": 1}')
    backup = Path(install_hook(shelf, OPTIONS).backup)
    assert backup.read_text(encoding="utf-8") == '{"a": 1}'
    assert backup.is_relative_to(shelf.settings.data_directory)


def test_taking_out_what_is_not_there_makes_nothing(shelf: Project) -> None:
    assert remove_hook(shelf).change == "unchanged"
    assert list(Path(shelf.root).iterdir()) == []


def test_a_hook_that_was_alone_leaves_nothing_behind(shelf: Project) -> None:
    write(shelf, "{}\n")
    install_hook(shelf, OPTIONS)
    remove_hook(shelf)
    assert read(shelf) == {}


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
def test_settings_that_cannot_be_changed_without_loss_stay(shelf: Project, text: str) -> None:
    write(shelf, text)
    with pytest.raises(ConfigInvalid, match=r"settings\.json: .*nothing was changed"):
        install_hook(shelf, OPTIONS)
    with pytest.raises(ConfigInvalid, match=r"settings\.json: .*nothing was changed"):
        remove_hook(shelf)
    assert settings_file(shelf).read_text(encoding="utf-8") == text
    assert not Path(shelf.settings.data_directory).exists()


def test_settings_behind_a_link_are_not_written(shelf: Project, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text("{}", encoding="utf-8")
    settings_file(shelf).parent.mkdir()
    settings_file(shelf).symlink_to(elsewhere)
    with pytest.raises(ConfigInvalid, match="link"):
        install_hook(shelf, OPTIONS)
    assert elsewhere.read_text(encoding="utf-8") == "{}"
    assert settings_file(shelf).is_symlink()


def test_a_settings_folder_that_leads_out_of_the_project_is_refused(
    shelf: Project, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    settings_file(shelf).parent.symlink_to(tmp_path / "outside")
    with pytest.raises(UnsafePath):
        install_hook(shelf, OPTIONS)
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.parametrize("word", ["a b", "$(touch x)", "a'b\"c", "`x`", "*", "a;b"])
def test_words_reach_the_command_as_they_are_whatever_a_shell_makes_of_them(word: str) -> None:
    command = build_hook_command([f"--include={word}"])
    assert shlex.split(command) == ["skillhall", "generate", "--as-hook", f"--include={word}"]
