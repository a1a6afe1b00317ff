"""Change notifications, for both protocol versions."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from mcp import Client
from mcp.client.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError

from skillhall._internal.catalog.folder_skill_provider import FolderSkillProvider
from skillhall._internal.catalog.skill_view import SkillView
from skillhall._internal.mcp import subscriptions
from skillhall._internal.mcp.server import SkillServer
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.sources.folder.root import Root
from tests.support.mcp_clients import (
    DEADLINE,
    HANDSHAKE,
    make_folder_server,
    read_error,
    run_client,
    send_request,
)
from tests.support.skills import make_skill
from tests.support.trees import write_skill

EVERYTHING = {
    "tools_list_changed": True,
    "prompts_list_changed": True,
    "resources_list_changed": True,
}


def collect_events(
    root: Path, change: Callable[[], object], count: int, *uris: str
) -> list[ServerEvent]:
    """Return the first `count` events after a change."""

    async def listen(client: Client) -> list[ServerEvent]:
        events: list[ServerEvent] = []
        async with client.listen(**EVERYTHING, resource_subscriptions=uris) as stream:
            change()
            async for event in stream:
                events.append(event)
                if len(events) == count:
                    return events
        return events

    return run_client(make_folder_server(root), listen)


def test_new_skill_is_notified(tmp_path: Path) -> None:
    make_skill(tmp_path, "one")
    events = collect_events(tmp_path, lambda: make_skill(tmp_path, "two"), 3)
    assert set(events) == {ResourcesListChanged(), ToolsListChanged(), PromptsListChanged()}


def test_removed_skill_is_notified(tmp_path: Path) -> None:
    folder = make_skill(tmp_path, "one")
    events = collect_events(tmp_path, (folder / "SKILL.md").unlink, 1)
    assert events == [ResourcesListChanged()]


def test_edited_file_is_notified_to_its_subscribers(tmp_path: Path) -> None:
    folder = make_skill(tmp_path, "one", files={"notes.md": b"one"})
    uri = "skill://one/notes.md"
    events = collect_events(tmp_path, lambda: (folder / "notes.md").write_bytes(b"two"), 1, uri)
    assert events == [ResourceUpdated(uri=uri)]


def test_unsubscribed_events_are_not_sent(tmp_path: Path) -> None:
    folder = make_skill(tmp_path, "one", files={"a.md": b"one"})

    async def listen(client: Client) -> list[ServerEvent]:
        async with client.listen(resource_subscriptions=["skill://one/a.md"]) as stream:
            make_skill(tmp_path, "two")
            (folder / "a.md").write_bytes(b"other")
            async for event in stream:
                return [event]
        return []

    assert run_client(make_folder_server(tmp_path), listen) == [
        ResourceUpdated(uri="skill://one/a.md")
    ]


def collect_notifications(
    server: SkillServer, change: Callable[[Client], Any], expected: set[str]
) -> set[str]:
    """Return the notifications that a legacy client gets after a change."""

    async def main() -> set[str]:
        methods: set[str] = set()
        done = anyio.Event()

        async def note(message: Any) -> None:  # noqa: ANN401 - whatever the server sends
            methods.add(message.method)
            if expected <= methods:
                done.set()

        with anyio.fail_after(DEADLINE):
            async with Client(server, mode=HANDSHAKE, message_handler=note, cache=None) as client:
                await client.list_tools()
                await change(client)
                await done.wait()
        return methods

    return anyio.run(main)


def test_legacy_client_is_notified(tmp_path: Path) -> None:
    make_skill(tmp_path, "one")

    async def add(_: Client) -> None:
        make_skill(tmp_path, "two")

    lists = {f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources")}
    assert collect_notifications(make_folder_server(tmp_path), add, lists) == lists


def test_legacy_client_is_notified_of_subscribed_resources(tmp_path: Path) -> None:
    folder = make_skill(tmp_path, "one", files={"notes.md": b"one"})

    async def edit(client: Client) -> None:
        await send_request(client, "resources/subscribe", uri="skill://one/notes.md")
        (folder / "notes.md").write_bytes(b"two")

    updated = {"notifications/resources/updated"}
    assert collect_notifications(make_folder_server(tmp_path), edit, updated) == updated


class SlowOnce:
    """The skills of a folder; one read of them is slow."""

    def __init__(self, root: Path, *, is_armed: bool) -> None:
        self._folder = FolderSkillProvider([Root(str(root))], LENIENT)
        self.is_armed = is_armed
        self.has_begun = threading.Event()

    def current_view(self) -> SkillView:
        if self.is_armed:
            self.is_armed = False
            self.has_begun.set()
            time.sleep(0.3)
        return self._folder.current_view()


def test_change_right_after_the_first_response_is_reported(tmp_path: Path) -> None:
    make_skill(tmp_path, "one")
    server = SkillServer(SlowOnce(tmp_path, is_armed=True), ttl_factor=0, poll_interval=0.01)

    async def add(_: Client) -> None:
        make_skill(tmp_path, "two")

    changed = {"notifications/resources/list_changed"}
    assert changed <= collect_notifications(server, add, changed)


def test_change_after_a_subscription_during_a_poll_is_reported(
    tmp_path: Path,
) -> None:
    folder = make_skill(tmp_path, "one", files={"notes.md": b"one"})
    skills = SlowOnce(tmp_path, is_armed=False)
    server = SkillServer(skills, ttl_factor=0, poll_interval=0.01)

    async def edit(client: Client) -> None:
        skills.is_armed = True
        await anyio.to_thread.run_sync(skills.has_begun.wait)
        await send_request(client, "resources/subscribe", uri="skill://one/notes.md")
        (folder / "notes.md").write_bytes(b"other")

    updated = {"notifications/resources/updated"}
    assert collect_notifications(server, edit, updated) == updated


def test_edited_instructions_are_loaded(tmp_path: Path) -> None:
    write_skill(tmp_path / "one")

    async def before_and_after(client: Client) -> list[str]:
        before = [str((await client.call_tool("load_skill", {"name": "one"})).content)]
        text = "---\nname: one\ndescription: x\n---\nDo that instead.\n"
        (tmp_path / "one" / "SKILL.md").write_text(text, encoding="utf-8")
        return [*before, str((await client.call_tool("load_skill", {"name": "one"})).content)]

    before, after = run_client(make_folder_server(tmp_path), before_and_after)
    assert "Do it." in before
    assert "Do that instead." in after


def test_too_many_subscriptions_are_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions, "MAX_SUBSCRIBED_URIS", 3)
    uris = [f"skill://s/{number}" for number in range(4)]

    async def listen(client: Client) -> None:
        async with client.listen(resource_subscriptions=uris):
            pass

    with pytest.raises(MCPError, match="the limit is 3 resources"):
        run_client(make_folder_server(tmp_path), listen)

    async def subscribe(client: Client) -> object:
        for uri in uris[:-1]:
            await send_request(client, "resources/subscribe", uri=uri)
        return await read_error(send_request(client, "resources/subscribe", uri=uris[-1]))

    assert run_client(make_folder_server(tmp_path), subscribe, HANDSHAKE) == (-32602, "too_many")
