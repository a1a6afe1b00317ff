"""Checkouts, snapshots and uploads for tests, and a manual clock."""

import base64
import json
from pathlib import Path
from typing import Any

from skillhall._internal.prompt_server.checkout import Checkout, CheckoutStore
from skillhall._internal.prompt_server.prompt_model import Upload, UploadedFile
from skillhall._internal.prompt_server.prompt_snapshot import PromptSnapshot
from skillhall._internal.prompt_server.refreshing_source import Clock
from skillhall._internal.sources.repo_layout import FileTree
from tests.support.skills import make_skill_md

BUILT_IN = ["describe-skill", "plan-skill", "review-skill", "split-skill"]


class ManualClock:
    """Clock that advances only when a test says so."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.seconds, lambda: 1_700_000_000.0 + self.seconds)


def make_checkout(files: dict[str, bytes], folder: Path) -> Checkout:
    return CheckoutStore(str(folder)).put(FileTree(files))


def make_snapshot(
    files: dict[str, bytes], folder: Path, source: str = "acme/prompts"
) -> PromptSnapshot:
    """Make the snapshot of a source with these files."""
    return PromptSnapshot(source, make_checkout(files, folder))


def list_prompts(snapshot: PromptSnapshot) -> dict[str, Any]:
    """Return the prompts of a list that are not built in, by name."""
    prompts = json.loads(snapshot.list_json)["prompts"]
    return {prompt["name"]: prompt for prompt in prompts if prompt["name"] not in BUILT_IN}


def get_prompt(snapshot: PromptSnapshot, name: str, **values: object) -> Any:  # noqa: ANN401 - JSON
    return json.loads(snapshot.prompt_json(name, values))


def get_prompt_text(snapshot: PromptSnapshot, name: str, **values: object) -> str:
    text: str = get_prompt(snapshot, name, **values)["messages"][0]["content"]["text"]
    return text


def make_upload(
    source: str = "team",
    files: dict[str, bytes] | None = None,
    content_hash: str = "",
) -> Upload:
    files = files or {"hello.md": make_skill_md("hello")}
    encoded = [UploadedFile(path, base64.b64encode(data).decode()) for path, data in files.items()]
    return Upload(source, encoded, content_hash)
