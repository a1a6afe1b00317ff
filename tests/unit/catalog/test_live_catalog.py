"""Live catalog: only changed folders are read again."""

import shutil
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, suppress
from pathlib import Path

import pytest

from skillhall._internal.catalog.live_catalog import LiveCatalog
from skillhall._internal.catalog.loader import load_roots
from skillhall._internal.policy.profiles import LOCAL_SKILLS
from skillhall._internal.sources.folder.root import Root
from tests.support.replicas import DEADLINE, wait_until
from tests.support.skills import make_skill, make_skill_md

_opened: list[str] = []
_is_counting = [False]


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if _is_counting[0] and event in {"open", "os.scandir", "os.listdir"}:
        _opened.append(f"{event} {arguments[0]!r}")


sys.addaudithook(_audit)  # hooks cannot be removed


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("csv", "docx", "pdf"):
        make_skill(tmp_path / "skills", name, files={"scripts/run.py": b"pass\n"})
    (tmp_path / "skills/empty").mkdir()
    return tmp_path / "skills"


@pytest.fixture
def roots(folder: Path) -> list[Root]:
    return [
        Root(str(folder.parent / "system"), "system", is_required=False),
        Root(str(folder), "user", is_required=False),
    ]


@pytest.fixture
def live(roots: list[Root]) -> Iterator[LiveCatalog]:
    with closing(LiveCatalog(roots, LOCAL_SKILLS)) as live:
        yield live


def wait_for(live: LiveCatalog, **descriptions: str) -> None:
    """Wait until the skills have these descriptions."""

    def is_current() -> bool:
        found = {skill.id: skill.description for skill in live.current().catalog}
        return descriptions.items() <= found.items()

    wait_until(is_current)


def change_everything(folder: Path) -> None:
    """Add, edit, break, replace, repair and remove skills."""
    make_skill(folder, "new", data=make_skill_md("new", "Is new."))
    (folder / "csv/SKILL.md").write_bytes(make_skill_md("csv", "Was edited."))
    (folder / "docx/SKILL.md").write_bytes(b"no frontmatter")
    shutil.rmtree(folder / "pdf")
    make_skill(folder, "pdf", data=make_skill_md("zebra", "Was replaced."))
    (folder / "empty/SKILL.md").write_bytes(make_skill_md("empty", "Was repaired."))
    make_skill(folder.parent / "system", "new", data=make_skill_md("new", "Of the system."))


def test_updated_catalog_equals_one_that_is_read_completely(
    live: LiveCatalog, folder: Path, roots: list[Root]
) -> None:
    before = live.current()
    change_everything(folder)
    after = live.current()
    assert after.catalog == load_roots(roots, LOCAL_SKILLS)
    assert after.revision == LiveCatalog(roots, LOCAL_SKILLS).current().revision
    assert after.revision != before.revision
    shutil.rmtree(folder / "new")
    assert live.current().catalog == load_roots(roots, LOCAL_SKILLS)


def test_skills_in_unchanged_folders_stay_the_same_objects(live: LiveCatalog, folder: Path) -> None:
    first = live.current()
    assert live.current() is first
    (folder / "pdf/scripts/run.py").write_bytes(b"import this\n")
    second = live.current()
    assert second.revision == first.revision
    same = {skill.id for skill in second.catalog if any(skill is old for old in first.catalog)}
    assert same == {"csv", "docx"}


def test_names_that_differ_in_case_are_reported(
    live: LiveCatalog, folder: Path, roots: list[Root]
) -> None:
    live.current()
    make_skill(folder, "PDF")
    assert live.current().catalog == load_roots(roots, LOCAL_SKILLS)
    assert any(
        judged.finding.code == "case-collision" for judged in live.current().catalog.findings
    )


def test_watched_folders_are_read_only_after_a_change(live: LiveCatalog, folder: Path) -> None:
    noticed: list[bool] = []
    live.watch(lambda: noticed.append(True))
    wait_until(lambda: noticed)
    _opened.clear()
    _is_counting[0] = True
    for _ in range(50):
        live.current()
    _is_counting[0] = False
    assert _opened == []
    (folder / "csv/SKILL.md").write_bytes(make_skill_md("csv", "Was edited."))
    wait_for(live, csv="Was edited.")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports changes")
def test_watched_folders_show_all_kinds_of_changes(
    live: LiveCatalog, folder: Path, roots: list[Root]
) -> None:
    live.watch(lambda: None)
    live.current()
    change_everything(folder)
    wait_for(live, new="Of the system.", csv="Was edited.", empty="Was repaired.")
    wait_until(lambda: live.current().catalog == load_roots(roots, LOCAL_SKILLS))
    # The replaced folder is another one than at the start; its new subfolders are watched, too.
    (folder / "pdf/SKILL.md").write_bytes(make_skill_md("pdf", "Was edited after that."))
    wait_for(live, pdf="Was edited after that.")
    (folder / "new/docs").mkdir()
    old = live.current()
    (folder / "new/docs/a.md").write_bytes(b"a")
    wait_until(lambda: live.current() is not old)


def test_watched_folder_can_be_created_and_replaced(live: LiveCatalog, folder: Path) -> None:
    shutil.rmtree(folder)
    live.watch(lambda: None)
    assert live.current().catalog.skills == ()
    make_skill(folder, "pdf", data=make_skill_md("pdf", "One."))
    wait_for(live, pdf="One.")
    folder.rename(folder.with_name("other"))
    make_skill(folder, "pdf", data=make_skill_md("pdf", "Two."))
    wait_for(live, pdf="Two.")
    (folder / "pdf/SKILL.md").write_bytes(make_skill_md("pdf", "Three."))
    wait_for(live, pdf="Three.")


def test_targets_of_links_are_compared_while_the_folders_are_watched(
    live: LiveCatalog, folder: Path
) -> None:
    target = make_skill(folder, ".targets", data=make_skill_md("linked", "One."))
    (folder / "linked").symlink_to(target)
    live.watch(lambda: None)
    wait_for(live, linked="One.")
    (target / "SKILL.md").write_bytes(make_skill_md("linked", "Two."))
    wait_for(live, linked="Two.")


def test_folders_are_compared_where_the_system_does_not_report_changes(
    live: LiveCatalog, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skillhall._internal.fs.folder_watch.MAX_WATCHES", 2)
    live.watch(lambda: None)
    live.current()
    (folder / "csv/SKILL.md").write_bytes(make_skill_md("csv", "Was edited."))
    wait_for(live, csv="Was edited.")


class Gate(AbstractContextManager[None]):
    """Lock of the folders that lets a scan wait, once it is closed."""

    def __init__(self) -> None:
        self.entered, self.opened = threading.Event(), threading.Event()
        self.opened.set()

    def __enter__(self) -> None:
        self.entered.set()
        assert self.opened.wait(DEADLINE)

    def __exit__(self, *_: object) -> None:
        self.entered.clear()


def test_written_skill_is_returned_while_another_thread_reads_it(
    folder: Path, roots: list[Root]
) -> None:
    gate, noticed = Gate(), threading.Event()
    with closing(LiveCatalog(roots, LOCAL_SKILLS, 1, gate)) as live, ThreadPoolExecutor() as pool:
        live.watch(noticed.set)
        assert noticed.wait(DEADLINE)
        live.current()
        gate.opened.clear()
        make_skill(folder, "new")
        live.mark_changed(1, ["new"])
        first = pool.submit(live.current)
        assert gate.entered.wait(DEADLINE)
        second = pool.submit(live.current)
        with suppress(TimeoutError):
            second.result(0.2)  # returns at once only if it does not wait for the first
        gate.opened.set()
        for result in (first, second):
            assert "new" in {skill.id for skill in result.result(DEADLINE).catalog}
