"""Commands, options and arguments in help pages, without their descriptions."""

import re
from typing import Any

_COMMAND = re.compile(r"^  ([a-z][a-z-]*)(?:  |$)", re.MULTILINE)
_OPTION = re.compile(r"^  (-{1,2}[a-zA-Z].*)$", re.MULTILINE)
_NAME = re.compile(r"(?<!\S)-{1,2}[a-zA-Z][\w-]*")
_CHOICES = re.compile(r"\[([\w-]+(?:\|[\w-]+)+)\]")


def subcommands(page: str) -> list[str]:
    """Return the commands that the page of a group lists."""
    _, _, after = page.partition("\nOptions:")
    _, _, commands = after.partition("\n\n")
    return _COMMAND.findall(commands)


def interface(page: str) -> dict[str, Any]:
    """Return the options with their choices, and the kinds of the arguments."""
    options: dict[str, Any] = {}
    for line in _OPTION.findall(page):
        definition = re.split(r" {2,}", line)[0]
        choices = _CHOICES.search(definition)
        words = [word for word in definition.replace(",", " ").split() if not word.startswith("-")]
        for name in _NAME.findall(definition.replace(",", " ")):
            options[name] = {"takesValue": bool(words)}
            if choices:
                options[name]["choices"] = dict.fromkeys(choices.group(1).split("|"), True)
    return {"options": options, "arguments": _arguments(page)}


def _arguments(page: str) -> list[str]:
    usage = " ".join(page.partition("\n\n")[0].split())
    words = usage.partition("[OPTIONS]")[2].split()
    if words == ["[COMMAND]", "[ARGS]..."]:
        return []
    if "|" in words:  # only the first of several alternatives
        words = words[: words.index("|")]
    return [_kind(word) for word in words]


def _kind(word: str) -> str:
    many = "many " if word.endswith("...") else ""
    return many + ("optional" if word.startswith("[") else "required")
