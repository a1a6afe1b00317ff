import base64
import logging
import math
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skillhall._internal.catalog.search.search_index import SearchIndex
from skillhall._internal.embeddings.embedding_model import EmbeddingFailed
from skillhall._internal.embeddings.embedding_text import build_embedding_text, compute_text_digest
from skillhall._internal.embeddings.embeddings_api import MAX_RESPONSE_BYTES, EmbeddingsApi
from skillhall._internal.embeddings.semantic_ranking import RETRY_INTERVAL, ModelRanking
from skillhall._internal.embeddings.sqlite_vectors import SqliteVectors
from skillhall._internal.embeddings.vector_codec import encode_vector
from skillhall._internal.net.addresses import PUBLIC_ONLY
from skillhall._internal.settings import Secret, Settings
from skillhall._internal.wiring.embedding_services import open_embeddings, open_semantic_ranking
from skillhall.errors import ConfigInvalid
from tests.support.catalogs import make_catalog_skill, search_names
from tests.support.embeddings_server import MODEL, EmbeddingsServer, Json, embeddings_server

KEY = "sk-secret-4711"
DEADLINE = 120.0  # seconds; far more than any of these tests needs
SKILLS = {
    "xlsx": ("xlsx", "Edit a workbook with formulas.", "Sum the cells of a column."),
    "pptx": ("pptx", "Create slides with charts.", "Use the layouts of the template."),
    "resize": ("resize", "Crop and scale a photo.", "Keep the aspect ratio."),
}
TEXTS = {key: build_embedding_text(*parts) for key, parts in SKILLS.items()}
DIGESTS = {key: compute_text_digest(text) for key, text in TEXTS.items()}


@pytest.fixture
def server() -> Iterator[EmbeddingsServer]:
    with embeddings_server() as running:
        yield running


@pytest.fixture
def store(tmp_path: Path) -> SqliteVectors:
    return SqliteVectors(str(tmp_path))


def open_api(server: EmbeddingsServer, model: str = MODEL) -> EmbeddingsApi:
    return EmbeddingsApi.from_url(server.url, model, PUBLIC_ONLY, Secret(KEY))


def build_vectors(server: EmbeddingsServer, store: SqliteVectors) -> EmbeddingsApi:
    """Store the vectors of all skills."""
    api = open_api(server)
    vectors = map(encode_vector, api.embed_texts([*TEXTS.values()]))
    store.add(api.id, dict(zip(DIGESTS.values(), vectors, strict=True)))
    server.requests.clear()
    return api


# The API


def test_vectors_have_length_one_and_the_order_of_the_texts(server: EmbeddingsServer) -> None:
    first, second = open_api(server).embed_texts(["merge pdf files", "crop a photo"])
    assert math.hypot(*first) == pytest.approx(1, abs=1e-5)
    assert open_api(server).embed_query("crop a photo", 60) == second
    assert server.requests[0].path == "/v1/embeddings"
    assert server.requests[0].model == MODEL
    assert server.requests[0].authorization == f"Bearer {KEY}"


def test_server_without_base64_gets_a_request_for_numbers(server: EmbeddingsServer) -> None:
    expected = open_api(server).embed_texts(["pdf"])
    server.formats = ("float",)
    api = open_api(server)
    server.requests.clear()
    for vector, other in zip(api.embed_texts(["pdf"]), expected, strict=True):
        assert [*vector] == pytest.approx([*other], abs=1e-6)
    api.embed_texts(["pdf"])
    assert len(server.requests) == 3  # the encoding is tried once


def without_last(document: Json) -> Json:
    return {**document, "data": document["data"][:-1]}


def with_embedding(embedding: object) -> Any:  # noqa: ANN401 - a distortion
    def distort(document: Json) -> Json:
        document["data"][0]["embedding"] = embedding
        return document

    return distort


def with_equal_indexes(document: Json) -> Json:
    return {**document, "data": [{**row, "index": 0} for row in document["data"]]}


NAN = base64.b64encode(struct.pack("<64f", *[float("nan")] * 64)).decode()


@pytest.mark.parametrize(
    ("distort", "problem"),
    [
        (without_last, "1 vectors for 2 texts"),
        (with_equal_indexes, "invalid or repeated"),
        (with_embedding(NAN), "not finite"),
        (with_embedding([1e400] * 64), "not valid JSON"),
        (with_embedding([0.0] * 64), "only zeros"),
        (with_embedding([1.0] * 63), "different dimensions"),
        (with_embedding(["1"] * 64), "not a list of numbers"),
        (with_embedding(None), "not a list of numbers"),
        (with_embedding("%%%"), "base64"),
        (lambda _: b"{" * 100_000, "not valid JSON"),
        (lambda _: b'{"data": [NaN]}', "not valid JSON"),
        (lambda _: b"", "not valid JSON"),
    ],
)
def test_malformed_responses_are_rejected(
    server: EmbeddingsServer,
    distort: Any,  # noqa: ANN401 - a distortion
    problem: str,
) -> None:
    server.distort = distort
    with pytest.raises(EmbeddingFailed, match=problem):
        open_api(server).embed_texts(["a", "b"])


def test_response_over_the_limit_is_not_read(server: EmbeddingsServer) -> None:
    body = b"[" * 100_000_000
    server.distort = lambda _: body
    with pytest.raises(EmbeddingFailed, match=f"larger than {MAX_RESPONSE_BYTES}"):
        open_api(server).embed_texts(["a"])


@pytest.mark.parametrize(
    ("status", "code", "is_temporary"),
    [
        (302, "upstream_error", False),
        (400, "invalid_argument", False),
        (401, "unauthenticated", False),
        (404, "upstream_error", False),
        (418, "upstream_error", False),
        (429, "rate_limited", True),
        (500, "upstream_error", True),
        (503, "upstream_error", True),
    ],
)
def test_failures_say_whether_a_retry_helps(
    server: EmbeddingsServer, status: int, code: str, is_temporary: bool
) -> None:
    server.statuses = [status, status]
    with pytest.raises(EmbeddingFailed) as failure:
        open_api(server).embed_texts(["a"])
    assert (failure.value.code, failure.value.is_temporary) == (code, is_temporary)
    assert str(status) in str(failure.value)
    assert "sk-secret" not in f"{failure.value!r} {failure.value} {failure.value.hint}"


@pytest.mark.parametrize(("status", "seconds"), [(429, 7), (503, 7), (400, 0)])
def test_failures_have_the_time_that_the_server_asked_for(
    server: EmbeddingsServer, status: int, seconds: float
) -> None:
    server.statuses, server.retry_after = [status, status], "7"
    with pytest.raises(EmbeddingFailed) as failure:
        open_api(server).embed_texts(["a"])
    assert failure.value.retry_after == seconds


def test_key_is_in_no_representation(server: EmbeddingsServer) -> None:
    assert KEY not in repr(open_api(server))
    with pytest.raises(ConfigInvalid) as failure:
        EmbeddingsApi.from_url(server.url, MODEL, PUBLIC_ONLY, Secret("sk secret"))
    assert "sk secret" not in str(failure.value)


@pytest.mark.parametrize("url", ["ftp://host/v1", "https://user:pw@host/v1", "https://h/v1?key=1"])
def test_urls_that_could_contain_secrets_are_rejected(url: str) -> None:
    with pytest.raises(ConfigInvalid, match="SKILLHALL_EMBEDDINGS_URL"):
        EmbeddingsApi.from_url(url, MODEL, PUBLIC_ONLY)


def test_plain_http_to_other_machines_is_rejected_before_anything_is_sent() -> None:
    api = EmbeddingsApi.from_url("http://192.0.2.1/v1", MODEL, PUBLIC_ONLY, Secret(KEY))
    with pytest.raises(EmbeddingFailed, match="reserved"):
        api.embed_texts(["a"])


# Ranking


def test_ranking_finds_paraphrases(server: EmbeddingsServer, store: SqliteVectors) -> None:
    ranking = ModelRanking(build_vectors(server, store), store, DEADLINE)
    ranked = ranking.rank("totals in a spreadsheet", DIGESTS.values(), 2)
    assert ranked[0] == DIGESTS["xlsx"]
    assert len(ranked) == 2
    assert ranking.rank("a deck with charts", DIGESTS.values(), 1) == [DIGESTS["pptx"]]


def test_search_finds_paraphrases_with_a_model_and_works_without_it(
    server: EmbeddingsServer, store: SqliteVectors
) -> None:
    api = build_vectors(server, store)
    skills = [make_catalog_skill(name, description) for name, description, _ in SKILLS.values()]
    bodies = {name: body.encode() for name, _, body in SKILLS.values()}

    def search(semantic: ModelRanking | None) -> list[str]:
        index = SearchIndex(None, lambda skill: bodies[skill.name], semantic=semantic)
        index.update(skills)
        index.read_texts()
        return search_names(index, "spreadsheet")

    assert search(None) == []
    ranking = ModelRanking(api, store, DEADLINE)
    assert search(ranking)[0] == "xlsx"
    server.statuses = [500]
    assert search(ModelRanking(api, store, DEADLINE)) == []


def test_ranking_asks_for_a_repeated_query_once(
    server: EmbeddingsServer, store: SqliteVectors
) -> None:
    ranking = ModelRanking(build_vectors(server, store), store, DEADLINE)
    for _ in range(3):
        ranking.rank("photo", DIGESTS.values(), 1)
    assert server.embedded_texts == ["photo"]


def test_ranking_sends_nothing_without_vectors_or_query(
    server: EmbeddingsServer, store: SqliteVectors
) -> None:
    ranking = ModelRanking(open_api(server), store, DEADLINE)
    assert ranking.rank("photo", DIGESTS.values(), 1) == ()
    assert ranking.rank(" \n", DIGESTS.values(), 1) == ()
    assert ranking.rank("photo", [], 1) == ()
    assert server.requests == []


def test_ranking_sends_only_the_start_of_a_long_query(
    server: EmbeddingsServer, store: SqliteVectors
) -> None:
    ranking = ModelRanking(build_vectors(server, store), store, DEADLINE)
    assert ranking.rank("photo \0\ud800" + "x" * 1_000_000, DIGESTS.values(), 1)
    assert len(server.embedded_texts[0]) == 2000


def test_ranking_includes_vectors_that_were_added_later(
    server: EmbeddingsServer, store: SqliteVectors
) -> None:
    api = build_vectors(server, store)
    ranking = ModelRanking(api, store, DEADLINE)
    assert ranking.rank("photo", DIGESTS.values(), 1) == [DIGESTS["resize"]]
    store.add(api.id, {"f" * 64: encode_vector(api.embed_query("photo", 60))})
    assert ranking.rank("photo", ["f" * 64, *DIGESTS.values()], 1) == ["f" * 64]


@pytest.mark.parametrize("status", [500, 429, 401])
def test_failing_server_empties_the_ranking_and_is_not_asked_for_a_while(
    server: EmbeddingsServer,
    store: SqliteVectors,
    caplog: pytest.LogCaptureFixture,
    status: int,
) -> None:
    now = 1000.0
    ranking = ModelRanking(build_vectors(server, store), store, DEADLINE, lambda: now)
    server.statuses = [status, status]
    assert ranking.rank("photo", DIGESTS.values(), 1) == ()
    assert ranking.rank("photo", DIGESTS.values(), 1) == ()
    assert str(status) in ranking.problem
    now += RETRY_INTERVAL
    assert ranking.rank("photo", DIGESTS.values(), 1) == ()  # the second failure
    assert len(server.requests) == 2
    now += RETRY_INTERVAL
    assert ranking.rank("photo", DIGESTS.values(), 1) == [DIGESTS["resize"]]
    assert ranking.problem == ""
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert KEY not in caplog.text
    assert "sk-secret" not in caplog.text


def test_slow_server_delays_a_search_by_the_timeout_only(
    server: EmbeddingsServer, store: SqliteVectors
) -> None:
    ranking = ModelRanking(build_vectors(server, store), store, timeout=0.2)
    with server.pause_responses():
        started = time.monotonic()
        assert ranking.rank("photo", DIGESTS.values(), 1) == ()
        assert ranking.rank("photo", DIGESTS.values(), 1) == ()
        elapsed = time.monotonic() - started
    assert elapsed < DEADLINE / 2
    assert "timed out" in ranking.problem or "within 0.2 seconds" in ranking.problem
    assert len(server.requests) <= 1  # none if even connecting took too long


def test_searches_that_wait_together_return_together(
    server: EmbeddingsServer, store: SqliteVectors
) -> None:
    ranking = ModelRanking(build_vectors(server, store), store, timeout=0.2)
    results: list[object] = []
    threads = [
        threading.Thread(
            target=lambda n=n: results.append(ranking.rank(f"q{n}", DIGESTS.values(), 1))
        )
        for n in range(30)
    ]
    with server.pause_responses():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE)
    assert results == [()] * 30
    assert len(server.requests) <= 30


def test_server_that_is_gone_empties_the_ranking(tmp_path: Path) -> None:
    store = SqliteVectors(str(tmp_path))
    with embeddings_server() as server:
        ranking = ModelRanking(build_vectors(server, store), store, DEADLINE)
    assert ranking.rank("photo", DIGESTS.values(), 1) == ()
    assert "the connection failed" in ranking.problem


def test_model_with_another_length_empties_the_ranking(
    server: EmbeddingsServer, store: SqliteVectors
) -> None:
    ranking = ModelRanking(build_vectors(server, store), store, DEADLINE)
    server.dimensions = 32
    assert ranking.rank("photo", DIGESTS.values(), 1) == ()
    assert "returned 32 dimensions" in ranking.problem
    assert "64" in ranking.problem


def test_damaged_vector_file_empties_the_ranking(
    server: EmbeddingsServer, store: SqliteVectors
) -> None:
    api = build_vectors(server, store)
    Path(store.path).write_bytes(b"garbage" * 5000)
    assert ModelRanking(api, store, DEADLINE).rank("photo", DIGESTS.values(), 1) == ()


# Settings


def make_settings(tmp_path: Path, **variables: str) -> Settings:
    prefix = "SKILLHALL_EMBEDDINGS_"
    values = {f"{prefix}{name.upper()}": value for name, value in variables.items()}
    return Settings.read({"SKILLHALL_CACHE_DIR": str(tmp_path), **values})


def test_ranking_is_disabled_without_a_model(tmp_path: Path) -> None:
    ranking = open_semantic_ranking(make_settings(tmp_path))
    assert not ranking.is_enabled
    assert ranking.rank("photo", DIGESTS.values(), 1) == ()
    assert not any(tmp_path.iterdir())


def test_ranking_is_enabled_with_a_model(tmp_path: Path, server: EmbeddingsServer) -> None:
    settings = make_settings(tmp_path, url=server.url, model=MODEL, key=KEY, price="0.02")
    services = open_embeddings(settings)
    assert services is not None
    assert services.ranking.is_enabled
    assert services.price == 0.02
    assert KEY not in repr(settings)
    assert server.requests == []


@pytest.mark.parametrize(
    ("variables", "variable"),
    [
        ({"url": "http://127.0.0.1:1/v1"}, "MODEL"),
        ({"model": "m"}, "URL"),
        ({"model": "m", "url": "nonsense"}, "URL"),
        ({"model": "m", "url": "http://127.0.0.1:1", "price": "free"}, "PRICE"),
        ({"model": "m", "url": "http://127.0.0.1:1", "timeout": "0"}, "TIMEOUT"),
        ({"model": "m", "url": "http://127.0.0.1:1", "timeout": "3600"}, "TIMEOUT"),
    ],
)
def test_bad_settings_name_their_variable(
    tmp_path: Path, variables: dict[str, str], variable: str
) -> None:
    with pytest.raises(ConfigInvalid, match=f"SKILLHALL_EMBEDDINGS_{variable}"):
        open_embeddings(make_settings(tmp_path, **variables))
