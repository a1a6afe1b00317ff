"""Odd skills, each in a folder of its own; clients disagree about most of them."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

_TEXT = "description: Counts words in files."
_BODY = "\n# Steps\n\nRead the file, then write the report.\n"
_MAX_DESCRIPTION = "Counts words in files. Use it for reports. ".ljust(1023, "x") + "."


def _skill(*lines: str, body: str = _BODY) -> bytes:
    return "\n".join(["---", *lines, "---", body]).encode()


def _named(folder: str, *lines: str) -> tuple[str, bytes]:
    return folder, _skill(f"name: {folder}", _TEXT, *lines)


def _valid_skills() -> Iterator[tuple[str, bytes]]:
    yield _named("plain")
    yield _named("with-license", "license: MIT")
    yield _named(
        "all-fields", "license: MIT", "compatibility: Needs git", "allowed-tools: Read Bash"
    )
    yield "quoted", _skill('name: "quoted"', "description: 'Counts words: all of them.'")
    yield "folded", _skill("name: folded", "description: >-", "  Counts words", "  in files.")
    yield "literal", _skill("name: literal", "description: |", "  Counts words.", "  Prints them.")
    yield "wrapped", _skill("name: wrapped", "description: Counts words", "  in all files.")
    yield (
        "description-at-limit",
        _skill("name: description-at-limit", f"description: {_MAX_DESCRIPTION}"),
    )
    yield _named("a" * 64)
    yield "a", _skill("name: a", _TEXT)
    yield "body-empty", _skill("name: body-empty", _TEXT, body="")
    yield "no-final-newline", f"---\nname: no-final-newline\n{_TEXT}\n---".encode()
    yield "crlf", _skill("name: crlf", _TEXT).replace(b"\n", b"\r\n")
    yield "comment", _skill("# The name of the folder", "name: comment", _TEXT)
    yield _named("metadata-text", "metadata:", '  version: "1.0"')
    yield "order", _skill(_TEXT, "name: order")


def _odd_names() -> Iterator[tuple[str, bytes]]:
    yield "name-missing", _skill(_TEXT)
    yield "name-empty", _skill('name: ""', _TEXT)
    yield "name-null", _skill("name:", _TEXT)
    yield "name-list", _skill("name: [a, b]", _TEXT)
    yield "123", _skill("name: 123", _TEXT)
    yield "true", _skill("name: true", _TEXT)
    yield "2024-01-02", _skill("name: 2024-01-02", _TEXT)
    yield "1.10", _skill("name: 1.10", _TEXT)
    yield "other-folder", _skill("name: another-name", _TEXT)
    yield _named("Upper-Case")
    yield "lower-case", _skill("name: Lower-Case", _TEXT)
    yield _named("under_score")
    yield _named("with space")
    yield "with-space", _skill("name: With Space", _TEXT)
    yield _named("-edge-hyphen")
    yield _named("edge-hyphen-")
    yield _named("double--hyphen")
    yield _named("with.dot")
    yield "colon-name", _skill("name: team:colon-name", _TEXT)
    yield _named("b" * 65)
    yield _named("zähler")
    yield _named("统计")
    yield _named("नमस्ते")
    yield _named("claude-helper")
    yield "tag-name", _skill("name: <b>tag-name</b>", _TEXT)
    yield "padded-name", _skill('name: " padded-name "', _TEXT)


def _odd_descriptions() -> Iterator[tuple[str, bytes]]:
    yield "description-missing", _skill("name: description-missing")
    yield "description-empty", _skill("name: description-empty", 'description: ""')
    yield "description-null", _skill("name: description-null", "description:")
    yield "description-spaces", _skill("name: description-spaces", 'description: "   "')
    yield (
        "description-list",
        _skill("name: description-list", "description:", "  - Counts", "  - Prints"),
    )
    yield "description-map", _skill("name: description-map", "description:", "  en: Counts words")
    yield "description-number", _skill("name: description-number", "description: 42")
    yield "description-true", _skill("name: description-true", "description: yes")
    yield "description-long", _skill("name: description-long", f"description: {_MAX_DESCRIPTION}y")
    yield "description-tag", _skill("name: description-tag", "description: Reads <input> elements.")
    yield (
        "description-colon",
        _skill("name: description-colon", "description: Use when: words are counted."),
    )
    yield (
        "description-hash",
        _skill("name: description-hash", "description: Counts #1 and # 2 of it."),
    )
    yield "description-at", _skill("name: description-at", "description: @files are counted.")
    yield "description-quote", _skill("name: description-quote", 'description: "Count" all words.')
    yield (
        "description-bracket",
        _skill("name: description-bracket", "description: [beta] Counts words."),
    )
    yield (
        "description-star",
        _skill("name: description-star", "description: *All* words are counted."),
    )
    yield (
        "description-percent",
        _skill("name: description-percent", "description: %words are counted."),
    )
    yield (
        "description-backtick",
        _skill("name: description-backtick", "description: `wc` in words."),
    )
    yield (
        "description-rule",
        _skill("name: description-rule", "description: Counts --- and prints."),
    )
    yield "description-emoji", _skill("name: description-emoji", "description: Counts 🎉 words.")
    yield (
        "description-paragraphs",
        _skill("name: description-paragraphs", "description: >", "  Counts.", "", "  Prints."),
    )
    yield "description-lines", _skill("name: description-lines", 'description: "Counts\\nwords."')


def _odd_fields() -> Iterator[tuple[str, bytes]]:
    yield _named("field-unknown", "version: 1.0.0")
    yield _named("field-runtime", "model: sonnet", "user-invocable: true")
    yield _named("hidden", "disable-model-invocation: true")
    yield _named("compatibility-long", f"compatibility: {'x' * 501}")
    yield _named("compatibility-empty", 'compatibility: ""')
    yield _named("compatibility-list", "compatibility:", "  - git")
    yield _named("license-number", "license: 2")
    yield _named("tools-list", "allowed-tools:", "  - Read", "  - Bash")
    yield _named("tools-flow", "allowed-tools: [Read, Bash]")
    yield _named("tools-commas", "allowed-tools: Read, Bash")
    yield _named("metadata-number", "metadata:", "  version: 1.0")
    yield _named("metadata-nested", "metadata:", "  a:", "    b: c")
    yield _named("metadata-string", "metadata: none")
    yield _named("metadata-internal", "metadata:", "  internal: true")
    yield "keys-upper", _skill("Name: keys-upper", "Description: Counts words in files.")
    yield "key-twice", _skill("name: key-twice", _TEXT, _TEXT)


def _odd_yaml() -> Iterator[tuple[str, bytes]]:
    yield "anchor", _skill("name: anchor", "description: &d Counts words.", "license: *d")
    yield "yaml-tag", _skill("name: yaml-tag", "description: !!str Counts words.")
    yield "yaml-tag-own", _skill("name: yaml-tag-own", "description: !own Counts words.")
    yield "flow-map", _skill("{name: flow-map, description: Counts words.}")
    yield "tab-indent", _skill("name: tab-indent", _TEXT, "metadata:", "\tversion: one")
    yield "tab-after-colon", _skill("name:\ttab-after-colon", _TEXT)
    yield "no-space", _skill("name:no-space", "description:Counts words.")
    yield "space-before-colon", _skill("name : space-before-colon", "description : Counts words.")
    yield "indented", _skill("  name: indented", "  description: Counts words.")
    yield "yaml-list", _skill("- name: yaml-list", "- description: Counts words.")


def _odd_delimiters() -> Iterator[tuple[str, bytes]]:
    yield "frontmatter-empty", b"---\n---\n# Steps\n"
    yield "frontmatter-none", b"# Steps\n\nCount the words.\n"
    yield "frontmatter-unclosed", f"---\nname: frontmatter-unclosed\n{_TEXT}\n\n# Steps\n".encode()
    yield "file-empty", b""
    yield "fence-dots", f"---\nname: fence-dots\n{_TEXT}\n...\n# Steps\n".encode()
    yield "fence-long", f"-----\nname: fence-long\n{_TEXT}\n-----\n# Steps\n".encode()
    yield "fence-spaces", f"---  \nname: fence-spaces\n{_TEXT}\n---  \n# Steps\n".encode()
    yield "fence-indented", f" ---\nname: fence-indented\n{_TEXT}\n ---\n# Steps\n".encode()
    yield "blank-first", b"\n" + _skill("name: blank-first", _TEXT)
    yield "heading-first", b"# Title\n" + _skill("name: heading-first", _TEXT)
    yield "bom", b"\xef\xbb\xbf" + _skill("name: bom", _TEXT)
    yield (
        "not-utf8",
        _skill("name: not-utf8", "description: Z\u00e4hlt.").decode().encode("latin-1"),
    )
    yield "comment-rule", _skill("name: comment-rule", "# ---", _TEXT)
    yield "rule-in-body", _skill("name: rule-in-body", _TEXT, body="\n# Steps\n\n---\n\nMore.\n")
    yield "carriage-returns", _skill("name: carriage-returns", _TEXT).replace(b"\n", b"\r")


def _more_skills() -> Iterator[tuple[str, bytes]]:
    """Yield skills that were not used to write the rules, but to test them."""
    for mark, value in {
        "brace": "{beta} Counts words.",
        "question": "? Counts words.",
        "dash": "- Counts words.",
        "pipe": "| Counts words.",
        "comma": ", counts words.",
        "exclamation": "! Counts words.",
        "ampersand": "& Counts words.",
        "single-quote": "'Count' all words.",
        "url": "Counts words of https://example.com/a.",
        "colon-end": "Counts these words:",
        "colon-quote": 'Use "wc": it counts words.',
        "colons": "Use when: counting, or: printing.",
        "boolean": "true",
        "float": "1.50",
        "date": "2024-01-02",
        "hash-first": "# Counts words.",
        "next-line": "Counts \x85 words.",
        "line-separator": "Counts \u2028 words.",
        "control": "Counts \x07 words.",
        "nul": "Counts \0 words.",
    }.items():
        yield f"value-{mark}", _skill(f"name: value-{mark}", f"description: {value}")
    yield "name-colon", _skill("name: name: colon", _TEXT)
    yield _named("license-colon", "license: MIT: see LICENSE")
    yield "both-numbers", _skill("name: 7", "description: 8")
    yield "upper-and-long", _skill("name: Upper_And_Long", f"description: {_MAX_DESCRIPTION}y")
    yield "bom-and-unknown", b"\xef\xbb\xbf" + _skill("name: bom-and-unknown", _TEXT, "tags: a")
    yield "crlf-colon", _skill("name: crlf-colon", "description: Use: it.").replace(b"\n", b"\r\n")
    yield _named("license-quoted", 'license: "2"')
    yield _named("license-list", "license: [MIT]")
    yield _named("metadata-null", "metadata:")
    yield _named("tools-null", "allowed-tools:")
    yield "name-twice", _skill("name: name-twice", _TEXT, "name: name-twice")
    yield "empty-line-inside", _skill("name: empty-line-inside", "", _TEXT)
    yield _named("document-end", "...")
    yield _named("long-line", f"license: {'y' * 5000}")
    yield (
        "non-breaking-space",
        _skill("name: non-breaking-space", "description:\u00a0Counts words."),
    )
    yield "two-spaces", _skill("name:  two-spaces", "description:   Counts words in files.")
    yield "trailing-spaces", _skill("name: trailing-spaces  ", f"{_TEXT}  ")
    yield "tools-map", _skill("name: tools-map", _TEXT, "allowed-tools:", "  read: true")
    yield _named("tags-list", "tags: [a, b]")


# Descriptions that a person reads in files that our parser rejects, or whose description it lacks.
WRITTEN_DESCRIPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "anchor": "Counts words.",
        "yaml-tag-own": "Counts words.",
        "not-utf8": "Zählt.",
        "no-space": "Counts words.",
        "keys-upper": "Counts words in files.",
        "frontmatter-unclosed": "Counts words in files.",
        "fence-dots": "Counts words in files.",
        "fence-long": "Counts words in files.",
        "fence-indented": "Counts words in files.",
        "heading-first": "Counts words in files.",
        "value-next-line": "Counts words.",
        "value-line-separator": "Counts words.",
        "value-control": "Counts \x07 words.",
        "value-nul": "Counts \0 words.",
    }
)
_GROUPS = (
    _valid_skills,
    _odd_names,
    _odd_descriptions,
    _odd_fields,
    _odd_yaml,
    _odd_delimiters,
    _more_skills,
)
ODD_SKILLS: Mapping[str, bytes] = MappingProxyType(
    {folder: data for group in _GROUPS for folder, data in group()}
)


def write_odd_skills(root: Path) -> None:
    """Write each skill into a folder of `root`."""
    for folder, data in ODD_SKILLS.items():
        (root / folder).mkdir(parents=True)
        (root / folder / "SKILL.md").write_bytes(data)
