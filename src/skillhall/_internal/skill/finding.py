"""Findings: facts that checks report. A profile in `policy` decides their effect."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, TypeAlias


class Code(StrEnum):
    """Stable id of a kind of finding. Scripts and profiles rely on the values.

    >>> Code.NAME_MISSING.value
    'name-missing'
    """

    # The file itself.
    NO_SKILL_MD = "no-skill-md"
    CASE_VARIANT = "case-variant"
    NOT_A_FILE = "not-a-file"
    UNREADABLE = "unreadable"
    TOO_LARGE = "too-large"
    NOT_UTF8 = "not-utf8"
    NUL_BYTE = "nul-byte"
    LFS_POINTER = "lfs-pointer"
    BOM = "bom"
    CRLF = "crlf"
    LEADING_BLANK = "leading-blank"

    # The frontmatter block.
    NO_FRONTMATTER = "no-frontmatter"
    UNCLOSED_FRONTMATTER = "unclosed-frontmatter"
    FRONTMATTER_LARGE = "frontmatter-large"
    ODD_LINE_BREAK = "odd-line-break"
    YAML_INVALID = "yaml-invalid"
    YAML_REPAIRED = "yaml-repaired"
    YAML_NOT_A_MAP = "yaml-not-a-map"
    YAML_ALIAS = "yaml-alias"
    YAML_TAG = "yaml-tag"
    YAML_DEPTH = "yaml-depth"
    YAML_NODES = "yaml-nodes"
    YAML_FLOW = "yaml-flow"
    DUPLICATE_KEY = "duplicate-key"
    KEY_CASE = "key-case"
    UNKNOWN_FIELD = "unknown-field"
    NOT_TEXT = "not-text"
    CONTROL_CHARACTER = "control-character"

    # The fields.
    NAME_MISSING = "name-missing"
    FLAT_NAME_MISSING = "flat-name-missing"
    NAME_TOO_LONG = "name-too-long"
    NAME_UPPERCASE = "name-uppercase"
    NAME_CHARACTERS = "name-characters"
    NAME_MARKS = "name-marks"
    NAME_EDGE_HYPHEN = "name-edge-hyphen"
    NAME_DOUBLE_HYPHEN = "name-double-hyphen"
    NAME_NOT_FOLDER = "name-not-folder"
    NAME_RESERVED = "name-reserved"
    DESCRIPTION_MISSING = "description-missing"
    DESCRIPTION_TOO_LONG = "description-too-long"
    COMPATIBILITY_EMPTY = "compatibility-empty"
    COMPATIBILITY_TOO_LONG = "compatibility-too-long"
    METADATA_NOT_A_MAP = "metadata-not-a-map"
    METADATA_NOT_TEXT = "metadata-not-text"
    ALLOWED_TOOLS_FORM = "allowed-tools-form"
    ARGUMENTS_FORM = "arguments-form"

    # The body and the other files.
    BODY_LARGE = "body-large"
    REFERENCE_MISSING = "reference-missing"
    FILE_LEFT_OUT = "file-left-out"
    FILE_TOO_LARGE = "file-too-large"
    TOO_MANY_FILES = "too-many-files"
    UNSAFE_PATH = "unsafe-path"

    # The eval files, reported by `eval check` only.
    EVAL_UNREADABLE = "eval-unreadable"
    EVAL_JSON = "eval-json"
    EVAL_FORM = "eval-form"
    EVAL_ID = "eval-id"
    EVAL_FILE = "eval-file"
    EVAL_SKILL_NAME = "eval-skill-name"
    EVAL_TODO = "eval-todo"
    EVAL_VARIANT = "eval-variant"
    EVAL_UNKNOWN_KEY = "eval-unknown-key"

    # Reported by `check` only.
    EVAL_GATE = "eval-gate"
    LOCK_MISMATCH = "lock-mismatch"

    # The scan of a root.
    ROOT_MISSING = "root-missing"
    SKIPPED = "skipped"
    LINK_SKIPPED = "link-skipped"
    LINK_OUTSIDE = "link-outside"
    LINK_BROKEN = "link-broken"
    SAME_FILE = "same-file"
    BOUND_REACHED = "bound-reached"
    BRANCH_MISSING = "branch-missing"

    # Several skills together.
    SHADOWED = "shadowed"
    SAME_NAME = "same-name"
    CASE_COLLISION = "case-collision"
    NEAR_COPY = "near-copy"
    SIGNATURE_BROKEN = "signature-broken"
    SIGNATURE_UNKNOWN = "signature-unknown"
    REF_MOVED = "ref-moved"
    POLICY_UNMET = "policy-unmet"
    REVOKED = "revoked"
    HELD = "held"
    RULES_UNREADABLE = "rules-unreadable"
    INLINE_WINS = "inline-wins"
    PATTERN_UNMATCHED = "pattern-unmatched"
    REQUIREMENT_UNMET = "requirement-unmet"
    FOLDER_TAKEN = "folder-taken"
    EDITED_SINCE = "edited-since"
    PROMPTS_UNREAD = "prompts-unread"
    MCP_ADDRESS = "mcp-address"
    MCP_LEFT_OUT = "mcp-left-out"

    # A skill of an MCP server.
    MCP_ENTRY = "mcp-entry"
    MCP_URI = "mcp-uri"
    MCP_NAME = "mcp-name"
    MCP_DYNAMIC = "mcp-dynamic"
    MCP_LIMIT = "mcp-limit"
    MCP_REPEATED = "mcp-repeated"
    MCP_NESTED = "mcp-nested"
    MCP_MISSING = "mcp-missing"
    MCP_SIZE = "mcp-size"
    MCP_DIGEST = "mcp-digest"
    MCP_UNLISTED = "mcp-unlisted"
    MCP_FRONTMATTER = "mcp-frontmatter"

    # A skill in the index of a web site.
    SITE_ENTRY = "site-entry"

    # Risky content, reported by the static scan. `risks.tiers` ranks these codes.
    HIDDEN_UNICODE = "hidden-unicode"
    DECODE_AND_RUN = "decode-and-run"
    PASTE_SITE = "paste-site"
    PASSWORD_ARCHIVE = "password-archive"  # noqa: S105 - a code, not a password
    BIDI_OR_ZERO_WIDTH = "bidi-or-zero-width"
    PIPE_TO_SHELL = "pipe-to-shell"
    CREDENTIAL_EXFIL = "credential-exfil"
    REVERSE_SHELL = "reverse-shell"
    PASTE_INTO_TERMINAL = "paste-into-terminal"
    HARDCODED_SECRET = "hardcoded-secret"  # noqa: S105 - a code, not a secret
    REMOTE_INSTRUCTIONS = "remote-instructions"
    CONCEALMENT = "concealment"
    INJECTION_PHRASE = "injection-phrase"
    HIDDEN_COMMENT = "hidden-comment"
    TERMINAL_CONTROL = "terminal-control"
    SCAN_INCOMPLETE = "scan-incomplete"
    HAS_EXECUTABLES = "has-executables"
    HAS_ARCHIVES = "has-archives"
    HAS_SCRIPTS = "has-scripts"
    EXECUTE_BITS = "execute-bits"
    LINKS_DROPPED = "links-dropped"
    LFS_FILES = "lfs-files"
    HOOKS_FIELD = "hooks-field"
    BROAD_TOOLS = "broad-tools"
    DYNAMIC_COMMAND = "dynamic-command"
    DANGEROUS_FLAG = "dangerous-flag"
    AGENT_CONFIG_WRITE = "agent-config-write"
    REMOTE_IMAGE = "remote-image"
    PERSISTENCE = "persistence"
    KNOWN_INSTALLER = "known-installer"
    LONG_BASE64 = "long-base64"
    QUOTED_RISK = "quoted-risk"
    RISK_UNDERSTATED = "risk-understated"


class Finding(NamedTuple):
    """One fact about a skill or a file. A profile decides its effect.

    ```python
    from skillhall import validate

    for finding in validate("skills").findings:  # with the effect under the profile
        print(finding.path, finding.line, finding.effect, finding.code, finding.message)
    ```
    """

    code: Code
    message: str
    line: int | None = None
    hint: str = ""
    path: str = ""
    skill: str = ""

    def with_location(self, path: str, skill: str = "") -> Finding:
        """Return the finding with its path and skill, which checks do not know."""
        return Finding(self.code, self.message, self.line, self.hint, path, skill)


# A finding as a plain tuple, as the head cache contains it: `Finding(Code(row[0]), *row[1:])`. A
# `Finding` is one too, since a `Code` is a string.
FindingRow: TypeAlias = tuple[str, str, int | None, str, str, str]
