"""Browser sessions, a server process, and accessibility checks of pages."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    Playwright,
    Route,
    expect,
)

from tests.support.chromium import find_chromium
from tests.support.fork_server import ForkedProcess

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
Viewport: TypeAlias = tuple[int, Literal["light", "dark"]]
VIEWPORTS: tuple[Viewport, ...] = (
    (1280, "light"),
    (1280, "dark"),
    (390, "light"),
    (390, "dark"),
)
WIDTHS: tuple[Viewport, ...] = (
    (1440, "light"),
    (1440, "dark"),
    (1024, "light"),
    (1024, "dark"),
    (390, "light"),
    (390, "dark"),
)
_MAX_TABS = 100
# Loaded before a server is forked.
_IMPORTS = ("skillhall._internal.asgi", "skillhall._internal.storage.sql.engine")
TIMEOUT_MS = 120_000  # for busy machines; an event that takes longer counts as missing
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
  ...violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => node.html)}`),
  ...(document.documentElement.scrollWidth > innerWidth ? ["scrolls horizontally"] : []),
  ...[...document.querySelectorAll("body *")].filter((element) => (
    parseFloat(getComputedStyle(element).fontSize) < 12 && element.checkVisibility()
    && [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim())
    && !element.closest("svg, .brand")
  )).map((element) => `text below 12 px: ${element.outerHTML.slice(0, 200)}`),
  ...[...document.querySelectorAll(".scroll:has(table)")].filter(
    (one) => one.scrollWidth > one.clientWidth
  ).map((one) => `table scrolls horizontally: ${one.outerHTML.slice(0, 120)}`),
])"""
# Hidden elements poll, so their requests are not counted.
_COUNT = """() => document.addEventListener("htmx:config:request", ({ target }) => {
  const { dataset } = document.body;
  if (!target.hidden) dataset.requests = Number(dataset.requests ?? 0) + 1;
})"""
# Chromium logs every 4xx response as an error.
_EXPECTED_CONSOLE_ERROR = re.compile(
    r"Failed to load resource: the server responded with a status of 4\d\d"
)


def hold_first(page: Page, url: re.Pattern[str], *, until: int) -> None:
    """Hold the first request to a URL until the page has made `until` requests."""

    def answer(route: Route) -> None:
        expect_requests(page, until)
        route.continue_()

    page.evaluate(_COUNT)
    page.route(url, answer, times=1)


def expect_requests(page: Page, number: int) -> None:
    """Wait until `number` requests were sent or queued since `hold_first`."""
    expect(page.locator("body")).to_have_attribute("data-requests", str(number))


def reach_by_tab(page: Page, control: Locator) -> None:
    """Press Tab until a control has the focus."""
    for _ in range(_MAX_TABS):
        page.keyboard.press("Tab")
        if control.evaluate("element => element === document.activeElement"):
            return
    raise AssertionError(f"{control} cannot be reached with Tab")


def press_by_tab(page: Page, role: str, name: str) -> None:
    """Reach a link or button by Tab, and press Enter."""
    reach_by_tab(page, page.get_by_role(role, name=name, exact=True).first)  # type: ignore[arg-type]
    page.keyboard.press("Enter")


def launch(playwright: Playwright) -> Browser:
    """Launch Chromium; download it first if it is not installed."""
    return playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)


@dataclass
class ServeProcess:
    """Running `skillhall serve` process and its folder."""

    url: str
    folder: Path

    @property
    def user_skills(self) -> Path:
        """Folder of the user skills."""
        return self.folder / ".agents" / "skills"


@contextmanager
def run_server(
    folder: Path, program: str = "", port: str = "0", **variables: str
) -> Iterator[ServeProcess]:
    """Run a server while the context is open, by default in a fork, which starts quickly."""
    inherited = {
        key: value for key, value in os.environ.items() if not key.startswith("SKILLHALL_")
    }
    home = folder / "home"
    home.mkdir(exist_ok=True)
    overrides = {
        "HOME": str(home),
        "SKILLHALL_CACHE_DIR": str(folder / "cache"),
        "SKILLHALL_DATA_DIR": str(folder / "data"),
    }
    arguments = ["serve", "--json", "--port", port, "--run-dir", str(folder)]
    env = {**inherited, **overrides, **variables}
    process: subprocess.Popen[str] | ForkedProcess
    with (folder / "log").open("a+", encoding="utf-8") as log:
        if program:
            process = subprocess.Popen(
                [program, *arguments], env=env, stdout=subprocess.PIPE, stderr=log, text=True
            )
        else:
            process = ForkedProcess("skillhall", *arguments, imports=_IMPORTS, env=env, stderr=log)
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            log.seek(0)
            assert line, log.read()
            yield ServeProcess(json.loads(line)["data"]["url"], folder)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(TIMEOUT_MS / 1000)
            process.stdout.close()


@dataclass
class BrowserSession:
    """Browser context with one page; collects console errors and foreign requests."""

    page: Page
    context: BrowserContext
    url: str
    has_scripts: bool = True
    problems: list[str] = field(default_factory=list)

    @classmethod
    def open(cls, browser: Browser, url: str, **options: Any) -> "BrowserSession":  # noqa: ANN401
        """Open a page in a new context."""
        wide = {"width": 1280, "height": 900}
        context = browser.new_context(**{"viewport": wide, "locale": "en-US", **options})
        context.set_default_timeout(TIMEOUT_MS)
        has_scripts = options.get("java_script_enabled", True)
        session = cls(context.new_page(), context, url, has_scripts)
        session.page.on("console", session._on_console)
        session.page.on("pageerror", lambda error: session.problems.append(str(error)))
        session.page.on("request", lambda request: session._on_request(request.url))
        return session

    def open_page(self, path: str) -> Page:
        """Open a page of the server."""
        self.page.goto(self.url + path)
        return self.page

    @property
    def width(self) -> int:
        """Width of the page, which differs with and without scripts."""
        return self.page.viewport_size["width"] if self.page.viewport_size else 0

    def close(self) -> None:
        """Close the context and assert that no problem occurred."""
        self.context.close()
        assert not self.problems, "\n".join(self.problems)

    def find_accessibility_problems(self, viewports: Sequence[Viewport] = VIEWPORTS) -> list[str]:
        """Run axe-core and find small text, and pages and tables that scroll sideways.

        The context must bypass the CSP.
        """
        self.page.add_script_tag(path=AXE)
        problems = []
        for width, scheme in viewports:
            self.page.set_viewport_size({"width": width, "height": 800})
            self.page.emulate_media(color_scheme=scheme)
            results = self.page.evaluate(_AXE_SCRIPT)
            problems += [f"{width} {scheme}: {result}" for result in results]
        return problems

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not _EXPECTED_CONSOLE_ERROR.match(message.text):
            self.problems.append(message.text)

    def _on_request(self, url: str) -> None:
        if not url.startswith((self.url, "data:", "blob:")):
            self.problems.append(f"foreign request: {url}")
