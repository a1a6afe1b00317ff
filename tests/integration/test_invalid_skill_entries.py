"""Odd entries in a server's folder of skills: each costs itself, never the server."""

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


def make(folder: Path, name: str, text: str = "inside") -> None:
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
        with closing(socket.socket(socket.AF_UNIX)) as one:
            one.bind(f"/proc/self/fd/{folder}/socket")  # a socket's path must be short
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
    make(skills, "locked")
    (skills / "locked/notes.txt").chmod(0)
    make(skills, "closed")
    (skills / "closed").chmod(0)


ODD: list[Callable[[Path], None]] = [
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
    make(folder, "good")
    yield folder
    for closed in tmp_path.glob("work/.agents/skills*/closed"):
        closed.chmod(0o700)


@pytest.fixture
def server(tmp_path: Path, skills: Path) -> Iterator[RunningServer]:
    assert skills.is_dir()
    settings = team_settings(tmp_path, "")
    with closing(open_prompt_service(settings)) as counter:
        services = Services(counter, open_collection(settings, counter))
        with run_server(settings=settings, services=services) as started:
            yield started


def failures(server: RunningServer) -> dict[str, int]:
    statuses = {path: server.request("GET", path).status for path in PAGES}
    return {path: status for path, status in statuses.items() if status != 200}


@pytest.mark.parametrize("make_odd", ODD)
def test_an_odd_entry_costs_itself_alone(
    tmp_path: Path, skills: Path, make_odd: Callable[[Path], None]
) -> None:
    settings = Settings(str(tmp_path / "work"), str(tmp_path / "cache"))
    collection = Collection(FolderStore(settings.working_directory), settings)
    assert collection.snapshot().ids == ("good",)
    make_odd(skills)
    for item in (collection, Collection(FolderStore(settings.working_directory), settings)):
        assert "good" in item.snapshot().ids
        assert item.read_file("good", "notes.txt") == b"inside"
        assert "good" in {artifact.entry.id for artifact in item.artifacts()}
        assert "good" in {outline.entry.id for outline in item.file_lists()}


def test_a_server_goes_on_whatever_appears_in_its_skills_folder(
    server: RunningServer, skills: Path
) -> None:
    assert failures(server) == {}
    for make_odd in ODD:
        make_odd(skills)
    assert failures(server) == {}
    new = {"id": "new", "name": "new", "description": "Use it."}
    assert server.request("POST", "/api/v1/skills", new).status == 201


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_server_starts_although_its_skills_folder_cannot_be_read(tmp_path: Path) -> None:
    folder = tmp_path / "work/.agents/skills"
    make(folder, "good")
    folder.chmod(0)
    settings = team_settings(tmp_path, "")
    try:
        with closing(open_prompt_service(settings)) as counter:
            assert open_collection(settings, counter).snapshot().ids == ()
    finally:
        folder.chmod(0o700)


@pytest.mark.parametrize("swapped", [".agents", ".agents/skills"])
def test_a_skills_folder_swapped_for_a_link_while_serving_is_neither_read_nor_written(
    tmp_path: Path, server: RunningServer, swapped: str
) -> None:
    assert failures(server) == {}
    outside = tmp_path / "outside"
    make(outside / "skills", "good", "secret")
    make(outside / "skills", "other", "secret")
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
    assert failures(server) == {}


def test_a_link_that_is_there_from_the_start_is_read(tmp_path: Path) -> None:
    make(tmp_path / "elsewhere", "good")
    (tmp_path / "work/.agents").mkdir(parents=True)
    (tmp_path / "work/.agents/skills").symlink_to(tmp_path / "elsewhere")
    local = FolderStore(tmp_path / "work")
    assert [skill.id for skill in local.catalog()] == ["good"]
    assert local.files("good") is not None


def test_nothing_outside_is_read_while_the_skills_folder_is_swapped_for_a_link(
    tmp_path: Path, skills: Path
) -> None:
    make(tmp_path / "outside", "good", "secret")
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

    swapping = threading.Thread(target=swap)
    swapping.start()
    seen: set[bytes] = set()
    try:
        for _ in range(300):
            seen.update(skill.description.encode() for skill in collection.store.catalog())
            with suppress(SkillhallError):
                seen.add(collection.read_file("good", "notes.txt"))
                if (bundle := collection.store.files("good")) is not None:
                    seen.update(file.read() for file in bundle.files.values())
    finally:
        done.set()
        swapping.join()
    assert collection.find("good").folder_handle.path == str(skills / "good")
    assert not any(b"secret" in item for item in seen)
