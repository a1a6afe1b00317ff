"""Snapshots: which prompts a folder gives, and the bytes of what is answered."""

import gc
import json
from pathlib import Path

import pytest

from skillhall._internal.policy.effects import Effect
from skillhall._internal.prompts.prompt_model import PromptArgument, PromptFile
from skillhall._internal.prompts.prompt_snapshot import PromptContents, PromptSnapshotView
from skillhall._internal.skill.finding import Code, Finding
from skillhall.errors import MissingArguments, PromptNotFound, PromptsSourceError
from tests.support.prompt_sources import (
    BUILT_IN,
    get_prompt,
    get_prompt_text,
    list_prompts,
    make_checkout,
    make_snapshot,
)
from tests.support.skills import make_skill_md

FLAT = make_skill_md("hello", "Says hello.", "\nHello {{who}}!\n\n", arguments="[{name: who}]")
LARGE = 5 * 1024 * 1024


def codes(snapshot: PromptSnapshotView) -> set[tuple[Code, str]]:
    found = (judged for judged in snapshot.findings if judged.effect is not Effect.ACCEPT)
    return {(item.finding.code, item.finding.path.replace("\\", "/")) for item in found}


def test_a_list_has_names_descriptions_arguments_and_the_source_and_no_files(
    tmp_path: Path,
) -> None:
    files = {"hello.md": FLAT, "pdf/SKILL.md": make_skill_md("pdf"), "pdf/a.sh": b"#!/bin/sh\n"}
    data = json.loads(make_snapshot(files, tmp_path).list_json())
    argument = {"name": "who", "description": "", "required": False}
    assert data["source"] == "acme/prompts"
    assert data["prompts"][len(BUILT_IN) :] == [
        {"name": "hello", "description": "Says hello.", "arguments": [argument]},
        {"name": "pdf", "description": "Reads PDF files."},
    ]


def test_an_answer_has_the_trimmed_body_and_the_files_in_base64(tmp_path: Path) -> None:
    files = {
        "pdf/SKILL.md": make_skill_md("pdf"),
        "pdf/b/SKILL.md": b"nested",
        "pdf/a.bin": b"\x00\xff",
        "pdf/.hidden": b"x",
    }
    assert get_prompt(make_snapshot(files, tmp_path), "pdf") == {
        "description": "Reads PDF files.",
        "messages": [{"role": "user", "content": {"type": "text", "text": "# Steps"}}],
        "files": [
            {"path": "a.bin", "content": "AP8="},
            {"path": "b/SKILL.md", "content": "bmVzdGVk"},
        ],
        "source": "acme/prompts",
    }


def test_an_answer_without_files_does_not_mention_them(tmp_path: Path) -> None:
    answer = get_prompt(make_snapshot({"hello.md": FLAT}, tmp_path), "hello")
    assert list(answer) == ["description", "messages", "source"]


def test_arguments_are_filled_in_and_the_answer_without_them_stays_as_it_was(
    tmp_path: Path,
) -> None:
    snapshot = make_snapshot({"hello.md": FLAT}, tmp_path)
    assert get_prompt_text(snapshot, "hello", who="Ada") == "Hello Ada!"
    assert get_prompt_text(snapshot, "hello") == "Hello {{who}}!"
    assert snapshot.prompt_json("hello") is snapshot.prompt_json("hello")


def test_a_required_argument_is_asked_for(tmp_path: Path) -> None:
    body = make_skill_md("ask", arguments="[{name: who, required: true}]")
    snapshot = make_snapshot({"ask.md": body}, tmp_path)
    with pytest.raises(MissingArguments):
        snapshot.prompt_json("ask")
    assert snapshot.summary("ask").arguments == (PromptArgument("who", required=True),)


def test_a_prompt_is_there_with_and_without_its_files(tmp_path: Path) -> None:
    files = {"pdf/SKILL.md": make_skill_md("pdf"), "pdf/a.sh": b"x"}
    snapshot = make_snapshot(files, tmp_path)
    assert snapshot.prompt("pdf").files == (PromptFile("a.sh", b"x"),)
    assert snapshot.summary("pdf").files == ()
    assert snapshot.summary("pdf").has_files
    assert (snapshot.prompt("pdf").kind, snapshot.prompt("plan-skill").kind) == ("user", "built-in")


def test_a_name_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(PromptNotFound, match=r"^Prompt not found: \.\./x$"):
        make_snapshot({"hello.md": FLAT}, tmp_path).prompt_json("../x")


def test_a_file_above_the_limit_is_left_out_and_still_counts(tmp_path: Path) -> None:
    files = {
        "pdf/SKILL.md": make_skill_md("pdf"),
        "pdf/big": b"x" * (LARGE + 1),
        "csv/SKILL.md": make_skill_md("csv"),
        "csv/fits": b"x" * LARGE,
    }
    snapshot = make_snapshot(files, tmp_path)
    assert "files" not in get_prompt(snapshot, "pdf")
    assert snapshot.summary("pdf").has_files
    assert len(get_prompt(snapshot, "csv")["files"]) == 1
    assert codes(snapshot) == {(Code.FILE_TOO_LARGE, "pdf/big")}


def test_a_built_in_prompt_wins_over_one_of_the_repository(tmp_path: Path) -> None:
    files = {"plan-skill.md": make_skill_md("plan-skill", "Mine.")}
    snapshot = make_snapshot(files, tmp_path)
    assert snapshot.summary("plan-skill").description != "Mine."
    assert codes(snapshot) == {(Code.SHADOWED, "plan-skill.md")}


def test_a_flat_file_wins_over_a_folder_of_the_same_name(tmp_path: Path) -> None:
    files = {
        "a/SKILL.md": make_skill_md("both", "Folder."),
        "z.md": make_skill_md("both", "Flat."),
    }
    assert make_snapshot(files, tmp_path).summary("both").description == "Flat."


def test_what_cannot_be_handed_out_is_left_out_with_one_finding_each(tmp_path: Path) -> None:
    files = {
        "refresh.md": make_skill_md("refresh"),
        "s/SKILL.md": make_skill_md("sources"),
        "README.md": b"# Prompts\n",
        "unnamed.md": make_skill_md(None),
        "blank.md": make_skill_md("blank", None),
        "bytes.md": make_skill_md("bytes", body="x" * 9000) + b"\xff",
        "fine.md": make_skill_md("fine"),
    }
    snapshot = make_snapshot(files, tmp_path)
    assert list(list_prompts(snapshot)) == ["fine"]
    assert codes(snapshot) == {
        (Code.NAME_RESERVED, "refresh.md"),
        (Code.NAME_RESERVED, "s/SKILL.md"),
        (Code.NO_FRONTMATTER, "README.md"),
        (Code.FLAT_NAME_MISSING, "unnamed.md"),
        (Code.DESCRIPTION_MISSING, "blank.md"),
        (Code.NOT_UTF8, "bytes.md"),
    }


def test_findings_say_nothing_about_this_machine(tmp_path: Path) -> None:
    files = {"plan-skill.md": make_skill_md("plan-skill"), "a.md": b"", "b/SKILL.md": b"x"}
    snapshot = make_snapshot(files, tmp_path)
    assert len(snapshot.findings) == 3
    assert str(tmp_path) not in repr(snapshot.findings)
    assert "built_in" not in repr(snapshot.findings)


@pytest.mark.parametrize(
    "changed",
    [
        {"pdf/SKILL.md": make_skill_md("pdf", body="other")},
        {"pdf/SKILL.md": make_skill_md("pdf", "Other.")},
        {"pdf/a.sh": b"y"},
        {"pdf/b.sh": b"x"},
        {"hello.md": FLAT},
    ],
)
def test_the_digest_changes_with_every_answer(changed: dict[str, bytes], tmp_path: Path) -> None:
    files = {"pdf/SKILL.md": make_skill_md("pdf"), "pdf/a.sh": b"x"}
    digest = make_snapshot(files, tmp_path).digest
    assert make_snapshot(files, tmp_path).digest == digest
    assert make_snapshot(files | changed, tmp_path).digest != digest
    assert make_snapshot(files, tmp_path, "other").digest != digest


def test_half_a_character_in_a_description_is_no_invalid_answer(tmp_path: Path) -> None:
    data = b'---\nname: odd\ndescription: "a \\ud800 b"\n---\nbody\n'
    snapshot = make_snapshot({"odd.md": data, "fine.md": make_skill_md("fine")}, tmp_path)
    snapshot.list_json().decode("utf-8")
    assert "fine" in list_prompts(snapshot)


def test_the_folder_is_there_as_long_as_somebody_holds_a_snapshot(tmp_path: Path) -> None:
    copy = make_checkout({"hello.md": FLAT}, tmp_path)
    folder = copy.folder
    snapshot = PromptSnapshotView(PromptContents("s", copy))
    del copy
    gc.collect()
    assert (Path(folder) / "hello.md").exists()
    del snapshot
    gc.collect()
    assert not Path(folder).exists()


def test_a_copy_that_somebody_cleared_away_is_told_from_a_missing_prompt(tmp_path: Path) -> None:
    copy = make_checkout({"hello.md": FLAT}, tmp_path)
    contents = PromptContents("s", copy)
    (Path(copy.folder) / "hello.md").unlink()
    Path(copy.folder).rmdir()
    assert not contents.is_readable
    with pytest.raises(PromptsSourceError) as raised:
        contents.prompt_json("hello")
    assert str(tmp_path) not in str(raised.value)


def test_a_snapshot_notes_what_did_not_come_as_far_as_its_copy(tmp_path: Path) -> None:
    copy = make_checkout({"pdf/SKILL.md": make_skill_md("pdf")}, tmp_path)
    left_out = Finding(Code.FILE_TOO_LARGE, "the file has too many bytes", path="pdf/huge.bin")
    snapshot = PromptSnapshotView(PromptContents("s", copy, source_findings=[left_out]))
    assert snapshot.summary("pdf").has_files
    assert codes(snapshot) == {(Code.FILE_TOO_LARGE, "pdf/huge.bin")}
