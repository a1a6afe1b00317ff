"""Boards with many blocks compared with small ones, in the server and in a browser."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from playwright.sync_api import Page, sync_playwright

from benchmarks.harness import DISCARDED_ROUNDS
from benchmarks.report import Bar, Judged, Row
from skillhall._internal.storage.sql.engine import Database
from skillhall._internal.storage.sql.workspace_store import SqlWorkspaceStore
from skillhall._internal.workspace import BlockContent, Zone
from skillhall._internal.workspace.validation import build_content
from skillhall._internal.workspace.workspace import Workspace
from tests.support.actors import ACTOR
from tests.support.browsers import BrowserSession, launch, run_server
from tests.support.databases import TIMESTAMP
from tests.support.session_boards import SessionBoard
from tests.support.workspaces import make_workspace

FEW, MANY = 50, 500  # blocks, for the server
SHORT = 20  # blocks, for the browser
PAGE_BAR, MOVE_BAR, SEEN_BAR = Bar(3.0), Bar(2.0), Bar(1.0, Judged.WALL)
TEXT = "# A heading\n\nA sentence of the length that notes have, more or less.\n" * 4
_KINDS = {
    Zone.PERMANENT: "guideline",
    Zone.STABLE: "reference",
    Zone.WORKING: "note",
}
# From the key press to the frame that shows the server's response.
_MOVE = """() => new Promise((done) => {
  const board = document.getElementById("board"), before = board.dataset.revision;
  const link = document.querySelector("#cards-working h3 a"), start = performance.now();
  new MutationObserver((_, watch) => {
    if (board.dataset.revision === before) return;
    watch.disconnect();
    requestAnimationFrame(() => done(performance.now() - start));
  }).observe(board, { attributes: true });
  link.focus();
  link.dispatchEvent(
    new KeyboardEvent("keydown", { key: "ArrowDown", altKey: true, bubbles: true }),
  );
})"""
# The time of the frame that shows another user's change.
_WATCH = """() => {
  const board = document.getElementById("board");
  const now = () => performance.timeOrigin + performance.now();
  window.seen = new Promise((done) => new MutationObserver((_, watch) => {
    watch.disconnect();
    requestAnimationFrame(() => done(now()));
  }).observe(board, { attributes: true, attributeFilter: ["data-revision"] }));
  return now();
}"""


@contextmanager
def open_workspace_of() -> Iterator[Workspace]:
    """A workspace on SQLite."""
    with TemporaryDirectory() as folder:
        database = Database(f"sqlite:///{folder}/bench.db", TIMESTAMP)
        yield make_workspace(SqlWorkspaceStore(database, actor=ACTOR), "b")
        database.close()


def session_of(desk: Workspace, size: int) -> str:
    """Create a session with this many blocks, spread evenly over the zones."""
    return desk.sessions.create(f"{size} blocks", contents=_contents(size)).id


def move_row(rounds: int) -> Row:
    """Time from a key press that moves a block until the result is on the screen."""
    with TemporaryDirectory() as folder, run_server(Path(folder)) as hall, sync_playwright() as kit:
        browser = launch(kit)
        pages = [_opened(BrowserSession.open(browser, hall.url), size) for size in (SHORT, MANY)]
        timed = [[_moved(page) for page in pages] for _ in range(rounds + DISCARDED_ROUNDS)]
        browser.close()
    kept = timed[DISCARDED_ROUNDS:]
    ratio = median(many / few for few, many in kept)
    shown = median(many for _, many in kept)
    return Row(name=f"move, {MANY} blocks", wall=ratio, cpu=ratio, median_ms=shown, bar=MOVE_BAR)


def seen_row(rounds: int) -> Row:
    """Seconds from a key press that moves a block until another browser shows it."""
    with TemporaryDirectory() as folder, run_server(Path(folder)) as hall, sync_playwright() as kit:
        browser = launch(kit)
        one, other = (BrowserSession.open(browser, hall.url) for _ in range(2))
        mover, board = _opened(one, MANY), one.page.url.removeprefix(hall.url)
        watcher = other.open_page(board)
        watcher.wait_for_selector('#event-stream[data-state="open"]', state="attached")
        waits = [_seen(mover, watcher) for _ in range(rounds + DISCARDED_ROUNDS)]
        browser.close()
    shown = median(waits[DISCARDED_ROUNDS:])
    return Row(name=f"seen, {MANY} blocks", wall=shown / 1e3, median_ms=shown, bar=SEEN_BAR)


def _seen(mover: Page, watcher: Page) -> float:
    """Return milliseconds, including the time to send the key to the browser."""
    start = float(watcher.evaluate(_WATCH))
    mover.evaluate(_MOVE)
    return float(watcher.evaluate("() => window.seen")) - start


def _opened(visitor: BrowserSession, size: int) -> Page:
    board = SessionBoard.create(visitor.url)
    for content in _contents(size):
        board.add(content.text, content.type)
    return visitor.open_page(board.path)


def _moved(page: Page) -> float:
    return float(median(page.evaluate(_MOVE) for _ in range(5)))


def _contents(size: int) -> list[BlockContent]:
    zones: list[Zone] = [*Zone]
    wanted = (zones[number % len(zones)] for number in range(size))
    return [build_content(_KINDS[zone], zone, TEXT) for zone in wanted]
