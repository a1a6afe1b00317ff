"""Backups of a server: complete, checked, restored as one change, with the same answers."""

import gzip
import json
import os
import secrets
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from sqlalchemy import select

from skillhall._internal.backup.server_backup import make_backup, restore_backup
from skillhall._internal.policy.trust.revocations import RevocationList
from skillhall._internal.policy.trust.trust_decision import ApprovalDecision
from skillhall._internal.settings import Settings
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall._internal.skill_store.undoable_changes import SkillStoreChanges
from skillhall._internal.storage.revocation_store import RevocationStore, StoredList
from skillhall._internal.storage.sql.tables import events, sessions
from skillhall._internal.storage.sql.workspace_store import SqlWorkspaceStore
from skillhall._internal.storage.trust_store import Approval, TrustStore
from skillhall._internal.wiring.database import open_database
from skillhall.errors import BackupRejected, ConfigInvalid, Conflict, UnsafePath
from tests.support.actors import ACTOR
from tests.support.backup_faults import fill, make_settings, read_state, run_restore_faults
from tests.support.backups import Lines, forge
from tests.support.bundles import build_single_bundle
from tests.support.databases import make_postgres_database
from tests.support.fault_injection import run_faults
from tests.support.replicas import ForkedReplica, Replica
from tests.support.restored_servers import drop_differences, fill_server, read_answers
from tests.support.skills import make_skill, make_skill_md
from tests.support.workspaces import make_workspace


def settings_of(server: Replica) -> Settings:
    """Return the settings of a server's folders, as its commands read them."""
    return make_settings(server.folder, server.variables.get("SKILLHALL_DATABASE_URL", ""))


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[Replica], Replica]]:
    """Function that starts a server until the test ends."""
    with ExitStack() as stack:

        def start_server(server: Replica) -> Replica:
            stack.callback(server.stop, signal.SIGKILL)
            server.start()
            return server

        yield start_server


def test_restored_servers_give_the_same_answers_byte_by_byte(
    tmp_path: Path, postgres: str, start: Callable[[Replica], Replica]
) -> None:
    url = make_postgres_database(postgres, f"backup_{secrets.token_hex(4)}")
    first = start(ForkedReplica(tmp_path / "first", {}))
    change = fill_server(first)
    answers = read_answers(first)
    assert len(answers) > 50
    make_backup(settings_of(first), str(tmp_path / "1.backup"))
    second = ForkedReplica(tmp_path / "second", {"SKILLHALL_DATABASE_URL": url})
    restore_backup(settings_of(second), str(tmp_path / "1.backup"), actor=ACTOR)
    shared = read_answers(start(second))
    assert drop_differences(shared) == drop_differences(answers)
    make_backup(settings_of(second), str(tmp_path / "2.backup"))
    third = ForkedReplica(tmp_path / "third", {})
    restore_backup(settings_of(third), str(tmp_path / "2.backup"), actor=ACTOR)
    assert read_answers(start(third)) == answers
    for server in (second, third):
        assert server.request("POST", f"/api/v1/changes/{change}/undo").status == 200
        assert "gone" in server.ids()


def test_restore_resets_open_event_streams(
    tmp_path: Path, start: Callable[[Replica], Replica]
) -> None:
    server = start(ForkedReplica(tmp_path / "server", {}))
    session = server.request("POST", "/api/v1/sessions", {"name": "One"}).json["data"]["id"]
    make_backup(settings_of(server), str(tmp_path / "all.backup"))
    with server.events(f"?session={session}") as stream:
        restore_backup(
            settings_of(server), str(tmp_path / "all.backup"), overwrite=True, actor=ACTOR
        )
        assert next(stream) == {}  # the data of a reset event
        server.request("PATCH", f"/api/v1/sessions/{session}", {"name": "Two"}, {"If-Match": '"1"'})
        assert next(stream)["revision"] == 2


def read_tree(folder: Path) -> dict[str, tuple[bytes, int, int]]:
    """Return the content, mode and time of every file, without databases."""
    return {
        str(path.relative_to(folder)): (
            path.read_bytes(),
            path.stat().st_mode,
            path.stat().st_mtime_ns,
        )
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "skillhall.db" not in path.name
    }


def test_files_keep_their_bytes_modes_and_times(tmp_path: Path) -> None:
    source, target = make_settings(tmp_path / "a"), make_settings(tmp_path / "b")
    skill = make_skill(
        tmp_path / "a/run/.agents/skills", "big", files={"run.sh": b"\0\xff", "empty": b""}
    )
    (skill / "run.sh").chmod(0o750)
    (skill / "large.bin").write_bytes(os.urandom(2_500_000))
    (skill / "exact.bin").write_bytes(b"x" * 1024 * 1024)
    os.utime(skill / "SKILL.md", ns=(1, 1_234_567_890_123_456_789))
    make_skill(tmp_path / "a/run/.agents/sys.skills", "sys")
    (tmp_path / "a/data/usage").mkdir(parents=True)
    (tmp_path / "a/data/usage/usage.jsonl").write_bytes(b"{}\n")
    make_backup(source, str(tmp_path / "all.backup"))
    restore_backup(target, str(tmp_path / "all.backup"), actor=ACTOR)
    assert read_tree(tmp_path / "b") == read_tree(tmp_path / "a")


def open_changes(settings: Settings) -> SkillStoreChanges:
    """Return the undoable operations on the skills of a server."""
    return SkillStoreChanges(
        FolderStore(settings.working_directory), settings.data_directory, actor=ACTOR
    )


def test_undo_after_a_restore_brings_back_empty_files(tmp_path: Path) -> None:
    source, target = make_settings(tmp_path / "a"), make_settings(tmp_path / "b")
    make_skill(tmp_path / "a/run/.agents/skills", "pdf", files={"__init__.py": b""})
    change = open_changes(source).delete("pdf")
    make_backup(source, str(tmp_path / "all.backup"))
    restore_backup(target, str(tmp_path / "all.backup"), actor=ACTOR)
    open_changes(target).undo(change)
    assert (tmp_path / "b/run/.agents/skills/pdf/__init__.py").read_bytes() == b""


def test_what_is_left_out_is_listed(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    skill = make_skill(tmp_path / "run/.agents/skills", "pdf")
    (skill / "link").symlink_to("/etc/passwd")
    (skill / "a:b").write_bytes(b"x")
    os.mkfifo(skill / "pipe")
    report = make_backup(settings, str(tmp_path / "all.backup"))
    assert sorted(report.totals.skipped) == [
        "skills/pdf/a:b: its name is not portable",
        "skills/pdf/link: a link",
        "skills/pdf/pipe: not a regular file",
    ]
    lines = gzip.decompress((tmp_path / "all.backup").read_bytes()).splitlines()
    assert json.loads(lines[0])["leftOut"] == [*report.left_out]
    assert any("SKILLHALL_AUTH_TOKEN" in text for text in report.left_out)
    assert [
        *restore_backup(settings, str(tmp_path / "all.backup"), dry_run=True, actor=ACTOR).notes
    ] == [*report.totals.skipped]


def decide(folder: Path, name: str, decision: ApprovalDecision, at: str) -> None:
    """Record a decision about a skill on the machine of a server."""
    approval = Approval("sha256:1", name, "/project", decision, at=at)
    TrustStore(str(folder / "data")).add([approval])


def test_approvals_of_two_machines_are_joined_by_time(tmp_path: Path) -> None:
    source, target = make_settings(tmp_path / "a"), make_settings(tmp_path / "b")
    approve, block = ApprovalDecision.APPROVE, ApprovalDecision.BLOCK
    decide(tmp_path / "a", "pdf", approve, "2026-01-01")
    decide(tmp_path / "a", "pdf", block, "2026-01-03")
    decide(tmp_path / "b", "pdf", approve, "2026-01-01")
    decide(tmp_path / "b", "csv", block, "2026-01-02")
    make_backup(source, str(tmp_path / "all.backup"))
    report = restore_backup(target, str(tmp_path / "all.backup"), actor=ACTOR)
    assert report.changes["approvals"] == ((), (), ("pdf",), 0)
    restored = TrustStore(str(tmp_path / "b/data"))
    assert [(one.name, one.decision) for one in restored.read().approvals] == [
        ("pdf", approve),
        ("csv", block),
        ("pdf", block),
    ]
    assert Path(restored.path).stat().st_mode & 0o777 == 0o600
    assert restore_backup(target, str(tmp_path / "all.backup"), dry_run=True, actor=ACTOR)


def test_decisions_on_this_machine_survive_a_backup_without_any(tmp_path: Path) -> None:
    source, target = make_settings(tmp_path / "a"), make_settings(tmp_path / "b")
    make_backup(source, str(tmp_path / "all.backup"))
    decide(tmp_path / "b", "pdf", ApprovalDecision.BLOCK, "2026-01-01")
    restore_backup(target, str(tmp_path / "all.backup"), actor=ACTOR)
    assert TrustStore(str(tmp_path / "b/data")).read().approvals


def test_revocations_that_were_read_from_a_file_are_in_backups(tmp_path: Path) -> None:
    source, target = make_settings(tmp_path / "a"), make_settings(tmp_path / "b")
    older, newer = (
        StoredList(
            revocations=RevocationList(
                number, f"2026-01-0{number}T00:00:00Z", "2026-02-01T00:00:00Z", ()
            )
        )
        for number in (1, 2)
    )
    RevocationStore(str(tmp_path / "a/data")).put("https://one.example", newer)
    RevocationStore(str(tmp_path / "a/data")).put("https://two.example", older)
    RevocationStore(str(tmp_path / "b/data")).put("https://two.example", newer)
    make_backup(source, str(tmp_path / "all.backup"))
    restore_backup(target, str(tmp_path / "all.backup"), actor=ACTOR)
    known = RevocationStore(str(tmp_path / "b/data")).read()
    assert known.lists == {"https://one.example": newer, "https://two.example": newer}


def test_damaged_approvals_are_neither_backed_up_nor_replaced(tmp_path: Path) -> None:
    source, target = make_settings(tmp_path / "a"), make_settings(tmp_path / "b")
    decide(tmp_path / "a", "pdf", ApprovalDecision.BLOCK, "2026-01-01")
    make_backup(source, str(tmp_path / "all.backup"))
    damaged = tmp_path / "b/data/trust.json"
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"{")
    with pytest.raises(ConfigInvalid, match=r"trust\.json"):
        make_backup(target, str(tmp_path / "other.backup"))
    assert not (tmp_path / "other.backup").exists()
    with pytest.raises(ConfigInvalid, match=r"trust\.json"):
        restore_backup(target, str(tmp_path / "all.backup"), actor=ACTOR)
    assert damaged.read_bytes() == b"{"


def test_dry_run_shows_changes_and_makes_none(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    fill(settings, "new")
    make_backup(settings, str(tmp_path / "new.backup"))
    fill(settings, "old")
    before = read_state(settings), read_tree(tmp_path / "run")
    report = restore_backup(settings, str(tmp_path / "new.backup"), dry_run=True, actor=ACTOR)
    assert (read_state(settings), read_tree(tmp_path / "run")) == before
    assert report.changes["skills"] == (("only-new",), ("only-old",), ("both",), 0)
    assert report.changes["sessions"][:2] == (("new",), ("old",))
    assert report.to_fetch == ("https://git.example/new",)


def test_data_is_replaced_only_with_the_flag(tmp_path: Path) -> None:
    source, target = make_settings(tmp_path / "a"), make_settings(tmp_path / "b")
    make_skill(tmp_path / "a/run/.agents/skills", "mine")
    make_backup(source, str(tmp_path / "all.backup"))
    with pytest.raises(Conflict):
        make_backup(source, str(tmp_path / "all.backup"))
    make_skill(tmp_path / "b/run/.agents/skills", "yours")
    with pytest.raises(Conflict):
        restore_backup(target, str(tmp_path / "all.backup"), actor=ACTOR)
    assert [skill.id for skill in FolderStore(target.working_directory).catalog()] == ["yours"]
    restore_backup(target, str(tmp_path / "all.backup"), overwrite=True, actor=ACTOR)
    assert [skill.id for skill in FolderStore(target.working_directory).catalog()] == ["mine"]
    restore_backup(target, str(tmp_path / "all.backup"), actor=ACTOR)  # nothing would be lost


def add_file(**fields: object) -> Callable[[Lines], None]:
    """Return a change that adds a file after the first one."""

    def change(lines: Lines) -> None:
        lines.insert(2, {**lines[1], **fields})

    return change


HOSTILE = {
    "leads out": add_file(file="skills/../../x"),
    "absolute": add_file(file="skills//etc/x"),
    "not in a folder": add_file(file="skills"),
    "unknown folder": add_file(file="other/x"),
    "the database": add_file(file="data/skillhall.db"),
    "a staging folder": add_file(file="skills/.skillhall-x/y"),
    "twice": add_file(),
    "inside a file": add_file(file="skills/pdf/SKILL.md/x"),
    "another digest": add_file(file="skills/pdf/a", sha256="0" * 64),
    "a set-user-id program": add_file(file="skills/pdf/x", mode=0o4755),
    "a time that is text": add_file(file="skills/pdf/x", modified="now"),
    "an offset": add_file(file="skills/pdf/x", offset=5),
    "never ends": add_file(file="skills/pdf/x", more=True),
    "bytes that are a number": add_file(file="skills/pdf/x", data=5, sha256=""),
    "a file between tables": lambda lines: lines.append(lines[1]),
    "followed repositories": add_file(file="data/followed.json"),
    "approvals": add_file(file="data/trust.json"),
    "revocations": add_file(file="data/revocations.json"),
}


def is_rejected(settings: Settings, data: bytes, path: Path) -> bool:
    path.write_bytes(data)
    try:
        restore_backup(settings, str(path), overwrite=True, actor=ACTOR)
    except BackupRejected:
        return True
    return False


def test_hostile_backup_is_rejected_and_changes_nothing(tmp_path: Path) -> None:
    settings, path = make_settings(tmp_path / "server"), tmp_path / "all.backup"
    make_skill(tmp_path / "server/run/.agents/skills", "pdf")
    make_backup(settings, str(path))
    data, before = path.read_bytes(), read_tree(tmp_path / "server")
    backups = {name: forge(data, change) for name, change in HOSTILE.items()}
    backups |= {f"{size} bytes": data[:size] for size in range(0, len(data), 97)}
    accepted = [name for name, item in backups.items() if not is_rejected(settings, item, path)]
    assert accepted == []
    assert read_tree(tmp_path / "server") == before
    assert not is_rejected(settings, forge(data, len), path)


def test_nothing_is_restored_through_a_link(tmp_path: Path) -> None:
    settings = make_settings(tmp_path / "a")
    make_skill(tmp_path / "a/run/.agents/skills", "pdf")
    make_backup(settings, str(tmp_path / "all.backup"))
    target = make_settings(tmp_path / "b")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "b/run/.agents").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafePath):
        restore_backup(target, str(tmp_path / "all.backup"), overwrite=True, actor=ACTOR)
    assert not [*(tmp_path / "elsewhere").iterdir()]


def test_backup_during_writes_is_of_one_moment(tmp_path: Path) -> None:
    settings, restored = make_settings(tmp_path / "a"), make_settings(tmp_path / "b")
    store, stopped = FolderStore(settings.working_directory), threading.Event()

    def write() -> None:
        with closing(open_database(settings)) as database:
            workspace = make_workspace(SqlWorkspaceStore(database, actor=ACTOR), "w")
            session = workspace.sessions.create("s").id
            for number in range(10_000):
                if stopped.is_set():
                    return
                workspace.blocks.add(session, "note", str(number))
                bundles = [
                    build_single_bundle({"SKILL.md": make_skill_md(name, body=f"{number}\n")}, name)
                    for name in ("one", "two")
                ]
                store.import_(bundles, replace=True)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for number in range(3):
            path = str(tmp_path / f"{number}.backup")
            make_backup(settings, path)
            restore_backup(restored, path, overwrite=True, actor=ACTOR)
            skills = tmp_path / "b/run/.agents/skills"
            assert len({path.read_bytes()[-4:] for path in skills.glob("*/SKILL.md")}) <= 1
            with closing(open_database(restored)) as database:
                rows = database.read(
                    lambda c: [
                        *c.execute(
                            select(sessions.c.revision, events.c.revision)
                            .where(events.c.session == sessions.c.id)
                            .order_by(events.c.seq.desc())
                            .limit(1)
                        )
                    ]
                )
            assert all(revision == last for revision, last in rows)
    finally:
        stopped.set()
        thread.join()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_restore_killed_at_any_statement_leaves_the_old_or_the_new_state(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    url = f"sqlite:///{tmp_path}/killed.db"
    if kind == "postgres":
        server: str = request.getfixturevalue("postgres")
        url = make_postgres_database(server, f"killed_{secrets.token_hex(4)}")
    assert run_restore_faults(tmp_path / "server", url) > 30


def test_restore_killed_at_any_change_of_the_disk_leaves_the_old_or_the_new_state() -> None:
    assert run_faults("tests.support.backup_faults", "Restore", "kill") > 30
