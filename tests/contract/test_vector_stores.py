"""Contract of vector stores: an SQLite file, PostgreSQL, and PostgreSQL with pgvector."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import pytest
from sqlalchemy import text

from skillhall._internal.embeddings.embedding_model import Vector, normalize_vector
from skillhall._internal.embeddings.postgres_vectors import PostgresVectors
from skillhall._internal.embeddings.sqlite_vectors import SqliteVectors
from skillhall._internal.embeddings.vector_codec import encode_vector
from skillhall._internal.embeddings.vector_store import VectorStore
from skillhall._internal.storage.sql.engine import Database

OpenStore: TypeAlias = Callable[[int], VectorStore]
OpenDatabase: TypeAlias = Callable[[str], Database]

A, B, C = ("a" * 64, "b" * 64, "c" * 64)
LIMIT = 200_000
KINDS = ["sqlite", "postgres", "pgvector"]


def vector(*numbers: float) -> Vector:
    return normalize_vector(numbers)


VECTOR = encode_vector(vector(1, 2))
LONGER = encode_vector(vector(1, 2, 3))


@contextmanager
def without_vectors(database: Database) -> Iterator[None]:
    """Remove the table and the extension afterwards: other tests use the database, too."""
    try:
        yield
    finally:
        database.write(
            lambda connection: [
                connection.execute(text("DROP TABLE IF EXISTS embedding_vectors")),
                connection.execute(text("DROP SCHEMA IF EXISTS extensions CASCADE")),
            ]
        )


def install_pgvector(database: Database) -> None:
    """Install the extension in a schema that is not searched, as some providers do."""
    query = text("SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'")
    if not database.read(lambda connection: connection.execute(query).scalar()):
        pytest.skip("this PostgreSQL has no pgvector")

    def install(connection: object) -> None:
        connection.execute(text("CREATE SCHEMA extensions"))  # type: ignore[attr-defined]
        connection.execute(text("CREATE EXTENSION vector SCHEMA extensions"))  # type: ignore[attr-defined]

    database.write(install)


@pytest.fixture(params=KINDS)
def open_store(
    request: pytest.FixtureRequest, tmp_path: Path, open_database_of: OpenDatabase
) -> Iterator[OpenStore]:
    """Return a function that opens the store with a limit."""
    if request.param == "sqlite":
        yield lambda limit: SqliteVectors(str(tmp_path), limit)
        return
    database = open_database_of("postgres")
    with without_vectors(database):
        if request.param == "pgvector":
            install_pgvector(database)
        yield lambda limit: PostgresVectors(database, limit)


@pytest.fixture
def store(open_store: OpenStore) -> VectorStore:
    return open_store(LIMIT)


def read(store: VectorStore, model: str = "m", after: int = 0) -> list[str]:
    return [row.digest for row in store.read(model, after)]


def test_vectors_are_stored_by_model_and_digest(open_store: OpenStore) -> None:
    open_store(LIMIT).add("m", {A: VECTOR})
    store = open_store(LIMIT)
    assert [(row.digest, row.data) for row in store.read("m")] == [(A, VECTOR)]
    assert read(store, "other") == []


def test_find_missing_returns_each_unknown_digest_once_in_order(store: VectorStore) -> None:
    store.add("m", {B: VECTOR})
    many = [f"{number:064x}" for number in range(1200)]
    assert store.find_missing("m", [C, B, A, C]) == [C, A]
    assert store.find_missing("other", [B]) == [B]
    assert store.find_missing("m", many) == many


def test_read_returns_only_vectors_after_a_position(store: VectorStore) -> None:
    store.add("m", {A: VECTOR})
    last = [*store.read("m")][-1].position
    assert read(store, after=last) == []
    store.add("m", {A: VECTOR, B: VECTOR})
    assert read(store, after=last) == [B]


def test_vectors_of_another_length_replace_those_of_the_model(store: VectorStore) -> None:
    store.add("m", {A: VECTOR})
    store.add("other", {A: VECTOR})
    store.add("m", {B: LONGER})
    assert read(store) == [B]
    assert read(store, "other") == [A]
    assert store.open_ranking("m").read_dimensions() == 3


def test_prune_deletes_the_oldest_vectors_that_are_not_in_use(open_store: OpenStore) -> None:
    store = open_store(2)
    store.add("old", {A: VECTOR})
    store.add("m", {A: VECTOR})
    store.add("m", {B: VECTOR})
    store.add("m", {C: VECTOR})
    assert store.prune("m", {A}) == 2
    assert read(store) == [A, C]
    assert read(store, "old") == []
    assert store.prune("m", ()) == 0


def test_prune_keeps_vectors_in_use_over_the_limit(open_store: OpenStore) -> None:
    store = open_store(1)
    store.add("m", {A: VECTOR, B: VECTOR})
    assert store.prune("m", {A, B}) == 0


def test_clear_deletes_all_vectors(store: VectorStore) -> None:
    assert store.clear() == 0
    store.add("m", {A: VECTOR, B: VECTOR})
    assert dict(store.measure().vectors_by_model) == {"m": 2}
    assert store.measure().size > 0
    assert store.clear() == 2
    usage = store.measure()
    assert (usage.vectors, dict(usage.vectors_by_model)) == (0, {})


def test_ranking_orders_the_wanted_vectors_by_similarity(store: VectorStore) -> None:
    ranking = store.open_ranking("m")
    assert ranking.read_dimensions() == 0
    near, far = encode_vector(vector(1, 0.1)), encode_vector(vector(-1, 0.2))
    store.add("m", {A: far, B: near, C: VECTOR})
    store.add("other", {"d" * 64: near})
    assert ranking.read_dimensions() == 2
    assert ranking.rank(vector(1, 0), 3, [A, B, C, "d" * 64]) == [B, C, A]
    assert ranking.rank(vector(1, 0), 1, {A, C}) == [C]


def test_ranking_among_many_vectors_returns_as_many_as_wanted(store: VectorStore) -> None:
    generator = random.Random(1)  # noqa: S311 - reproducible
    vectors = {
        f"{number:064x}": encode_vector(vector(*(generator.gauss(0, 1) for _ in range(16))))
        for number in range(3000)
    }
    store.add("m", vectors)
    query = vector(*(generator.gauss(0, 1) for _ in range(16)))
    ranking = store.open_ranking("m")
    assert ranking.read_dimensions() == 16
    everything = ranking.rank(query, 10, vectors.keys())
    assert len(everything) == 10
    # The nearest ones belong to other catalogs.
    wanted = [digest for digest in vectors if digest not in set(everything)]
    others = ranking.rank(query, 10, wanted)
    assert len(others) == 10
    assert not {*others} & {*everything}


def test_vectors_from_before_pgvector_are_ranked_by_it(
    open_database_of: OpenDatabase,
) -> None:
    database = open_database_of("postgres")
    with without_vectors(database):
        plain = PostgresVectors(database)
        plain.add("m", {A: VECTOR})
        assert plain.pgvector_schema == ""
        install_pgvector(database)
        store = PostgresVectors(database)
        assert store.pgvector_schema == "extensions"
        assert store.rank_by_database("m", vector(1, 2), 1, None) == [A]
        plain.add("m", {B: VECTOR})  # by a server that has not noticed it yet
        assert [row.digest for row in store.read("m")] == [A, B]
