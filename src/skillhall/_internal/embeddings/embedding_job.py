"""Job that computes the missing vectors of skills, and an estimate of its cost."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias

from skillhall._internal.background import PollingThread, run_low_priority
from skillhall._internal.embeddings.embedding_model import EmbeddingFailed, EmbeddingModel, Vector
from skillhall._internal.embeddings.embedding_text import compute_text_digest
from skillhall._internal.embeddings.vector_codec import encode_vector
from skillhall._internal.embeddings.vector_store import VectorStore
from skillhall._internal.skill.token_count import estimate_tokens
from skillhall.errors import SkillhallError, StoreError

JobState: TypeAlias = Literal["idle", "running", "paused", "done", "failed", "canceled"]

FIRST_PAUSE: Final = 1.0  # seconds after a failure; doubled after each further one
MAX_PAUSE: Final = 600.0
_TEXT_REJECTED = "invalid_argument"
_HARMLESS_TEXT = "skill"
_CLOSE_TIMEOUT = 1.0  # seconds
_THREAD_NAME = "skillhall-embeddings-job"
_TOKENS_PER_PRICE = 1_000_000
_LOG = logging.getLogger("skillhall.embeddings")


class EmbeddingInput(NamedTuple):
    """Text to embed; it is read only if its vector is missing."""

    digest: str
    read: Callable[[], str]


# Called for each run, so that many texts need not be in memory.
InputSource: TypeAlias = "Callable[[], Iterable[EmbeddingInput]]"


class CostEstimate(NamedTuple):
    """Estimate of the texts and tokens that a job would send, and of its cost."""

    texts: int  # distinct texts of all skills
    missing: int  # number of these texts without a vector
    tokens: int  # of the texts without a vector
    cost: float | None  # in the currency of the price; None if there is no price


class JobStatus(NamedTuple):
    """Progress of a job."""

    state: JobState = "idle"
    done: int = 0  # texts with a vector
    total: int = 0
    embedded: int = 0  # in this run
    skipped: int = 0  # texts that the model rejects, or that cannot be read
    seconds: float = 0.0  # of this run
    problem: str = ""  # why it paused or failed

    @property
    def rate(self) -> float:
        """Texts per second of this run."""
        return self.embedded / self.seconds if self.seconds else 0.0


_IDLE = JobStatus()


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long a job waits after failures, and when it gives up."""

    max_failures: int = 0  # in a row; 0 means no limit
    max_pause: float = MAX_PAUSE

    def find_pause(self, error: SkillhallError, failures: int) -> float | None:
        """Return the seconds until the next attempt; `None` if the job gives up."""
        is_temporary = isinstance(error, StoreError)
        wanted = FIRST_PAUSE * 2.0 ** min(failures - 1, 20)
        if isinstance(error, EmbeddingFailed):
            is_temporary = error.is_temporary
            wanted = max(wanted, error.retry_after)
        if not is_temporary or (self.max_failures and failures >= self.max_failures):
            return None
        # A command does not wait for an hour, even if the server asks it to.
        return (
            None if self.max_failures and wanted > self.max_pause else min(wanted, self.max_pause)
        )


def estimate_cost(
    model: str, store: VectorStore, inputs: Iterable[EmbeddingInput], price: float | None
) -> CostEstimate:
    """Estimate the cost of a job; reads the missing texts and sends nothing.

    `price` is per million tokens. Raises: StoreError.
    """
    readers = {entry.digest: entry.read for entry in inputs}
    missing = store.find_missing(model, readers)
    tokens = sum(estimate_tokens(text) for _, text in _read_texts(missing, readers))
    cost = None if price is None else tokens * price / _TOKENS_PER_PRICE
    return CostEstimate(len(readers), len(missing), tokens, cost)


@dataclass(slots=True)
class EmbeddingJob:
    """Computes missing vectors and stores them in batches; a later run resumes.

    `wait` blocks for a number of seconds and returns whether the job was canceled.
    """

    model: EmbeddingModel
    store: VectorStore
    retries: RetryPolicy = RetryPolicy()
    on_progress: Callable[[JobStatus], None] = lambda _: None
    clock: Callable[[], float] = time.monotonic
    wait: Callable[[float], bool] | None = None
    status: JobStatus = _IDLE
    rejected: set[str] = field(default_factory=set)  # digests that the model does not accept
    _canceled: threading.Event = field(default_factory=threading.Event)

    def cancel(self) -> None:
        """End the run after the current batch; thread-safe."""
        self._canceled.set()

    def run(self, inputs: Iterable[EmbeddingInput]) -> JobStatus:
        """Compute the missing vectors and return the final status.

        Failures of the model and the store are reported in the status, not raised.
        """
        started, failures = self.clock(), 0
        readers = {entry.digest: entry.read for entry in inputs}
        self._update(JobStatus("running", total=len(readers)))
        while True:
            try:
                self._embed_missing(readers, started)
                if self._canceled.is_set():
                    self._update(self.status._replace(state="canceled"))
                else:
                    self.store.prune(self.model.id, readers.keys())
                    self._update(self.status._replace(state="done", problem=""))
                break
            except SkillhallError as error:
                failures = 1 if self.status.problem == "" else failures + 1
                if not self._pause(error, failures):
                    break
        self.status = self.status._replace(seconds=self.clock() - started)
        return self.status

    def _pause(self, error: SkillhallError, failures: int) -> bool:
        """Wait after a failure; return whether the job continues."""
        pause = self.retries.find_pause(error, failures)
        state: JobState = "failed" if pause is None else "paused"
        self._update(self.status._replace(state=state, problem=str(error)))
        if pause is None:
            return False
        wait = self.wait or self._canceled.wait
        if wait(pause):
            self._update(self.status._replace(state="canceled"))
            return False
        return True

    def _embed_missing(self, readers: dict[str, Callable[[], str]], started: float) -> None:
        """Embed and store batch after batch. Raises: EmbeddingFailed, StoreError."""
        missing = [
            digest
            for digest in self.store.find_missing(self.model.id, readers)
            if digest not in self.rejected
        ]
        skipped = len(self.rejected & readers.keys())
        self._update(
            self.status._replace(
                state="running", done=len(readers) - len(missing) - skipped, skipped=skipped
            )
        )
        size = self.model.batch_size
        for start in range(0, len(missing), size):
            if self._canceled.is_set():
                return
            # Another process may have stored some since.
            batch = self.store.find_missing(self.model.id, missing[start : start + size])
            texts = dict(_read_texts(batch, readers))
            vectors = self._embed(texts)
            self.store.add(
                self.model.id, {digest: encode_vector(vector) for digest, vector in vectors}
            )
            count = len(missing[start : start + size])
            lost = len(batch) - len(vectors)
            status = self.status
            self._update(
                status._replace(
                    state="running",
                    done=status.done + count - lost,
                    embedded=status.embedded + len(vectors),
                    skipped=status.skipped + lost,
                    seconds=self.clock() - started,
                    problem="",
                )
            )

    def _embed(self, texts: dict[str, str]) -> list[tuple[str, Vector]]:
        """Embed a batch, without the texts that the model rejects.

        Raises: EmbeddingFailed if the model fails, or rejects even a harmless text.
        """
        batch = [*texts.items()]
        try:
            return self._embed_all(batch)
        except EmbeddingFailed as error:
            if error.code != _TEXT_REJECTED:
                raise
        # Some servers also respond with this code if they do not know the model.
        self.model.embed_texts([_HARMLESS_TEXT])
        vectors = [*self._embed_accepted(batch)]
        self.rejected.update(texts.keys() - {digest for digest, _ in vectors})
        return vectors

    def _embed_all(self, batch: Sequence[tuple[str, str]]) -> list[tuple[str, Vector]]:
        if not batch:
            return []
        vectors = self.model.embed_texts([text for _, text in batch])
        return [*zip((digest for digest, _ in batch), vectors, strict=True)]

    def _embed_accepted(self, batch: Sequence[tuple[str, str]]) -> Iterator[tuple[str, Vector]]:
        """Embed a batch in smaller and smaller halves, to skip only the rejected texts."""
        try:
            yield from self._embed_all(batch)
        except EmbeddingFailed as error:
            if error.code != _TEXT_REJECTED:
                raise
            if len(batch) == 1:
                _LOG.warning("a skill has no embedding: %s", error)
                return
            middle = len(batch) // 2
            yield from self._embed_accepted(batch[:middle])
            yield from self._embed_accepted(batch[middle:])

    def _update(self, status: JobStatus) -> None:
        self.status = status
        self.on_progress(status)


def _read_texts(
    digests: Iterable[str], readers: dict[str, Callable[[], str]]
) -> Iterator[tuple[str, str]]:
    """Yield the texts that can be read and have not changed since they were listed."""
    for digest in digests:
        try:
            text = readers[digest]()
        except SkillhallError:
            continue  # the skill was deleted; the next run does not list it
        if compute_text_digest(text) == digest:
            yield digest, text


class BackgroundEmbedding:
    """Runs jobs for the latest inputs in a low-priority thread; thread-safe."""

    def __init__(self, model: EmbeddingModel, store: VectorStore) -> None:
        self._job = EmbeddingJob(model, store)
        self._pending: InputSource | None = None
        self._is_closed = False
        self._has_logged_problem = False
        self._lock = threading.Lock()
        self._thread: PollingThread | None = None

    @property
    def status(self) -> JobStatus:
        """Progress of the current job, or of the last one."""
        return self._job.status

    def start(self) -> None:
        """Start the thread. Call `close` when done."""
        self._thread = PollingThread(self._poll, self._find_interval, _THREAD_NAME)

    def schedule(self, inputs: InputSource) -> None:
        """Compute the missing vectors of these inputs, after the current job."""
        with self._lock:
            self._pending = inputs
        if self._thread is not None:
            self._thread.wake()

    def close(self) -> None:
        """Stop after the current batch. Idempotent."""
        with self._lock:
            self._is_closed = True
            self._job.cancel()
        if self._thread is not None:
            # A restart must not wait for a batch: a lost batch is sent again afterwards.
            self._thread.close(_CLOSE_TIMEOUT)

    def _find_interval(self) -> float | None:
        # A failed job starts again: the server may have been repaired in the meantime.
        return MAX_PAUSE if self.status.state == "failed" else None

    def _poll(self) -> None:
        with self._lock:
            inputs, last = self._pending, self._job
            if inputs is None or self._is_closed:
                return
            job = self._job = EmbeddingJob(
                last.model, last.store, on_progress=self._log_problem, rejected=last.rejected
            )
        try:
            status = run_low_priority(lambda: job.run(inputs()))
        except Exception as error:  # noqa: BLE001 - it must not end the thread
            status = JobStatus("failed", problem=f"internal error ({type(error).__name__})")
            job.status = status
            self._log_problem(status)
        with self._lock:
            if self._pending is inputs and status.state == "done":
                self._pending = None

    def _log_problem(self, status: JobStatus) -> None:
        """Log why the job is paused or failed, once until it works again."""
        if status.problem and not self._has_logged_problem:
            _LOG.warning("embeddings are incomplete: %s", status.problem)
        if status.problem or status.embedded:
            self._has_logged_problem = bool(status.problem)
