"""Full YAML reader: PyYAML parses, and this module converts the nodes to values.

It rejects tags and aliases, constructs no objects, limits depth and size, and returns scalars as
the author wrote them. PyYAML is imported on first use.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.yaml.values import (
    BOOLEANS,
    NUMBER_PATTERN,
    TEXT_FIELDS,
    YamlValue,
    parse_number,
)
from skillhall._internal.skill.yaml.yaml_findings import (
    TYPED_SCALAR,
    YamlResult,
    build_duplicate_key_finding,
    build_flow_style_finding,
    build_not_text_finding,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from yaml import Node

    from skillhall._internal.skill.yaml.values import JsonValue

_T = TypeVar("_T")

MAX_DEPTH = 20  # nesting levels
MAX_NODES = 1000  # scalars and collections together

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})

# Deep nesting, by brackets or compact indicators ("- - - x"), can overflow the C stack of the
# parser. Brackets inside text count too, which only sends a few more blocks to the slow check.
_MANY_INDICATORS = re.compile(rf"(?:[-?:][ \t]+){{{MAX_DEPTH}}}")
_AMBIGUOUS_LINE_BREAKS = re.compile("[\x85\u2028\u2029]")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f\x80-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")

_STR, _SEQ, _MAP = (f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map"))


class YamlReadError(Exception):
    """A YAML block cannot be read. It is repairable if only its syntax is wrong."""

    def __init__(self, finding: Finding, *, is_repairable: bool = False) -> None:
        super().__init__(finding.message)
        self.finding = finding
        self.is_repairable = is_repairable


def read_full_yaml(block: str) -> YamlResult:
    """Read the fields of `block`. Raises: YamlReadError."""
    reject_hostile_characters(block)
    root = _compose(block)
    return YamlResult({}, []) if root is None else _NodeReader().read(root)


def read_typed_yaml(block: str) -> dict[str, JsonValue]:
    """Read the fields of `block`, with numbers as numbers. Raises: YamlReadError."""
    reject_hostile_characters(block)
    root = _compose(block)
    return {} if root is None else {**_TypedNodeReader().read(root).fields}


def locate_fields(block: str) -> dict[str, tuple[int, int, int]]:
    """Locate each field: key start, key end, value end. Raises: YamlReadError."""
    reject_hostile_characters(block.replace("\r", ""))
    root: Any = _compose(block)
    if root is None:
        return {}
    _NodeReader().read(root)
    return {
        key.value: (key.start_mark.index, key.end_mark.index, _find_value_end(value))
        for key, value in root.value
    }


def _find_value_end(node: Any) -> int:  # noqa: ANN401 - PyYAML's nodes are untyped
    """Return the end of a value."""
    # PyYAML ends a block list or map at the next token, so the end of its last item is used.
    while node.id != "scalar" and not node.flow_style and node.value:
        node = node.value[-1][1] if node.id == "mapping" else node.value[-1]
    end: int = node.end_mark.index
    return end


def reject_hostile_characters(block: str) -> None:
    """Reject characters that YAML parsers read differently. Raises: YamlReadError."""
    if block.replace("\n", "").isprintable():
        return
    if (match := _AMBIGUOUS_LINE_BREAKS.search(block)) is not None:
        code = Code.ODD_LINE_BREAK
        message = f"the frontmatter contains {match.group()!r}, a line break to some parsers only"
    elif (match := _CONTROLS.search(block)) is not None:
        code = Code.CONTROL_CHARACTER
        message = f"the frontmatter contains the control character {match.group()!r}"
    else:
        return
    line = block.count("\n", 0, match.start()) + 1
    raise YamlReadError(Finding(code, message, line, "remove the character"))


def find_control_character(value: YamlValue) -> str | None:
    """Return the first control character in `value`, which an escape produced."""
    if isinstance(value, str):
        match = _CONTROLS.search(value)
        return None if match is None else match.group()
    if isinstance(value, dict):
        parts: list[YamlValue] = [*value.keys(), *value.values()]
    else:
        parts = value if isinstance(value, list) else []
    return next((c for part in parts if (c := find_control_character(part))), None)


def _reject_deep_nesting(block: str) -> None:
    openings = block.count("[") + block.count("{")
    indicators = block.count("-") + block.count("?") + block.count(":")
    if openings <= MAX_DEPTH and (
        indicators <= MAX_DEPTH or _MANY_INDICATORS.search(block) is None
    ):
        return
    line = _translate_errors(lambda: _find_too_deep_line(block))
    if line is not None:
        raise YamlReadError(_build_depth_finding(line))


def _find_too_deep_line(block: str) -> int | None:
    import yaml  # noqa: PLC0415 - costs more than a small listing; most skills never need it

    depth = 0
    for event in yaml.parse(block, Loader=_build_loader_class()):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            line: int = event.start_mark.line + 1
            return line
    return None


def _build_depth_finding(line: int) -> Finding:
    message = f"the frontmatter is nested deeper than {MAX_DEPTH} levels"
    return Finding(Code.YAML_DEPTH, message, line, "flatten it")


def _compose(block: str) -> Node | None:
    _reject_deep_nesting(block)

    def compose() -> Node | None:
        loader = _build_loader_class()(block)
        try:
            node: Node | None = loader.get_single_node()
        finally:
            loader.dispose()
        return node

    return _translate_errors(compose)


def _translate_errors(read: Callable[[], _T]) -> _T:
    import yaml  # noqa: PLC0415

    try:
        return read()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "unknown error"
        line = None if mark is None else mark.line + 1
        raise YamlReadError(_build_invalid_finding(problem, line), is_repairable=True) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise YamlReadError(_build_invalid_finding(str(error), None), is_repairable=True) from error


def _build_invalid_finding(problem: str, line: int | None) -> Finding:
    return Finding(
        Code.YAML_INVALID,
        f"the frontmatter is not valid YAML: {problem}",
        line,
        "quote values that contain ': ', '#' or quotes",
    )


@cache
def _build_loader_class() -> Any:  # noqa: ANN401 - PyYAML's loader classes have no common type
    import yaml  # noqa: PLC0415

    class TextNodes:
        """Resolver that leaves every scalar as text; the node reader finds typed ones."""

        def resolve(self, kind: type, _value: object, _implicit: object) -> str:
            if kind is yaml.ScalarNode:
                return _STR
            return _SEQ if kind is yaml.SequenceNode else _MAP

        def descend_resolver(self, _node: object, _index: object) -> None: ...

        def ascend_resolver(self) -> None: ...

    if yaml.__with_libyaml__:
        from yaml._yaml import CParser  # noqa: PLC0415 - PyYAML exports it nowhere else

        class CLoader(CParser, TextNodes): ...

        return CLoader
    from yaml.composer import Composer  # noqa: PLC0415
    from yaml.parser import Parser  # noqa: PLC0415
    from yaml.reader import Reader  # noqa: PLC0415
    from yaml.scanner import Scanner  # noqa: PLC0415

    class Loader(TextNodes, Reader, Scanner, Parser, Composer):
        def __init__(self, stream: str) -> None:
            Reader.__init__(self, stream)
            Scanner.__init__(self)
            Parser.__init__(self)
            Composer.__init__(self)

    return Loader


class _NodeReader:
    """Converts nodes to values and enforces the limits."""

    def __init__(self) -> None:
        self.visited: set[int] = set()
        self.result = YamlResult({}, [])

    def read(self, root: Any) -> YamlResult:  # noqa: ANN401 - PyYAML's nodes are untyped
        if root.id != "mapping":
            raise YamlReadError(
                Finding(
                    Code.YAML_NOT_A_MAP,
                    "the frontmatter is not a map of 'key: value' lines",
                    root.start_mark.line + 1,
                    "write at least 'name: …' and 'description: …'",
                )
            )
        self._check_node(root, 1)
        for key, node in self._read_pairs(root, 2):
            if key in TEXT_FIELDS and node.id == "scalar":
                value: YamlValue = self._read_text(key, node)
            elif key == "metadata" and node.id == "mapping":
                value = self._read_text_map(key, node)
            else:
                value = self._read_value(node, 2)
            self.result.fields[key] = value
        return self.result

    def _read_pairs(self, node: Any, depth: int) -> list[tuple[str, Any]]:  # noqa: ANN401
        pairs: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.id != "scalar":
                raise YamlReadError(
                    _build_invalid_finding("a key is not text", key_node.start_mark.line + 1)
                )
            self._check_node(key_node, depth)
            key = key_node.value
            if key in pairs:
                del pairs[key]
                line = key_node.start_mark.line + 1
                self.result.findings.append(build_duplicate_key_finding(key, line))
            pairs[key] = value_node
        return list(pairs.items())

    def _read_text(self, label: str, node: Any) -> str | None:  # noqa: ANN401
        self._check_node(node, 2)
        text: str = node.value
        if not node.style:
            if text in _NULLS:
                return None
            if TYPED_SCALAR.fullmatch(text):
                line = node.start_mark.line + 1
                self.result.findings.append(build_not_text_finding(label, text, line))
        return text

    def _read_text_map(self, label: str, node: Any) -> YamlValue:  # noqa: ANN401
        self._check_node(node, 2)
        fields: dict[str, YamlValue] = {}
        for key, child in self._read_pairs(node, 3):
            if child.id == "scalar":
                fields[key] = self._read_text(f"{label}.{key}", child)
            else:
                fields[key] = self._read_value(child, 3)
        return fields

    def _read_value(self, node: Any, depth: int) -> YamlValue:  # noqa: ANN401
        self._check_node(node, depth)
        if node.id == "scalar":
            text: str = node.value
            if node.style:
                return text
            return None if text in _NULLS else self._read_plain_scalar(text)
        if node.id == "sequence":
            return [self._read_value(child, depth + 1) for child in node.value]
        return {
            key: self._read_value(child, depth + 1)
            for key, child in self._read_pairs(node, depth + 1)
        }

    def _read_plain_scalar(self, text: str) -> Any:  # noqa: ANN401 - a subclass returns numbers too
        return BOOLEANS.get(text, text)

    def _check_node(self, node: Any, depth: int) -> None:  # noqa: ANN401
        line = node.start_mark.line + 1
        # The composer returns the same node again for an alias.
        if id(node) in self.visited:
            raise YamlReadError(
                Finding(Code.YAML_ALIAS, "the frontmatter uses an alias", line, "repeat the value")
            )
        self.visited.add(id(node))
        if depth > MAX_DEPTH:
            raise YamlReadError(_build_depth_finding(line))
        if len(self.visited) > MAX_NODES:
            message = f"the frontmatter contains more than {MAX_NODES} values"
            hint = "move data into another file of the skill"
            raise YamlReadError(Finding(Code.YAML_NODES, message, line, hint))
        if node.tag not in (_STR, _SEQ, _MAP):
            message = f"the frontmatter uses the tag {node.tag!r}"
            raise YamlReadError(Finding(Code.YAML_TAG, message, line, "remove it"))
        if node.id != "scalar" and node.flow_style:
            findings = self.result.findings
            if not any(finding.code is Code.YAML_FLOW for finding in findings):
                findings.append(build_flow_style_finding(line))


class _TypedNodeReader(_NodeReader):
    """Node reader that returns numbers as the core schema does."""

    def _read_plain_scalar(self, text: str) -> Any:  # noqa: ANN401 - a JSON value
        return parse_number(text) if NUMBER_PATTERN.fullmatch(text) else BOOLEANS.get(text, text)
