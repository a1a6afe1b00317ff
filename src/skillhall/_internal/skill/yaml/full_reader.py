"""Full YAML reader: converts the nodes that PyYAML composes to values.

It rejects tags and aliases, constructs no objects, and limits depth and size. Scalars other than
booleans and nulls are returned as the author wrote them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.yaml.values import (
    BOOLEANS,
    NUMBER_PATTERN,
    TEXT_FIELDS,
    YamlValue,
    parse_number,
)
from skillhall._internal.skill.yaml.yaml_findings import (
    MAX_DEPTH,
    MAX_NODES,
    PLAIN_TAGS,
    TYPED_SCALAR,
    YamlReadError,
    YamlResult,
    build_depth_finding,
    build_duplicate_key_finding,
    build_flow_style_finding,
    build_invalid_finding,
    build_not_text_finding,
)

if TYPE_CHECKING:
    from yaml import Node

    from skillhall._internal.skill.yaml.values import JsonValue

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_AMBIGUOUS_LINE_BREAKS = re.compile("[\x85\u2028\u2029]")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f\x80-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")


def read_full_yaml(block: str) -> YamlResult:
    """Read the fields of `block`. Raises: YamlReadError."""
    reject_hostile_characters(block)
    root = _compose(block)
    return YamlResult({}, []) if root is None else _NodeReader().read(root)


def read_typed_yaml(block: str) -> dict[str, JsonValue]:
    """Read the fields of `block`, with numbers as numbers. Raises: YamlReadError."""
    reject_hostile_characters(block)
    root = _compose(block)
    return {} if root is None else {**_NodeReader(with_numbers=True).read(root).fields}


def locate_fields(block: str) -> dict[str, tuple[int, int, int]]:
    """Locate each field: key start, key end, value end. Raises: YamlReadError."""
    # Here, `block` has the line breaks of the file; a CR would be rejected as a control character.
    reject_hostile_characters(block.replace("\r", ""))
    root: Any = _compose(block)
    if root is None:
        return {}
    _NodeReader().read(root)  # raises if the root is not a map or a limit is exceeded
    spans = {}
    for key, value in root.value:
        # PyYAML ends a block list or map at the next token, so the end of its last item is used.
        last = value
        while last.id != "scalar" and not last.flow_style and last.value:
            last = last.value[-1][1] if last.id == "mapping" else last.value[-1]
        spans[key.value] = (key.start_mark.index, key.end_mark.index, last.end_mark.index)
    return spans


def _compose(block: str) -> Node | None:
    # Few skills need PyYAML, whose import would add 20 ms of CPU to the 45 ms of a small listing.
    from skillhall._internal.skill.yaml.node_composer import compose_nodes  # noqa: PLC0415

    return compose_nodes(block)


def reject_hostile_characters(block: str) -> None:
    """Reject control characters and ambiguous line breaks. Raises: YamlReadError."""
    if block.replace("\n", "").isprintable():
        return
    if (match := _AMBIGUOUS_LINE_BREAKS.search(block)) is not None:
        code = Code.ODD_LINE_BREAK
        message = (
            f"the frontmatter contains {match.group()!r}, "
            "which only some parsers treat as a line break"
        )
    elif (match := _CONTROLS.search(block)) is not None:
        code = Code.CONTROL_CHARACTER
        message = f"the frontmatter contains the control character {match.group()!r}"
    else:
        return
    line = block.count("\n", 0, match.start()) + 1
    raise YamlReadError(Finding(code, message, line, "remove the character"))


def find_control_character(value: YamlValue) -> str | None:
    """Return the first control character in `value`, at any depth, or `None`."""
    if isinstance(value, str):
        match = _CONTROLS.search(value)
        return None if match is None else match.group()
    if isinstance(value, dict):
        parts: list[YamlValue] = [*value.keys(), *value.values()]
    else:
        parts = value if isinstance(value, list) else []
    return next((c for part in parts if (c := find_control_character(part))), None)


class _NodeReader:
    """Converts nodes to values and enforces the limits."""

    def __init__(self, *, with_numbers: bool = False) -> None:
        self.with_numbers = with_numbers  # convert numbers as the YAML core schema does
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
            if key == "metadata" and node.id == "mapping":
                self._check_node(node, 2)
                self.result.fields[key] = {
                    inner: self._read_text_or_value(f"{key}.{inner}", child, 3)
                    for inner, child in self._read_pairs(node, 3)
                }
            elif key in TEXT_FIELDS:
                self.result.fields[key] = self._read_text_or_value(key, node, 2)
            else:
                self.result.fields[key] = self._read_value(node, 2)
        return self.result

    def _read_pairs(self, node: Any, depth: int) -> list[tuple[str, Any]]:  # noqa: ANN401
        pairs: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if key_node.id != "scalar":
                raise YamlReadError(build_invalid_finding("a key is not text", line))
            self._check_node(key_node, depth)
            key = key_node.value
            if key in pairs:
                del pairs[key]
                self.result.findings.append(build_duplicate_key_finding(key, line))
            pairs[key] = value_node
        return list(pairs.items())

    def _read_text_or_value(self, label: str, node: Any, depth: int) -> YamlValue:  # noqa: ANN401
        """Read a value that should be text; report a number, boolean or date as a finding."""
        if node.id != "scalar" or node.style or node.value in _NULLS:
            value: YamlValue = self._read_value(node, depth)
            return value
        self._check_node(node, depth)
        text: str = node.value
        if TYPED_SCALAR.fullmatch(text):
            line = node.start_mark.line + 1
            self.result.findings.append(build_not_text_finding(label, text, line))
        return text

    def _read_value(self, node: Any, depth: int) -> Any:  # noqa: ANN401 - also numbers
        self._check_node(node, depth)
        if node.id == "sequence":
            return [self._read_value(child, depth + 1) for child in node.value]
        if node.id == "mapping":
            pairs = self._read_pairs(node, depth + 1)
            return {key: self._read_value(child, depth + 1) for key, child in pairs}
        text: str = node.value
        if node.style:
            return text
        if self.with_numbers and NUMBER_PATTERN.fullmatch(text):
            return parse_number(text)
        return None if text in _NULLS else BOOLEANS.get(text, text)

    def _check_node(self, node: Any, depth: int) -> None:  # noqa: ANN401
        line = node.start_mark.line + 1
        # The composer returns the same node again for an alias.
        if id(node) in self.visited:
            raise YamlReadError(
                Finding(Code.YAML_ALIAS, "the frontmatter uses an alias", line, "repeat the value")
            )
        self.visited.add(id(node))
        if depth > MAX_DEPTH:
            raise YamlReadError(build_depth_finding(line))
        if len(self.visited) > MAX_NODES:
            message = f"the frontmatter contains more than {MAX_NODES} values"
            hint = "move data into another file of the skill"
            raise YamlReadError(Finding(Code.YAML_NODES, message, line, hint))
        if node.tag not in PLAIN_TAGS:
            message = f"the frontmatter uses the tag {node.tag!r}"
            raise YamlReadError(Finding(Code.YAML_TAG, message, line, "remove it"))
        if node.id != "scalar" and node.flow_style:
            findings = self.result.findings
            if not any(finding.code is Code.YAML_FLOW for finding in findings):
                findings.append(build_flow_style_finding(line))
