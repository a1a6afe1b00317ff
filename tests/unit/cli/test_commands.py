"""Every command, run in this process: output, streams and exit code."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from skillhall._internal.cli import app
from skillhall._internal.cli.app import ALIASES, COMMANDS
from skillhall._internal.cli.runner import run
from skillhall._internal.policy.profiles import PROFILES
from skillhall._internal.skill.finding import Code
from tests.support.skills import make_skill, make_skill_md


class Cli:
    """Runs commands in a folder and stores the output of the last one."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.out = ""
        self.err = ""

    def __call__(self, *argv: str) -> int:
        code = run(argv)
        self.out, self.err = self._capsys.readouterr()
        return code

    def json(self, *argv: str) -> dict[str, Any]:
        self(*argv, "--json")
        report: dict[str, Any] = json.loads(self.out)
        assert report["schemaVersion"] == 1
        return report


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.chdir(tmp_path)
    return Cli(capsys)


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    root = tmp_path / "skills"
    make_skill(root, "pdf-tools", files={"references/forms.md": b"# Forms\n"})
    make_skill(root, "quiet", data=make_skill_md("quiet", disable_model_invocation="true"))
    make_skill(root, "broken", data=b"# Nothing\n")
    make_skill(root, "Loud", data=make_skill_md("Loud", "Speaks."))
    return root


# list


def test_list_prints_tab_separated_lines_in_a_pipe(cli: Cli, skills: Path) -> None:
    assert cli("list", "skills") == 0
    assert cli.out.splitlines() == [
        f"Loud\tSpeaks.\t{skills}/Loud/SKILL.md",
        f"pdf-tools\tReads PDF files.\t{skills}/pdf-tools/SKILL.md",
        f"quiet\tReads PDF files.\t{skills}/quiet/SKILL.md",
    ]
    assert cli.err == (
        "1 skill skipped, 1 warning; see 'skillhall validate --profile lenient skills'\n"
    )


def test_list_json_has_the_documented_fields(cli: Cli, skills: Path) -> None:
    answer = cli.json("list", "skills")
    assert (answer["command"], answer["ok"]) == ("list", True)
    assert answer["data"]["skills"][1] == {
        "id": "pdf-tools",
        "name": "pdf-tools",
        "description": "Reads PDF files.",
        "location": f"{skills}/pdf-tools/SKILL.md",
        "root": str(skills),
        "source": "given",
    }
    assert {(f["code"], f["effect"]) for f in answer["findings"]} == {
        ("no-frontmatter", "reject"),
        ("name-uppercase", "warn"),
    }


def test_list_and_show_agree_on_a_skill(cli: Cli, tmp_path: Path) -> None:
    data = '---\nname: tee\ndescription: "Tee \\\\ \\"grün\\" \\t"\n---\n'.encode()
    make_skill(tmp_path, "tee", data=data)
    (listed,) = cli.json("list", ".")["data"]["skills"]
    shown = cli.json("show", "tee", "-r", ".")["data"]["skill"]
    assert listed == {key: shown[key] for key in listed}
    assert listed["description"].startswith('Tee \\ "grün"')


def test_list_long_adds_tokens_and_files(cli: Cli, skills: Path) -> None:
    skill = cli.json("ls", "--long", "skills")["data"]["skills"][1]
    assert (skill["tokens"], skill["files"]) == (2, ["references/forms.md"])
    cli("list", "--long", "skills")
    assert cli.out.splitlines()[1].split("\t")[3:] == ["2", "1"]


def test_format_json_equals_json_option(cli: Cli, skills: Path) -> None:
    cli("list", "skills", "--json")
    first = cli.out
    cli("list", "skills", "--format", "json")
    assert cli.out == first


def test_list_searches_the_default_folders(cli: Cli, tmp_path: Path) -> None:
    make_skill(tmp_path / ".agents/skills")
    (skill,) = cli.json("list")["data"]["skills"]
    assert (skill["name"], skill["source"]) == ("pdf-tools", "project")


def test_empty_list_prints_a_hint_to_stderr_only(cli: Cli) -> None:
    assert cli("list") == 0
    assert cli.out == ""
    assert "'skillhall path'" in cli.err


def test_missing_root_is_reported_in_full(cli: Cli, tmp_path: Path) -> None:
    assert cli("list", "gone") == 4
    assert f"error: {tmp_path}/gone: the folder cannot be searched" in cli.err


# show


def test_show_prints_all_fields(cli: Cli, skills: Path) -> None:
    assert cli("show", "Loud", "--root", "skills") == 0
    assert "name:           Loud\n" in cli.out
    assert "  warn[name-uppercase]: line 2: the name 'Loud' is not lowercase\n" in cli.out


def test_show_json_has_files_tokens_and_frontmatter(cli: Cli, skills: Path) -> None:
    skill = cli.json("show", "pdf-tools", "-r", "skills")["data"]["skill"]
    assert [file["path"] for file in skill["files"]] == ["SKILL.md", "references/forms.md"]
    assert skill["frontmatter"] == {"name": "pdf-tools", "description": "Reads PDF files."}
    assert skill["tokens"] == 2


def test_show_includes_accepted_findings(cli: Cli, tmp_path: Path) -> None:
    make_skill(tmp_path / "s", data=make_skill_md(version="'1'"))
    findings = cli.json("show", "pdf-tools", "-r", "s")["findings"]
    assert [(f["code"], f["effect"]) for f in findings] == [("unknown-field", "accept")]


def test_unknown_skill_suggests_the_closest_name(cli: Cli, skills: Path) -> None:
    assert cli("show", "pdf-tool", "-r", "skills") == 4
    assert "did you mean 'pdf-tools'?" in cli.err
    assert cli.json("show", "nope", "-r", "skills")["error"]["code"] == "not_found"


def test_rejected_skill_is_not_reported_as_missing(cli: Cli, skills: Path) -> None:
    assert cli("show", "broken", "-r", "skills") == 3
    argv = shlex.split(cli.err.rpartition("run: skillhall ")[2].partition("\n")[0])
    assert cli(*argv) == 0
    assert str(skills / "broken") in cli.out


# read


def test_read_prints_the_activation(cli: Cli, skills: Path) -> None:
    assert cli("read", "pdf-tools", "-r", "skills") == 0
    assert cli.out.startswith('<skill_content name="pdf-tools">\n# Steps\n')
    assert "<file>references/forms.md</file>" in cli.out


def test_read_prints_hidden_skills(cli: Cli, skills: Path) -> None:
    assert cli("read", "quiet", "-r", "skills") == 0


def test_read_prints_the_bytes_of_a_file(
    capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> None:
    content = bytes(range(256))
    make_skill(tmp_path, files={"data.bin": content})
    assert run(["read", "pdf-tools", "data.bin", "-r", str(tmp_path)]) == 0
    assert capfdbinary.readouterr().out == content


@pytest.mark.parametrize("path", ["./a.md", "a.md ", "x/..//a.md"])
def test_read_accepts_equivalent_spellings_of_a_path(cli: Cli, tmp_path: Path, path: str) -> None:
    make_skill(tmp_path, files={"a.md": b"# A\n"})
    assert cli.json("read", "pdf-tools", path, "-r", ".")["data"]["content"] == "# A\n"


def test_read_json_encodes_binary_files_as_base64(cli: Cli, tmp_path: Path) -> None:
    make_skill(tmp_path, files={"a.bin": b"\xff", "a.md": b"# A\n"})
    binary = cli.json("read", "pdf-tools", "a.bin", "-r", ".")["data"]
    assert (binary["encoding"], binary["content"]) == ("base64", "/w==")
    assert cli.json("read", "pdf-tools", "a.md", "-r", ".")["data"]["content"] == "# A\n"


@pytest.mark.parametrize(
    ("path", "code"),
    [("../Loud/SKILL.md", 3), ("/etc/hosts", 3), ("gone.md", 4), ("references", 3), ("a\0b", 3)],
)
def test_read_rejects_paths_outside_the_skill(path: str, code: int, cli: Cli, skills: Path) -> None:
    assert cli("read", "-r", "skills", "--", "pdf-tools", path) == code
    assert cli.out == ""


def test_read_rejects_unreadable_bodies(cli: Cli, tmp_path: Path) -> None:
    make_skill(tmp_path, data=make_skill_md(body="x" * 5000) + b"\0")
    assert cli("read", "pdf-tools", "-r", ".") == 3
    assert "NUL byte" in cli.err


# validate


def test_validate_prints_findings_like_a_compiler(cli: Cli, skills: Path) -> None:
    assert cli("validate", "skills") == 1
    assert cli.out.splitlines() == [
        "skills/Loud/SKILL.md:2: reject[name-uppercase]: the name 'Loud' is not lowercase",
        "    hint: write 'loud'",
        (
            "skills/broken/SKILL.md:1: reject[no-frontmatter]: no frontmatter: "
            "the first line is not '---'"
        ),
        "    hint: start the file with '---', 'name: …', 'description: …', '---'",
    ]
    assert cli.err == "4 skills: 2 accepted, 2 rejected (profile 'specification')\n"


def test_validate_json_has_one_result_per_folder(cli: Cli, skills: Path) -> None:
    answer = cli.json("validate", "skills", "--profile", "lenient")
    results = answer["data"]["results"]
    assert [(Path(r["path"]).name, r["accepted"]) for r in results] == [
        ("Loud", True),
        ("broken", False),
        ("pdf-tools", True),
        ("quiet", True),
    ]
    assert answer["ok"] is False
    assert answer["data"]["summary"] == {
        "skills": 4,
        "accepted": 3,
        "rejected": 1,
        "warnings": 1,
    }


def test_validate_shows_accepted_findings_only_with_verbose(cli: Cli, tmp_path: Path) -> None:
    make_skill(tmp_path, data=make_skill_md(version="'1'"))
    assert cli("validate", "pdf-tools") == 0
    assert cli.out == ""
    cli("validate", "pdf-tools", "-v")
    assert "accept[unknown-field]" in cli.out


def test_validate_fix_writes_only_without_dry_run(cli: Cli, tmp_path: Path) -> None:
    data = make_skill_md().replace(b"Reads", b"Use: reads")
    skill_md = make_skill(tmp_path, data=data) / "SKILL.md"
    assert cli("validate", "pdf-tools", "--fix", "--dry-run") == 1
    assert '+description: "Use: reads PDF files."' in cli.out
    assert skill_md.read_bytes() == data
    assert cli("validate", "pdf-tools", "--fix") == 0
    assert cli.out == ""
    assert f"fixed {skill_md}: quoted the value of 'description'" in cli.err
    assert b'"Use: reads PDF files."' in skill_md.read_bytes()


def test_validate_fix_json_lists_fixes(cli: Cli, tmp_path: Path) -> None:
    make_skill(tmp_path, data=make_skill_md().replace(b"name", b"Name"))
    (fixed,) = cli.json("validate", "pdf-tools", "--fix")["data"]["fixed"]
    assert fixed["changes"] == ["renamed the field 'Name' to 'name'"]


def test_validate_missing_path_is_not_found(cli: Cli) -> None:
    assert cli("validate", "gone") == 4
    assert cli.err.startswith("error: there is no file 'gone'")


def test_validate_dry_run_without_fix_is_a_usage_error(cli: Cli) -> None:
    assert cli("validate", "--dry-run") == 2


# prompt


def test_prompt_prints_the_listing_and_nothing_else(cli: Cli, skills: Path) -> None:
    assert cli("prompt", "skills") == 0
    assert cli.out.startswith("<available_skills>\n  <skill>\n    <name>Loud</name>\n")
    assert cli.out.endswith("</available_skills>\n")
    assert "quiet" not in cli.out


@pytest.mark.parametrize(
    ("form", "start"),
    [
        ("inline", '<skill name="Loud"'),
        ("markdown", "- **Loud**: Speaks."),
        ("local", "You have access to the following skills."),
    ],
)
def test_prompt_supports_other_formats(form: str, start: str, cli: Cli, skills: Path) -> None:
    assert cli("prompt", "skills", "--format", form) == 0
    assert cli.out.startswith(start)
    assert "quiet" not in cli.out


@pytest.mark.parametrize("form", ["xml", "inline", "markdown", "local"])
def test_prompt_without_skills_prints_nothing(form: str, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert cli("to-prompt", "empty", "--format", form) == 0
    assert cli.out == ""


def test_prompt_json_contains_skills_and_text(cli: Cli, skills: Path) -> None:
    data = cli.json("prompt", "skills")["data"]
    assert [skill["name"] for skill in data["skills"]] == ["Loud", "pdf-tools"]
    assert data["text"].startswith("<available_skills>")


def test_prompt_inline_skips_unreadable_bodies(cli: Cli, tmp_path: Path) -> None:
    make_skill(tmp_path, "a", data=make_skill_md("a", body="x" * 5000) + b"\0")
    make_skill(tmp_path, "b")
    assert cli("prompt", ".", "--format", "inline") == 0
    assert re.findall(r'<skill name="(.)"', cli.out) == ["b"]
    assert "1 skill skipped" in cli.err


def test_prompt_uses_the_agent_config(cli: Cli, skills: Path, tmp_path: Path) -> None:
    config = {"agents": [{"agentId": "helper", "skills": [{"root": "skills", "inline": ["pdf*"]}]}]}
    (tmp_path / "agents.json").write_text(json.dumps(config), encoding="utf-8")
    assert cli("prompt", "--config", "agents.json", "--agent", "helper") == 0
    assert cli.out.startswith('<skill name="pdf-tools"')
    assert cli("prompt", "--config", "agents.json") == 0
    assert cli.json("prompt", "--config", "agents.json")["data"]["agent"] == "helper"
    assert cli("prompt", "--config", "agents.json", "--agent", "nobody") == 3


@pytest.mark.parametrize("argv", [["root", "--agent", "a"], ["root", "--config", "c.json"]])
def test_prompt_rejects_conflicting_options(argv: list[str], cli: Cli) -> None:
    assert cli("prompt", *argv) == 2


# init


def test_init_creates_a_valid_skill(cli: Cli, tmp_path: Path) -> None:
    assert cli("init", "pdf-tools", "--dir", "new", "--description", "Use for: PDFs") == 0
    assert cli.out == f"{tmp_path}/new/pdf-tools/SKILL.md\n"
    assert cli("validate", "new") == 0


@pytest.mark.parametrize("alias", ["new", "create"])
def test_init_has_aliases(alias: str, cli: Cli) -> None:
    assert cli.json(alias, "a")["data"]["name"] == "a"


def test_init_rejects_existing_and_invalid_names(cli: Cli) -> None:
    cli("init", "a")
    assert cli("init", "a") == 6
    assert cli("init", "A_b") == 3
    assert "'a-b'" in cli.err
    assert cli("init", "folder/pdf") == 3
    assert "use --dir for the folder" in cli.err
    assert cli("init") == 2


# why, path, profiles, completion


def test_why_explains_used_shadowed_and_rejected_copies(cli: Cli, tmp_path: Path) -> None:
    make_skill(tmp_path / "a")
    make_skill(tmp_path / "b")
    make_skill(tmp_path / "c", data=b"")
    argv = ["why", "pdf-tools", "-r", "a", "-r", "b", "-r", "c"]
    assert cli(*argv) == 0
    assert [line.partition(":")[0] for line in cli.out.splitlines() if line[0] != " "] == [
        "used",
        "shadowed",
        "rejected",
    ]
    assert "the earlier root wins (profile 'lenient')" in cli.out
    data = cli.json(*argv)["data"]
    assert data["shadowed"][0]["by"] == data["used"][0]["location"]
    assert data["rejected"][0]["findings"][0]["code"] == "no-frontmatter"


def test_why_unknown_name_is_not_found(cli: Cli, skills: Path) -> None:
    assert cli("why", "nope", "-r", "skills") == 4


def test_path_shows_folders_and_the_cache(cli: Cli, tmp_path: Path) -> None:
    make_skill(tmp_path / ".agents/skills")
    assert cli("path") == 0
    assert cli.out.splitlines()[0] == f"{tmp_path}/.agents/skills\tproject\t1 skill"
    assert cli.out.splitlines()[1] == f"{tmp_path}/.claude/skills\tproject\tmissing"
    data = cli.json("path")["data"]
    assert data["roots"][0]["skills"] == 1
    cli("path", "index")
    assert cli.out == f"{data['index']}\n"


def test_profiles_show_the_effect_of_every_code(cli: Cli) -> None:
    profiles = cli.json("profiles")["data"]["profiles"]
    assert [profile["name"] for profile in profiles] == list(PROFILES)
    assert all(set(profile["effects"]) == set(Code) for profile in profiles)
    cli("profiles", "specification")
    assert "name-uppercase\treject\n" in cli.out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_and_how_to_install_it(shell: str, cli: Cli) -> None:
    assert cli("completion", shell) == 0
    assert cli.out.startswith("# To install it: ")
    assert "_SKILLHALL_COMPLETE" in cli.out


@pytest.mark.parametrize(
    ("argv", "number", "expected"),
    [
        ("skillhall va", 1, "validate"),
        ("skillhall show pdf", 2, "pdf-tools"),
        ("skillhall list --profile len", 3, "lenient"),
    ],
)
def test_completion_offers_commands_skills_and_profiles(
    argv: str, number: int, expected: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_skill(Path(".agents/skills"))
    monkeypatch.setenv("_SKILLHALL_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", argv)
    monkeypatch.setenv("COMP_CWORD", str(number))
    cli()
    assert cli.out == f"plain,{expected}\n"


# usage


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_page_has_an_example(command: str, cli: Cli) -> None:
    assert cli(command, "--help") == 0
    assert "Example: " in cli.out
    assert "--json" in cli.out


def commands_below(command: click.Command, *path: str) -> Iterator[tuple[str, ...]]:
    """Yield the arguments of every command, including subcommands."""
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            subcommand = command.get_command(context, name)
            assert subcommand is not None
            yield from commands_below(subcommand, *path, name)


def test_no_help_shows_markup_or_escapes(cli: Cli) -> None:
    for path in commands_below(app.cli):
        assert cli(*path, "--help") == 0
        assert not re.findall(r"\\\w|``|[\x00-\x09\x0b-\x1f]", cli.out), path


def test_add_help_lists_each_source_on_its_own_line(cli: Cli) -> None:
    cli("add", "--help")
    assert "\n    ./folder, skills.zip, skills.tar.gz\n" in cli.out


def test_help_groups_the_commands_by_task(cli: Cli) -> None:
    cli("--help")
    sections = re.findall(r"^(\w[^\n]*):\n((?:  .*\n)+)", cli.out, flags=re.MULTILINE)
    assert [title for title, _ in sections] == [
        "Options",
        "Start here",
        "Find and check",
        "Install and maintain",
        "Serve and share",
        "Sessions",
        "Agents",
        "Settings",
    ]
    first = re.findall(r"^  ([a-z-]+) {2,}", dict(sections)["Start here"], re.MULTILINE)
    assert first == ["init", "add", "list", "check", "serve", "doctor"]


@pytest.mark.parametrize("argv", [("--help",), ("-h",)])
def test_help_lists_every_command_and_no_alias(argv: tuple[str, ...], cli: Cli) -> None:
    assert cli(*argv) == 0
    listed = re.findall(r"^  ([a-z][a-z-]+) {2,}[A-Z]", cli.out, flags=re.MULTILINE)
    assert listed == list(COMMANDS)
    assert not set(listed) & set(ALIASES)


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["vaildate"], "did you mean 'skillhall validate'?"),
        (["qqq"], "see 'skillhall --help'"),
        (["list", "--jsno"], "--json"),
        (["list", "--profile", "lenint"], "did you mean 'lenient'?"),
        (["show"], "missing argument 'NAME'"),
        (["--nope"], "no such option"),
    ],
)
def test_typos_get_suggestions(argv: list[str], expected: str, cli: Cli) -> None:
    assert cli(*argv) == 2
    assert cli.out == ""
    assert expected.lower() in cli.err.lower()
    assert cli.err.startswith("error: ")


def test_usage_error_with_json_is_an_object(cli: Cli) -> None:
    answer = cli.json("list", "--nope")
    assert (answer["ok"], answer["command"], answer["error"]["code"]) == (False, "list", "usage")


def test_double_hyphen_ends_the_options(cli: Cli, tmp_path: Path) -> None:
    make_skill(tmp_path / "--json", "-x", data=make_skill_md("-x"))
    cli("list", "--", "--json")
    assert cli.out.startswith("-x\t")
    assert cli("show", "-r", "--json", "--", "-x") == 0


def test_bug_in_a_command_prints_one_line(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_down(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(
        "skillhall._internal.cli.commands.browse.list_output.load_with_progress", break_down
    )
    assert cli("list") == 1
    assert cli.err.startswith("error: internal error (ZeroDivisionError)")


def test_interrupt_prints_nothing(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(
        "skillhall._internal.cli.commands.browse.list_output.load_with_progress", interrupt
    )
    assert cli("list") == 130
    assert cli.err == ""


def test_escape_sequences_in_a_skill_are_escaped(cli: Cli, tmp_path: Path) -> None:
    data = "---\nname: 'x\u2066y'\ndescription: a\u202eb\n---\n"
    make_skill(tmp_path, data=data.encode())
    for argv in (["list", "."], ["validate", "."], ["show", "x\u2066y", "-r", "."]):
        cli(*argv)
        assert "\u202e" not in cli.out + cli.err
        assert "\u2066" not in cli.out + cli.err
