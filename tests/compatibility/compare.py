"""Comparison with recordings: a newer version may add keys to objects, and nothing else."""

from collections.abc import Iterator
from typing import Any


def differences(recorded: Any, actual: Any, at: str = "") -> Iterator[str]:  # noqa: ANN401 - JSON
    """Yield each difference that could break a client, with the path to it.

    Objects may have further keys. Arrays have the same length and order. The scores of a search may
    differ: they are documented as comparable only within one result.
    """
    if at.endswith("].score") and isinstance(recorded, float) and isinstance(actual, float):
        return
    if isinstance(recorded, dict) and isinstance(actual, dict):
        for key, value in recorded.items():
            if key in actual:
                yield from differences(value, actual[key], f"{at}.{key}")
            else:
                yield f"{at}.{key}: missing, was {value!r}"
    elif isinstance(recorded, list) and isinstance(actual, list):
        if len(recorded) != len(actual):
            yield f"{at}: {len(actual)} items, were {len(recorded)}: {actual!r}, were {recorded!r}"
            return
        for number, (old, new) in enumerate(zip(recorded, actual, strict=True)):
            yield from differences(old, new, f"{at}[{number}]")
    elif type(recorded) is not type(actual) or recorded != actual:
        yield f"{at}: {actual!r}, was {recorded!r}"


def key_list(value: Any, path: str, key: str) -> None:  # noqa: ANN401 - JSON
    """Replace a list in a document with an object, so that items may be added to it."""
    *parents, last = path.split(".")
    for name in parents:
        value = value.get(name, {})
    if last in value:
        value[last] = {item.get(key, ""): item for item in value[last]}


def value_at(value: Any, path: str) -> str:  # noqa: ANN401 - JSON
    """Return the value at a dotted path of a document as text, or ""."""
    for key in path.split("."):
        if not isinstance(value, dict) or key not in value:
            return ""
        value = value[key]
    return str(value)
