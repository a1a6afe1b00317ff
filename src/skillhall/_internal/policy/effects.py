"""What a finding means: effects, and the groups of codes that profiles speak about."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.risks.tiers import TIERS, Tier

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Effect(StrEnum):
    """What a policy makes of a finding."""

    ACCEPT = "accept"
    WARN = "warn"
    REJECT = "reject"


# Nothing can be read there, or not safely, or two readers would read two different things.
UNREADABLE_CODES = frozenset(
    {
        Code.NO_SKILL_MD,
        Code.UNSAFE_PATH,
        Code.LINK_SKIPPED,
        Code.LINK_OUTSIDE,
        Code.LINK_BROKEN,
        Code.NOT_A_FILE,
        Code.UNREADABLE,
        Code.TOO_LARGE,
        Code.NOT_UTF8,
        Code.NUL_BYTE,
        Code.LFS_POINTER,
        Code.NO_FRONTMATTER,
        Code.UNCLOSED_FRONTMATTER,
        Code.FRONTMATTER_LARGE,
        Code.ODD_LINE_BREAK,
        Code.CONTROL_CHARACTER,
        Code.YAML_INVALID,
        Code.YAML_NOT_A_MAP,
        Code.YAML_ALIAS,
        Code.YAML_TAG,
        Code.YAML_DEPTH,
        Code.YAML_NODES,
    }
)
# A server does not keep to what it announced, so nobody knows what a person would approve.
SERVER_MISMATCH_CODES = frozenset(
    {
        Code.MCP_ENTRY,
        Code.MCP_URI,
        Code.MCP_NAME,
        Code.MCP_DYNAMIC,
        Code.MCP_LIMIT,
        Code.MCP_REPEATED,
        Code.MCP_MISSING,
        Code.MCP_SIZE,
        Code.MCP_DIGEST,
        Code.MCP_UNLISTED,
        Code.MCP_FRONTMATTER,
    }
)
# Worth knowing, nothing to mend: half of all public skills carry one of these.
ACCEPTED_BY_DEFAULT = frozenset(
    {
        Code.BOM,
        Code.CRLF,
        Code.YAML_FLOW,
        Code.UNKNOWN_FIELD,
        Code.NAME_MARKS,
        Code.SKIPPED,
        Code.SAME_FILE,
    }
)
# Advice of the specification and facts about a walk: never a reason to leave a skill out.
WARNED_BY_DEFAULT = frozenset(
    {
        Code.LEADING_BLANK,
        Code.NOT_TEXT,
        Code.KEY_CASE,
        Code.ALLOWED_TOOLS_FORM,
        Code.ARGUMENTS_FORM,
        Code.BODY_LARGE,
        Code.REFERENCE_MISSING,
        Code.FILE_LEFT_OUT,
        Code.FILE_TOO_LARGE,
        Code.TOO_MANY_FILES,
        Code.ROOT_MISSING,
        Code.BOUND_REACHED,
        Code.BRANCH_MISSING,
        Code.SHADOWED,
        Code.SAME_NAME,
        Code.CASE_COLLISION,
        Code.INLINE_WINS,
        Code.PATTERN_UNMATCHED,
        Code.REQUIREMENT_UNMET,
        Code.FOLDER_TAKEN,
        Code.EDITED_SINCE,
        Code.PROMPTS_UNREAD,
        Code.MCP_NESTED,
        Code.MCP_ADDRESS,
        Code.MCP_LEFT_OUT,
    }
)
# The rules for how a name is written.
NAME_FORMAT_CODES = frozenset(
    {
        Code.NAME_TOO_LONG,
        Code.NAME_UPPERCASE,
        Code.NAME_CHARACTERS,
        Code.NAME_EDGE_HYPHEN,
        Code.NAME_DOUBLE_HYPHEN,
    }
)
MISSING_NAME_CODES = frozenset({Code.NAME_MISSING, Code.FLAT_NAME_MISSING})
# What the static scan notices informs a person. It never keeps a skill out, under no profile: some
# of it is wrong, and a skill about security rightly quotes half of these codes.
RISK_EFFECTS = {
    code: Effect.ACCEPT if tier is Tier.INFO else Effect.WARN for code, tier in TIERS.items()
}


class JudgedFinding(NamedTuple):
    """A finding and what the profile makes of it."""

    finding: Finding
    effect: Effect


class LoadPolicy(NamedTuple):
    """One effect for every code. Sets named later win over sets named earlier, risks over all."""

    default_effect: Effect
    effects: Mapping[Code, Effect]

    @classmethod
    def create(
        cls,
        default_effect: Effect,
        *,
        reject: Iterable[Code] = (),
        warn: Iterable[Code] = (),
        accept: Iterable[Code] = (),
    ) -> LoadPolicy:
        """A policy from sets; codes that are always quiet or advice need not be named."""
        effects = dict.fromkeys(WARNED_BY_DEFAULT, Effect.WARN) | dict.fromkeys(
            ACCEPTED_BY_DEFAULT, Effect.ACCEPT
        )
        effects |= dict.fromkeys(UNREADABLE_CODES | SERVER_MISMATCH_CODES, Effect.REJECT)
        effects |= dict.fromkeys(accept, Effect.ACCEPT)
        effects |= dict.fromkeys(warn, Effect.WARN)
        effects |= dict.fromkeys(reject, Effect.REJECT)
        return cls(default_effect, effects | RISK_EFFECTS)

    def get_effect(self, code: Code) -> Effect:
        """What `code` means here."""
        return self.effects.get(code, self.default_effect)

    @property
    def accepted_codes(self) -> frozenset[Code]:
        """The codes that need no mention."""
        return frozenset(code for code in Code if self.get_effect(code) is Effect.ACCEPT)

    def judge(self, findings: Iterable[Finding]) -> tuple[JudgedFinding, ...]:
        """Every finding with its effect."""
        return tuple(JudgedFinding(found, self.get_effect(found.code)) for found in findings)

    def accepts(self, findings: Iterable[Finding]) -> bool:
        """Whether none of the findings keeps a skill out."""
        return all(self.get_effect(found.code) is not Effect.REJECT for found in findings)


def serialize_findings(findings: Iterable[JudgedFinding]) -> list[dict[str, object]]:
    """Each finding with what it means; what is empty is left out."""
    told: list[dict[str, object]] = []
    for found, effect in findings:
        fields: dict[str, object] = {
            "code": found.code.value,
            "effect": effect.value,
            "message": found.message,
            "path": found.path,
            "line": found.line,
            "hint": found.hint,
        }
        told.append({key: value for key, value in fields.items() if value not in ("", None)})
    return told
