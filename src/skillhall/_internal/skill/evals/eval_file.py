"""Eval files: `evals/evals.json` and lists of trigger queries, in all variants."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from skillhall._internal.config_file.line_numbers import KeyPath, iter_json_lines
from skillhall._internal.skill.evals.eval_assertion import (
    TEXT_KEYS,
    CheckProblem,
    EvalAssertion,
    describe_check,
    known_keys,
    parse_check,
)
from skillhall._internal.skill.finding import Code, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MAX_EVAL_FILE_BYTES = 1024 * 1024
MAX_ENTRIES = 1000  # cases or queries in a file
MAX_FINDINGS = 100  # per file
TODO = "TODO:"  # prefix of each placeholder in a template

# The key of the agentskills.io guide comes first; public skills use the others.
_LIST_KEYS = ("evals", "cases", "tests", "queries")
_PROMPT_KEYS = ("prompt", "query", "input")
_QUERY_KEYS = ("query", "prompt", "input")
_EXPECTED_KEYS = ("expected_output", "expected")
_ASSERTION_KEYS = ("assertions", "expectations")
_FILE_KEYS = frozenset({"skill_name", *_LIST_KEYS})
_CASE_KEYS = frozenset(
    {"id", "files", "needs_scripts", *_PROMPT_KEYS, *_EXPECTED_KEYS, *_ASSERTION_KEYS}
)
_TRIGGER_KEYS = frozenset({"id", "should_trigger", *_QUERY_KEYS})


@dataclass(frozen=True, slots=True)
class FileMention:
    """An entry of `files` as written, and its line."""

    path: str
    line: int


@dataclass(frozen=True, slots=True)
class EvalCase:
    """One test case: a prompt and a description of a good result."""

    id: str
    prompt: str
    expected_output: str
    files: tuple[FileMention, ...]
    assertions: tuple[EvalAssertion, ...]
    needs_scripts: bool = False  # whether the agent must run scripts of the skill


@dataclass(frozen=True, slots=True)
class TriggerQuery:
    """One query, and whether an agent should load the skill for it."""

    query: str
    should_trigger: bool


@dataclass(frozen=True, slots=True)
class EvalFile:
    """The cases of an evals file, and the findings from reading it."""

    cases: tuple[EvalCase, ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class TriggerFile:
    """The queries of a trigger file, and the findings from reading it."""

    queries: tuple[TriggerQuery, ...]
    findings: tuple[Finding, ...]


def parse_eval_file(data: bytes, skill_name: str) -> EvalFile:
    """Parse an evals file of the skill `skill_name`. Never raises on bad input."""
    reader = _Reader(data)
    cases = [case for entry in reader.iter_entries(skill_name) if (case := reader.read_case(entry))]
    return EvalFile(tuple(cases), reader.limited_findings())


def parse_trigger_file(data: bytes, skill_name: str) -> TriggerFile:
    """Parse a trigger file of the skill `skill_name`. Never raises on bad input."""
    reader = _Reader(data)
    entries = reader.iter_entries(skill_name, is_list_expected=True)
    queries = [query for entry in entries if (query := reader.read_query(entry))]
    return TriggerFile(tuple(queries), reader.limited_findings())


@dataclass(frozen=True, slots=True)
class _Object:
    """A JSON object and its path in the document."""

    fields: Mapping[str, object]
    path: KeyPath


class _Reader:
    """Reads the values of one file and collects findings with their lines."""

    def __init__(self, data: bytes) -> None:
        self.findings: list[Finding] = []
        self.lines: dict[KeyPath, int] = {}
        self.ids: dict[str, int] = {}  # the line of each id
        self.queries: dict[str, tuple[TriggerQuery, int]] = {}  # by text, with its line
        self.document = self._parse(data)

    def limited_findings(self) -> tuple[Finding, ...]:
        """Return at most `MAX_FINDINGS` findings in line order, and one about the rest."""
        found = sorted(self.findings, key=lambda finding: finding.line or 0)
        if len(found) <= MAX_FINDINGS:
            return tuple(found)
        rest = len(found) - MAX_FINDINGS
        codes = {finding.code for finding in found[MAX_FINDINGS:]} - {
            Code.EVAL_VARIANT,
            Code.EVAL_UNKNOWN_KEY,
        }
        # Problems among the omitted findings must still fail the check.
        code = min(codes) if codes else Code.EVAL_VARIANT
        summary = Finding(code, f"{rest} more findings are not shown", found[MAX_FINDINGS].line)
        return (*found[:MAX_FINDINGS], summary)

    def iter_entries(self, skill_name: str, *, is_list_expected: bool = False) -> Iterator[_Object]:
        """Yield the objects in the file's list of cases or queries."""
        document = self.document
        if document is None:
            return
        entries, path = self._find_list(document, skill_name, is_list_expected=is_list_expected)
        if entries is None:
            return
        if not entries:
            self._add(Code.EVAL_FORM, "the list is empty", path, "add an entry, or remove the file")
        if len(entries) > MAX_ENTRIES:
            message = f"only the first {MAX_ENTRIES} of {len(entries)} entries are read"
            self._add(Code.EVAL_FORM, message, path)
        for number, entry in enumerate(entries[:MAX_ENTRIES]):
            if isinstance(entry, dict):
                yield _Object(entry, (*path, number))
            else:
                message = f"an entry must be an object, not {_describe(entry)}"
                self._add(Code.EVAL_FORM, message, (*path, number))

    def read_case(self, entry: _Object) -> EvalCase | None:
        """Return the case; `None` if it has no prompt."""
        self._note_unknown_keys(entry, _CASE_KEYS)
        case_id = self._read_id(entry)
        expected = self._read_text(entry, _EXPECTED_KEYS, is_required=False)
        files = self._read_files(entry)
        assertions = self._read_assertions(entry)
        prompt = self._read_text(entry, _PROMPT_KEYS)
        needs_scripts = self._read_flag(entry, "needs_scripts")
        if not prompt:
            return None
        return EvalCase(case_id, prompt, expected, files, assertions, needs_scripts)

    def read_query(self, entry: _Object) -> TriggerQuery | None:
        """Return the query; `None` if a field is missing or has the wrong type."""
        self._note_unknown_keys(entry, _TRIGGER_KEYS)
        query = self._read_text(entry, _QUERY_KEYS)
        should_trigger = entry.fields.get("should_trigger")
        if not isinstance(should_trigger, bool):
            problem = "is missing" if "should_trigger" not in entry.fields else "must be a boolean"
            path = (*entry.path, "should_trigger")
            self._add(Code.EVAL_FORM, f"'should_trigger' {problem}", path, "use true or false")
            return None
        return self._add_query(TriggerQuery(query, should_trigger), entry.path) if query else None

    def _add_query(self, query: TriggerQuery, path: KeyPath) -> TriggerQuery | None:
        """Return the query; `None` if the file already has it."""
        first = self.queries.setdefault(query.query, (query, self._line(path)))
        if first[0] is query:
            return query
        if first[0] == query:
            self._add(Code.EVAL_VARIANT, f"the query is already on line {first[1]}", path)
        else:
            message = f"the query on line {first[1]} has another 'should_trigger'"
            self._add(Code.EVAL_FORM, message, path, "remove one of them")
        return None

    def _parse(self, data: bytes) -> object | None:
        if len(data) > MAX_EVAL_FILE_BYTES:
            message = f"the file is larger than {MAX_EVAL_FILE_BYTES} bytes"
            self.findings.append(Finding(Code.EVAL_UNREADABLE, message, 1))
            return None
        if data.startswith(b"\xef\xbb\xbf"):
            message, hint = "the file starts with a byte order mark", "save it as UTF-8 without one"
            self.findings.append(Finding(Code.EVAL_JSON, message, 1, hint))
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            self.findings.append(Finding(Code.EVAL_JSON, "the file is not UTF-8 text", line))
            return None
        try:
            value: object = json.loads(text, parse_constant=_reject_constant)
        except json.JSONDecodeError as error:
            message = f"not valid JSON: {error.msg.lower()} (column {error.colno})"
            self.findings.append(Finding(Code.EVAL_JSON, message, error.lineno))
            return None
        except (ValueError, RecursionError) as error:
            reason = (
                str(error)
                if isinstance(error, _NotJson)
                else "it is nested too deeply, or a number is too long"
            )
            self.findings.append(Finding(Code.EVAL_JSON, f"not valid JSON: {reason}", 1))
            return None
        self._read_lines(text)
        if value is None:
            self._add(Code.EVAL_FORM, "the document must be an object, not null", ())
        return value

    def _read_lines(self, text: str) -> None:
        """Store the line of every value, and report keys that occur twice in an object."""
        repeated: KeyPath | None = None
        for path, line in iter_json_lines(text):
            if repeated is not None and path[: len(repeated)] == repeated and path != repeated:
                pass  # the members of a repeated key are not repeated themselves
            elif path in self.lines:
                repeated = path
                message = f"duplicate key {str(path[-1])[:100]!r}; the last value is used"
                self.findings.append(Finding(Code.EVAL_JSON, message, line, "remove one of them"))
            self.lines[path] = line

    def _find_list(
        self, document: object, skill_name: str, *, is_list_expected: bool
    ) -> tuple[Sequence[object] | None, KeyPath]:
        if isinstance(document, list):
            if not is_list_expected:
                message = "the document is a list instead of an object with 'evals'"
                self._add(Code.EVAL_VARIANT, message, ())
            return document, ()
        if not isinstance(document, dict):
            message = f"the document must be an object or a list, not {_describe(document)}"
            self._add(Code.EVAL_FORM, message, ())
            return None, ()
        top = _Object(document, ())
        self._note_unknown_keys(top, _FILE_KEYS)
        name = document.get("skill_name")
        if "skill_name" in document and name != skill_name:
            message = f"'skill_name' is {str(name)[:100]!r}, but the skill is {skill_name!r}"
            self._add(Code.EVAL_SKILL_NAME, message, ("skill_name",))
        key = self._choose_key(top, _LIST_KEYS)
        if key is None:
            name = "queries" if is_list_expected else _LIST_KEYS[0]
            self._add(Code.EVAL_FORM, f"the document has no list {name!r}", ())
            return None, ()
        if is_list_expected:
            message = f"the queries are in {key!r} instead of a list"
            self._add(Code.EVAL_VARIANT, message, (key,))
        elif key != _LIST_KEYS[0]:
            self._add(Code.EVAL_VARIANT, f"{key!r} is read as 'evals'", (key,))
        entries = document[key]
        if not isinstance(entries, list):
            message = f"{key!r} must be a list, not {_describe(entries)}"
            self._add(Code.EVAL_FORM, message, (key,))
            return None, ()
        return entries, (key,)

    def _read_id(self, entry: _Object) -> str:
        path = (*entry.path, "id")
        value = entry.fields.get("id")
        if value is None:
            self._add(Code.EVAL_VARIANT, "the case has no 'id'; its number is used", path)
            return str(int(entry.path[-1]) + 1)
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if isinstance(value, str) and not value.strip():
            self._add(Code.EVAL_FORM, "'id' is empty", path)
            return ""
        if not is_number and not isinstance(value, str):
            message = f"'id' must be a number or text, not {_describe(value)}"
            self._add(Code.EVAL_FORM, message, path)
            return ""
        case_id = str(value)
        if case_id in self.ids:
            message = f"the id {case_id[:100]!r} is already used on line {self.ids[case_id]}"
            self._add(Code.EVAL_ID, message, path, "give every case its own id")
        self.ids.setdefault(case_id, self._line(path))
        return case_id

    def _read_text(self, entry: _Object, keys: Sequence[str], *, is_required: bool = True) -> str:
        """Return the text at the first of `keys` that is set; "" if it cannot be used."""
        key = self._choose_key(entry, keys)
        if key is None:
            if is_required:
                self._add(Code.EVAL_FORM, f"{keys[0]!r} is missing", entry.path)
            return ""
        path, value = (*entry.path, key), entry.fields[key]
        if key != keys[0]:
            self._add(Code.EVAL_VARIANT, f"{key!r} is read as {keys[0]!r}", path)
        return self._check_text(value, f"{key!r}", path)

    def _choose_key(self, entry: _Object, keys: Sequence[str]) -> str | None:
        """Return the first of `keys` that is set, and report that the others are ignored."""
        found = [key for key in keys if key in entry.fields]
        for key in found[1:]:
            message = f"{key!r} is ignored, because there is {found[0]!r}"
            self._add(Code.EVAL_VARIANT, message, (*entry.path, key), "use one of them")
        return next(iter(found), None)

    def _check_text(self, value: object, label: str, path: KeyPath) -> str:
        if not isinstance(value, str):
            self._add(Code.EVAL_FORM, f"{label} must be text, not {_describe(value)}", path)
            return ""
        if not value.strip():
            self._add(Code.EVAL_FORM, f"{label} is empty", path)
            return ""
        if any("\ud800" <= character <= "\udfff" for character in value):
            self._add(Code.EVAL_FORM, f"{label} contains half of a surrogate pair", path)
            return ""
        if value.lstrip().startswith(TODO):
            self._add(Code.EVAL_TODO, f"{label} is still a TODO", path, "replace the text")
        return value

    def _read_list(self, entry: _Object, key: str) -> Sequence[object]:
        value = entry.fields.get(key, [])
        if isinstance(value, list):
            return value
        message = f"{key!r} must be a list, not {_describe(value)}"
        self._add(Code.EVAL_FORM, message, (*entry.path, key))
        return ()

    def _read_flag(self, entry: _Object, key: str) -> bool:
        value = entry.fields.get(key, False)
        if not isinstance(value, bool):
            message = f"{key!r} must be a boolean, not {_describe(value)}"
            self._add(Code.EVAL_FORM, message, (*entry.path, key), "use true or false")
        return value is True

    def _read_files(self, entry: _Object) -> tuple[FileMention, ...]:
        files = []
        for number, value in enumerate(self._read_list(entry, "files")):
            path = (*entry.path, "files", number)
            if text := self._check_text(value, "an entry of 'files'", path):
                files.append(FileMention(text, self._line(path)))
        return tuple(files)

    def _read_assertions(self, entry: _Object) -> tuple[EvalAssertion, ...]:
        # Versions of the agentskills.io guide differ in this key, so neither name is a deviation.
        key = self._choose_key(entry, _ASSERTION_KEYS) or _ASSERTION_KEYS[0]
        assertions = (
            self._read_assertion(value, (*entry.path, key, number))
            for number, value in enumerate(self._read_list(entry, key))
        )
        return tuple(one for one in assertions if one is not None)

    def _read_assertion(self, value: object, path: KeyPath) -> EvalAssertion | None:
        if not isinstance(value, dict):
            text = self._check_text(value, "an assertion", path)
            return EvalAssertion(text, line=self._line(path)) if text else None
        self._add(Code.EVAL_VARIANT, "an assertion is an object instead of text", path)
        self._note_unknown_keys(_Object(value, path), known_keys(value.get("type")))
        key = next((key for key in TEXT_KEYS if key in value), None)
        text = "" if key is None else self._check_text(value[key], "an assertion", (*path, key))
        check = parse_check(value)
        if isinstance(check, CheckProblem):
            self._add_check_problem(check, path, is_judged=bool(text))
            check = None
        if check is not None and not text:
            text = describe_check(check)
        if not text and key is None:
            self._add(Code.EVAL_FORM, "the assertion has no 'text'", path)
        return EvalAssertion(text, check, self._line(path)) if text else None

    def _add_check_problem(self, problem: CheckProblem, path: KeyPath, *, is_judged: bool) -> None:
        """Report an unusable check; a judge decides if the assertion also has a text."""
        code = Code.EVAL_VARIANT if is_judged else Code.EVAL_FORM
        message = f"{problem.message}; a model judges the text" if is_judged else problem.message
        self._add(code, message, (*path, problem.key))

    def _note_unknown_keys(self, entry: _Object, known: frozenset[str]) -> None:
        for key in entry.fields:
            if key not in known:
                message = f"unknown key {key[:100]!r}"
                self._add(Code.EVAL_UNKNOWN_KEY, message, (*entry.path, key))

    def _line(self, path: KeyPath) -> int:
        """Return the line of the value, else of its nearest parent."""
        sizes = range(len(path), -1, -1)
        return next(self.lines[path[:size]] for size in sizes if path[:size] in self.lines)

    def _add(self, code: Code, message: str, path: KeyPath, hint: str = "") -> None:
        self.findings.append(Finding(code, message, self._line(path), hint))


class _NotJson(ValueError):
    """A constant that Python accepts, but that is not JSON."""


def _reject_constant(constant: str) -> NoReturn:
    raise _NotJson(f"{constant} is not a JSON value")


def _describe(value: object) -> str:
    names = {bool: "a boolean", int: "a number", float: "a number", str: "text", list: "a list"}
    return "null" if value is None else names.get(type(value), "an object")
