"""The reference of errors, generated from their classes, hints and statuses."""

import inspect
import re
from collections.abc import Iterator

from skillhall import errors
from skillhall._internal.cli.errors import EXIT_CODES
from skillhall._internal.cli.errors import HINTS as CLI_HINTS
from skillhall._internal.hints import COMMON_HINTS
from skillhall._internal.http.errors import ERROR_STATUSES
from skillhall._internal.http.errors import HINTS as HTTP_HINTS

HEAD = """\
# Errors

Every error has a kind, which is unique for its cause, and a code, which many kinds share. The code
determines the exit code of a command and the HTTP status of a response. Commands print the link to
this page after the hint; JSON output and REST responses have it as `docs`. Programs catch the
class: `from skillhall.errors import SkillNotFound`.

This page is generated from the code.
"""
# How to fix errors that have no hint, because their message already says what is wrong.
FIXES = {
    "busy": "Wait until one of the running requests has ended, then try again.",
    "config_error": "Correct the part of the configuration that the message names.",
    "config_invalid": "Correct the file or variable in the message, at the line it names.",
    "edit_refused": "Edit the SKILL.md in an editor; `skillhall validate` checks it.",
    "field_refused": "Send a value that the message allows.",
    "following_off": "Set `SKILLHALL_PROMPTS_REPO` to the repository on every server.",
    "identity_refused": "Sign in again. If it fails again, ask an administrator of the server.",
    "install_error": "Follow the message; `skillhall verify` shows the state of installed skills.",
    "invalid_arguments": "Send text, numbers or booleans as the values of a prompt's arguments.",
    "invalid_input_error": "Correct the argument that the message names.",
    "invalid_skill_error": "Run `skillhall validate`, which explains each finding.",
    "missing_arguments": "Send the arguments that the message names; empty ones count as missing.",
    "model_error": "Check the model and its provider in the config.",
    "model_unavailable": "Check the name of the model, its API key and the connection.",
    "not_a_file": "Name a regular file, or replace what is there with one.",
    "not_found_error": "Check the spelling of the name.",
    "prompt_not_found": "`skillhall prompts list` shows the prompts of the source.",
    "prompts_source_error": "Check the URL and the token of the repository, then try again.",
    "provider_unavailable": "Try again, and check `SKILLHALL_OIDC_ISSUER` on the server.",
    "rate_limited": "Wait, or use a token: the host then allows more requests.",
    "record_not_found": "List the records to find the id; another user may have deleted it.",
    "server_refused": "Follow the server's message.",
    "skill_file_not_found": "`skillhall show NAME` lists the files of a skill.",
    "skillhall_error": "Follow the message.",
    "skills_not_served": "Use a server that offers skills, or use it as an MCP server directly.",
    "source_error": "Check the source that the message names.",
    "source_rejected": "Name a source of another form; `skillhall add --help` lists them.",
    "store_error": "Reload the object and try again.",
    "too_large": "Make the content smaller, or split it into several files.",
    "unknown_profile": "`skillhall profiles` lists the profiles.",
    "unsafe_path": "Use a plain relative path inside the folder, without `..`.",
    "upload_rejected": "Correct what the message names, and upload again.",
    "user_not_found": "`skillhall user list` shows the users.",
    "role_required": "Ask an administrator of the server for another role.",
    "sandbox_unavailable": "Install bubblewrap, and allow it to create user namespaces.",
    "scope_required": "Create a token with `skillhall token new NAME --scope SCOPE`.",
}
# Codes of errors that the command line or the server reports itself, with cause and fix.
CODES = {
    "usage": ("The command line is not valid.", "`skillhall COMMAND --help` shows the options."),
    "internal": (
        "A bug in Skillhall.",
        "Run the command again with `SKILLHALL_DEBUG=1`, and report the traceback.",
    ),
    "storage_full": (
        "The disk is full, or your quota is used up.",
        "Free some space, then try again.",
    ),
    "storage_unavailable": (
        "A file or folder cannot be read or written.",
        "Check its permissions, and that the disk is mounted.",
    ),
    "cross_origin": (
        "A browser sent a request from a page of another host.",
        "Send it from a page of the server, or with a token.",
    ),
    "head_too_large": ("The headers of the request are too large.", "Send smaller headers."),
    "method_not_allowed": (
        "The route exists, but not with this method.",
        "The header `Allow` of the response lists the methods.",
    ),
    "misdirected": (
        "The server does not know the host in the header `Host`.",
        "Add it to `SKILLHALL_ALLOWED_HOSTS`, or set `SKILLHALL_PUBLIC_URL`.",
    ),
    "not_ready": ("The server has not finished its first load.", "Wait for `GET /readyz`."),
    "overloaded": (
        "All threads for this kind of request are busy.",
        "Send the request again after the number of seconds in `Retry-After`.",
    ),
    "precondition_required": (
        "A change was sent without the version that it is based on.",
        "Send `If-Match` with the `ETag` of the object.",
    ),
    "request_timeout": ("The request did not arrive in time.", "Send it again."),
    "server_timeout": ("The server did not respond in time.", "Try again later."),
    "shutting_down": ("The server is stopping.", "Send the request again after a few seconds."),
    "unsupported_media_type": (
        "The route does not accept this content type.",
        "Send JSON, or the content type that the route documents.",
    ),
    "denied_outside_root": (
        "A tool of an agent was asked for a file outside of its folder.",
        "Name a file inside the folder.",
    ),
    "denied_extension": (
        "A tool of an agent may not read files of this kind.",
        "Use a text file, or copy the content into one.",
    ),
    "not_text": ("The file is not UTF-8 text.", "Save it as UTF-8, or read its bytes."),
    "too_many": ("There are more files than allowed.", "Remove files, or split the skill."),
    "too_many_requests": (
        "Too many wrong credentials came from this address.",
        "Check the token, and wait for the number of seconds in `Retry-After`.",
    ),
}
_EXAMPLE = re.compile(r"^>>> print\((.+)\)\n(.+)$", re.MULTILINE)


def build_error_reference() -> str:
    """Return the reference as a Markdown page."""
    lines = [HEAD, "## Kinds", ""]
    for name in errors.__all__:
        lines += _describe(name, getattr(errors, name))
    lines += ["## Codes", ""]
    for code in sorted({*EXIT_CODES, *ERROR_STATUSES}):
        lines += _describe_code(code)
    lines += ["## Exit codes and statuses", "", "| Code | Exit code | HTTP |", "|---|---|---|"]
    for code in sorted({*EXIT_CODES, *ERROR_STATUSES}):
        status = ERROR_STATUSES.get(code)
        shown = f"{status.http_status} `{status.code}`" if status else ""
        lines.append(f"| `{code}` | {EXIT_CODES.get(code, '')} | {shown} |")
    return "\n".join(lines) + "\n"


def find_fixes(kind: str) -> list[str]:
    """Return the fixes of an error: the hints of all surfaces, else its own fix."""
    hints: dict[str, None] = {}
    for table in (COMMON_HINTS, CLI_HINTS, HTTP_HINTS):
        for key, hint in table.items():
            if key.partition(".")[0] == kind:
                hints[_format_hint(hint)] = None
    return [*hints] or [FIXES[kind]]


def _describe(name: str, cls: type[errors.SkillhallError]) -> Iterator[str]:
    text = inspect.getdoc(cls) or ""
    kind = cls.kind if cls is not errors.SkillhallError else "skillhall_error"
    yield from (f"### `{kind}`", "", text.partition("\n\n")[0].replace("\n", " "))
    yield from ("", f"`{name}`, code `{cls.code}`. {_format_effects(cls.code)}", "")
    fixes = find_fixes(kind)
    if len(fixes) == 1:
        yield from (f"**Fix:** {fixes[0]}", "")
    else:
        yield from ("**Fix**, depending on the case:", "", *(f"- {fix}" for fix in fixes), "")
    yield from ("**Example:**", "", *_find_example(cls, text), "")


def _find_example(cls: type[errors.SkillhallError], text: str) -> list[str]:
    """Return the message of an example: in the docstring, template or program."""
    if example := _EXAMPLE.search(text):
        return ["```text", f"error: {example[2]}", "```"]
    if template := cls._template:
        message = re.sub(r"\{(\w+)!r\}", r"'{\1}'", template)
        message = re.sub(r"\{(\w+)[^}]*\}", lambda match: match[1].upper(), message)
        return ["```text", f"error: {message}", "```"]
    return [text[text.index("```python") :]]


def _describe_code(code: str) -> Iterator[str]:
    yield from (f"### Code `{code}`", "")
    if code in CODES:
        cause, fix = CODES[code]
        yield from (f"{cause} {_format_effects(code)}", "", f"**Fix:** {fix}", "")
    classes = [getattr(errors, name) for name in errors.__all__]
    kinds = [cls.kind for cls in classes if cls.code == code and cls.kind != "internal"]
    if kinds:
        links = ", ".join(f"[`{kind}`](#{kind})" for kind in kinds)
        if code not in CODES:
            yield from (f"{_format_effects(code)} The message says what is wrong.", "")
        yield from (f"Kinds with this code: {links}.", "")


def _format_effects(code: str) -> str:
    exit_code, status = EXIT_CODES.get(code), ERROR_STATUSES.get(code)
    parts = [] if exit_code is None else [f"Exit code {exit_code}"]
    if status:
        parts.append(f"HTTP {status.http_status} `{status.code}`")
    return ", ".join(parts) + "."


def _format_hint(hint: str) -> str:
    """Return a hint as a sentence, with placeholders, and its commands as code."""
    text = re.sub(r"\{(\w+)[^}]*\}", lambda match: match[1].upper(), hint)
    text = re.sub(r"'(skillhall [^']+)'", r"`\1`", text)
    text = re.sub(r"(?<![`\w])(SKILLHALL_[A-Z_]+)(?!\w)(?![^`]*`[^`]*$)", r"`\1`", text)
    return text[:1].upper() + text[1:] + "."
