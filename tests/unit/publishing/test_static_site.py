"""The static site: pages that cannot be abused, and a valid feed."""

from xml.etree import ElementTree as ET

from skillhall._internal.publishing.publication import Publication, PublishedSkill
from skillhall._internal.publishing.publish_config import PublishMetadata
from skillhall._internal.publishing.static_site import render_static_site
from skillhall._internal.publishing.version_log import (
    Bump,
    VersionLog,
    record_versions,
    yank_version,
)

ATOM = "{http://www.w3.org/2005/Atom}"
EVIL = "<script>alert(1)</script>\x1b]"


def make_publication(text: str = "Steps", reason: str | None = None) -> Publication:
    files = {"SKILL.md": (text.encode(), 0o644), "a&b.md": (b"", 0o644)}
    log = record_versions(VersionLog(), {"pdf": files}, "", Bump.PATCH, "2026-01-31T12:00:00Z")
    if reason is not None:
        log = yank_version(log, "pdf", "1.0.0", reason)
    metadata = PublishMetadata(name="acme", description=text, author=text)
    return Publication(
        metadata, [PublishedSkill("pdf", text, files, log.skills["pdf"].latest)], log
    )


def test_pages_escape_everything_that_skills_say() -> None:
    site = render_static_site(make_publication(EVIL, reason=EVIL))
    pages = [data for path, (data, _) in site.items() if path.endswith((".html", ".xml"))]
    assert len(pages) == 3
    for page in pages:
        assert b"<script" not in page
        assert b"\x1b" not in page


def test_feed_has_an_entry_per_version() -> None:
    site = render_static_site(make_publication(reason="it leaks"), "https://acme.example/s")
    feed = ET.fromstring(site["feed.xml"][0])  # noqa: S314 - our own
    [entry] = feed.iter(f"{ATOM}entry")
    assert entry.findtext(f"{ATOM}title") == "pdf 1.0.0 (2026-01-31), yanked: it leaks"
    link = entry.find(f"{ATOM}link")
    assert link is not None
    assert link.get("href") == "https://acme.example/s/skills/pdf/"
    assert entry.findtext(f"{ATOM}id", "").startswith("urn:uuid:")


def test_site_does_not_depend_on_the_time_it_is_made() -> None:
    assert render_static_site(make_publication()) == render_static_site(make_publication())
