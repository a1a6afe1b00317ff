import json
import sys

import click
import pytest

from skillhall._internal.cli.command_result import CommandResult, FileContent, format_errors
from skillhall._internal.cli.errors import ErrorInfo
from skillhall._internal.cli.options import command_group, json_command

RESULT = CommandResult(
    {"names": ["a"]},
    error=ErrorInfo("conflict", "exists: a", "use --overwrite"),
    exit_code=6,
    lines=["one\nline"],
    rows=[("a", 1)],
    messages=["done"],
    warnings=["careful"],
)


def invoke(*argv: str) -> object:
    group = command_group("skillhall", "A group.")

    @json_command("copy", "skillhall copy", group=group)
    def copy() -> CommandResult:
        return RESULT

    assert isinstance(copy, click.Command)
    with group.make_context("skillhall", [*argv]) as context:
        return group.invoke(context)


def test_text_goes_to_stdout_and_messages_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke("copy") == 6
    assert capsys.readouterr() == ("one line\na\t1\n", "done\ncareful\n")


@pytest.mark.parametrize("argv", [["--json"], ["--format", "json"], ["--format=json"]])
def test_json_has_command_data_and_error_but_no_messages(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke("copy", *argv) == 6
    out, err = capsys.readouterr()
    assert json.loads(out) == {
        "schemaVersion": 1,
        "command": "copy",
        "ok": False,
        "error": {"code": "conflict", "message": "exists: a", "hint": "use --overwrite"},
        "data": {"names": ["a"]},
        "findings": [],
    }
    assert err == "careful\n"


def test_group_without_command_prints_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    invoke()
    assert "A group." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("data", "encoding", "content"), [(b"a\n", "utf-8", "a\n"), (b"\xff", "base64", "/w==")]
)
def test_file_is_serialized_as_text_or_base64(data: bytes, encoding: str, content: str) -> None:
    serialized = FileContent("a", data).serialize()
    assert serialized == {"size": len(data), "encoding": encoding, "content": content}


def test_file_is_printed_unchanged_in_a_pipe(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    FileContent("a", b"\xff\x1b").print()
    sys.stdout.flush()
    assert capsysbinary.readouterr().out == b"\xff\x1b"


def test_each_hint_is_shown_once() -> None:
    errors = [("a", ErrorInfo("c", "a is gone", "look")), ("b", ErrorInfo("c", "gone", "look"))]
    assert [*format_errors(errors)] == ["a is gone", "b: gone", "hint: look"]
