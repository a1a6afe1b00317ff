"""Sources of prompts on disk and on a site, a clock that stands still, and what answers say."""

import base64
import json
from pathlib import Path
from typing import Any

from skillhall._internal.prompts.checkout import Copies, Copy
from skillhall._internal.prompts.prompt_model import PromptSnapshot, Upload, UploadedFile
from skillhall._internal.prompts.prompt_snapshot import Contents, Snapshot
from skillhall._internal.prompts.refreshing_source import Clock
from skillhall._internal.sources.repo_layout import Tree
from tests.support.skills import make_skill_md

BUILT_IN = ["describe-skill", "plan-skill", "review-skill", "split-skill"]


class StandingClock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.passed = 1000.0

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.passed, lambda: 1_700_000_000.0 + self.passed)


def copied(files: dict[str, bytes], folder: Path) -> Copy:
    return Copies(str(folder)).put(Tree(files))


def make_snapshot(files: dict[str, bytes], folder: Path, source: str = "acme/prompts") -> Snapshot:
    """The snapshot of a source with these files."""
    return Snapshot(Contents(source, copied(files, folder)))


def listed(snapshot: PromptSnapshot) -> dict[str, Any]:
    """The prompts of a list that are not built in, by name."""
    prompts = json.loads(snapshot.list_data())["prompts"]
    return {prompt["name"]: prompt for prompt in prompts if prompt["name"] not in BUILT_IN}


def got(snapshot: PromptSnapshot, name: str, **values: object) -> Any:  # noqa: ANN401 - JSON
    return json.loads(snapshot.get_data(name, values))


def text_of(snapshot: PromptSnapshot, name: str, **values: object) -> str:
    text: str = got(snapshot, name, **values)["messages"][0]["content"]["text"]
    return text


def make_upload(
    source: str = "team",
    files: dict[str, bytes] | None = None,
    content_hash: str = "",
) -> Upload:
    given = files or {"hello.md": make_skill_md("hello")}
    encoded = [UploadedFile(path, base64.b64encode(data).decode()) for path, data in given.items()]
    return Upload(source, encoded, content_hash)
