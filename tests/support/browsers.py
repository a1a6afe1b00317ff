"""A browser, a server process to look at, and what every page must keep to."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Playwright,
    Route,
    expect,
)

from tests.support.chromium import find_chromium

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
VIEWPORTS: tuple[tuple[int, Literal["light", "dark"]], ...] = (
    (1280, "light"),
    (1280, "dark"),
    (390, "light"),
    (390, "dark"),
)
TIMEOUT_MS = 120_000  # milliseconds; an event that takes longer does not come
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
_AXE_SCRIPT = """axe.run({ resultTypes: ["violations"] }).then(({ violations }) => [
  ...violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((one) => one.html)}`),
  ...(document.documentElement.scrollWidth > innerWidth ? ["it scrolls sideways"] : []),
])"""
# Hidden elements make requests without a person: they poll.
_COUNT = """() => document.addEventListener("htmx:config:request", ({ target }) => {
  const { dataset } = document.body;
  if (!target.hidden) dataset.requests = Number(dataset.requests ?? 0) + 1;
})"""
# A page that answers 4xx makes the browser say so; that is no fault of the page.
_EXPECTED_CONSOLE_ERROR = re.compile(
    r"Failed to load resource: the server responded with a status of 4\d\d"
)


def hold_first(page: Page, url: re.Pattern[str], *, until: int) -> None:
    """Hold the first request to a URL until the page has made so many."""

    def answer(route: Route) -> None:
        expect_requests(page, until)
        route.continue_()

    page.evaluate(_COUNT)
    page.route(url, answer, times=1)


def expect_requests(page: Page, number: int) -> None:
    """Wait until so many requests were made, sent or queued, since `hold_first`."""
    expect(page.locator("body")).to_have_attribute("data-requests", str(number))


def launch(playwright: Playwright) -> Browser:
    """The browser of this machine, or one that is downloaded into the checkout."""
    return playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)


@dataclass
class ServeProcess:
    """A `skillhall serve` process, and the folder it serves."""

    url: str
    folder: Path

    @property
    def user_skills(self) -> Path:
        """The user skills' folder."""
        return self.folder / ".agents" / "skills"


@contextmanager
def run_server(
    folder: Path, program: Sequence[str] = (sys.executable, "-m", "skillhall"), **variables: str
) -> Iterator[ServeProcess]:
    """The process, until the block is left."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("SKILLHALL_")}
    home = folder / "home"
    home.mkdir(exist_ok=True)
    own = {
        "HOME": str(home),
        "SKILLHALL_CACHE_DIR": str(folder / "cache"),
        "SKILLHALL_DATA_DIR": str(folder / "data"),
    }
    with subprocess.Popen(
        [*program, "serve", "--port", "0", "--run-dir", str(folder)],
        env={**kept, **own, **variables},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.match(r"(http://\S+) ", line)
        assert found, line
        # Its log is read on, so that it never waits for a reader.
        with (
            (folder / "log").open("w") as log,
            subprocess.Popen(["cat"], stdin=process.stderr, stdout=log),
        ):
            try:
                yield ServeProcess(found[1], folder)
            finally:
                process.terminate()
                process.wait(TIMEOUT_MS / 1000)


@dataclass
class BrowserSession:
    """A person with a browser: one context, one page, and everything that went wrong in it."""

    page: Page
    context: BrowserContext
    url: str
    problems: list[str] = field(default_factory=list)

    @classmethod
    def open(cls, browser: Browser, url: str, **options: Any) -> "BrowserSession":  # noqa: ANN401
        """A new context, which notes every fault and every request that leaves the server."""
        wide = {"width": 1280, "height": 900}
        context = browser.new_context(**{"viewport": wide, "locale": "en-US", **options})
        context.set_default_timeout(TIMEOUT_MS)
        one = cls(context.new_page(), context, url)
        one.page.on("console", one._on_console)
        one.page.on("pageerror", lambda error: one.problems.append(str(error)))
        one.page.on("request", lambda request: one._on_request(request.url))
        return one

    def open_page(self, path: str) -> Page:
        """Open a page of the server."""
        self.page.goto(self.url + path)
        return self.page

    def close(self) -> None:
        """Close everything; nothing may have gone wrong."""
        self.context.close()
        assert not self.problems, "\n".join(self.problems)

    def find_accessibility_problems(self) -> list[str]:
        """What keeps people out of the page, at every width, light and dark.

        That is what axe-core finds, and scrolling sideways. The context must bypass the policy.
        """
        self.page.add_script_tag(path=AXE)
        found = []
        for width, scheme in VIEWPORTS:
            self.page.set_viewport_size({"width": width, "height": 800})
            self.page.emulate_media(color_scheme=scheme)
            found += [f"{width} {scheme}: {told}" for told in self.page.evaluate(_AXE_SCRIPT)]
        return found

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not _EXPECTED_CONSOLE_ERROR.match(message.text):
            self.problems.append(message.text)

    def _on_request(self, url: str) -> None:
        if not url.startswith((self.url, "data:", "blob:")):
            self.problems.append(f"a request to {url}")
