"""Hypothesis strategies: arbitrary bytes, files and YAML, and valid skills."""

from typing import NamedTuple, TypeAlias

from hypothesis import strategies as st

from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.yaml.quoting import quote_scalar
from tests.support.skills import make_skill_md

_Texts: TypeAlias = st.SearchStrategy[str]

# Text

# Characters that YAML readers disagree about: line breaks, odd spaces, marks, other digits.
ODD_CHARACTERS = "\x00\x07\x1b\x7f\x85\xa0\xad\u0301\u200b\u2028\u2029\u202e\u3000\ufeff\ufffe٣½ªǅ"
ALL_CHARACTERS = st.characters(exclude_categories=())  # lone surrogates too
any_text = st.text(ALL_CHARACTERS, max_size=40)
any_bytes = st.binary(max_size=200)
texts = st.one_of(
    any_text,
    st.text(ODD_CHARACTERS + "ab :#-'\"\\\n\t", max_size=12),
    st.text("ab :#-'\"[]{},|>?!&*%@`~=<\\.019_\n\t", max_size=12),
)
encodable_texts = texts.filter(lambda text: not any("\ud800" <= c <= "\udfff" for c in text))

# YAML-ish blocks

KEYS = [
    *["name", "description", "license", "compatibility", "metadata", "allowed-tools", "a"],
    *["b", "c-d", "_e", "A9", "version", "tags", "x_-", "disable-model-invocation", "Name"],
    "METADATA",
]
ODD_KEYS = [
    *["y", "n", "on", "No", "TRUE", "null", "nulls", "Null", "~", "<<", "", "=", "?", "-"],
    *["1", "1a", "é", "a.b", "'q'", '"q"', "*a", "&a", "!t", "[a]", "{a}", "a\xa0b"],
]
PLAIN_VALUES = [
    *["v", "two words", "Reads PDF files. Use when: asked", "a: b", "a:b", "a:", "a :"],
    *["a : b", "x: http://y", "a: b #c", "a: b:", "a: 'b'", "a: [b]", "a # c", "a#c"],
    *["http://x.y/z", "C:\\x", "a\\b", "it's", "a", "a-b", "(a)", "$x", "/x", ".x", "日本語"],
    *["日本: 語", "é", "ª", "ǅ", "٣", "٣ a", "½", "a\xa0b", "\xa0a", "a\xa0", "a\tb", "a \t"],
    *["\ta", "a\x85b", "a\u2028b", "a\u200b", "\ufeffa", "a\u0301", "😀", "a 😀"],
]
TYPED_VALUES = [
    *["1", "1.10", "0123", "0o17", "0x1F", "1e3", "1_000", "-1", "+1", ".5", ".inf"],
    *[".NaN", "12:30:45", "2024-01-01", "true", "True", "TRUE", "tRUE", "false", "yes"],
    *["No", "on", "OFF", "y", "n", "null", "Null", "NULL", "nULL", "~", "-", "?", ":", "="],
    *["<<", "!", "&", "*", "%", "@", "`", ",", "#", "...", "---", "--", "9-", "12:"],
]
QUOTED_VALUES = [
    *["'q'", '"q"', "''", '""', "'''", "''''", "'it''s'", "'a'''", "'a''b'", '"a\\"b"'],
    *['"a\\\\"', '"a\\n"', '"\\x41"', '"\\u0007"', '"\\ud800"', '"\\/"', '"\\\'"', "'\\'"],
    *["'é'", "'#'", "'a:b'", "'a", '"a', "a'", 'a"', "'a'b", '"a"b', "'a'#c", "'a: b'"],
    *['"a: b"', "'a # b'", '"a" #c', "'a' x", "' a '", '" a "', "'a' 'b'"],
]
FLOW_VALUES = [
    *["[]", "[ ]", "{}", "{ }", "[a]", "[a, b]", "[a,b]", "[ a , b ]", "[a,]", "[,]"],
    *["[a b]", "[a/b.c+d]", "[é]", "[1, true]", "[null, ~]", "[y]", "['a', \"b\"]"],
    *["['a, b']", "['a: b']", "['']", "['a''b']", '["a\\"b"]', "[a #c]", "[a] #c", "[a]#c"],
    *["[a] x", "[[a]]", "[a: b]", "{a: b}", "{a: b, c: d}", "{a:b}", "{a: }", "{a}"],
    *["{a: 1}", "{a: true}", "{y: 1}", "{a: b, a: c}", "{a: 'b'}", "{a: {b: c}}"],
    *["{'a': b}", "{a: b:c}", "[a", "{a", "a]", "[a}", "[-]", "[-a]", "[a-]", "[?]"],
    *["[a?]", "[*a]", "[!t a]"],
]
BLOCK_STYLES = ["|", ">", "|-", ">-", "|+", ">+", "|2", ">1-", "|x"]
INDENTS = ["", "", " ", "  ", "  ", "   ", "    ", "\t"]
BLANK_LINES = [
    "",
    " ",
    "  ",
    "#c",
    "# a: b",
    "  # c",
    " #",
    "\t",
    "---",
    "...",
    "--- a",
    "%YAML 1.1",
]
# Values that the fast reader supports; all others are edge cases.
EASY_VALUES = [
    *["v", "two words", "Reads PDF files.", "a:b", "a#c", "it's", "C:\\x", "日本語", "v  "],
    *["'q'", '"q"', "'it''s'", "'a: b'", '"a # b"', "''", '"a\\"b"', "[a, b]", "[]"],
    *["['a', 1]", "[a] # c", "{a: b}", "{}", "{a: 1, c: 'd'}", "true", "False", "1.10"],
    *["2024-01-01", "12:30"],
]

keys = st.one_of(st.sampled_from(KEYS), st.sampled_from(KEYS), st.sampled_from(ODD_KEYS))
_noise = st.text("ab :#-'\"[]{},|>?!&*~\\01é", max_size=8)
values = st.one_of(
    *map(st.sampled_from, (PLAIN_VALUES, TYPED_VALUES, QUOTED_VALUES, FLOW_VALUES)), _noise
)
_easy_keys = st.sampled_from(KEYS)
_easy_values = st.sampled_from(EASY_VALUES)
_tails = st.sampled_from(["", "", "", "", " ", "  ", " #c", "#c", "\t", ":"])
_steps = st.sampled_from(["  ", "  ", " ", "    "])


def _indent_below(step: str, lines: list[str]) -> str:
    return "".join(f"\n{step}{line}" for line in lines)


def _map_below(step: str, fields: dict[str, str]) -> str:
    return _indent_below(
        step, [f"{key}:{text}".replace("\n", f"\n{step}") for key, text in fields.items()]
    )


def _value_strategy(keys: st.SearchStrategy[str], values: st.SearchStrategy[str]) -> _Texts:
    """Return a strategy for the text after `key:`, on its line and below it."""
    inline = st.builds("{}{}".format, st.sampled_from([" ", " ", " ", "  "]), values)
    items = st.lists(st.builds("- {}".format, values), min_size=1, max_size=3)
    lists = st.builds(_indent_below, st.sampled_from(["", "  ", " "]), items)
    maps = st.recursive(
        st.one_of(inline, inline, lists, st.just("")),
        lambda inner: st.builds(
            _map_below, _steps, st.dictionaries(keys, inner, min_size=1, max_size=3)
        ),
        max_leaves=6,
    )
    lines = st.lists(values, min_size=1, max_size=4)
    texts = st.builds(
        "{}{}".format, st.sampled_from([" |", " >", " |-", " >-"]), _below_step(lines)
    )
    return st.one_of(inline, inline, inline, lists, maps, texts)


def _below_step(lines: st.SearchStrategy[list[str]]) -> _Texts:
    return st.builds(_indent_below, _steps, lines)


def _block(fields: dict[str, str], gaps: dict[str, str]) -> str:
    return "".join(f"{gaps.get(key, '')}{key}:{text}\n" for key, text in fields.items())


_gaps = st.dictionaries(_easy_keys, st.sampled_from(["\n", "# c\n", "#\n\n"]), max_size=1)
tidy_blocks = st.builds(
    _block,
    st.dictionaries(_easy_keys, _value_strategy(_easy_keys, _easy_values), min_size=1, max_size=5),
    _gaps,
)

_pairs = st.builds("{}:{}{}{}".format, keys, st.sampled_from([" ", " ", "  ", ""]), values, _tails)
_items = st.builds("-{}{}{}".format, st.sampled_from([" ", " ", "  ", ""]), values, _tails)
_styles = st.builds("{}: {}".format, keys, st.sampled_from(BLOCK_STYLES))
_any_lines = st.builds(
    str.__add__,
    st.sampled_from(INDENTS),
    st.one_of(_pairs, _items, values, _styles, st.sampled_from(BLANK_LINES)),
)


def _with_line(block: str, at: int, line: str) -> str:
    lines = block.split("\n")
    place = at % len(lines)
    return "\n".join([*lines[:place], line, *lines[place:]])


def _replace_characters(block: str, at: int, removed: int, added: str) -> str:
    place = at % (len(block) + 1)
    return block[:place] + added + block[place + removed :]


# Tidy blocks with one line, value or key that is an edge case of the fast reader.
edge_blocks = st.one_of(
    st.builds(_with_line, tidy_blocks, st.integers(0, 20), _any_lines),
    st.builds("{}{}: {}{}\n".format, tidy_blocks, st.sampled_from(["z", "é"]), values, _tails),
    st.builds("{}: {}{}\n{}".format, st.just("z"), values, _tails, tidy_blocks),
    st.builds("{}{}: x\n".format, tidy_blocks, keys),
    st.builds(_block, st.dictionaries(keys, _value_strategy(keys, values), max_size=2), _gaps),
)
# Tidy blocks with one typo.
disturbed_blocks = st.builds(
    _replace_characters,
    tidy_blocks,
    st.integers(0, 400),
    st.integers(0, 2),
    st.sampled_from(
        ["", " ", "  ", "\n", "\n\n", "\n  ", ":", ": ", "#", " #", "-", "- ", "'", '"']
    )
    | st.sampled_from(["[", "]", "{", "}", ",", "|", ">", "\\", "~", "é", "\t", "\x85", "\u2028"]),
)
line_blocks = st.builds(
    lambda lines, end: "\n".join(lines) + end,
    st.lists(_any_lines, max_size=6),
    st.sampled_from(["\n", "\n", "\n", "\n\n", "\n  \n", "\n#c\n", ""]),
)
yaml_blocks = st.one_of(tidy_blocks, edge_blocks, disturbed_blocks, line_blocks)

# Files

_breaks = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r"])
_fences = st.sampled_from(
    ["---", "---", "---", "---", "--- ", "---\t ", "----", "--", " ---", "--- x", "-- -", "—", ""]
)
_leads = st.sampled_from(
    ["", "", "", "\n", " \n\t\n", "\r\n\r", "x\n", "\ufeff", "\ufeff\n", "#\n"]
)
_bodies = st.one_of(
    st.sampled_from(["", "# Steps\n", "\n\ntext", "a\n---\nb\n", "---", "\x00", "é\r\n"]), any_text
)


def _file(pieces: tuple[str, str, str, str, str], breaks: list[str]) -> bytes:
    lead, opening, block, closing, body = pieces
    text = f"{lead}{opening}\n{block}{closing}\n{body}"
    parts = text.split("\n")
    chosen = [breaks[number % len(breaks)] for number in range(len(parts) - 1)] + [""]
    mixed = "".join(part + end for part, end in zip(parts, chosen, strict=True))
    return mixed.encode("utf-8", "surrogatepass")


skill_md_like = st.builds(
    _file,
    st.tuples(_leads, _fences, yaml_blocks, _fences, _bodies),
    st.one_of(st.just(["\n"]), st.just(["\r\n"]), st.lists(_breaks, min_size=1, max_size=5)),
)
# Files with some bytes removed, inserted or replaced.
damaged_files = st.builds(
    lambda data, at, removed, added: data[:at] + added + data[at + removed :],
    skill_md_like,
    st.integers(0, 120),
    st.integers(0, 6),
    st.binary(max_size=4),
)
files = st.one_of(any_bytes, skill_md_like, damaged_files)

# Skills

_letters = "abcxyz019"
names = st.one_of(
    st.from_regex(r"[a-z0-9]{1,12}(-[a-z0-9]{1,9}){0,4}", fullmatch=True),
    st.text(_letters, min_size=60, max_size=64),
    st.sampled_from(
        ["a", "0", "é", "日本語", "straße", "привет-мир", "refresh", "sources", "null"]
    ),
)
descriptions = st.one_of(
    st.text(st.characters(categories=("L", "N", "P", "S", "Zs")), min_size=1, max_size=80),
    st.sampled_from(["Reads PDF files: all of them.", "x" * 1024, "don't # stop", "- a", "true"]),
).filter(lambda text: bool(text.strip()))


class ValidSkill(NamedTuple):
    """A SKILL.md that follows the specification, and the name of its folder."""

    data: bytes
    folder: str


_optional_fields = st.fixed_dictionaries(
    {},
    optional={
        "license": descriptions.map(quote_scalar),
        "compatibility": st.sampled_from(['"Needs git"', "x" * 500]),
        "allowed_tools": st.sampled_from(["Read", "Bash(git add *) Read", "''"]),
        "metadata": st.sampled_from(["", "{}", "{a: b}", '\n  a: b\n  version: "1.0"']),
        "x_own_field": st.sampled_from(["1", "[a, b]", "{a: 1}", "null", "\n- a"]),
    },
)


valid_skills = st.builds(
    lambda name, description, fields: ValidSkill(make_skill_md(name, description, **fields), name),
    names,
    descriptions,
    _optional_fields,
)

# Findings

findings = st.builds(Finding, st.sampled_from(list(Code)), st.just("a finding"))
