"""Rule for hidden instructions: Markdown comments, which readers do not see."""

from __future__ import annotations

import re
from collections.abc import Iterator

from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.risks.excerpt import build_excerpt
from skillhall._internal.skill.risks.rule_engine import MAX_PIECE_LENGTH, RuleHit, ScannedText
from skillhall._internal.skill.risks.secret_rules import redact_secrets

_OPEN, _CLOSE = "<!--", "-->"
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
# Instructions that are never notes to another author: send data, run something from the web, or
# ignore instructions or the user.
_EXTERNAL_DESTINATION = re.compile(
    r"\b(?:to|via|through|into)\s[^\n]{0,20}?"
    r"(?:https?://|ftp://|[\w.]{1,40}@[\w-]{1,40}\.\w|webhook|(?:remote|our|external) server)"
)
_SEND_VERB = re.compile(
    r"\b(?:send|post|upload|exfiltrate|forward|e-?mail|transmit|leak|submit|report|copy|append"
    r"|paste|include|embed|encode|attach|put|write|share|pass)(?:s|ing)?\b"
)
_MAX_SEND_DISTANCE = 100  # characters between the verb and the destination
_SECRETS = re.compile(
    r"\.env\b|\.ssh\b|\.aws\b|\bid_rsa\b|\bsecrets?\b|\bpasswords?\b|\bcredentials?\b|\bcookies?\b"
    r"|\btokens?\b(?!\s(?:page|name|count|limit|budget|usage|type))|\benvironment variables?\b"
    r"|\b(?:api|private|access|ssh)[ _-]keys?\b|\bwallets?\b|\bsystem prompt\b|\bfile contents?\b"
    r"|\b(?:chat|conversation|message) (?:history|log)\b|\bsource code\b"
)
_RUN_VERB = re.compile(
    r"\b(?:run|execute|install|download|fetch|curl|wget|load|read|open|visit|follow|call)\b"
)
_REMOTE_CODE = re.compile(
    r"\b(?:curl|wget|npx|pipx?|npm|bash|sh|powershell|iex)\b[^\n]{0,80}https?://"
    r"|https?://\S{1,200}\.(?:sh|ps1|py|js|exe|md|txt)\b|\|\s{0,4}(?:ba|z)?sh\b|\brm\s+-rf\b"
)
_INSTRUCTION_OVERRIDE = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass)\b[^.]{0,40}\b(?:instructions?|rules|prompts?"
    r"|guidelines|safety|everything|warnings?|approvals?|confirmations?|polic(?:y|ies))\b"
    r"|\b(?:do not|don['’]t|never|without)\s+(?:tell|inform|mention|show|notify|reveal|ask|alert)"
    r"(?:ing)?\s+(?:this|the user|users?|anyone|it|them)\b|\bpretend\b|\b(?:act|behave) as\b"
)
_ADDRESSES_AGENT = re.compile(
    r"\b(?:you must|you should|you are|assistants?|agents?|the model|ai|llms?|claude|gpt|copilot"
    r"|gemini|important|system|when the user|if the user|whenever)\b"
)
# Notes to other authors, and directives for tools.
_AUTHOR_NOTE = re.compile(
    r"[\s\W]{0,20}(?:todo|fixme|markdownlint|prettier|eslint|textlint|vale|toc|cspell|optional"
    r"|replace|fill|insert|describe|delete this|remove this|example|template|generated"
    r"|auto-?generated|do not edit|source|see|begin|end|start|keep|customi[sz]e|add|list|edit"
    r"|placeholder|license|spdx|copyright|vim|omit|if you|when you|for each|use this|adapt|update"
    r"|change|note for|notes? to (?:the )?(?:author|maintainer|editor|contributor)s?)\b"
)
_WORDS = re.compile(r"[a-z0-9]+")
_MIN_WORDS = 4


def find_hidden_comments(lines: ScannedText) -> Iterator[RuleHit]:
    """Find comments with instructions that the visible text does not repeat."""
    if _OPEN not in lines.text:
        return
    comments = list(_find_comments(lines.lower))
    parts, at = [], 0
    for start, end in comments:
        parts.append(lines.lower[at:start])
        at = end
    visible = _normalize_words(" ".join([*parts, lines.lower[at:]]))
    for start, end in comments:
        inner = lines.lower[start + len(_OPEN) : end][:MAX_PIECE_LENGTH]
        if _is_instruction(inner) and _normalize_words(inner) not in visible:
            text = lines.text[start : min(end + len(_CLOSE), start + MAX_PIECE_LENGTH)]
            shown = build_excerpt(redact_secrets(text))
            number = lines.find_line_number(start)
            yield RuleHit(Code.HIDDEN_COMMENT, "hidden comment", number, shown)


def _is_instruction(comment: str) -> bool:
    if len(comment.split()) < _MIN_WORDS:
        return False
    # Whether it says to send something to an external destination.
    sends = any(
        _SEND_VERB.search(comment, max(0, match.start() - _MAX_SEND_DISTANCE), match.start())
        for match in _EXTERNAL_DESTINATION.finditer(comment)
    )
    secrets = _SECRETS.search(comment) is not None
    if sends and secrets:
        return True
    if _AUTHOR_NOTE.match(comment) is not None:
        return False
    if _INSTRUCTION_OVERRIDE.search(comment) or (
        _RUN_VERB.search(comment) and _REMOTE_CODE.search(comment)
    ):
        return True
    acts = sends or (secrets and _RUN_VERB.search(comment) is not None)
    return acts and _ADDRESSES_AGENT.search(comment) is not None


def _find_comments(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each comment outside fenced code."""
    fences = [match.start() for match in _FENCE.finditer(text)]
    passed = 0
    at = text.find(_OPEN)
    while at >= 0:
        while passed < len(fences) and fences[passed] < at:
            passed += 1
        end = text.find(_CLOSE, at + len(_OPEN))
        end = len(text) if end < 0 else end
        if passed % 2 == 0:
            yield at, end
            # Fences inside a comment do not count.
            while passed < len(fences) and fences[passed] < end:
                del fences[passed]
        at = text.find(_OPEN, end if passed % 2 == 0 else at + 1)


def _normalize_words(text: str) -> str:
    return " ".join(_WORDS.findall(text))
