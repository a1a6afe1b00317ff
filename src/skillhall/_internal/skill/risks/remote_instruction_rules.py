"""Remote instructions: text that makes an agent fetch a page and follow it.

The owner of the page then controls the agent. The page, the verb for fetching and the verb for
following may be in one sentence or in two, in any order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice

from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.risks.lazy_pattern import LazyPattern
from skillhall._internal.skill.risks.rule_engine import (
    RiskRule,
    RuleHit,
    ScannedText,
)
from skillhall._internal.skill.risks.triggers import with_literals

_MAX_BEFORE = 200  # characters between the verb and the URL
_MAX_AFTER = 320  # characters between the URL and "follow it"
_MAX_URLS = 500  # of one file
_MAX_SENTENCES = 2  # between the URL and the instruction
_DESCRIPTION = "fetches and follows instructions"
REMOTE_INSTRUCTION_RULE = RiskRule(
    Code.REMOTE_INSTRUCTIONS, _DESCRIPTION, (), lambda _: None, with_literals({"://": ""})
)

_URL = LazyPattern(r"(?:https?|ftp)://(?!localhost|127\.|0\.0\.0\.0|\[::1)[^\s<>\"'`)\]]{3,300}")
# The end of a sentence or list item. The dots in a URL have no space after them.
_SENTENCE_END = LazyPattern(r"[.!?;](?=[\s*_)\"'])|\n\s{0,8}\n|\n\s{0,8}(?:[-*+•#>]|\d{1,3}[.)])\s")
_SECTION_BREAK = LazyPattern(r"\n\s{0,8}#{1,6}\s|\n\s{0,8}\n\s{0,8}\n")
_LIST_ITEM = LazyPattern(r"\n\s{0,8}(?:[-*+•]|\d{1,3}[.)])\s")
_LEADING_VERB = LazyPattern(
    r"\W{0,6}(?:(?:then|next|now|and|finally|always),?\s)?"
    r"(?:follow|obey|execute|carry|act|perform|comply|do|run|apply|treat|use|read|fetch)\b"
)
_FETCH_VERBS = (
    r"\b(?:fetch|download|retrieve|curl|wget|webfetch|web_fetch|load|pull|import|scrape|request|get"
    r"|grab|obtain|access|read|open|visit|browse|consult|review|study|check|go\s+to|navigate\s+to"
    r"|head\s+to|look\s+at|query|poll|call|ask|use)(?:s|ing|es)?\b"
)
_FETCH_PATTERN = LazyPattern(_FETCH_VERBS)
_INSTRUCTION_NOUNS = (
    r"(?:instructions?|directions?|directives?|commands?|steps?|orders?|prompts?|procedures?"
    r"|playbook|tasks?|guidance)"
)
_PERFORM_VERBS = r"(?:implement|apply|run|do|complete|perform|execute|carry\s+out)(?:s|ing)?"
_FOLLOW_VERBS = (
    r"(?:follow|obey|act\s+(?:on|upon|according\s+to)|comply\s+with|adhere\s+to|abide\s+by)"
    r"(?:s|ing)?"
)
# Words between the verb and "instructions". "These" is left out: "these steps" are in the skill.
_DETERMINERS = (
    r"(?:\s+(?:all|any|every|each|the|its|their|of|those|whatever|whichever|that|exact|full"
    r"|complete|latest|current|embedded|remote|included|returned|resulting|contained)){0,4}"
)
_OWN_SECTION = r"(?:\s*:|\s+(?:below|above|in\s+this\s+(?:skill|file|section)|here\b))"
_SAY_VERBS = (
    r"(?:say|says|tells?|contains?|asks?|instructs?|describes?|lists?|directs?|commands?|states?)\b"
)
_PAGE_PRONOUN = r"(?:it|them|that|this|the\s+\w{1,12}|its?\s+\w{1,12}|what\s+\w{1,12}\s+\w{1,12})"
_FOLLOW_PATTERN = LazyPattern(
    rf"\b{_FOLLOW_VERBS}{_DETERMINERS}\s+(?:\w{{1,16}}\s+)?(?:{_INSTRUCTION_NOUNS}|rules?)\b(?!{_OWN_SECTION})"
    rf"|\b{_PERFORM_VERBS}{_DETERMINERS}\s+(?:\w{{1,16}}\s+)?{_INSTRUCTION_NOUNS}\b(?!{_OWN_SECTION})"
    r"|\b(?:obey|follow|act\s+on|comply\s+with|execute)\s+(?:the|its)\s+(?:\w{1,12}\s+)?"
    r"(?:result|response|output|answer|reply|text|contents?)\b"
    rf"|\bdo\s+(?:exactly\s+)?as\s+(?:it|they|the\s+\w{{1,12}})\s+{_SAY_VERBS}"
    rf"|\b(?:{_FOLLOW_VERBS}|{_PERFORM_VERBS})\s+(?:what(?:ever)?|everything|anything|all)\s+"
    r"(?:(?:that\s+)?is|you\s+(?:find|see|read|get))\s+(?:\w{1,12}\s+)?(?:there|on|in|at)\b"
    r"|\b(?:do|follow|execute|run|obey|perform|carry\s+out|apply)\s+"
    r"(?:exactly\s+|precisely\s+|just\s+)?(?:what(?:ever)?|everything|all)\s+(?:\w{1,12}\s+){0,3}"
    rf"{_SAY_VERBS}"
    r"|\b(?:follow|obey|apply|implement|adopt|act\s+on|carry\s+out)\s+(?:it|them|those|that|this)\b"
    r"(?!\s+(?:steps|instructions|below|command|skill|guide|section|rules|checklist|is|script))"
    rf"|\btreat\s+{_PAGE_PRONOUN}\s+as\s+(?:\w{{1,14}}\s+){{0,3}}{_INSTRUCTION_NOUNS}\b"
    rf"|\buse\s+{_PAGE_PRONOUN}\s+as\s+(?:your|the|a\s+new)\s+(?:\w{{1,12}}\s+)?(?:{_INSTRUCTION_NOUNS}|guide)\b"
    r"|\b(?:proceed|continue|act|behave|work)\s+(?:exactly\s+)?as\s+(?:it|they|the\s+\w{1,12})\s+"
    rf"{_SAY_VERBS}"
)
# "Run it" is about a program, unless the URL is a text file.
_RUN_PATTERN = LazyPattern(r"\b(?:execute|run)\s+(?:it|them|those|that)\b")
_TEXT_FILE = LazyPattern(r"\.(?:md|mdx|txt|html?)(?:[?#]\S{0,80})?$")
_INSTRUCTION_PATTERN = LazyPattern(rf"\b{_INSTRUCTION_NOUNS}\b")
_NEGATION = LazyPattern(
    r"\b(?:never|not|refuse\s+to|without|instead\s+of|cannot)\b[^.!?]{0,30}$|n['’]t\b[^.!?]{0,30}$"
)
# The reverse order: "Follow the instructions that you download from https://…"
_FOLLOW_FROM_PATTERN = LazyPattern(
    rf"\b(?:follow|obey|execute|carry\s+out|act\s+on|perform|comply\s+with){_DETERMINERS}\s+{_INSTRUCTION_NOUNS}\b"
    r"[^.!?\n]{0,40}\b(?:fetch|download|load|retriev|return|serv|pull|obtain)\w{0,4}\b[^.!?\n]{0,30}$"
)
# Sentences for people, who read installation guides and click through wizards.
_FOR_PEOPLE = LazyPattern(
    r"\b(?:tell|ask|direct|have|point|refer|advise|remind|guide|send|invite)(?:s|ing)?\s+(?:the\s+)?"
    r"(?:users?|customers?|person|people|them|clients?|readers?)\b"
    r"|\b(?:users?|customers?|contributors?|developers|maintainers|engineers|people|everyone)\s+"
    r"(?:can|may|could|should|must|will|need|have)\b|\byou\s+(?:can|may|could)\b"
)
_SETUP_TERMS = LazyPattern(
    r"\b(?:install\w*|set-?\s?up|sign\s?-?up|log\s?-?in|register|accounts?|on-?\s?screen|wizard"
    r"|prerequisites?|create\s+(?:an?|your|the)|generate\s+an?|obtain\s+an?|configur\w+|console"
    r"|dashboard|platform|operating\s+system|your\s+(?:os|shell|device))\b"
)
# Verbs for what programs do, and not people.
_AGENT_FETCH_VERBS = LazyPattern(
    r"\b(?:fetch|retrieve|curl|wget|webfetch|web_fetch|scrape|poll|query|pull|load)(?:s|es|ing)?\b"
)


def find_remote_instructions(
    lines: ScannedText, is_mention: Callable[[int], bool], *, is_prose: bool
) -> Iterator[RuleHit]:
    """Find instructions to fetch a page and follow it, at most one per URL.

    Outside prose, an instruction must be on one line.
    """
    text, last = lines.lower, -1
    for match in islice(_URL.finditer(text), _MAX_URLS):
        if match.group().endswith("/robots.txt"):  # programs are supposed to follow it
            continue
        line_end = -1 if is_prose else text.find("\n", match.end())
        searched = text if line_end < 0 else text[:line_end]
        start = _find_instruction(searched, match.start(), match.end())
        if start is None or start == last:
            continue
        last = start
        yield lines.build_hit(REMOTE_INSTRUCTION_RULE, start, is_mention=is_mention(start))


def _find_instruction(text: str, url: int, end: int) -> int | None:
    """Return the start of an instruction around the URL `text[url:end]`, or `None`."""
    earliest = max(0, url - _MAX_BEFORE)
    ends = [match.end() for match in _SENTENCE_END.finditer(text, earliest, url)]
    sentence_start = ends[-1] if ends else earliest
    before = text[sentence_start:url]
    if _FOR_PEOPLE.search(before):
        return None
    if (reverse := _FOLLOW_FROM_PATTERN.search(before)) is not None:
        is_negated = _NEGATION.search(before[: reverse.start()]) is not None
        return None if is_negated else sentence_start + reverse.start()
    after = _read_next_sentences(text, end)
    follow = _FOLLOW_PATTERN.search(after)
    is_text = _TEXT_FILE.search(text[url:end]) or _INSTRUCTION_PATTERN.search(before)
    if follow is None and is_text:
        follow = _RUN_PATTERN.search(after)
    if follow is None:
        return None
    between, fetch = after[: follow.start()], _FETCH_PATTERN.search(before)
    has_verb = fetch is not None or _FETCH_PATTERN.search(between) is not None
    is_negated = _NEGATION.search(between) is not None
    page, rest = f"{before} {text[url:end]}", after[follow.start() :]
    if not has_verb or is_negated or _is_for_people(page, between, rest):
        return None
    # The caller checks at this offset whether the instruction is quoted. If quotation marks enclose
    # only its command, the start of the sentence is returned, which is outside of them.
    if fetch is None:
        return url
    is_closed = any(before.count(mark) % 2 and mark in between for mark in '`"')
    return sentence_start + (len(before) - len(before.lstrip()) if is_closed else fetch.start())


def _is_for_people(before: str, between: str, after: str) -> bool:
    """Whether the sentence tells people how to install something."""
    sentence = re.split(r"[.!?](?=\s)", after)[0]
    if _FOR_PEOPLE.search(between) or _SETUP_TERMS.search(sentence):
        return True
    rest = f"{before} {between}"
    return _SETUP_TERMS.search(rest) is not None and _AGENT_FETCH_VERBS.search(rest) is None


def _read_next_sentences(text: str, end: int) -> str:
    """Return the next sentences on one line, and a list item that starts with a verb."""
    after = _SECTION_BREAK.split(text[end : end + _MAX_AFTER])[0]
    first, *others = _LIST_ITEM.split(after)
    if others and _LEADING_VERB.match(others[0]):
        first = f"{first} {others[0]}"
    ends = [match.end() for match in re.finditer(r"[.!?](?=\s)", first)]
    if len(ends) > _MAX_SENTENCES:
        first = first[: ends[_MAX_SENTENCES]]
    return re.sub(r"\s+", " ", first)
