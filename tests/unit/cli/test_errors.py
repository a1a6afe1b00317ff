import json
from pathlib import Path

import pytest

from skillhall import errors
from skillhall._internal.cli.errors import (
    EXIT_CODES,
    CommandFailed,
    is_json_requested,
    report_error,
    to_error_info,
)
from skillhall._internal.hints import DOCS_URL

RAISED = [
    (errors.SkillNotFound("a"), 4),
    (errors.SkillFileNotFound("a"), 4),
    (errors.SkillRejected("a", ["b"]), 3),
    (errors.UnsafePath("../a", "it points outside its folder"), 3),
    (errors.NotAFile("a"), 3),
    (errors.TooLarge("a", 1), 3),
    (errors.UnknownProfile("a", ["b"]), 4),
    (errors.ConfigInvalid("a", "b"), 3),
    (errors.Conflict("a"), 6),
    (OSError(28, "No space left on device"), 7),
    (PermissionError(13, "Permission denied", "/a"), 7),
    (ZeroDivisionError(), 1),
]


@pytest.mark.parametrize(("error", "code"), RAISED, ids=lambda value: type(value).__name__)
def test_each_error_class_has_its_exit_code(error: Exception, code: int) -> None:
    assert to_error_info(error).exit_code == code


@pytest.mark.parametrize("path", ["/home/ada/notes/x.md", "x.md"])
def test_os_error_names_the_file_but_not_its_folder(path: str) -> None:
    error = PermissionError(13, "Permission denied", path)
    assert to_error_info(error).message == "permission denied: x.md"


def test_every_error_code_has_an_exit_code() -> None:
    classes = {
        error.code
        for error in vars(errors).values()
        if isinstance(error, type) and issubclass(error, errors.SkillhallError)
    }
    assert classes <= set(EXIT_CODES)


def test_error_is_printed_with_its_hint_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert report_error(errors.SkillNotFound("pfd", ["pdf"]), ["show", "pfd"]) == 4
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.splitlines() == [
        "error: there is no skill named 'pfd'",
        "hint: did you mean 'pdf'? 'skillhall list' shows all skills",
        f"see: {DOCS_URL}/reference/errors/#skill_not_found",
    ]


@pytest.mark.parametrize(
    ("error", "anchor"),
    [
        (errors.UnsafePath("../a", "it points outside its folder"), "unsafe_path"),
        (OSError(28, "No space left on device"), "code-storage_full"),
        (ZeroDivisionError(), "code-internal"),
    ],
    ids=str,
)
def test_json_error_links_to_the_section_about_it(error: Exception, anchor: str) -> None:
    docs = str(to_error_info(error).serialize()["docs"])
    page = Path(__file__).parents[3] / "docs/reference/errors.md"
    heading = f"Code `{anchor[5:]}`" if anchor.startswith("code-") else f"`{anchor}`"
    assert docs == f"{DOCS_URL}/reference/errors/#{anchor}"
    assert f"### {heading}\n" in page.read_text(encoding="utf-8")


def test_usage_error_names_the_help_page_and_no_link() -> None:
    assert to_error_info(CommandFailed("usage", "no such option", "see --help")).docs == ""


@pytest.mark.parametrize("command", ["show", "token new", "audit list", "eval check"])
def test_json_error_names_the_subcommand(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    report_error(errors.Conflict("a"), [*command.split(), "a", "--json"])
    assert json.loads(capsys.readouterr().out)["command"] == command


def test_error_with_json_is_an_object_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    report_error(errors.Conflict("a"), ["init", "a", "--json"])
    output = capsys.readouterr()
    answer = json.loads(output.out)
    assert (answer["command"], answer["error"]["code"]) == ("init", "conflict")
    assert output.err == ""


def test_bug_prints_one_line_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert report_error(ZeroDivisionError("secret"), ["list"]) == 1
    output = capsys.readouterr().err
    assert output.startswith("error: internal error (ZeroDivisionError)")
    assert "secret" not in output


def test_bug_prints_a_traceback_in_debug_mode(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKILLHALL_DEBUG", "1")
    report_error(ZeroDivisionError("secret"), ["list"])
    assert "ZeroDivisionError: secret" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["list", "--json"], True),
        (["list", "--format", "json"], True),
        (["list", "--format=json"], True),
        (["list", "json"], False),
        (["list", "--", "--json"], False),
        ([], False),
    ],
)
def test_json_option_is_detected_in_invalid_arguments(argv: list[str], expected: bool) -> None:
    assert is_json_requested(argv) is expected
