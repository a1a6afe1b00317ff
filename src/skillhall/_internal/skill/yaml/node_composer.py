"""Composes the PyYAML nodes of a block, with every scalar as text.

Only `full_reader` imports this module, and only on first use: importing PyYAML takes longer than a
small listing, and most skills never need it.
"""

from __future__ import annotations

import re
from typing import Any

import yaml
from yaml import Node
from yaml.composer import Composer
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.scanner import Scanner

from skillhall._internal.skill.yaml.yaml_findings import (
    MAP_TAG,
    MAX_DEPTH,
    SEQ_TAG,
    STR_TAG,
    YamlReadError,
    build_depth_finding,
    build_invalid_finding,
)

# Deep nesting, by brackets or compact indicators ("- - - x"), can overflow the C stack of the
# parser. Brackets inside text count too, which only sends a few more blocks to the slow check.
_MANY_INDICATORS = re.compile(rf"(?:[-?:][ \t]+){{{MAX_DEPTH}}}")


class _TextNodes:
    """Resolver that leaves every scalar as text; the node reader detects typed ones."""

    def resolve(self, kind: type, _value: object, _implicit: object) -> str:
        if kind is yaml.ScalarNode:
            return STR_TAG
        return SEQ_TAG if kind is yaml.SequenceNode else MAP_TAG

    def descend_resolver(self, _node: object, _index: object) -> None: ...

    def ascend_resolver(self) -> None: ...


class PythonLoader(_TextNodes, Reader, Scanner, Parser, Composer):
    """Loader for installations of PyYAML without its C library."""

    def __init__(self, stream: str) -> None:
        """Initialize each base class, since they do not call each other."""
        Reader.__init__(self, stream)
        Scanner.__init__(self)
        Parser.__init__(self)
        Composer.__init__(self)


_loader_class: Any = PythonLoader
if yaml.__with_libyaml__:
    from yaml._yaml import CParser  # PyYAML exports it nowhere else

    class _CLoader(CParser, _TextNodes): ...

    _loader_class = _CLoader


def compose_nodes(block: str) -> Node | None:
    """Return the root node; `None` for an empty block. Raises: YamlReadError."""
    try:
        _reject_deep_nesting(block)
        loader = _loader_class(block)
        try:
            node: Node | None = loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "unknown error"
        line = None if mark is None else mark.line + 1
        raise YamlReadError(build_invalid_finding(problem, line), is_repairable=True) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise YamlReadError(build_invalid_finding(str(error), None), is_repairable=True) from error
    return node


def _reject_deep_nesting(block: str) -> None:
    openings = block.count("[") + block.count("{")
    indicators = block.count("-") + block.count("?") + block.count(":")
    if openings <= MAX_DEPTH and (
        indicators <= MAX_DEPTH or _MANY_INDICATORS.search(block) is None
    ):
        return
    depth = 0
    for event in yaml.parse(block, Loader=_loader_class):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise YamlReadError(build_depth_finding(event.start_mark.line + 1))
