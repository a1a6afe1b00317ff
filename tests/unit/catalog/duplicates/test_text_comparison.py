from random import Random

import pytest

from skillhall._internal.catalog.duplicates.text_comparison import (
    SAMPLE_SIZE,
    TextComparison,
    compare_phrases,
    hash_phrases,
    read_words,
    sketch_words,
)

VOCABULARY = [f"word{number}".encode() for number in range(500)]


def make_words(seed: int, count: int) -> list[bytes]:
    return Random(seed).choices(VOCABULARY, k=count)  # noqa: S311 - test data


def compare(words: list[bytes], other: list[bytes]) -> TextComparison:
    return compare_phrases(hash_phrases(words), hash_phrases(other))


def edit_words(words: list[bytes], share: float, seed: int = 1) -> list[bytes]:
    rng = Random(seed)  # noqa: S311 - test data
    return [rng.choice(VOCABULARY) if rng.random() < share else word for word in words]


def test_compared_words_are_those_of_the_description_and_the_body() -> None:
    data = b"---\nname: pdf\ndescription: Fills forms.\nlicense: MIT\n---\n# Open it\n"
    assert read_words(data) == [b"fills", b"forms", b"open", b"it"]


@pytest.mark.parametrize(
    ("first", "second", "similarity", "containment"),
    [
        ("a b c d", "a b c d", 1.0, 1.0),
        ("a b c d", "e f g h", 0.0, 0.0),
        ("a b c x", "a b c y z", 6 / 9, 0.75),
        ("a b c", "x a b c y a b c z", 9 / 12, 1.0),
        ("a b c d", "d c b a", 0.0, 0.0),
        ("a b", "a b", 0.0, 0.0),
        ("", "", 0.0, 0.0),
        ("", "a b c", 0.0, 0.0),
    ],
)
def test_similarity_is_the_share_of_words_in_shared_phrases(
    first: str, second: str, similarity: float, containment: float
) -> None:
    comparison = compare(first.encode().split(), second.encode().split())
    assert comparison.similarity == pytest.approx(similarity)
    assert comparison.containment == pytest.approx(containment)


@pytest.mark.parametrize(("share", "lowest", "highest"), [(0.05, 0.9, 0.97), (0.2, 0.65, 0.8)])
def test_similarity_of_an_edited_text_is_near_the_share_of_unchanged_words(
    share: float, lowest: float, highest: float
) -> None:
    words = make_words(1, 2000)
    assert lowest < compare(words, edit_words(words, share)).similarity < highest


def test_sketch_of_any_text_has_about_the_same_size() -> None:
    for count in (100, 500, 3000):
        assert SAMPLE_SIZE / 2 < len(sketch_words(make_words(1, count))) < SAMPLE_SIZE * 2
    assert len(sketch_words(make_words(1, 20))) == 16


@pytest.mark.parametrize("words", [[], [b"a"], [b"a", b"b", b"c", b"d"]])
def test_text_shorter_than_a_shingle_has_an_empty_sketch(words: list[bytes]) -> None:
    assert sketch_words(words) == []


def test_sketches_of_an_edited_text_share_hashes() -> None:
    words = make_words(1, 1000)
    sketch = set(sketch_words(words))
    assert sketch == set(sketch_words(words))
    assert len(sketch.intersection(sketch_words(edit_words(words, 0.2)))) > 4
    assert not sketch.intersection(sketch_words(make_words(2, 1000)))


def test_sketch_of_a_long_text_shares_hashes_with_a_short_part_of_it() -> None:
    words = make_words(1, 4000)
    assert len(set(sketch_words(words)).intersection(sketch_words(words[500:1500]))) > 4
