"""Rules for risky phrases and links.

Every quantifier is bounded and no repeated group contains another long repetition, so that no line
can make a pattern slow. There is no rule for words like "always" and "must": every skill has them.
"""

from __future__ import annotations

from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.risks.lazy_pattern import LazyPattern
from skillhall._internal.skill.risks.rule_engine import Piece, RiskRule, any_of, either, split_words
from skillhall._internal.skill.risks.triggers import (
    Trigger,
    all_words,
    any_word,
    combine_words,
    with_literals,
)

_USER = r"(?:the |any |your )?(?:user|human|operator|person)s?\b"
_USER_WORDS = "user users human humans operator operators person persons"
_NOT = (
    r"\b(?:do not|don'?t|don’t|never|must not|should not|mustn'?t|shouldn'?t)\s{1,3}"
    r"(?:ever\s{1,3})?"
)
_FROM_USER = rf"(?:\s{{1,3}}\w{{1,20}}){{0,3}}\s{{1,3}}from\s{{1,3}}{_USER}"
_WITHOUT_INFORMING = LazyPattern(
    rf"\bwithout\s{{1,3}}(?:telling|informing|notifying|alerting|asking)\s{{1,3}}{_USER}"
    # A clause here names what to report, so the sentence is not about secrecy.
    r"(?!\s{1,3}(?:why|that|what|whether|how|which|when|where|to|it|they|their|the|a|an|any|for)\b)"
)
_NEGATED = LazyPattern(
    r"\b(?:no|not|never|avoid|cannot|refuse|forbidden|unless|instead)\b|n['’]t\b|\?"
)
_MAX_NEGATION_DISTANCE = 160  # characters in the same sentence
# An instruction starts with a verb or says "you must", unlike "The client disconnects without …".
_IMPERATIVE = LazyPattern(
    r"^[\s>*_#\d.)(-]{0,12}(?:(?:then|also|and|next|always|silently|quietly|secretly|please|finally"
    r"|first|automatically|just|simply)[\s,]{1,3}){0,3}"
    r"(?:run|execute|copy|send|upload|install|read|delete|remove|modify|add|write|save|collect|post"
    r"|forward|append|edit|change|update|enable|disable|download|fetch|do|perform|make|create|push"
    r"|commit|transfer|export|record|log|store|include|replace|open|set|start|use|encode|attach"
    r"|transmit|move|rename|insert|apply|grant|exfiltrate|scan|gather|pass|submit|report|email)\b"
    r"|\b(?:you|agents?|assistants?|the model|claude)\s{1,3}"
    r"(?:must|should|will|shall|have to|need to)\b"
    r"|\b(?:silently|quietly|secretly)\b"
)


def _find_concealed_action(piece: Piece) -> int | None:
    """Return where "do X without telling the user" starts, or `None`.

    "Never do X without telling the user" is not a match.
    """
    match = _WITHOUT_INFORMING.search(piece.lower)
    if match is None:
        return None
    before = piece.lower[max(0, match.start() - _MAX_NEGATION_DISTANCE) : match.start()]
    sentence = before.rpartition(". ")[2]
    after = piece.lower[match.end() : match.end() + _MAX_NEGATION_DISTANCE].partition(".")[0]
    if _NEGATED.search(sentence) or after.rstrip().endswith("?"):
        return None
    return match.start() if _IMPERATIVE.search(sentence) else None


_INSTRUCTIONS = r"(?:instructions?|prompts?|rules|guidelines|directives|commands|training)\b"
LINK_RULES = (
    RiskRule(
        Code.PASTE_SITE,
        "text on a paste site",
        split_words(
            "paste rentry. hastebin ghostbin 0x0.st/ transfer.sh/ ix.io/ termbin.com/ "
            "sprunge.us/ glot.io/ controlc.com/ bpa.st/"
        ),
        any_of(
            r"\bpastebin\.com/(?:raw/\w{3}|(?:dl/)?[a-z0-9]{8}\b)|\brentry\.(?:co|org)/\w{3}"
            r"|\b(?:hastebin\.com/(?:raw|share)/|ghostbin\.\w{2,5}/|paste\.(?:ee|rs)/|justpaste\.it/"
            r"|dpaste\.(?:com|org)/|0x0\.st/|transfer\.sh/|\bix\.io/|termbin\.com/|sprunge\.us/"
            r"|glot\.io/snippets/|controlc\.com/|bpa\.st/)\w{2}"
        ),
        (
            *any_word("pastebin rentry hastebin ghostbin justpaste dpaste 0x0 termbin sprunge"),
            *any_word("controlc"),
            *all_words("ee paste", "rs paste", "transfer sh", "ix io", "glot io", "bpa st"),
        ),
    ),
    RiskRule(
        Code.DYNAMIC_COMMAND,
        "command that runs when the skill is loaded",
        ("!`", "```!"),
        any_of(r"(?:^|[\s(:>|])!`[^`\n]{1,400}`|^\s{0,3}```!"),
        with_literals({"!`": "", "```!": ""}),
        is_markdown_only=True,
    ),
    RiskRule(
        Code.REMOTE_IMAGE,
        "image from the web",
        ("](http", "](<http", "<img"),
        any_of(
            r"!\[[^\]\n]{0,200}\]\(<?https?://|<img\b[^>\n]{0,200}\ssrc\s{0,2}=\s{0,2}[\"']?https?://"
        ),
        (Trigger(("https",), "!["), Trigger(("http",), "!["), Trigger(("img",), "<img")),
        is_markdown_only=True,
    ),
)
# Rules for sentences, which may continue on the next line.
PHRASE_RULES = (
    RiskRule(
        Code.CONCEALMENT,
        "hides something from the user",
        (
            *split_words("tell inform notify alert warn hide conceal mention reveal disclose"),
            "keep this",
        ),
        either(
            any_of(
                _NOT + rf"(?:tell|inform|notify|alert|warn)\s{{1,3}}{_USER}\s{{0,2}}"
                r"(?:[.!;,)\"'*`]|$|about (?:this|it|these|that)\b"
                r"|of this\b|that (?:you|this)\b|what you\b)",
                _NOT + r"(?:mention|reveal|disclose)\s{1,3}(?:this|these)\b"
                rf"(?:\s{{1,3}}\w{{1,20}}){{0,3}}\s{{1,3}}to\s{{1,3}}(?:{_USER}|anyone\b)(?!\s{{1,3}}(?:outside|else|other))",
                rf"\b(?:hide|conceal)\s{{1,3}}(?:this|it|these|that)\b{_FROM_USER}",
                rf"\bkeep this (?:secret|hidden|quiet)\b{_FROM_USER}",
            ),
            _find_concealed_action,
        ),
        (
            *combine_words("tell inform notify alert warn", _USER_WORDS),
            *combine_words("mention reveal disclose", f"{_USER_WORDS} anyone"),
            *combine_words("hide conceal", "from", _USER_WORDS),
            *combine_words("keep", "secret hidden quiet", "from", _USER_WORDS),
            *combine_words("telling informing notifying alerting asking", "without", _USER_WORDS),
        ),
    ),
    RiskRule(
        Code.INJECTION_PHRASE,
        "possible prompt injection",
        (
            *split_words("ignore disregard forget override bypass"),
            "no longer bound",
            "do anything now",
        ),
        any_of(
            r"\b(?:ignore|disregard|forget)\s{1,3}(?:(?:all|any|the|your|of|my|other)\s{1,3}){0,4}"
            r"(?:previous|prior|above|earlier|preceding|system|developer)\s{1,3}"
            rf"(?:\w{{1,12}}\s{{1,3}})?{_INSTRUCTIONS}",
            r"\b(?:ignore|disregard|forget)\s{1,3}(?:everything|all|anything)\s{1,3}"
            r"(?:above|before this|you were told|you have been told)\b",
            r"\b(?:override|bypass|disregard|ignore)\s{1,3}(?:(?:all|any|the|your)\s{1,3}){0,2}safety\s{1,3}"
            r"(?:instructions|guidelines|rules|restrictions|filters|training|policies)\b",
            r"\byou are no longer bound\b|\bdo anything now\b",
        ),
        (
            *combine_words(
                "ignore disregard forget",
                "previous prior above earlier preceding system developer before were been",
            ),
            *combine_words("override bypass disregard ignore", "safety"),
            *all_words("bound longer", "anything now"),
        ),
    ),
)
