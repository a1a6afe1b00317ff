"""`skillhall embeddings`: builds the vectors of skills for search."""

from __future__ import annotations

from skillhall._internal.catalog.embedding_inputs import EmbeddingTexts
from skillhall._internal.cli.catalog_loader import load_with_progress
from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.errors import CommandFailed
from skillhall._internal.cli.options import (
    command_group,
    confirm,
    json_command,
    skill_search_options,
    yes_option,
)
from skillhall._internal.cli.progress import transfer_progress
from skillhall._internal.cli.search_options import SearchOptions, read_settings
from skillhall._internal.cli.terminal import format_count
from skillhall._internal.embeddings.embedding_job import (
    CostEstimate,
    EmbeddingInput,
    EmbeddingJob,
    JobStatus,
    RetryPolicy,
    estimate_cost,
)
from skillhall._internal.wiring.embedding_services import (
    EmbeddingServices,
    open_embeddings,
    open_vector_store,
)

_RETRIES = RetryPolicy(max_failures=6, max_pause=60.0)
_SETUP_HINT = (
    "set SKILLHALL_EMBEDDINGS_MODEL and, for a model on a server, SKILLHALL_EMBEDDINGS_URL"
)

command = command_group(
    "embeddings",
    "Build vectors of skills, so that search also matches by meaning. All commands accept --json.",
    epilog="Example: skillhall embeddings build",
)


@json_command("status", "skillhall embeddings status", group=command)
def show_status() -> CommandResult:
    """Show the configured model and the stored vectors. Contacts no server."""
    settings = read_settings()
    services = open_embeddings(settings)
    usage = open_vector_store(settings).measure()
    model = services.model.id if services else ""
    current = usage.vectors_by_model.get(model, 0)
    lines = [
        f"model: {model or 'none'}",
        f"vectors: {current:,} of this model, {usage.vectors:,} in total, {usage.size:,} bytes",
    ]
    data = {
        "enabled": services is not None,
        "model": model,
        "vectors": current,
        "stored": {"vectors": usage.vectors, "bytes": usage.size},
        "models": [{"model": name, "vectors": n} for name, n in usage.vectors_by_model.items()],
    }
    return CommandResult(data, lines=lines, messages=[] if services else [_SETUP_HINT])


@json_command("estimate", "skillhall embeddings estimate", group=command)
@skill_search_options
def estimate(*, search: SearchOptions) -> CommandResult:
    """Show how many texts and tokens a build would send. Sends nothing."""
    services = _open_services()
    cost = _estimate(services, _list_inputs(search))
    return CommandResult(_serialize_estimate(cost), lines=[_format_estimate(cost)])


@json_command("build", "skillhall embeddings build --yes", group=command)
@skill_search_options
@yes_option
def build(*, search: SearchOptions, yes: bool) -> CommandResult:
    """Build the missing vectors. The texts of the skills are sent to the model.

    Shows how much will be sent, and asks for confirmation. Every batch is stored immediately, so
    the next build continues after an interruption.
    """
    services = _open_services()
    inputs = _list_inputs(search)
    cost = _estimate(services, inputs)
    if not cost.missing:
        return CommandResult(
            {"estimate": _serialize_estimate(cost), **_serialize_status(JobStatus("done"))},
            messages=[f"all {format_count(cost.texts, 'text')} have vectors"],
        )
    if not yes:
        confirm(f"send {_format_estimate(cost)} to {services.model.id}?")
    status = _run_job(services, inputs)
    if status.state == "failed":
        raise CommandFailed(
            "upstream_error",
            f"{status.problem} ({status.done:,} of {status.total:,} texts have vectors)",
            "run the build again to continue where it stopped",
        )
    messages = [
        f"{status.embedded:,} vectors built, {status.rate:.1f} texts per second",
    ]
    if status.skipped:
        messages.append(f"warning: {format_count(status.skipped, 'text')} without a vector")
    return CommandResult(
        {"estimate": _serialize_estimate(cost), **_serialize_status(status)}, messages=messages
    )


@json_command("clear", "skillhall embeddings clear --yes", group=command)
@yes_option
def clear(*, yes: bool) -> CommandResult:
    """Delete the stored vectors of all models."""
    store = open_vector_store(read_settings())
    if not yes:
        confirm(f"delete {store.measure().vectors:,} vectors?")
    deleted = store.clear()
    return CommandResult({"deleted": deleted}, messages=[f"{deleted:,} vectors deleted"])


def _open_services() -> EmbeddingServices:
    services = open_embeddings(read_settings())
    if services is None:
        raise CommandFailed("invalid_config", "no embedding model is configured", _SETUP_HINT)
    return services


def _list_inputs(search: SearchOptions) -> list[EmbeddingInput]:
    return [*EmbeddingTexts().list_inputs(load_with_progress(search))]


def _estimate(services: EmbeddingServices, inputs: list[EmbeddingInput]) -> CostEstimate:
    return estimate_cost(services.model.id, services.store, inputs, services.price)


def _run_job(services: EmbeddingServices, inputs: list[EmbeddingInput]) -> JobStatus:
    with transfer_progress() as update:

        def show(status: JobStatus) -> None:
            if update is not None:
                step = "waiting: " + status.problem if status.problem else "embedding"
                update(step, status.done, status.total)

        return EmbeddingJob(services.model, services.store, _RETRIES, show).run(inputs)


def _format_estimate(cost: CostEstimate) -> str:
    price = "" if cost.cost is None else f", about {cost.cost:,.4f} at the configured price"
    return f"{cost.missing:,} of {cost.texts:,} texts (about {cost.tokens:,} tokens{price})"


def _serialize_estimate(cost: CostEstimate) -> dict[str, object]:
    return {
        "texts": cost.texts,
        "missing": cost.missing,
        "tokens": cost.tokens,
        "cost": cost.cost,
    }


def _serialize_status(status: JobStatus) -> dict[str, object]:
    return {
        "embedded": status.embedded,
        "skipped": status.skipped,
        "seconds": round(status.seconds, 3),
    }
