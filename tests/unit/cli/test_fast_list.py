"""The fast parser of `list` agrees with click."""

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillhall._internal.cli.commands.browse.list import command
from skillhall._internal.cli.fast_list import ListRequest, parse_list_arguments
from skillhall._internal.cli.search_options import SearchOptions

ARGUMENTS = st.sampled_from(
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


def read_by_click(argv: list[str]) -> ListRequest | None:
    try:
        context = command.make_context("list", list(argv))
    except (click.ClickException, click.exceptions.Exit):
        return None
    params = dict(context.params)
    as_json = params.pop("as_json") | (params.pop("output_format") == "json")
    long = params.pop("long")
    return ListRequest(SearchOptions(**params), as_json, long)


@given(st.lists(ARGUMENTS, max_size=6))
def test_fast_parser_agrees_with_click(argv: list[str]) -> None:
    fast = parse_list_arguments(argv)
    assert fast in (None, read_by_click(argv))


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["a", "b"],
        ["--json", "--long", "--no-index", "--profile", "skills-ref", "a"],
        ["--format=json", "--", "--json"],
    ],
)
def test_plain_arguments_use_the_fast_parser(argv: list[str]) -> None:
    assert parse_list_arguments(argv) is not None
    assert parse_list_arguments(argv) == read_by_click(argv)


@pytest.mark.parametrize("argv", [["--help"], ["-x"], ["--profile", "x"]])
def test_other_arguments_are_left_to_click(argv: list[str]) -> None:
    assert parse_list_arguments(argv) is None
