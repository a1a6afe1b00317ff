import random
from array import array

import pytest

from skillhall._internal.embeddings.embedding_model import Vector, normalize_vector
from skillhall._internal.embeddings.vector_codec import encode_vector
from skillhall._internal.embeddings.vector_index import MIN_CANDIDATES, VectorIndex


def random_vector(generator: random.Random, dimensions: int = 64) -> Vector:
    return normalize_vector(generator.gauss(0, 1) for _ in range(dimensions))


def similarity(first: Vector, second: Vector) -> float:
    return sum(a * b for a, b in zip(first, second, strict=True))


def build_index(vectors: dict[str, Vector]) -> VectorIndex:
    index = VectorIndex(len(next(iter(vectors.values()))))
    for digest, vector in vectors.items():
        index.add(digest, encode_vector(vector))
    return index


def test_rank_returns_the_nearest_vectors_with_their_similarity() -> None:
    generator = random.Random(1)  # noqa: S311 - reproducible
    vectors = {f"{number:03}": random_vector(generator) for number in range(50)}
    query = random_vector(generator)
    ranked = build_index(vectors).rank(query, 5)
    exact = sorted(vectors, key=lambda digest: -similarity(vectors[digest], query))
    assert [digest for digest, _ in ranked] == exact[:5]
    for digest, score in ranked:
        assert score == pytest.approx(similarity(vectors[digest], query), abs=0.01)


def test_rank_finds_similar_vectors_among_many() -> None:
    generator = random.Random(2)  # noqa: S311 - reproducible
    vectors = {f"{n:05}": random_vector(generator) for n in range(5 * MIN_CANDIDATES)}
    query = random_vector(generator)
    similar = {}
    for number in range(10):
        noise = random_vector(generator)
        mixed = [a + 0.5 * b for a, b in zip(query, noise, strict=True)]
        similar[f"similar-{number}"] = normalize_vector(mixed)
    ranked = build_index(vectors | similar).rank(query, 10)
    assert {digest for digest, _ in ranked} == set(similar)


def test_rank_ignores_digests_that_are_unknown_or_not_asked_for() -> None:
    index = build_index({"a": array("f", [1, 0]), "b": array("f", [0.8, 0.6])})
    ranked = index.rank(array("f", [1, 0]), 5, ["b", "missing"])
    assert [digest for digest, _ in ranked] == ["b"]


def test_rank_orders_equal_vectors_by_digest() -> None:
    vector = array("f", [0.6, 0.8])
    index = build_index({"b": vector, "a": vector, "c": vector})
    assert [digest for digest, _ in index.rank(vector, 2)] == ["a", "b"]


@pytest.mark.parametrize(("query", "k"), [([1.0, 0.0], 0), ([1.0], 3), ([1.0, 0.0, 0.0], 3)])
def test_rank_is_empty_for_no_results_or_another_length(query: list[float], k: int) -> None:
    index = build_index({"a": array("f", [1, 0])})
    assert index.rank(array("f", query), k) == []


def test_add_ignores_vectors_of_another_length() -> None:
    index = build_index({"a": array("f", [1, 0])})
    index.add("b", encode_vector(array("f", [1, 0, 0])))
    assert len(index) == 1


@pytest.mark.parametrize("numbers", [[0.0, 0.0], [float("nan")], [float("inf")], [1e300], []])
def test_normalize_rejects_vectors_without_a_direction(numbers: list[float]) -> None:
    with pytest.raises(ValueError, match="a vector contains"):
        normalize_vector(numbers)
