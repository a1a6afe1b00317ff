"""What clients rely on in an OpenAPI document, without the names of its schemas."""

from collections.abc import Iterator
from typing import Any

_METHODS = ("get", "put", "post", "delete", "patch")
_DEPTH = 6  # levels of a response that are looked at; deeper ones are free-form


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
        "parameters": {f"{one['in']} {one['name']}": True for one in parameters},
        # An array, since no further parameter may become required.
        "requiredParameters": sorted(
            f"{one['in']} {one['name']}" for one in parameters if one.get("required")
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
    found = _resolved(document, schema)
    return {
        "fields": dict.fromkeys(found.get("properties", {}), True),
        "required": sorted(found.get("required", [])),
    }


def _response(
    document: dict[str, Any], response: dict[str, Any], *, is_error: bool
) -> dict[str, Any]:
    """The media types, each with the fields that its responses always have.

    All errors have one shape, which the recorded errors show.
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
    found = _resolved(document, schema)
    if not depth:
        return
    for name in found.get("required", []):
        path = f"{at}.{name}".lstrip(".")
        yield path
        yield from _required(document, found.get("properties", {}).get(name, {}), path, depth - 1)
    if "items" in found:
        yield from _required(document, found["items"], f"{at}[]", depth - 1)


def _resolved(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """The schema itself, behind its references; of alternatives, the first that is not null."""
    while True:
        if "$ref" in schema:
            found: Any = document
            for key in schema["$ref"].removeprefix("#/").split("/"):
                found = found[key]
            schema = found
        elif "anyOf" in schema or "oneOf" in schema:
            options = schema.get("anyOf") or schema["oneOf"]
            schema = next(one for one in options if one.get("type") != "null")
        elif len(schema.get("allOf", [])) == 1:
            schema = schema["allOf"][0]
        else:
            return schema
