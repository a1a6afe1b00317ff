"""Prompt snapshots: the prompts of a folder, and their encoded responses."""

import gc
import json
from pathlib import Path

import pytest

from skillhall._internal.policy.effects import Effect
from skillhall._internal.prompt_server.prompt_model import PromptArgument, PromptFile
from skillhall._internal.prompt_server.prompt_snapshot import PromptSnapshot
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


def codes(snapshot: PromptSnapshot) -> set[tuple[Code, str]]:
    judged_findings = (judged for judged in snapshot.findings if judged.effect is not Effect.ACCEPT)
    return {(item.finding.code, item.finding.path.replace("\\", "/")) for item in judged_findings}


def test_list_has_prompts_and_source_but_no_files(
    tmp_path: Path,
) -> None:
    files = {"hello.md": FLAT, "pdf/SKILL.md": make_skill_md("pdf"), "pdf/a.sh": b"#!/bin/sh\n"}
    data = json.loads(make_snapshot(files, tmp_path).list_json)
    argument = {"name": "who", "description": "", "required": False}
    assert data["source"] == "acme/prompts"
    assert data["prompts"][len(BUILT_IN) :] == [
        {"name": "hello", "description": "Says hello.", "arguments": [argument]},
        {"name": "pdf", "description": "Reads PDF files."},
    ]


def test_response_has_trimmed_body_and_base64_files(tmp_path: Path) -> None:
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


def test_response_without_files_has_no_files_key(tmp_path: Path) -> None:
    response = get_prompt(make_snapshot({"hello.md": FLAT}, tmp_path), "hello")
    assert list(response) == ["description", "messages", "source"]


def test_rendering_arguments_does_not_change_the_cached_response(
    tmp_path: Path,
) -> None:
    snapshot = make_snapshot({"hello.md": FLAT}, tmp_path)
    assert get_prompt_text(snapshot, "hello", who="Ada") == "Hello Ada!"
    assert get_prompt_text(snapshot, "hello") == "Hello {{who}}!"
    assert snapshot.prompt_json("hello") is snapshot.prompt_json("hello")


def test_missing_required_argument_raises(tmp_path: Path) -> None:
    body = make_skill_md("ask", arguments="[{name: who, required: true}]")
    snapshot = make_snapshot({"ask.md": body}, tmp_path)
    with pytest.raises(MissingArguments):
        snapshot.prompt_json("ask")
    assert snapshot.summary("ask").arguments == (PromptArgument("who", required=True),)


def test_summary_omits_the_files_of_a_prompt(tmp_path: Path) -> None:
    files = {"pdf/SKILL.md": make_skill_md("pdf"), "pdf/a.sh": b"x"}
    snapshot = make_snapshot(files, tmp_path)
    assert snapshot.prompt("pdf").files == (PromptFile("a.sh", b"x"),)
    assert snapshot.summary("pdf").files == ()
    assert snapshot.summary("pdf").has_files
    assert (snapshot.prompt("pdf").kind, snapshot.prompt("plan-skill").kind) == ("user", "built-in")


def test_unknown_prompt_raises_not_found(tmp_path: Path) -> None:
    with pytest.raises(PromptNotFound, match=r"^Prompt not found: \.\./x$"):
        make_snapshot({"hello.md": FLAT}, tmp_path).prompt_json("../x")


def test_too_large_file_is_skipped_but_counts_as_a_file(tmp_path: Path) -> None:
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


def test_built_in_prompt_shadows_a_repository_prompt(tmp_path: Path) -> None:
    files = {"plan-skill.md": make_skill_md("plan-skill", "Mine.")}
    snapshot = make_snapshot(files, tmp_path)
    assert snapshot.summary("plan-skill").description != "Mine."
    assert codes(snapshot) == {(Code.SHADOWED, "plan-skill.md")}


def test_flat_file_shadows_a_folder_with_the_same_name(tmp_path: Path) -> None:
    files = {
        "a/SKILL.md": make_skill_md("both", "Folder."),
        "z.md": make_skill_md("both", "Flat."),
    }
    assert make_snapshot(files, tmp_path).summary("both").description == "Flat."


def test_invalid_prompts_are_skipped_with_one_finding_each(tmp_path: Path) -> None:
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


def test_findings_contain_no_absolute_paths(tmp_path: Path) -> None:
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
def test_digest_changes_with_every_response(changed: dict[str, bytes], tmp_path: Path) -> None:
    files = {"pdf/SKILL.md": make_skill_md("pdf"), "pdf/a.sh": b"x"}
    digest = make_snapshot(files, tmp_path).digest
    assert make_snapshot(files, tmp_path).digest == digest
    assert make_snapshot(files | changed, tmp_path).digest != digest
    assert make_snapshot(files, tmp_path, "other").digest != digest


def test_lone_surrogate_in_a_description_is_encoded(tmp_path: Path) -> None:
    data = b'---\nname: odd\ndescription: "a \\ud800 b"\n---\nbody\n'
    snapshot = make_snapshot({"odd.md": data, "fine.md": make_skill_md("fine")}, tmp_path)
    snapshot.list_json.decode("utf-8")
    assert "fine" in list_prompts(snapshot)


def test_checkout_exists_while_a_snapshot_refers_to_it(tmp_path: Path) -> None:
    checkout = make_checkout({"hello.md": FLAT}, tmp_path)
    folder = checkout.folder
    snapshot = PromptSnapshot("s", checkout)
    del checkout
    gc.collect()
    assert (Path(folder) / "hello.md").exists()
    del snapshot
    gc.collect()
    assert not Path(folder).exists()


def test_deleted_checkout_is_not_reported_as_a_missing_prompt(tmp_path: Path) -> None:
    checkout = make_checkout({"hello.md": FLAT}, tmp_path)
    snapshot = PromptSnapshot("s", checkout)
    (Path(checkout.folder) / "hello.md").unlink()
    Path(checkout.folder).rmdir()
    assert not snapshot.is_readable
    with pytest.raises(PromptsSourceError) as error_info:
        snapshot.prompt_json("hello")
    assert str(tmp_path) not in str(error_info.value)


def test_snapshot_includes_findings_of_skipped_source_files(tmp_path: Path) -> None:
    checkout = make_checkout({"pdf/SKILL.md": make_skill_md("pdf")}, tmp_path)
    finding = Finding(Code.FILE_TOO_LARGE, "the file has too many bytes", path="pdf/huge.bin")
    snapshot = PromptSnapshot("s", checkout, source_findings=[finding])
    assert snapshot.summary("pdf").has_files
    assert codes(snapshot) == {(Code.FILE_TOO_LARGE, "pdf/huge.bin")}
