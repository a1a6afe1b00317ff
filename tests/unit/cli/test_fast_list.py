"""The quick reading of `list` and click's reading are the same."""

from unittest.mock import ANY

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillhall._internal.cli.commands.browse.list import command
from skillhall._internal.cli.fast_list import ListRequest, parse_list_arguments

WORDS = st.sampled_from(
    [
        "--json",
        "--long",
        "-l",
        "--no-index",
        "--profile",
        "--profile=lenient",
        "--profile=nonsense",
        "specification",
        "--format",
        "--format=json",
        "text",
        "json",
        "--",
        "-",
        "-x",
        "--help",
        "--json=1",
        "folder",
        "",
        "=",
    ]
)


def read_by_click(words: list[str]) -> ListRequest | None:
    try:
        context = command.make_context("list", list(words))
    except (click.ClickException, click.exceptions.Exit):
        return None
    return ListRequest(**context.params)


@given(st.lists(WORDS, max_size=6))
def test_fast_parser_agrees_with_click(words: list[str]) -> None:
    quick = parse_list_arguments(["list", *words])
    assert quick in (None, read_by_click(words))


@pytest.mark.parametrize(
    "words",
    [
        ["list"],
        ["ls", "a", "b"],
        ["list", "--json", "--long", "--no-index", "--profile", "skills-ref", "a"],
        ["list", "--format=json", "--", "--json"],
    ],
)
def test_plain_arguments_use_the_fast_parser(words: list[str]) -> None:
    assert parse_list_arguments(words) == ANY
    assert parse_list_arguments(words) == read_by_click(words[1:])


@pytest.mark.parametrize(
    "words", [[], ["show", "a"], ["list", "--help"], ["list", "-x"], ["list", "--profile", "x"]]
)
def test_other_arguments_are_left_to_click(words: list[str]) -> None:
    assert parse_list_arguments(words) is None
