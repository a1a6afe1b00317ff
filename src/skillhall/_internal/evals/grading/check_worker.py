"""Worker process that matches patterns and JSON Schemas, which may never finish.

It reads requests as JSON lines and writes a JSON line for each. If a request takes more than the
CPU time in its first argument, the process ends; the caller starts another one.
"""

from __future__ import annotations

import json
import re
import signal
import sys
from contextlib import suppress
from typing import Any

if sys.platform != "win32":
    import resource

MAX_MEMORY = 1 << 30  # bytes
MAX_MESSAGE = 300  # characters


def match_pattern(pattern: str, text: str) -> dict[str, object]:
    """Return the position of the first match."""
    match = re.search(pattern, text)
    return {"match": None if match is None else [*match.span()]}


def match_schema(schema: object, text: str) -> dict[str, object]:
    """Return why a text is not JSON that matches the schema; "" if it is."""
    library = load_schema_library()
    if library is None:
        return {"problem": "JSON Schemas need the package jsonschema, which is not installed"}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {"mismatch": "it is not valid JSON"}
    validators, exceptions, referencing = library
    validator_class = validators.validator_for(schema, default=validators.Draft202012Validator)
    try:
        validator_class.check_schema(schema)
        # An empty registry: without one, the library fetches schemas over the network.
        validator = validator_class(schema, registry=referencing.Registry())
        mismatch = exceptions.best_match(validator.iter_errors(value))
    except exceptions.SchemaError as error:
        return {"problem": f"not a JSON Schema: {error.message[:MAX_MESSAGE]}"}
    except (referencing.exceptions.Unresolvable, RecursionError):
        return {"problem": "the JSON Schema refers to a schema that it does not contain"}
    if mismatch is None:
        return {"mismatch": ""}
    return {"mismatch": f"{mismatch.json_path}: {mismatch.message[:MAX_MESSAGE]}"}


def load_schema_library() -> tuple[Any, Any, Any] | None:
    """Return the modules for JSON Schemas; `None` if they are not installed."""
    try:
        import referencing.exceptions  # noqa: PLC0415 - optional, and slow to load
        from jsonschema import exceptions, validators  # noqa: PLC0415
    except ImportError:
        return None
    return validators, exceptions, referencing


def limit_memory() -> None:
    """Limit the memory of this process, if the system supports it."""
    if sys.platform != "win32":
        with suppress(OSError, ValueError):  # a lower limit is set already
            resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))


def limit_cpu_time(seconds: float) -> None:
    """End this process after that much CPU time from now; 0 removes the limit."""
    with suppress(AttributeError):  # Windows
        signal.setitimer(signal.ITIMER_PROF, seconds)


def answer(request: dict[str, Any]) -> dict[str, object]:
    """Return the response to a request."""
    try:
        if "pattern" in request:
            return match_pattern(request["pattern"], request["text"])
        return match_schema(request["schema"], request["text"])
    except MemoryError:
        return {"problem": "it needs too much memory"}


def run(cpu_limit: float) -> None:
    """Answer requests until the input ends."""
    limit_memory()
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if "schema" in request:
            load_schema_library()  # importing it does not count
        limit_cpu_time(cpu_limit)
        response = json.dumps(answer(request))
        limit_cpu_time(0)
        sys.stdout.write(f"{response}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    run(float(sys.argv[1]))
