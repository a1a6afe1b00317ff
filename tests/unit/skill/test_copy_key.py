from itertools import pairwise

import pytest

from skillhall._internal.skill.copy_key import copy_key, split_words

HEAD = "---\nname: pdf\ndescription: Fill in forms.\nlicense: MIT\n---\n"
TEXT = f"{HEAD}\n# Steps\n\nOpen the file – twice.\n"


@pytest.mark.parametrize(
    "copy",
    [
        TEXT.replace("name: pdf", "name: pdf-tools"),
        TEXT.replace("license: MIT\n", "metadata:\n  author: acme\n"),
        TEXT.replace("\n", "\r\n"),
        TEXT.replace("Open the", "open  the").replace(" – ", " - "),
        TEXT.replace("Fill in forms.", '"Fill in forms"'),
        TEXT.replace("Fill in forms.", ">-\n  Fill in\n  forms."),
        TEXT.replace("license: MIT\n", "").replace("name: pdf\n", "") + "\n\n",
        f"\ufeff{TEXT}",
    ],
    ids=["renamed", "fields", "crlf", "case", "quoted", "folded", "fewer-fields", "bom"],
)
def test_copies_that_differ_in_form_have_one_key(copy: str) -> None:
    assert copy_key(copy.encode()) == copy_key(TEXT.encode())


@pytest.mark.parametrize(
    "other",
    [
        TEXT.replace("twice", "once"),
        TEXT.replace("forms", "tables"),
        TEXT.replace("# Steps", "# Steps 2"),
    ],
)
def test_texts_with_other_words_have_other_keys(other: str) -> None:
    assert copy_key(other.encode()) != copy_key(TEXT.encode())


@pytest.mark.parametrize("data", [b"", b"---\nname: x\n---\n", b"--- !?", "— …\n".encode()])
def test_text_without_words_has_no_key(data: bytes) -> None:
    assert copy_key(data) == b""


def test_text_without_frontmatter_is_all_body() -> None:
    assert copy_key(b"# Notes") == copy_key(b"---\nname: notes\n---\nnotes")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't STOP -- now!", ["don", "t", "stop", "now"]),
        ("Résumé “naïve” Straße ＡＢＣ", ["resume", "naive", "strasse", "abc"]),
        ("Re\u0301sume\u0301", ["resume"]),
        ("生成文档。使用pdf工具", ["生", "成", "文", "档", "使", "用", "pdf", "工", "具"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("✅ done→next\u200b\xa0step", ["done", "next", "step"]),
        ("", []),
    ],
)
def test_words_have_no_case_accents_or_punctuation(text: str, words: list[str]) -> None:
    assert [word.decode() for word in split_words(text.encode())] == words


def test_bytes_that_are_not_utf8_separate_words() -> None:
    assert split_words(b"one\xff\xfetwo \xe9t\xc3\xa9") == [b"one", b"two", b"te"]


def test_text_with_many_different_characters_is_folded_in_the_same_way() -> None:
    cyrillic = "".join(map(chr, range(0x410, 0x450)))
    words = split_words(f"É {cyrillic} {cyrillic.lower()}".encode())
    assert words[0] == b"e"
    assert all(first == second for first, second in pairwise(words[1:]))
