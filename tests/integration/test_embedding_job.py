import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from skillhall._internal.asgi import Services
from skillhall._internal.cli.runner import run
from skillhall._internal.embeddings.embedding_job import (
    BackgroundEmbedding,
    EmbeddingInput,
    EmbeddingJob,
    JobStatus,
    RetryPolicy,
    estimate_cost,
)
from skillhall._internal.embeddings.embedding_text import compute_text_digest
from skillhall._internal.embeddings.embeddings_api import BATCH_SIZE, EmbeddingsApi
from skillhall._internal.embeddings.sqlite_vectors import SqliteVectors
from skillhall._internal.net.addresses import PUBLIC_ONLY
from skillhall._internal.settings import Secret, Settings
from skillhall._internal.wiring.embedding_services import open_embeddings
from skillhall._internal.wiring.prompts import open_prompt_service
from skillhall._internal.wiring.server_skills import open_collection
from skillhall.errors import SkillFileNotFound
from tests.support.embeddings_server import MODEL, EmbeddingsServer, embeddings_server
from tests.support.servers import run_server
from tests.support.skills import make_skill, make_skill_md

KEY = "sk-secret-4711"
DEADLINE = 120.0  # seconds


@pytest.fixture
def server() -> Iterator[EmbeddingsServer]:
    with embeddings_server() as running:
        yield running


@pytest.fixture
def store(tmp_path: Path) -> SqliteVectors:
    return SqliteVectors(str(tmp_path / "vectors"))


def open_api(server: EmbeddingsServer) -> EmbeddingsApi:
    return EmbeddingsApi.from_url(server.url, MODEL, PUBLIC_ONLY, Secret(KEY))


def make_inputs(*texts: str) -> list[EmbeddingInput]:
    return [EmbeddingInput(compute_text_digest(text), lambda text=text: text) for text in texts]  # type: ignore[misc]


NUMBERS = [f"number{number}" for number in range(3 * BATCH_SIZE)]


class Pauses:
    """Records the pauses of a job, and does not wait."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, seconds: float) -> bool:
        self.seconds.append(seconds)
        return False


def test_job_embeds_each_different_text_once(
    server: EmbeddingsServer, store: SqliteVectors
) -> None:
    seen: list[JobStatus] = []
    job = EmbeddingJob(open_api(server), store, on_progress=seen.append)
    status = job.run(make_inputs(*NUMBERS, *NUMBERS))
    assert (status.state, status.done, status.total, status.embedded) == ("done", 96, 96, 96)
    assert status.rate > 0
    assert [row.done for row in seen if row.state == "running"] == [0, 0, 32, 64, 96]
    assert [*map(len, (request.texts for request in server.requests))] == [BATCH_SIZE] * 3
    assert EmbeddingJob(open_api(server), store).run(make_inputs(*NUMBERS)).embedded == 0
    assert len(server.requests) == 3


def test_estimate_counts_missing_texts_and_sends_nothing(
    server: EmbeddingsServer, store: SqliteVectors
) -> None:
    api = open_api(server)
    EmbeddingJob(api, store).run(make_inputs("first"))
    sent = len(server.requests)
    cost = estimate_cost(api.id, store, make_inputs("first", "x" * 4250), 2.0)
    assert cost == (2, 1, 1000, 0.002)
    assert estimate_cost(api.id, store, [], None) == (0, 0, 0, None)
    assert len(server.requests) == sent


def test_job_waits_longer_after_each_failure_and_continues(
    server: EmbeddingsServer, store: SqliteVectors
) -> None:
    server.statuses = [200, 500, 500, 503, 200, 500, 200]
    pauses = Pauses()
    status = EmbeddingJob(open_api(server), store, wait=pauses).run(make_inputs(*NUMBERS))
    assert (status.state, status.problem, status.embedded) == ("done", "", 96)
    assert pauses.seconds == [1, 2, 4, 1]


def test_job_waits_as_long_as_the_server_asks(
    server: EmbeddingsServer, store: SqliteVectors
) -> None:
    server.statuses, server.retry_after = [429], "17"
    pauses = Pauses()
    assert EmbeddingJob(open_api(server), store, wait=pauses).run(make_inputs("a")).embedded == 1
    assert pauses.seconds == [17]


@pytest.mark.parametrize(
    ("statuses", "retry_after", "count"), [([500] * 9, "", 3), ([401], "", 1), ([429], "3600", 1)]
)
def test_job_fails_if_a_retry_does_not_help(
    server: EmbeddingsServer,
    store: SqliteVectors,
    statuses: list[int],
    retry_after: str,
    count: int,
) -> None:
    server.statuses, server.retry_after = [*statuses], retry_after
    retries = RetryPolicy(max_failures=3, max_pause=60)
    job = EmbeddingJob(open_api(server), store, retries, wait=Pauses())
    status = job.run(make_inputs("a", "b"))
    assert (status.state, status.done, status.total) == ("failed", 0, 2)
    assert str(statuses[0]) in status.problem
    assert "sk-secret" not in status.problem
    assert len(server.requests) == count


def test_job_skips_only_the_texts_that_the_model_rejects(
    server: EmbeddingsServer, store: SqliteVectors, caplog: pytest.LogCaptureFixture
) -> None:
    server.rejected_word = "number7"
    job = EmbeddingJob(open_api(server), store)
    status = job.run(make_inputs(*NUMBERS))
    rejected = [text for text in NUMBERS if "number7" in text]
    assert (status.state, status.skipped) == ("done", len(rejected))
    assert status.embedded == len(NUMBERS) - len(rejected)
    assert len(caplog.records) == len(rejected)
    sent = len(server.requests)
    assert job.run(make_inputs(*NUMBERS)).skipped == len(rejected)
    assert len(server.requests) == sent  # the same job does not send them again


def test_job_fails_if_the_model_rejects_every_text(
    server: EmbeddingsServer, store: SqliteVectors
) -> None:
    server.statuses = [400] * 100
    status = EmbeddingJob(open_api(server), store).run(make_inputs(*NUMBERS))
    assert status.state == "failed"
    assert len(server.requests) <= 4


def test_job_skips_texts_that_changed_or_vanished(
    server: EmbeddingsServer, store: SqliteVectors
) -> None:
    def fail() -> str:
        raise SkillFileNotFound("SKILL.md")

    inputs = [EmbeddingInput("1" * 64, lambda: "changed"), EmbeddingInput("2" * 64, fail)]
    status = EmbeddingJob(open_api(server), store).run([*inputs, *make_inputs("a")])
    assert (status.state, status.embedded, status.skipped) == ("done", 1, 2)
    assert server.embedded_texts == ["a"]


def test_canceled_job_ends_after_the_batch_and_another_continues(
    server: EmbeddingsServer, store: SqliteVectors
) -> None:
    def cancel(status: JobStatus) -> None:
        if status.embedded:
            job.cancel()

    job = EmbeddingJob(open_api(server), store, on_progress=cancel)
    assert job.run(make_inputs(*NUMBERS)).state == "canceled"
    assert EmbeddingJob(open_api(server), store).run(make_inputs(*NUMBERS)).state == "done"
    assert server.embedded_texts == NUMBERS


def test_job_can_be_canceled_while_it_waits(server: EmbeddingsServer, store: SqliteVectors) -> None:
    server.statuses, server.retry_after = [429], "500"

    def cancel(status: JobStatus) -> None:
        if status.state == "paused":
            job.cancel()

    job = EmbeddingJob(open_api(server), store, on_progress=cancel)
    assert job.run(make_inputs("a")).state == "canceled"


def wait_for(condition: object, what: str) -> None:
    deadline = time.monotonic() + DEADLINE
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, what
        threading.Event().wait(0.01)


def test_background_job_runs_for_the_latest_inputs(
    server: EmbeddingsServer, store: SqliteVectors
) -> None:
    background = BackgroundEmbedding(open_api(server), store)
    assert background.status.state == "idle"
    background.start()
    try:
        background.schedule(lambda: make_inputs("first"))
        wait_for(lambda: server.embedded_texts == ["first"], "the first text")
        background.schedule(lambda: make_inputs("first", "second"))
        wait_for(lambda: background.status == background.status._replace(state="done", total=2), "")
        assert server.embedded_texts == ["first", "second"]
    finally:
        background.close()


def test_background_job_logs_a_problem_once_and_continues(
    server: EmbeddingsServer, store: SqliteVectors, caplog: pytest.LogCaptureFixture
) -> None:
    server.statuses = [401, 401]
    background = BackgroundEmbedding(open_api(server), store)
    background.start()
    try:
        for count in (1, 2):
            background.schedule(lambda: make_inputs("text"))
            wait_for(lambda count=count: len(server.requests) == count, "a request")
            wait_for(lambda: background.status.state == "failed", "a failure")
        background.schedule(lambda: make_inputs("text"))
        wait_for(lambda: background.status.state == "done", "the vector")
    finally:
        background.close()
    [record] = caplog.records
    assert "rejected the API key (status 401)" in record.getMessage()


def test_background_job_can_be_closed_while_the_server_hangs(
    server: EmbeddingsServer, store: SqliteVectors
) -> None:
    background = BackgroundEmbedding(open_api(server), store)
    background.start()
    with server.pause_responses() as released:
        background.schedule(lambda: make_inputs(*NUMBERS))
        wait_for(lambda: server.requests, "a request")
        released.set()
        background.close()
    assert background.status.embedded <= 2 * BATCH_SIZE


def test_server_builds_vectors_and_shows_the_progress(
    server: EmbeddingsServer, store: SqliteVectors, tmp_path: Path
) -> None:
    skills = tmp_path / ".agents" / "skills"
    make_skill(skills, "first")
    settings = Settings.read({"SKILLHALL_CACHE_DIR": str(tmp_path / "cache")})
    settings = settings._replace(working_directory=str(tmp_path))
    prompts = open_prompt_service(settings, poll=False)
    embedding = BackgroundEmbedding(open_api(server), store)
    collection = open_collection(settings, prompts, embedding=embedding)
    embedding.start()
    try:
        with run_server(services=Services(prompts, collection, embedding=embedding)) as running:
            running.request("GET", "/api/v1/skills")
            wait_for(lambda: embedding.status.state == "done", "the first build")
            sent = len(server.embedded_texts)
            status = running.request("GET", "/readyz").json["data"]["embeddings"]
            assert (status["state"], status["done"]) == ("done", sent)
            assert status["total"] == sent
            make_skill(skills, "second", data=make_skill_md("second", "Does more."))
            running.request("GET", "/api/v1/skills")
            wait_for(lambda: len(server.embedded_texts) == sent + 1, "the second skill")
            assert "second" in server.embedded_texts[-1]
    finally:
        embedding.close()
        collection.close()
        prompts.close()


def test_server_without_a_model_builds_nothing() -> None:
    assert open_embeddings(Settings.read({})) is None


# The command


class Command:
    """Runs `skillhall embeddings` for a folder of skills."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.roots = ["-r", str(folder / "skills")]
        self._capture = capture

    def run(self, *arguments: str, code: int = 0) -> dict[str, object]:
        self._capture.readouterr()
        assert run(["embeddings", *arguments, "--json"]) == code
        out, error = self._capture.readouterr()
        assert KEY not in out + error
        document = json.loads(out)
        return dict(document["data"] if code == 0 else document["error"])


@pytest.fixture
def command(
    server: EmbeddingsServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Command:
    for number in range(2 * BATCH_SIZE + 1):
        name = f"skill-{number:03}"
        data = make_skill_md(name, f"Does task{number}.", body="Steps")
        make_skill(tmp_path / "skills", name, data=data)
    for name, value in {"URL": server.url, "MODEL": MODEL, "KEY": KEY, "PRICE": "1000"}.items():
        monkeypatch.setenv(f"SKILLHALL_EMBEDDINGS_{name}", value)
    return Command(tmp_path, capsys)


def test_build_that_is_killed_continues_without_sending_stored_texts_again(
    server: EmbeddingsServer, command: Command
) -> None:
    with server.pause_responses() as released:
        arguments = ["embeddings", "build", "--yes", *command.roots]
        process = subprocess.Popen([sys.executable, "-m", "skillhall", *arguments])
        wait_for(lambda: server.requests, "the first batch")
        server.release_event = threading.Event()  # the second batch gets no response
        released.set()
        wait_for(lambda: len(server.requests) == 2, "the second batch")
        process.kill()
        process.wait(DEADLINE)
        server.release_event.set()
    first, second = (set(request.texts) for request in server.requests)
    server.requests.clear()
    assert command.run("estimate", *command.roots)["missing"] == BATCH_SIZE + 1
    assert command.run("build", "--yes", *command.roots)["embedded"] == BATCH_SIZE + 1
    assert not first & set(server.embedded_texts)
    assert second <= set(server.embedded_texts)


def test_build_needs_a_confirmation(server: EmbeddingsServer, command: Command) -> None:
    error = command.run("build", *command.roots, code=2)
    assert "65 of 65 texts" in str(error["message"])
    assert "about 0.4450 at the configured price" in str(error["message"])
    assert server.requests == []


def test_status_and_clear_contact_no_server(
    server: EmbeddingsServer, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    command.run("build", "--yes", *command.roots)
    server.requests.clear()
    status = command.run("status")
    assert status["enabled"]
    assert status["vectors"] == 65
    assert command.run("clear", "--yes")["deleted"] == 65
    assert command.run("status")["vectors"] == 0
    monkeypatch.delenv("SKILLHALL_EMBEDDINGS_URL")
    monkeypatch.delenv("SKILLHALL_EMBEDDINGS_MODEL")
    assert not command.run("status")["enabled"]
    assert server.requests == []


def test_build_fails_with_the_problem_of_the_server(
    server: EmbeddingsServer, command: Command
) -> None:
    server.statuses = [401]
    error = command.run("build", "--yes", *command.roots, code=5)
    assert "the server rejected the API key (status 401)" in str(error["message"])
