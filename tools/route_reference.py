"""The reference of REST routes, generated from the OpenAPI document."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

from fastapi import APIRouter

from skillhall._internal import rest
from skillhall._internal.rest.app import build_fastapi_app, build_openapi_document

HEAD = """\
# REST routes

Every route of the REST API with its parameters and responses, from the OpenAPI document, which a
server has at `/api/v1/openapi.json`. [REST](rest.md) explains envelopes, versions, search, sessions
and webhooks.

This page is generated from the code.
"""
_METHODS = ("get", "post", "put", "patch", "delete")


def build_route_reference() -> str:
    """Return the reference as a Markdown page."""
    document = build_document()
    lines = [HEAD]
    for path, item in document["paths"].items():
        for method in _METHODS:
            if method in item:
                lines += _describe(document, f"{method.upper()} {path}", item[method])
    return "\n".join(lines).rstrip() + "\n"


def build_document() -> dict[str, Any]:
    """Return the OpenAPI document of all REST modules."""
    modules = [
        import_module(info.name) for info in walk_packages(rest.__path__, f"{rest.__name__}.")
    ]
    routers = [vars(module).get("router") for module in modules]
    app = build_fastapi_app([r for r in routers if isinstance(r, APIRouter)], _do_nothing)
    document = build_openapi_document(app)
    document["paths"] = dict(sorted(document["paths"].items()))
    return document


async def _do_nothing() -> None:
    """Start nothing: the app serves no requests."""


def _describe(
    document: Mapping[str, Any], title: str, operation: Mapping[str, Any]
) -> Iterator[str]:
    yield from (f"## {title}", "")
    text = operation.get("description") or operation.get("summary", "")
    yield from (" ".join(text.split()), "")
    rows = [*_list_parameters(operation), *_list_fields(document, operation)]
    if rows:
        yield from ("| In | Name | Type | |", "|---|---|---|---|", *rows, "")
    yield from ("| Response | |", "|---|---|")
    for status, response in sorted(operation["responses"].items()):
        yield f"| {status} | {response.get('description', '')} |"
    yield ""


def _list_parameters(operation: Mapping[str, Any]) -> Iterator[str]:
    for parameter in operation.get("parameters", []):
        required = "required" if parameter.get("required") else ""
        kind = _format_type(parameter.get("schema", {}))
        yield f"| {parameter['in']} | `{parameter['name']}` | {kind} | {required} |"


def _list_fields(document: Mapping[str, Any], operation: Mapping[str, Any]) -> Iterator[str]:
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        schema = _resolve(document, content.get("schema", {}))
        for name, field in schema.get("properties", {}).items():
            required = "required" if name in schema.get("required", []) else ""
            kind = _format_type(field)
            yield f"| body, `{media_type}` | `{name}` | {kind} | {required} |"
        if not schema.get("properties"):
            yield f"| body | `{media_type}` | {_format_type(schema)} | |"


def _resolve(document: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    for part in (schema, *schema.get("anyOf", [])):
        if "$ref" in part:
            name = part["$ref"].rpartition("/")[2]
            resolved: Mapping[str, Any] = document["components"]["schemas"][name]
            return resolved
    return schema


def _format_type(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return f"`{schema['$ref'].rpartition('/')[2]}`"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_format_type(part) for part in schema["anyOf"]))
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_format_type(schema.get('items', {}))}"
    return str(schema.get("type", "any"))
