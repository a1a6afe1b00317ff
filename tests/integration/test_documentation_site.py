"""The documentation site builds without warnings and needs no other host."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml

from skillhall import errors
from skillhall._internal.hints import DOCS_URL, find_docs, find_finding_docs
from skillhall._internal.skill.finding import Code
from tools import site
from tools.tutorial import read_steps

# Elements that a browser loads; links that a reader follows are not among them.
LOADED = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src"}


class PageReader(HTMLParser):
    """The anchors and code blocks of a page, and the URLs that a browser loads for it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.loaded: set[str] = set()
        self.code: list[str] = []
        self._is_code = False
        self.feed(path.read_text(encoding="utf-8"))

    def handle_data(self, data: str) -> None:
        if self._is_code:
            self.code[-1] += data

    def handle_endtag(self, tag: str) -> None:
        self._is_code = self._is_code and tag != "pre"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "pre":
            self._is_code = True
            self.code.append("")
        values = dict(attrs)
        self.anchors.add(values.get("id") or "")
        if values.get("rel") not in {"canonical", "next", "prev"}:
            self.loaded.add(values.get(LOADED.get(tag, "")) or "")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    (folder / "0.0").mkdir()  # an earlier version
    assert site.main(["build", "--into", str(folder)]) == 0
    return folder


def test_site_loads_nothing_from_other_hosts(built: Path) -> None:
    pages = sorted((built / "latest").rglob("*.html"))
    assert len(pages) > 80
    loaded = {url for page in pages for url in PageReader(page).loaded}
    assert {url for url in loaded if re.match(r"(?:https?:)?//", url)} == set()
    styles = (built / "latest").rglob("*.css")
    assert [
        path for path in styles if re.search(r"url\(['\"]?(https?:)?//", path.read_text())
    ] == []


def test_site_has_a_search_index_and_a_dark_theme(built: Path) -> None:
    index = json.loads((built / "latest/search.json").read_text(encoding="utf-8"))
    assert any("yaml-repaired" in json.dumps(item) for item in index["items"])
    assert 'data-md-color-scheme="slate"' in (built / "latest/index.html").read_text("utf-8")


def test_site_lists_its_versions_and_leads_to_the_latest(built: Path) -> None:
    versions = json.loads((built / "versions.json").read_text(encoding="utf-8"))
    assert [(one["version"], one["aliases"]) for one in versions] == [
        ("0.1", ["latest"]),
        ("0.0", []),
    ]
    assert "latest/" in (built / "index.html").read_text(encoding="utf-8")


def test_links_of_errors_and_findings_lead_to_their_sections(built: Path) -> None:
    urls = {find_finding_docs(code) for code in Code}
    classes = [getattr(errors, name) for name in errors.__all__ if name != "SkillhallError"]
    urls |= {find_docs(cls.__new__(cls)) for cls in classes}
    for page in ("errors", "findings"):
        prefix = f"{DOCS_URL}/reference/{page}/#"
        anchors = {url.removeprefix(prefix) for url in urls if url.startswith(prefix)}
        assert len(anchors) > 60
        assert anchors - PageReader(built / f"latest/reference/{page}/index.html").anchors == set()


def test_tutorial_on_the_site_has_the_commands_and_samples_that_are_tested(built: Path) -> None:
    code = PageReader(built / "latest/tutorial/index.html").code
    steps = [*read_steps()]
    for step in steps:
        expected = step.text if step.file else f"$ {step.text}\n{step.output}"
        assert any(expected.strip() in block for block in code), expected
    assert sum(block.count("$ ") for block in code) == sum(not step.file for step in steps)


def test_every_page_is_in_the_navigation() -> None:
    config = yaml.safe_load((site.ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    listed = set(re.findall(r"'([\w/.-]+\.md)'", str(config["nav"])))
    docs = site.ROOT / "docs"
    pages = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    records = {page for page in pages if re.match(r"decisions/\d", page)}
    assert listed == (pages - records) | set(site.OTHER_PAGES.values())


def test_links_lead_to_the_copy_on_the_site() -> None:
    pages = {"docs/guides/add.md": "guides/add.md", **site.OTHER_PAGES}
    text = "[a](docs/guides/add.md#b) [c](https://example.org) [d](deploy/Caddyfile)"
    rewritten = site.rewrite_links(text, "CHANGELOG.md", "project/changelog.md", pages)
    assert rewritten == (
        "[a](../guides/add.md#b) [c](https://example.org) [d](../files/deploy/Caddyfile)"
    )
    assert pages["deploy/Caddyfile"] == "files/deploy/Caddyfile"


def test_link_to_a_missing_file_fails_the_build() -> None:
    with pytest.raises(site.BrokenLink, match=r"CHANGELOG\.md links to docs/gone\.md"):
        site.rewrite_links("[x](docs/gone.md)", "CHANGELOG.md", "project/changelog.md", {})
