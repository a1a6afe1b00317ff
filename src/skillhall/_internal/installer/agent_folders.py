"""Supported coding agents and their skill folders.

The ids are those of `npx skills`. Folders are data: `.claude/skills` is relative to the project,
`~/.claude/skills` to the home folder, and `$CODEX_HOME/skills` to the value of the variable or its
default in the home folder.
"""

from __future__ import annotations

import os
from difflib import get_close_matches
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from skillhall.errors import UnknownAgent

if TYPE_CHECKING:
    from collections.abc import Mapping

UNIVERSAL_FOLDER: Final = ".agents/skills"  # shared by many agents
LEGACY_UNIVERSAL_FOLDER: Final = ".agent/skills"  # former name: read, never written

# Defaults below the home folder; "" means that the folder exists only if the variable is set.
VARIABLE_DEFAULTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "APPDATA": "",
        "AUTOHAND_HOME": ".autohand",
        "CLAUDE_CONFIG_DIR": ".claude",
        "CODEX_HOME": ".codex",
        "FLATPAK_XDG_CONFIG_HOME": "",
        "HERMES_HOME": ".hermes",
        "VIBE_HOME": ".vibe",
        "XDG_CONFIG_HOME": ".config",
    }
)


class CodingAgent(NamedTuple):
    """Coding agent and its skill folders."""

    id: str
    label: str
    project_folder: str
    user_folder: str  # "" if the agent has no user scope
    markers: tuple[str, ...]  # the agent is in use if one of these paths exists
    extra_read_folders: tuple[str, ...] = ()  # read by the agent, never written by us


def _agent_with_own_folder(agent: str, label: str, folder: str) -> CodingAgent:
    """Build an agent whose project and user folders have the same name."""
    markers = (f"~/{folder}", folder)
    return CodingAgent(agent, label, f"{folder}/skills", f"~/{folder}/skills", markers)


def _agent_with_universal_folder(
    agent: str, label: str, user: str, *markers: str, extra_read_folders: tuple[str, ...] = ()
) -> CodingAgent:
    """Build an agent that reads the shared project folder."""
    return CodingAgent(agent, label, UNIVERSAL_FOLDER, user, markers, extra_read_folders)


_XDG_CONFIG = "$XDG_CONFIG_HOME"
_AGENTS = (
    CodingAgent(
        "universal",
        "Universal",
        UNIVERSAL_FOLDER,
        f"~/{UNIVERSAL_FOLDER}",
        (),
        (LEGACY_UNIVERSAL_FOLDER,),
    ),
    _agent_with_own_folder("adal", "AdaL", ".adal"),
    _agent_with_own_folder("aider-desk", "AiderDesk", ".aider-desk"),
    _agent_with_universal_folder(
        "amp", "Amp", f"{_XDG_CONFIG}/agents/skills", f"{_XDG_CONFIG}/amp"
    ),
    _agent_with_universal_folder(
        "antigravity",
        "Antigravity",
        "~/.gemini/antigravity/skills",
        "~/.gemini/antigravity",
        extra_read_folders=(LEGACY_UNIVERSAL_FOLDER,),
    ),
    _agent_with_universal_folder(
        "antigravity-cli",
        "Antigravity CLI",
        "~/.gemini/antigravity-cli/skills",
        "~/.gemini/antigravity-cli",
    ),
    CodingAgent(
        "astrbot",
        "AstrBot",
        "data/skills",
        "~/.astrbot/data/skills",
        ("~/.astrbot", "data/skills"),
    ),
    _agent_with_own_folder("augment", "Augment", ".augment"),
    CodingAgent(
        "autohand-code",
        "Autohand Code CLI",
        ".autohand/skills",
        "$AUTOHAND_HOME/skills",
        ("$AUTOHAND_HOME", ".autohand"),
    ),
    _agent_with_own_folder("bob", "IBM Bob", ".bob"),
    CodingAgent(
        "claude-code",
        "Claude Code",
        ".claude/skills",
        "$CLAUDE_CONFIG_DIR/skills",
        ("$CLAUDE_CONFIG_DIR", ".claude"),
    ),
    _agent_with_universal_folder(
        "cline",
        "Cline",
        f"~/{UNIVERSAL_FOLDER}",
        "~/.cline",
        ".cline",
        extra_read_folders=(".cline/skills",),
    ),
    _agent_with_own_folder("codearts-agent", "CodeArts Agent", ".codeartsdoer"),
    _agent_with_own_folder("codebuddy", "CodeBuddy", ".codebuddy"),
    _agent_with_own_folder("codemaker", "Codemaker", ".codemaker"),
    _agent_with_own_folder("codestudio", "Code Studio", ".codestudio"),
    _agent_with_universal_folder(
        "codex",
        "Codex",
        "$CODEX_HOME/skills",
        "$CODEX_HOME",
        ".codex",
        extra_read_folders=(f"~/{UNIVERSAL_FOLDER}", ".codex/skills"),
    ),
    _agent_with_own_folder("command-code", "Command Code", ".commandcode"),
    _agent_with_own_folder("continue", "Continue", ".continue"),
    CodingAgent(
        "cortex",
        "Cortex Code",
        ".cortex/skills",
        "~/.snowflake/cortex/skills",
        ("~/.snowflake/cortex", ".cortex"),
    ),
    CodingAgent(
        "crush", "Crush", ".crush/skills", "~/.config/crush/skills", ("~/.config/crush", ".crush")
    ),
    _agent_with_universal_folder(
        "cursor",
        "Cursor",
        "~/.cursor/skills",
        "~/.cursor",
        ".cursor",
        extra_read_folders=(".cursor/skills",),
    ),
    _agent_with_universal_folder(
        "deepagents", "Deep Agents", "~/.deepagents/agent/skills", "~/.deepagents"
    ),
    CodingAgent(
        "devin",
        "Devin for Terminal",
        ".devin/skills",
        f"{_XDG_CONFIG}/devin/skills",
        (f"{_XDG_CONFIG}/devin", ".devin"),
    ),
    _agent_with_universal_folder("dexto", "Dexto", f"~/{UNIVERSAL_FOLDER}", "~/.dexto"),
    _agent_with_own_folder("droid", "Droid", ".factory"),
    CodingAgent("eve", "Eve", "agent/skills", "", ("agent/skills",)),
    _agent_with_universal_folder(
        "firebender", "Firebender", "~/.firebender/skills", "~/.firebender"
    ),
    _agent_with_own_folder("forgecode", "ForgeCode", ".forge"),
    _agent_with_universal_folder(
        "gemini-cli",
        "Gemini CLI",
        "~/.gemini/skills",
        "~/.gemini",
        ".gemini",
        extra_read_folders=(".gemini/skills",),
    ),
    _agent_with_universal_folder(
        "github-copilot",
        "GitHub Copilot",
        "~/.copilot/skills",
        "~/.copilot",
        ".github/skills",
        ".github/copilot-instructions.md",
        extra_read_folders=(".github/skills",),
    ),
    CodingAgent(
        "goose",
        "Goose",
        ".goose/skills",
        f"{_XDG_CONFIG}/goose/skills",
        (f"{_XDG_CONFIG}/goose", ".goose"),
    ),
    CodingAgent(
        "hermes-agent",
        "Hermes Agent",
        ".hermes/skills",
        "$HERMES_HOME/skills",
        ("$HERMES_HOME", ".hermes"),
    ),
    _agent_with_own_folder("iflow-cli", "iFlow CLI", ".iflow"),
    _agent_with_own_folder("inference-sh", "inference.sh", ".inferencesh"),
    _agent_with_own_folder("jazz", "Jazz", ".jazz"),
    _agent_with_own_folder("junie", "Junie", ".junie"),
    _agent_with_own_folder("kilo", "Kilo Code", ".kilocode"),
    _agent_with_universal_folder(
        "kimi-code-cli", "Kimi Code CLI", f"~/{UNIVERSAL_FOLDER}", "~/.kimi-code", "~/.kimi"
    ),
    _agent_with_own_folder("kiro-cli", "Kiro CLI", ".kiro"),
    _agent_with_own_folder("kode", "Kode", ".kode"),
    _agent_with_own_folder("lingma", "Lingma", ".lingma"),
    _agent_with_universal_folder("loaf", "Loaf", f"~/{UNIVERSAL_FOLDER}", "~/.loaf"),
    _agent_with_own_folder("mcpjam", "MCPJam", ".mcpjam"),
    CodingAgent(
        "mistral-vibe",
        "Mistral Vibe",
        ".vibe/skills",
        "$VIBE_HOME/skills",
        ("$VIBE_HOME", ".vibe"),
    ),
    _agent_with_own_folder("moxby", "Moxby", ".moxby"),
    _agent_with_own_folder("mux", "Mux", ".mux"),
    _agent_with_own_folder("neovate", "Neovate", ".neovate"),
    _agent_with_own_folder("ona", "Ona", ".ona"),
    CodingAgent(
        "openclaw",
        "OpenClaw",
        "skills",
        "~/.openclaw/skills",
        ("~/.openclaw", "~/.clawdbot", "~/.moltbot"),
        ("~/.clawdbot/skills", "~/.moltbot/skills"),
    ),
    _agent_with_universal_folder(
        "opencode",
        "OpenCode",
        f"{_XDG_CONFIG}/opencode/skills",
        f"{_XDG_CONFIG}/opencode",
        ".opencode",
        extra_read_folders=(".opencode/skills",),
    ),
    _agent_with_own_folder("openhands", "OpenHands", ".openhands"),
    CodingAgent("pi", "Pi", ".pi/skills", "~/.pi/agent/skills", ("~/.pi/agent", ".pi")),
    _agent_with_own_folder("pochi", "Pochi", ".pochi"),
    _agent_with_universal_folder(
        "promptscript", "PromptScript", "", ".promptscript", "promptscript.yaml"
    ),
    _agent_with_own_folder("qoder", "Qoder", ".qoder"),
    CodingAgent("qoder-cn", "Qoder CN", ".qoder/skills", "~/.qoder-cn/skills", ("~/.qoder-cn",)),
    _agent_with_own_folder("qwen-code", "Qwen Code", ".qwen"),
    _agent_with_own_folder("reasonix", "Reasonix", ".reasonix"),
    _agent_with_universal_folder("replit", "Replit", f"{_XDG_CONFIG}/agents/skills", ".replit"),
    _agent_with_own_folder("roo", "Roo Code", ".roo"),
    _agent_with_own_folder("rovodev", "Rovo Dev", ".rovodev"),
    CodingAgent(
        "tabnine-cli",
        "Tabnine CLI",
        ".tabnine/agent/skills",
        "~/.tabnine/agent/skills",
        ("~/.tabnine", ".tabnine"),
    ),
    _agent_with_own_folder("terramind", "Terramind", ".terramind"),
    _agent_with_own_folder("tinycloud", "Tinycloud", ".tinycloud"),
    _agent_with_own_folder("trae", "Trae", ".trae"),
    CodingAgent("trae-cn", "Trae CN", ".trae/skills", "~/.trae-cn/skills", ("~/.trae-cn",)),
    _agent_with_universal_folder("warp", "Warp", f"~/{UNIVERSAL_FOLDER}", "~/.warp", ".warp"),
    CodingAgent(
        "windsurf",
        "Windsurf",
        ".windsurf/skills",
        "~/.codeium/windsurf/skills",
        ("~/.codeium/windsurf", ".windsurf"),
    ),
    _agent_with_own_folder("zcode", "ZCode", ".zcode"),
    _agent_with_universal_folder(
        "zed",
        "Zed",
        f"~/{UNIVERSAL_FOLDER}",
        f"{_XDG_CONFIG}/zed",
        "$APPDATA/Zed",
        "$FLATPAK_XDG_CONFIG_HOME/zed",
        ".zed",
    ),
    _agent_with_own_folder("zencoder", "Zencoder", ".zencoder"),
    _agent_with_own_folder("zenflow", "Zenflow", ".zencoder"),
)
AGENTS: Final[Mapping[str, CodingAgent]] = MappingProxyType({agent.id: agent for agent in _AGENTS})


def find_agent(name: str) -> CodingAgent:
    """Return the agent with this id. Raises: UnknownAgent."""
    agent = AGENTS.get(name)
    if agent is None:
        raise UnknownAgent(name, get_close_matches(name, AGENTS))
    return agent


def uses_universal_folder(agent: CodingAgent) -> bool:
    """Whether the agent reads the shared project folder, so that one copy is enough."""
    return agent.project_folder == UNIVERSAL_FOLDER


def get_project_folder(agent: CodingAgent) -> str:
    """Return the agent's skill folder, relative to the project."""
    return agent.project_folder


def resolve_user_folder(agent: CodingAgent, home: str, variables: Mapping[str, str]) -> str | None:
    """Return the absolute path of the agent's user folder; `None` if it has none."""
    return _resolve_folder(agent.user_folder, home, home, variables) if agent.user_folder else None


def resolve_read_folders(
    agent: CodingAgent, home: str, project: str, variables: Mapping[str, str]
) -> list[str]:
    """Return the absolute paths of all folders the agent reads, its own folders first."""
    folders = [agent.project_folder, agent.user_folder, *agent.extra_read_folders]
    paths = [_resolve_folder(folder, home, project, variables) for folder in folders if folder]
    return list(dict.fromkeys(path for path in paths if path is not None))


def detect_agents(home: str, project: str, variables: Mapping[str, str]) -> list[CodingAgent]:
    """Return the agents of which a marker exists, in the order of the table."""
    return [
        agent
        for agent in AGENTS.values()
        if any(
            path is not None and os.path.exists(path)
            for path in (_resolve_folder(mark, home, project, variables) for mark in agent.markers)
        )
    ]


def _resolve_folder(
    folder: str, home: str, project: str, variables: Mapping[str, str]
) -> str | None:
    """Return the absolute path of a table entry; `None` if its variable is not set."""
    first, _, rest = folder.partition("/")
    if first == "~":
        return os.path.join(home, *rest.split("/"))
    if not first.startswith("$"):
        return os.path.join(project, *folder.split("/"))
    base = _resolve_variable(first[1:], home, variables)
    return os.path.join(base, *rest.split("/")).rstrip(os.sep) if base else None


def _resolve_variable(name: str, home: str, variables: Mapping[str, str]) -> str | None:
    value = variables.get(name, "").strip()
    # The XDG specification requires relative values to be ignored.
    if value and os.path.isabs(value):
        return value
    return os.path.join(home, VARIABLE_DEFAULTS[name]) if VARIABLE_DEFAULTS[name] else None
