"""Traits of a SKILL.md: properties that clients treat differently."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.frontmatter_locator import BOM, decode_text
from skillhall._internal.skill.parser import parse_frontmatter, parse_skill
from skillhall._internal.skill.yaml.full_reader import locate_fields, read_full_yaml
from skillhall._internal.skill.yaml.lenient_reader import locate_fields_leniently
from skillhall._internal.skill.yaml.quoting import quote_scalar
from skillhall._internal.skill.yaml.values import (
    HIDDEN_FIELD,
    KNOWN_FIELDS,
    Fields,
    YamlValue,
    is_hidden_value,
)
from skillhall._internal.skill.yaml.yaml_findings import YamlReadError


class Trait(StrEnum):
    """Id of a trait, as in the rules of clients."""

    # The file and its delimiters.
    BOM = "bom"
    NOT_UTF8 = "not-utf8"
    CONTROL_CHARACTER = "control-character"
    ODD_LINE_BREAK = "odd-line-break"
    CR_LINE_BREAKS = "cr-line-breaks"
    LEADING_BLANK = "leading-blank"
    NO_FRONTMATTER = "no-frontmatter"
    TEXT_BEFORE_FRONTMATTER = "text-before-frontmatter"
    INDENTED_DELIMITER = "indented-delimiter"
    LONG_DELIMITER = "long-delimiter"
    UNCLOSED_FRONTMATTER = "unclosed-frontmatter"
    CLOSED_WITH_DOTS = "closed-with-dots"
    EMPTY_FRONTMATTER = "empty-frontmatter"
    DELIMITER_SPACES = "delimiter-spaces"
    NO_FINAL_NEWLINE = "no-final-newline"
    RULE_IN_FRONTMATTER = "rule-in-frontmatter"
    RULE_BEFORE_FIELDS = "rule-before-fields"
    # YAML.
    YAML_COLON = "yaml-colon"
    YAML_COLON_END = "yaml-colon-end"
    YAML_COLON_AND_QUOTE = "yaml-colon-and-quote"
    YAML_INVALID = "yaml-invalid"
    YAML_INVALID_START = "yaml-invalid-start"
    YAML_TAB = "yaml-tab"
    YAML_TAB_INDENT = "yaml-tab-indent"
    YAML_FLOW_ROOT = "yaml-flow-root"
    KEY_WITHOUT_SPACE = "key-without-space"
    YAML_NOT_A_MAP = "yaml-not-a-map"
    YAML_FLOW = "yaml-flow"
    YAML_ALIAS = "yaml-alias"
    YAML_TAG = "yaml-tag"
    YAML_OWN_TAG = "yaml-own-tag"
    YAML_INDENTED = "yaml-indented"
    DUPLICATE_KEY = "duplicate-key"
    KEY_CASE = "key-case"
    KEY_SPACE = "key-space"
    # The name.
    NAME_MISSING = "name-missing"
    NAME_EMPTY = "name-empty"
    NAME_NULL = "name-null"
    NAME_NOT_TEXT = "name-not-text"
    NAME_NUMBER = "name-number"
    NAME_FRACTION = "name-fraction"
    NAME_BOOLEAN = "name-boolean"
    NAME_DATE = "name-date"
    NAME_UPPERCASE = "name-uppercase"
    NAME_CHARACTERS = "name-characters"
    NAME_FILE_CHARACTERS = "name-file-characters"
    NAME_NOT_ASCII = "name-not-ascii"
    NAME_UNCASED = "name-uncased"
    NAME_MARKS = "name-marks"
    NAME_EDGE_HYPHEN = "name-edge-hyphen"
    NAME_DOUBLE_HYPHEN = "name-double-hyphen"
    NAME_TOO_LONG = "name-too-long"
    NAME_NOT_FOLDER = "name-not-folder"
    NAME_RESERVED_WORD = "name-reserved-word"
    NAME_PADDED = "name-padded"
    # The description.
    DESCRIPTION_MISSING = "description-missing"
    DESCRIPTION_EMPTY = "description-empty"
    DESCRIPTION_NULL = "description-null"
    DESCRIPTION_BLANK = "description-blank"
    DESCRIPTION_NOT_TEXT = "description-not-text"
    DESCRIPTION_NUMBER = "description-number"
    DESCRIPTION_BOOLEAN = "description-boolean"
    DESCRIPTION_DATE = "description-date"
    DESCRIPTION_FRACTION = "description-fraction"
    DESCRIPTION_YES = "description-yes"
    DESCRIPTION_TOO_LONG = "description-too-long"
    DESCRIPTION_MARKUP = "description-markup"
    DESCRIPTION_QUOTED = "description-quoted"
    DESCRIPTION_BLOCK = "description-block"
    DESCRIPTION_WRAPPED = "description-wrapped"
    DESCRIPTION_COMMENT = "description-comment"
    # Other fields.
    COMPATIBILITY_TOO_LONG = "compatibility-too-long"
    COMPATIBILITY_NOT_TEXT = "compatibility-not-text"
    LICENSE_NOT_TEXT = "license-not-text"
    ALLOWED_TOOLS_NOT_TEXT = "allowed-tools-not-text"
    ALLOWED_TOOLS_COMMAS = "allowed-tools-commas"
    METADATA_NOT_A_MAP = "metadata-not-a-map"
    METADATA_NULL = "metadata-null"
    METADATA_INTERNAL = "metadata-internal"
    UNKNOWN_FIELD = "unknown-field"
    RUNTIME_FIELD = "runtime-field"
    HIDDEN = "hidden"


# Traits that are findings of the parser.
_FINDING_TRAITS: Final[Mapping[Code, Trait]] = {
    Code.BOM: Trait.BOM,
    Code.NOT_UTF8: Trait.NOT_UTF8,
    Code.NUL_BYTE: Trait.CONTROL_CHARACTER,
    Code.CONTROL_CHARACTER: Trait.CONTROL_CHARACTER,
    Code.ODD_LINE_BREAK: Trait.ODD_LINE_BREAK,
    Code.LEADING_BLANK: Trait.LEADING_BLANK,
    Code.YAML_FLOW: Trait.YAML_FLOW,
    Code.YAML_ALIAS: Trait.YAML_ALIAS,
    Code.YAML_TAG: Trait.YAML_OWN_TAG,
    Code.DUPLICATE_KEY: Trait.DUPLICATE_KEY,
    Code.KEY_CASE: Trait.KEY_CASE,
    Code.NAME_UPPERCASE: Trait.NAME_UPPERCASE,
    Code.NAME_CHARACTERS: Trait.NAME_CHARACTERS,
    Code.NAME_MARKS: Trait.NAME_MARKS,
    Code.NAME_EDGE_HYPHEN: Trait.NAME_EDGE_HYPHEN,
    Code.NAME_DOUBLE_HYPHEN: Trait.NAME_DOUBLE_HYPHEN,
    Code.NAME_TOO_LONG: Trait.NAME_TOO_LONG,
    Code.NAME_NOT_FOLDER: Trait.NAME_NOT_FOLDER,
    Code.DESCRIPTION_TOO_LONG: Trait.DESCRIPTION_TOO_LONG,
    Code.COMPATIBILITY_TOO_LONG: Trait.COMPATIBILITY_TOO_LONG,
    Code.METADATA_NOT_A_MAP: Trait.METADATA_NOT_A_MAP,
}
# Without fields, there is nothing to say about them.
_UNREAD_CODES = frozenset(
    {
        Code.YAML_NOT_A_MAP,
        Code.YAML_ALIAS,
        Code.YAML_TAG,
        Code.YAML_INVALID,
        Code.NUL_BYTE,
        Code.CONTROL_CHARACTER,
        Code.ODD_LINE_BREAK,
    }
)
_REQUIRED = ("name", "description")
_RESERVED_WORDS = ("anthropic", "claude")
# Fields that Claude Code and its plugins define.
_RUNTIME_FIELDS = frozenset({"model", "context", "agent", "hooks", "user-invocable"})
_MARKUP = re.compile(r"</?[a-zA-Z][^>]*>")
_FILE_CHARACTERS = re.compile(r'[:\\/<>*?"|]')
# A plain value with a colon, which the client guide recommends to quote.
_COLON_VALUE = re.compile(r"^(\s*\w[\w-]*):\s+([^\"'\n].*:.*)$", re.MULTILINE)
# Plain scalars that YAML readers convert; see https://yaml.org/type/ and section 10 of YAML 1.2.
_NUMBER = re.compile(r"[-+]?(\d[\d_]*(\.\d*)?|\.\d+)([eE][-+]?\d+)?|0[xo][\da-fA-F]+")
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?([Tt ].*)?")
_NULL = re.compile(r"|~|null|Null|NULL")
_BOOLEAN = re.compile(r"true|True|TRUE|false|False|FALSE")
_YES = re.compile(r"yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF")
_TAG = re.compile(r"^[\w-]+[ \t]*:[ \t]+!!\w+", re.MULTILINE)
_KEY_TAB = re.compile(r"^[\w-]+:[ ]*\t", re.MULTILINE)
_KEY_SPACE = re.compile(r"^[\w-]+[ \t]+:", re.MULTILINE)


class _WrittenField(NamedTuple):
    """A field: its value, and how the value is written."""

    value: YamlValue
    written: str  # "" if the field is missing
    is_missing: bool
    comment: str  # what follows the value on its line

    @property
    def plain(self) -> str | None:
        """The text of a plain scalar; `None` if the value is quoted, a block or no scalar."""
        text = self.written
        is_plain = not isinstance(self.value, list | dict) and not text.startswith(tuple("\"'|>"))
        return text if is_plain and "\n" not in text else None


def find_traits(data: bytes, folder: str) -> frozenset[Trait]:
    """Return the traits of a SKILL.md in a folder of this name."""
    codes = {finding.code for finding in parse_skill(data, folder).findings}
    traits = {trait for code, trait in _FINDING_TRAITS.items() if code in codes}
    if re.search(rb"\r(?!\n)", data):
        traits.add(Trait.CR_LINE_BREAKS)
    head = parse_frontmatter(data)
    if head.block is None:
        traits.add(_find_missing_delimiter(data))
    elif Trait.NOT_UTF8 not in traits:
        start, end, body_start, *_ = head.block
        block = decode_text(data[start:end])
        fields = head.frontmatter.fields
        traits.update(_find_layout_traits(data[:start], block, data[end:body_start]))
        traits.update(_find_yaml_traits(block, codes))
        if not codes & _UNREAD_CODES:
            traits.update(_find_name_traits(_read_field("name", block, fields), codes))
            traits.update(_find_description_traits(_read_field("description", block, fields)))
            traits.update(_find_field_traits(fields, block))
    return frozenset(traits)


def _find_missing_delimiter(data: bytes) -> Trait:
    text = data.removeprefix(BOM)
    if re.match(rb"---[ \t]*\r?\n", text):
        is_dotted = re.search(rb"^\.\.\.[ \t]*\r?$", text, re.MULTILINE)
        return Trait.CLOSED_WITH_DOTS if is_dotted else Trait.UNCLOSED_FRONTMATTER
    if text.startswith(b"----"):
        return Trait.LONG_DELIMITER
    if re.match(rb"[ \t]+---[ \t]*\r?\n", text):
        return Trait.INDENTED_DELIMITER
    has_later = re.search(rb"^---[ \t]*\r?\n(?=name:|description:)", text, re.MULTILINE)
    return Trait.TEXT_BEFORE_FRONTMATTER if has_later else Trait.NO_FRONTMATTER


def _find_layout_traits(opening: bytes, block: str, closing: bytes) -> Iterator[Trait]:
    if not block.strip():
        yield Trait.EMPTY_FRONTMATTER
    if any(line.rstrip(b"\r\n")[-1:].isspace() for line in (opening, closing)):
        yield Trait.DELIMITER_SPACES
    if not closing.endswith((b"\n", b"\r")):
        yield Trait.NO_FINAL_NEWLINE
    if "---" in block:
        before = block.partition("---")[0]
        is_early = not all(re.search(rf"^{key}:", before, re.MULTILINE) for key in _REQUIRED)
        yield Trait.RULE_BEFORE_FIELDS if is_early else Trait.RULE_IN_FRONTMATTER


def _find_yaml_traits(block: str, codes: set[Code]) -> Iterator[Trait]:
    if re.search(r"^\t", block, re.MULTILINE):
        yield Trait.YAML_TAB_INDENT
    elif _KEY_TAB.search(block):
        yield Trait.YAML_TAB
    elif codes & {Code.YAML_REPAIRED, Code.YAML_INVALID}:
        yield _name_yaml_error(block)
    if Code.YAML_NOT_A_MAP in codes:
        without_space = re.search(r"^[\w-]+:[^\s]", block, re.MULTILINE)
        yield Trait.KEY_WITHOUT_SPACE if without_space else Trait.YAML_NOT_A_MAP
    if block.lstrip().startswith("{"):
        yield Trait.YAML_FLOW_ROOT
    if _TAG.search(block):
        yield Trait.YAML_TAG
    if block[:1].isspace() and block.strip():
        yield Trait.YAML_INDENTED
    if _KEY_SPACE.search(block):
        yield Trait.KEY_SPACE


def _name_yaml_error(block: str) -> Trait:
    """Tell errors apart by the repair that a client needs to read the block."""
    if _is_readable(_COLON_VALUE.sub(r'\1: "\2"', block)):
        is_at_end = re.search(r"^\w[\w-]*:[ ]+[^\"'\n]*:[ ]*$", block, re.MULTILINE)
        return Trait.YAML_COLON_END if is_at_end else Trait.YAML_COLON
    if _is_readable(_COLON_VALUE.sub(lambda match: f"{match[1]}: {quote_scalar(match[2])}", block)):
        return Trait.YAML_COLON_AND_QUOTE
    is_start = re.search(r"^[\w-]+:[ ]+[@`\[{]", block, re.MULTILINE)
    return Trait.YAML_INVALID_START if is_start else Trait.YAML_INVALID


def _is_readable(block: str) -> bool:
    try:
        read_full_yaml(block)
    except YamlReadError:
        return False
    return True


def _read_field(key: str, block: str, fields: Fields) -> _WrittenField:
    try:
        places = locate_fields(block)
    except YamlReadError:
        places = locate_fields_leniently(block)
    start, end = places.get(key, (0, 0, 0))[1:]
    written = block[start:end].partition(":")[2].strip()
    comment = block[end:].partition("\n")[0]
    return _WrittenField(fields.get(key), written, key not in fields, comment)


def _find_type_traits(field: _WrittenField, prefix: str) -> Iterator[Trait]:
    """Yield the traits about the type of a name or a description."""
    plain = field.plain
    if field.is_missing:
        yield Trait(f"{prefix}-missing")
    elif isinstance(field.value, list | dict):
        yield Trait(f"{prefix}-not-text")
    elif plain is not None and _NULL.fullmatch(plain):
        yield Trait(f"{prefix}-null")
    elif field.value == "":
        yield Trait(f"{prefix}-empty")
    elif plain is not None and _NUMBER.fullmatch(plain):
        yield Trait(f"{prefix}-number")
        if "." in plain:
            yield Trait(f"{prefix}-fraction")
    elif plain is not None and _BOOLEAN.fullmatch(plain):
        yield Trait(f"{prefix}-boolean")
    elif plain is not None and _DATE.fullmatch(plain):
        yield Trait(f"{prefix}-date")


def _find_name_traits(field: _WrittenField, codes: set[Code]) -> Iterator[Trait]:
    yield from _find_type_traits(field, "name")
    name = field.value if isinstance(field.value, str) else ""
    if name != name.strip():
        yield Trait.NAME_PADDED
    if _FILE_CHARACTERS.search(name):
        yield Trait.NAME_FILE_CHARACTERS
    if not name.isascii():
        yield Trait.NAME_NOT_ASCII
    has_uncased = any(unicodedata.category(letter) == "Lo" for letter in name)
    if has_uncased and Code.NAME_MARKS not in codes:
        yield Trait.NAME_UNCASED
    if any(word in name.lower() for word in _RESERVED_WORDS):
        yield Trait.NAME_RESERVED_WORD


def _find_description_traits(field: _WrittenField) -> Iterator[Trait]:
    yield from _find_type_traits(field, "description")
    text = field.value if isinstance(field.value, str) else ""
    if text and not text.strip():
        yield Trait.DESCRIPTION_BLANK
    if field.plain is not None and _YES.fullmatch(field.plain):
        yield Trait.DESCRIPTION_YES
    if _MARKUP.search(text):
        yield Trait.DESCRIPTION_MARKUP
    if field.written.startswith(("'", '"')) and text.strip() and text != field.written:
        yield Trait.DESCRIPTION_QUOTED
    elif field.written.startswith(("|", ">")) and text != field.written:
        yield Trait.DESCRIPTION_BLOCK
    elif "\n" in field.written and isinstance(field.value, str):
        yield Trait.DESCRIPTION_WRAPPED
    if field.plain is not None and " #" in field.comment:
        yield Trait.DESCRIPTION_COMMENT


def _find_field_traits(fields: Fields, block: str) -> Iterator[Trait]:
    if isinstance(fields.get("compatibility"), list | dict):
        yield Trait.COMPATIBILITY_NOT_TEXT
    text = _read_field("license", block, fields)
    if isinstance(text.value, list | dict) or (text.plain and _NUMBER.fullmatch(text.plain)):
        yield Trait.LICENSE_NOT_TEXT
    tools = fields.get("allowed-tools")
    if isinstance(tools, list | dict):
        yield Trait.ALLOWED_TOOLS_NOT_TEXT
    elif isinstance(tools, str) and "," in tools:
        yield Trait.ALLOWED_TOOLS_COMMAS
    metadata = fields.get("metadata")
    if "metadata" in fields and metadata is None:
        yield Trait.METADATA_NULL
    if isinstance(metadata, dict) and is_hidden_value(metadata.get("internal")):
        yield Trait.METADATA_INTERNAL
    unknown = fields.keys() - KNOWN_FIELDS - {HIDDEN_FIELD}
    if {key for key in unknown if key.lower() not in KNOWN_FIELDS} - _RUNTIME_FIELDS:
        yield Trait.UNKNOWN_FIELD
    if unknown & _RUNTIME_FIELDS:
        yield Trait.RUNTIME_FIELD
    if is_hidden_value(fields.get(HIDDEN_FIELD)):
        yield Trait.HIDDEN
