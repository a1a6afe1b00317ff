"""The reference of the Python library, generated from signatures and docstrings."""

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from types import FunctionType, ModuleType

import skillhall
from skillhall import errors

HEAD = """\
# Library

The public names of the Python package, generated from the code. Everything below
`skillhall._internal` is private. See [Give your agent skills](../guides/library.md) for an
introduction.

- `StrPath` is `str | os.PathLike[str]`.
- Everything is synchronous. In async code, use `await asyncio.to_thread(Skills.load, "skills")`.
  `Skills` and `Skill` are immutable and can be shared between threads and tasks.
- Before version 1.0, a minor version may rename or remove a name. The old name works for at least
  one minor version, with a `DeprecationWarning` that says what to use instead.
"""
# Modules besides `skillhall` and `skillhall.errors`, with the extra that they need.
MODULES = {
    "types": "",
    "chat": "pydantic-ai",
    "adapters.pydantic_ai": "pydantic-ai",
    "adapters.openai_agents": "openai-agents",
    "adapters.langchain": "langchain",
    "adapters.anthropic": "anthropic",
    "adapters.google_adk": "adk",
    "adapters.smolagents": "smolagents",
    "adapters.deepagents": "deepagents",
    "adapters.claude_agent_sdk": "claude-agent-sdk",
    "adapters.llama_index": "llamaindex",
    "adapters.agent_framework": "agent-framework",
    "adapters.haystack": "haystack",
    "adapters.json_schema": "",
    "scripts": "",
    "mcp_source": "",
    "compat": "",
}


def build_reference() -> str:
    """Return the reference as a Markdown page."""
    lines = [HEAD, "## skillhall", ""]
    names = [name for name in skillhall.__all__ if name != "__version__"]
    lines += [f"`{'`, `'.join(names)}`, `__version__`", ""]
    for name in names:
        value = getattr(skillhall, name)
        if not _is_error(value):
            lines += _describe(name, value)
    lines += ["## skillhall.errors", "", *_describe_errors()]
    for name, extra in MODULES.items():
        module = import_module(f"skillhall.{name}")
        lines += [f"## skillhall.{name}", "", inspect.getdoc(module) or "", ""]
        if extra:
            lines += [f"Needs `pip install 'skillhall[{extra}]'`.", ""]
        lines += [*_list_members(module), ""]
    return "\n".join(lines).rstrip() + "\n"


def _is_error(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Exception)


def _describe(name: str, value: object) -> Iterator[str]:
    yield from (f"### {name}", "")
    if isinstance(value, FunctionType):
        yield from ("```py", _format_signature(name, value), "```", "")
    yield from (inspect.getdoc(value) or "", "")
    if isinstance(value, type):
        fields = list(_list_fields(value))
        if fields:
            yield from ("| Field | Type |", "|---|---|", *fields, "")
        for member in _list_methods(value):
            yield from member


def _list_fields(cls: type) -> Iterator[str]:
    if dataclasses.is_dataclass(cls) or hasattr(cls, "_fields"):
        for field, kind in inspect.get_annotations(cls).items():
            if not field.startswith("_"):
                text = str(getattr(kind, "__forward_arg__", kind))  # as `NamedTuple` stores it
                yield f"| `{field}` | `{text.replace('|', chr(92) + '|')}` |"


def _list_methods(cls: type) -> Iterator[list[str]]:
    for name, member in vars(cls).items():
        if name.startswith("_"):
            continue
        function = getattr(member, "__func__", member)
        text = inspect.getdoc(member) or inspect.getdoc(getattr(member, "func", None)) or ""
        if isinstance(function, FunctionType):
            signature = _format_signature(name, function)
            yield [f"#### {cls.__name__}.{name}", "", "```py", signature, "```", "", text, ""]
        elif isinstance(member, property) or hasattr(member, "func"):
            yield [f"#### {cls.__name__}.{name}", "", text, ""]


def _format_signature(name: str, function: Callable[..., object]) -> str:
    signature = inspect.signature(function)
    parameters = [
        parameter.replace(annotation=_unquote(parameter.annotation))
        for parameter in signature.parameters.values()
        if parameter.name not in ("self", "cls")
    ]
    shown = signature.replace(
        parameters=parameters, return_annotation=_unquote(signature.return_annotation)
    )
    return f"{name}{shown}"


class _Bare:
    """An annotation that is printed without quotes."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _unquote(annotation: object) -> object:
    return _Bare(annotation) if isinstance(annotation, str) else annotation


def _describe_errors() -> Iterator[str]:
    yield "Every error is a `SkillhallError` with `code`, `kind`, `facts` and a message."
    yield "Catch a family or one class:"
    yield ""
    families = [
        cls
        for cls in vars(errors).values()
        if isinstance(cls, type) and cls.__bases__ == (errors.SkillhallError,)
    ]
    yield "| Error | Code | Meaning |"
    yield "|---|---|---|"
    for family in families:
        yield f"| **`{family.__name__}`** | | {_first_line(family)} |"
        for name in errors.__all__:
            cls: type[errors.SkillhallError] = getattr(errors, name)
            if cls is not family and issubclass(cls, family):
                yield f"| `{name}` | `{cls.code}` | {_first_line(cls)} |"
    yield ""


def _list_members(module: ModuleType) -> Iterator[str]:
    yield "| Name | Description |"
    yield "|---|---|"
    for name in module.__all__:
        yield f"| `{name}` | {_first_line(getattr(module, name))} |"


def _first_line(value: object) -> str:
    return (inspect.getdoc(value) or "").partition("\n")[0]
