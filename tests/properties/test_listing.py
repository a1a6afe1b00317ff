"""Properties of listings and inline blocks."""

from typing import NamedTuple
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from skillhall._internal.render.escape import to_single_line
from skillhall._internal.render.listing import render_inline, render_listing
from tests.support.strategies import texts


class Entry(NamedTuple):
    name: str
    description: str
    location: str


@given(st.lists(st.builds(Entry, texts, texts, texts), min_size=1, max_size=5))
def test_xml_parser_reads_the_same_skills(entries: list[Entry]) -> None:
    tree = ET.fromstring(render_listing(entries))  # noqa: S314 - our own text
    read = [tuple(part.text or "" for part in skill) for skill in tree]
    assert read == [tuple(map(to_single_line, entry)) for entry in entries]


@given(st.builds(Entry, texts, texts, texts))
def test_listing_of_one_skill_has_seven_lines(entry: Entry) -> None:
    assert len(render_listing([entry]).splitlines()) == 7


@given(texts, texts, texts, texts)
def test_inline_block_closes_exactly_once(
    name: str, location: str, directory: str, body: str
) -> None:
    assert render_inline(name, location, directory, body).lower().count("</skill") == 1
