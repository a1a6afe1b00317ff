"""The tier of each code of the static scan."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from skillhall._internal.skill.finding import Code


class Tier(StrEnum):
    """Severity of a risk. High and medium risks are warnings; info is only a note."""

    HIGH = "high"
    MEDIUM = "medium"
    INFO = "info"


_HIGH = (
    Code.HIDDEN_UNICODE,
    Code.DECODE_AND_RUN,
    Code.PASTE_SITE,
    Code.PASSWORD_ARCHIVE,
)
_MEDIUM = (
    Code.BIDI_OR_ZERO_WIDTH,
    Code.PIPE_TO_SHELL,
    Code.CREDENTIAL_EXFIL,
    Code.REVERSE_SHELL,
    Code.PASTE_INTO_TERMINAL,
    Code.HARDCODED_SECRET,
    Code.REMOTE_INSTRUCTIONS,
    Code.CONCEALMENT,
    Code.INJECTION_PHRASE,
    Code.HIDDEN_COMMENT,
    Code.TERMINAL_CONTROL,
    Code.SCAN_INCOMPLETE,
    Code.RISK_UNDERSTATED,
)
# Facts that most skills have some of.
_INFO = (
    Code.HAS_EXECUTABLES,
    Code.HAS_ARCHIVES,
    Code.HAS_SCRIPTS,
    Code.EXECUTE_BITS,
    Code.LINKS_DROPPED,
    Code.LFS_FILES,
    Code.HOOKS_FIELD,
    Code.BROAD_TOOLS,
    Code.DYNAMIC_COMMAND,
    Code.DANGEROUS_FLAG,
    Code.AGENT_CONFIG_WRITE,
    Code.REMOTE_IMAGE,
    Code.PERSISTENCE,
    Code.KNOWN_INSTALLER,
    Code.LONG_BASE64,
    Code.QUOTED_RISK,
)
TIERS: Mapping[Code, Tier] = {
    **dict.fromkeys(_HIGH, Tier.HIGH),
    **dict.fromkeys(_MEDIUM, Tier.MEDIUM),
    **dict.fromkeys(_INFO, Tier.INFO),
}
