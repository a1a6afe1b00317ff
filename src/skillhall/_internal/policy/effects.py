"""Effects of findings, and the groups of codes that profiles use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from skillhall._internal.skill.finding import Code, Finding, FindingRow
from skillhall._internal.skill.risks.tiers import TIERS, Tier


class Effect(StrEnum):
    """Effect of a finding under a profile.

    >>> [finding for finding in validate("skills").findings if finding.effect is Effect.REJECT]
    []
    """

    ACCEPT = "accept"
    WARN = "warn"
    REJECT = "reject"


# The file cannot be read, cannot be read safely, or is read differently by different parsers.
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
# The files are not those that the server lists or the author signed, so the user would approve
# something else; or the user or a policy decided against them.
FILE_MISMATCH_CODES = frozenset(
    {
        Code.SIGNATURE_BROKEN,
        Code.POLICY_UNMET,
        Code.REVOKED,
        Code.HELD,
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
        Code.SITE_ENTRY,
    }
)
# Nothing needs to be fixed; half of all public skills have one of these.
ACCEPTED_BY_DEFAULT = frozenset(
    {
        Code.BOM,
        Code.CRLF,
        Code.YAML_FLOW,
        Code.UNKNOWN_FIELD,
        Code.EVAL_UNKNOWN_KEY,
        Code.NAME_MARKS,
        Code.SKIPPED,
        Code.SAME_FILE,
        Code.SIGNATURE_UNKNOWN,
    }
)
# Recommendations and facts about the scan: by default no reason to reject a skill.
WARNED_BY_DEFAULT = frozenset(
    {
        Code.LEADING_BLANK,
        Code.NOT_TEXT,
        Code.KEY_CASE,
        Code.ALLOWED_TOOLS_FORM,
        Code.ARGUMENTS_FORM,
        Code.BODY_LARGE,
        Code.REFERENCE_MISSING,
        Code.EVAL_VARIANT,
        Code.FILE_LEFT_OUT,
        Code.FILE_TOO_LARGE,
        Code.TOO_MANY_FILES,
        Code.ROOT_MISSING,
        Code.BOUND_REACHED,
        Code.BRANCH_MISSING,
        Code.SHADOWED,
        Code.SAME_NAME,
        Code.CASE_COLLISION,
        Code.NEAR_COPY,
        Code.REF_MOVED,
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
# Violations of the naming rules.
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
# Risks inform the user and never reject a skill, under any profile: the scan has false positives,
# and skills about security quote attacks.
RISK_EFFECTS = {
    code: Effect.ACCEPT if tier is Tier.INFO else Effect.WARN for code, tier in TIERS.items()
}


class JudgedFinding(NamedTuple):
    """A finding and its effect under a profile, with the attributes of the finding.

    >>> [(finding.code.value, finding.effect.value) for finding in validate("skills").findings]
    [('unknown-field', 'accept')]
    """

    finding: Finding
    effect: Effect

    @property
    def code(self) -> Code:
        """The stable id of the kind of finding."""
        return self.finding.code

    @property
    def message(self) -> str:
        """What was found."""
        return self.finding.message

    @property
    def line(self) -> int | None:
        """The line number, from 1; `None` if the finding is not about a line."""
        return self.finding.line

    @property
    def hint(self) -> str:
        """Advice on what to do about it; "" if there is none."""
        return self.finding.hint

    @property
    def path(self) -> str:
        """The path of the file or folder; "" if there is none."""
        return self.finding.path

    @property
    def skill(self) -> str:
        """The name of the skill; "" if there is none."""
        return self.finding.skill

    def __str__(self) -> str:
        place = ":".join(filter(None, (self.path, str(self.line or ""))))
        return f"{f'{place}: ' if place else ''}{self.effect}[{self.code}]: {self.message}"


class LoadPolicy(NamedTuple):
    """Maps every finding code to its effect."""

    default_effect: Effect
    effects: Mapping[str, Effect]  # by `Code`, which is a string

    @classmethod
    def create(
        cls,
        default_effect: Effect,
        *,
        reject: Iterable[Code] = (),
        warn: Iterable[Code] = (),
        accept: Iterable[Code] = (),
    ) -> LoadPolicy:
        """Override default effects; if a code is in several sets, the strictest one wins."""
        # Later sets win. Risks come last, so that no profile can reject a skill for one.
        effects: dict[str, Effect] = {}
        effects |= dict.fromkeys(WARNED_BY_DEFAULT, Effect.WARN)
        effects |= dict.fromkeys(ACCEPTED_BY_DEFAULT, Effect.ACCEPT)
        effects |= dict.fromkeys(UNREADABLE_CODES | FILE_MISMATCH_CODES, Effect.REJECT)
        effects |= dict.fromkeys(accept, Effect.ACCEPT)
        effects |= dict.fromkeys(warn, Effect.WARN)
        effects |= dict.fromkeys(reject, Effect.REJECT)
        return cls(default_effect, effects | RISK_EFFECTS)

    def warn_about(self, code: Code) -> LoadPolicy:
        """Return the policy with a warning for this code."""
        return self._replace(effects={**self.effects, code: Effect.WARN})

    def get_effect(self, code: str) -> Effect:
        """Return the effect of a `Code`, or of its value."""
        return self.effects.get(code, self.default_effect)

    @property
    def accepted_codes(self) -> frozenset[Code]:
        """The codes that neither warn nor reject."""
        return frozenset(code for code in Code if self.get_effect(code) is Effect.ACCEPT)

    @property
    def rejecting_codes(self) -> frozenset[Code]:
        """The codes that reject a skill."""
        return frozenset(code for code in Code if self.get_effect(code) is Effect.REJECT)

    def judge(self, findings: Iterable[Finding]) -> tuple[JudgedFinding, ...]:
        """Return every finding with its effect."""
        return tuple([JudgedFinding(f, self.get_effect(f.code)) for f in findings])

    def accepts(self, findings: Iterable[Finding]) -> bool:
        """Whether no finding rejects the skill."""
        return all(self.get_effect(f.code) is not Effect.REJECT for f in findings)


def judge_rows(
    rows: Iterable[FindingRow], policy: LoadPolicy, path: str, skill: str
) -> tuple[JudgedFinding, ...]:
    """Return the findings of one skill with their location and effects."""
    effects, default = policy.effects, policy.default_effect
    return tuple(
        [
            JudgedFinding(
                Finding(
                    code if isinstance(code, Code) else Code(code), text, line, hint, path, skill
                ),
                effects.get(code, default),
            )
            for code, text, line, hint, _, _ in rows
        ]
    )


def serialize_findings(findings: Iterable[JudgedFinding]) -> list[dict[str, object]]:
    """Serialize findings with their effects; empty members are omitted."""
    rows: list[dict[str, object]] = []
    for finding, effect in findings:
        fields: dict[str, object] = {
            "code": finding.code.value,
            "effect": effect.value,
            "message": finding.message,
            "path": finding.path,
            "line": finding.line,
            "hint": finding.hint,
        }
        rows.append({key: value for key, value in fields.items() if value not in ("", None)})
    return rows
