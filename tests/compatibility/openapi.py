"""The parts of an OpenAPI document that clients rely on, without the names of schemas."""

from collections.abc import Iterator
from typing import Any

_METHODS = ("get", "put", "post", "delete", "patch")
_DEPTH = 6  # compared levels of a response; deeper ones are free-form


def operations(document: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters, bodies and responses of each operation, as `GET /path`."""
    return {
        f"{method.upper()} {path}": _operation(document, item[method])
        for path, item in document["paths"].items()
        for method in _METHODS
        if method in item
    }


def _operation(document: dict[str, Any], operation: dict[str, Any]) -> dict[str, Any]:
    parameters = operation.get("parameters", [])
    bodies = operation.get("requestBody", {}).get("content", {})
    return {
        "parameters": {f"{p['in']} {p['name']}": True for p in parameters},
        # An array, since no other parameter may become required.
        "requiredParameters": sorted(
            f"{p['in']} {p['name']}" for p in parameters if p.get("required")
        ),
        "requestBodies": {
            media_type: _request(document, content.get("schema", {}))
            for media_type, content in bodies.items()
        },
        "responses": {
            status: _response(document, response, is_error=status >= "400")
            for status, response in operation["responses"].items()
        },
    }


def _request(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    resolved = _resolved(document, schema)
    return {
        "fields": dict.fromkeys(resolved.get("properties", {}), True),
        "required": sorted(resolved.get("required", [])),
    }


def _response(
    document: dict[str, Any], response: dict[str, Any], *, is_error: bool
) -> dict[str, Any]:
    """Return the media types with the fields that every response has.

    All errors have the same shape, which other recordings contain.
    """
    contents = response.get("content", {})
    if is_error:
        return dict.fromkeys(contents, "error")
    return {
        media_type: dict.fromkeys(_required(document, content.get("schema", {}), "", _DEPTH), True)
        for media_type, content in contents.items()
    }


def _required(
    document: dict[str, Any], schema: dict[str, Any], at: str, depth: int
) -> Iterator[str]:
    resolved = _resolved(document, schema)
    if not depth:
        return
    for name in resolved.get("required", []):
        path = f"{at}.{name}".lstrip(".")
        yield path
        yield from _required(
            document, resolved.get("properties", {}).get(name, {}), path, depth - 1
        )
    if "items" in resolved:
        yield from _required(document, resolved["items"], f"{at}[]", depth - 1)


def _resolved(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Resolve references; of alternatives, return the first that is not null."""
    while True:
        if "$ref" in schema:
            target: Any = document
            for key in schema["$ref"].removeprefix("#/").split("/"):
                target = target[key]
            schema = target
        elif "anyOf" in schema or "oneOf" in schema:
            options = schema.get("anyOf") or schema["oneOf"]
            schema = next(option for option in options if option.get("type") != "null")
        elif len(schema.get("allOf", [])) == 1:
            schema = schema["allOf"][0]
        else:
            return schema
