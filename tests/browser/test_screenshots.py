"""Screenshots of all pages: `UPDATE_SCREENSHOTS=1 pytest tests/browser/test_screenshots.py -n 0`.

`docs/images/pages` gets one image for each page, with three widths and both themes, at half size.
`docs/images` gets the screenshots of the README and the guides, at full size, from the same pages.
"""

import base64
from collections.abc import Iterator
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, StorageState

from tests.support.browsers import ROOT, BrowserSession
from tests.support.demo_site import (
    SIGN_IN_PAGES,
    SITE_PAGES,
    DemoSite,
    SitePage,
    record_usage,
    run_demo,
    sign_in,
)

IMAGES = ROOT / "docs" / "images"
MAX_SHEET_BYTES, MAX_IMAGE_BYTES = 150_000, 100_000
SIZES = ((1440, 900), (1024, 768), (390, 844))
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
# Images of the README and the guides: page, width and theme.
SHOWN = {
    "skills": ("skills", 1440, "light"),
    "skills-dark": ("skills", 1440, "dark"),
    "skills-phone": ("skills", 390, "light"),
    "skill": ("skill", 1440, "light"),
    "review": ("import-review", 1440, "light"),
    "board": ("board", 1440, "light"),
    "settings": ("sources", 1440, "light"),
    "playground": ("playground", 1440, "light"),
    "status": ("status", 1440, "light"),
}
# Draws images in rows, at a scale, and returns them as WebP, which Chromium encodes.
_DRAW = """async ([rows, scale, quality]) => {
  const load = async (data) => {
    const image = new Image();
    image.src = `data:image/png;base64,${data}`;
    await image.decode();
    return image;
  };
  const loaded = await Promise.all(rows.map((row) => Promise.all(row.map(load))));
  const gap = rows.length > 1 ? 12 : 0;
  const size = (image) => [image.width * scale, image.height * scale];
  const widths = loaded.map((row) => row.reduce((sum, one) => sum + size(one)[0] + gap, gap));
  const heights = loaded.map((row) => Math.max(...row.map((one) => size(one)[1])) + gap);
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(...widths);
  canvas.height = heights.reduce((sum, one) => sum + one, gap);
  const pen = canvas.getContext("2d");
  pen.fillStyle = "#8b9992";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.imageSmoothingQuality = "high";
  let top = gap;
  loaded.forEach((row, number) => {
    let left = gap;
    for (const one of row) {
      pen.drawImage(one, left, top, ...size(one));
      left += size(one)[0] + gap;
    }
    top += heights[number];
  });
  return canvas.toDataURL("image/webp", quality).split(",")[1];
}"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoSite]:
    folder = tmp_path_factory.mktemp("demo")
    record_usage(folder / "data")
    with run_demo(folder) as site:
        yield site


@pytest.fixture(scope="module")
def artist(browser: Browser) -> Iterator[Page]:
    """Empty page that draws images."""
    page = browser.new_page()
    yield page
    page.close()


@pytest.fixture(scope="module")
def signed_in(browser: Browser, demo: DemoSite) -> StorageState:
    """Cookies of an administrator."""
    session = BrowserSession.open(browser, demo.server.url)
    sign_in(session.page, session.url)
    cookies = session.context.storage_state()
    session.close()
    return cookies


@pytest.mark.parametrize("page", [*SITE_PAGES, *SIGN_IN_PAGES], ids=lambda page: page.name)
def test_page_is_drawn_at_all_widths_and_in_both_themes(
    browser: Browser, demo: DemoSite, signed_in: StorageState, artist: Page, page: SitePage
) -> None:
    cookies = None if page in SIGN_IN_PAGES else signed_in
    session = BrowserSession.open(browser, demo.server.url, storage_state=cookies)
    page.act(session.open_page(demo.path(page)))
    shots = take_shots(session.page)
    session.close()
    rows = [[shots[width, scheme] for width, _ in SIZES] for scheme in SCHEMES]
    (IMAGES / "pages").mkdir(parents=True, exist_ok=True)
    write_image(artist, f"pages/{page.name}", rows, 0.5, MAX_SHEET_BYTES)
    for name, (shown, width, scheme) in SHOWN.items():
        if shown == page.name:
            write_image(artist, name, [[shots[width, scheme]]], 1, MAX_IMAGE_BYTES)


def take_shots(page: Page) -> dict[tuple[int, str], str]:
    """Return the page at each size and in each theme, as base64."""
    shots = {}
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            data = page.screenshot(animations="disabled")
            shots[width, str(scheme)] = base64.b64encode(data).decode("ascii")
    return shots


def write_image(
    artist: Page, name: str, rows: list[list[str]], scale: float, max_bytes: int
) -> None:
    """Draw shots as one WebP image below `docs/images`."""
    data = base64.b64decode(artist.evaluate(_DRAW, [rows, scale, 0.75]))
    (IMAGES / f"{name}.webp").write_bytes(data)
    assert len(data) < max_bytes
