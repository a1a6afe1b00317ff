"""Unusual entries in a server's skills folder never break the server."""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from skillhall._internal.asgi import Services
from skillhall._internal.settings import Settings
from skillhall._internal.skill_store.collection import Collection
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall._internal.wiring.prompts import open_prompt_service
from skillhall._internal.wiring.server_skills import open_collection
from skillhall.errors import SkillhallError
from tests.support.servers import RunningServer, run_server
from tests.support.skills import make_skill_md
from tests.support.team_server import team_settings

PAGES = [
    "/api/v1/skills",
    "/api/v1/skills?q=good",
    "/api/v1/skills/good",
    "/api/v1/skills/good/files/notes.txt",
    "/api/v1/skills/good/archive",
    "/.well-known/agent-skills/index.json",
    "/skills",
    "/skill/good",
    "/sources",
    "/readyz",
]


def make_skill_folder(folder: Path, name: str, text: str = "inside") -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "SKILL.md").write_bytes(make_skill_md(name, f"It is {text}.", text))
    (folder / name / "notes.txt").write_text(text, encoding="utf-8")


def looping_link(skills: Path) -> None:
    (skills / "loop").symlink_to("loop")


def two_looping_links(skills: Path) -> None:
    (skills / "one").symlink_to("two")
    (skills / "two").symlink_to("one")


def looping_link_in_a_skill(skills: Path) -> None:
    (skills / "good/loop").symlink_to("loop")


def dangling_link(skills: Path) -> None:
    (skills / "dangling").symlink_to("nowhere")


def looping_skill_md(skills: Path) -> None:
    (skills / "self").mkdir()
    (skills / "self/SKILL.md").symlink_to("SKILL.md")


def link_to_parent(skills: Path) -> None:
    (skills / "good/up").symlink_to("..")


def link_outside(skills: Path) -> None:
    (skills / "etc").symlink_to("/etc")


def pipes(skills: Path) -> None:
    (skills / "piped").mkdir()
    for path in (skills / "pipe", skills / "piped/SKILL.md", skills / "good/pipe"):
        os.mkfifo(path)


def sockets(skills: Path) -> None:
    folder = os.open(skills, os.O_RDONLY)
    try:
        with closing(socket.socket(socket.AF_UNIX)) as unix_socket:
            unix_socket.bind(f"/proc/self/fd/{folder}/socket")  # paths of sockets must be short
    finally:
        os.close(folder)


def devices(skills: Path) -> None:
    (skills / "zeros").mkdir()
    (skills / "zeros/SKILL.md").symlink_to("/dev/zero")


def folder_called_skill_md(skills: Path) -> None:
    (skills / "folder/SKILL.md").mkdir(parents=True)


def names_that_are_not_utf8(skills: Path) -> None:
    with suppress(OSError):  # not every file system takes them
        (skills / os.fsdecode(b"bad\xff")).mkdir()
        (skills / os.fsdecode(b"good/bad\xff.txt")).write_bytes(b"x")


def odd_names(skills: Path) -> None:
    for name in ("new\nline", "\x1b[31m", "-rf", "..x", " ", "\u202e", "%2e%2e", "<b>", "x" * 255):
        (skills / name).mkdir()
        (skills / name / "SKILL.md").write_bytes(make_skill_md("odd", "Odd.", "x"))


def unreadable_entries(skills: Path) -> None:
    make_skill_folder(skills, "locked")
    (skills / "locked/notes.txt").chmod(0)
    make_skill_folder(skills, "closed")
    (skills / "closed").chmod(0)


UNUSUAL_ENTRIES: list[Callable[[Path], None]] = [
    looping_link,
    two_looping_links,
    looping_link_in_a_skill,
    dangling_link,
    looping_skill_md,
    link_to_parent,
    link_outside,
    pipes,
    sockets,
    devices,
    folder_called_skill_md,
    names_that_are_not_utf8,
    odd_names,
    unreadable_entries,
]


@pytest.fixture
def skills(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "work/.agents/skills"
    make_skill_folder(folder, "good")
    yield folder
    for closed in tmp_path.glob("work/.agents/skills*/closed"):
        closed.chmod(0o700)


@pytest.fixture
def server(tmp_path: Path, skills: Path) -> Iterator[RunningServer]:
    assert skills.is_dir()
    settings = team_settings(tmp_path, "")
    with closing(open_prompt_service(settings)) as service:
        services = Services(service, open_collection(settings, service))
        with run_server(settings=settings, services=services) as running:
            yield running


def find_failures(server: RunningServer) -> dict[str, int]:
    statuses = {path: server.request("GET", path).status for path in PAGES}
    return {path: status for path, status in statuses.items() if status != 200}


@pytest.mark.parametrize("make_entry", UNUSUAL_ENTRIES)
def test_unusual_entry_does_not_affect_other_skills(
    tmp_path: Path, skills: Path, make_entry: Callable[[Path], None]
) -> None:
    settings = Settings(str(tmp_path / "work"), str(tmp_path / "cache"))
    collection = Collection(FolderStore(settings.working_directory), settings)
    assert collection.snapshot().ids == ("good",)
    make_entry(skills)
    for item in (collection, Collection(FolderStore(settings.working_directory), settings)):
        assert "good" in item.snapshot().ids
        assert item.read_file("good", "notes.txt") == b"inside"
        assert "good" in {artifact.entry.id for artifact in item.artifacts()}
        assert "good" in {skill.id for skill, _ in item.file_lists()}


def test_server_survives_unusual_entries(server: RunningServer, skills: Path) -> None:
    assert find_failures(server) == {}
    for make_entry in UNUSUAL_ENTRIES:
        make_entry(skills)
    assert find_failures(server) == {}
    new = {"id": "new", "name": "new", "description": "Use it."}
    assert server.request("POST", "/api/v1/skills", new).status == 201


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_server_starts_with_an_unreadable_skills_folder(tmp_path: Path) -> None:
    folder = tmp_path / "work/.agents/skills"
    make_skill_folder(folder, "good")
    folder.chmod(0)
    settings = team_settings(tmp_path, "")
    try:
        with closing(open_prompt_service(settings)) as service:
            assert open_collection(settings, service).snapshot().ids == ()
    finally:
        folder.chmod(0o700)


@pytest.mark.parametrize("swapped", [".agents", ".agents/skills"])
def test_skills_folder_replaced_by_a_link_is_not_used(
    tmp_path: Path, server: RunningServer, swapped: str
) -> None:
    assert find_failures(server) == {}
    outside = tmp_path / "outside"
    make_skill_folder(outside / "skills", "good", "secret")
    make_skill_folder(outside / "skills", "other", "secret")
    folder = tmp_path / "work" / swapped
    folder.rename(tmp_path / "moved")
    folder.symlink_to(outside if swapped == ".agents" else outside / "skills")
    listed = server.request("GET", "/api/v1/skills").json["data"]
    assert listed["skills"] == []
    for path in PAGES:
        assert b"secret" not in server.request("GET", path).body
    assert server.request("GET", "/api/v1/skills/other").status == 404
    new = {"id": "new", "name": "new", "description": "Use it."}
    assert server.request("POST", "/api/v1/skills", new).status == 400
    assert not (outside / "skills/new").exists()
    folder.unlink()
    (tmp_path / "moved").rename(folder)
    assert find_failures(server) == {}


def test_linked_skills_folder_at_startup_is_read(tmp_path: Path) -> None:
    make_skill_folder(tmp_path / "elsewhere", "good")
    (tmp_path / "work/.agents").mkdir(parents=True)
    (tmp_path / "work/.agents/skills").symlink_to(tmp_path / "elsewhere")
    store = FolderStore(tmp_path / "work")
    assert [skill.id for skill in store.catalog()] == ["good"]
    assert store.files("good") is not None


def test_swapping_the_skills_folder_never_leaks_files(tmp_path: Path, skills: Path) -> None:
    make_skill_folder(tmp_path / "outside", "good", "secret")
    settings = Settings(str(tmp_path / "work"), str(tmp_path / "cache"))
    collection = Collection(FolderStore(settings.working_directory), settings)
    done = threading.Event()

    def swap() -> None:
        aside = skills.with_name("aside")
        while not done.is_set():
            skills.rename(aside)
            skills.symlink_to(tmp_path / "outside")
            skills.unlink()
            aside.rename(skills)

    thread = threading.Thread(target=swap)
    thread.start()
    contents: set[bytes] = set()
    try:
        for _ in range(300):
            contents.update(skill.description.encode() for skill in collection.store.catalog())
            with suppress(SkillhallError):
                contents.add(collection.read_file("good", "notes.txt"))
                if (bundle := collection.store.files("good")) is not None:
                    contents.update(file.read() for file in bundle.files.values())
    finally:
        done.set()
        thread.join()
    assert collection.find("good").folder_handle.path == str(skills / "good")
    assert not any(b"secret" in item for item in contents)
