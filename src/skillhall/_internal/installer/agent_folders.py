"""Which agents there are, and where each looks for skills. The ids are those of `npx skills`.

Places are data: `.claude/skills` lies in the project, `~/.claude/skills` in the home folder, and
`$CODEX_HOME/skills` where that variable points, or at its usual place in the home folder.
"""

from __future__ import annotations

import os
from difflib import get_close_matches
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from skillhall.errors import UnknownAgent

if TYPE_CHECKING:
    from collections.abc import Mapping

UNIVERSAL_FOLDER: Final = ".agents/skills"  # the folder that many agents share
LEGACY_UNIVERSAL_FOLDER: Final = ".agent/skills"  # its former name: read, never written

# Where a variable points if it is not set; one without such a place then leads nowhere.
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
    """One agent and its places."""

    id: str
    label: str
    project_folder: str  # where it finds a project's skills
    user_folder: str  # where it finds its user's skills; "" if it has no such place
    markers: tuple[str, ...]  # whichever of them exists shows that it is used here
    extra_read_folders: tuple[str, ...] = ()  # further folders with skills, never written to


def _agent_with_own_folder(agent: str, label: str, folder: str) -> CodingAgent:
    """An agent that keeps all it has in folders of one name."""
    markers = (f"~/{folder}", folder)
    return CodingAgent(agent, label, f"{folder}/skills", f"~/{folder}/skills", markers)


def _agent_with_universal_folder(
    agent: str, label: str, user: str, *markers: str, extra_read_folders: tuple[str, ...] = ()
) -> CodingAgent:
    """An agent that reads the folder that many share."""
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
    """The agent with that id. Raises: UnknownAgent."""
    found = AGENTS.get(name)
    if found is None:
        raise UnknownAgent(name, get_close_matches(name, AGENTS))
    return found


def uses_universal_folder(agent: CodingAgent) -> bool:
    """Whether the agent reads the project folder that many share: one copy serves them all."""
    return agent.project_folder == UNIVERSAL_FOLDER


def get_project_folder(agent: CodingAgent) -> str:
    """Where the agent finds a project's skills, relative to the project."""
    return agent.project_folder


def resolve_user_folder(agent: CodingAgent, home: str, variables: Mapping[str, str]) -> str | None:
    """Where the agent finds its user's skills, as a whole path; `None` if it has no such place."""
    return _resolve_folder(agent.user_folder, home, home, variables) if agent.user_folder else None


def resolve_read_folders(
    agent: CodingAgent, home: str, project: str, variables: Mapping[str, str]
) -> list[str]:
    """Every folder that the agent may find skills in, as whole paths, its own ones first."""
    places = [agent.project_folder, agent.user_folder, *agent.extra_read_folders]
    found = [_resolve_folder(place, home, project, variables) for place in places if place]
    return list(dict.fromkeys(path for path in found if path is not None))


def detect_agents(home: str, project: str, variables: Mapping[str, str]) -> list[CodingAgent]:
    """The agents that are used here, as far as their folders tell, in the order of the table."""
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
    """The whole path of a place of the table; `None` if its variable leads nowhere."""
    first, _, rest = folder.partition("/")
    if first == "~":
        return os.path.join(home, *rest.split("/"))
    if not first.startswith("$"):
        return os.path.join(project, *folder.split("/"))
    base = _resolve_variable(first[1:], home, variables)
    return os.path.join(base, *rest.split("/")).rstrip(os.sep) if base else None


def _resolve_variable(name: str, home: str, variables: Mapping[str, str]) -> str | None:
    """Where the variable points; a value that is no whole path is as good as none."""
    value = variables.get(name, "").strip()
    if value and os.path.isabs(value):
        return value
    return os.path.join(home, VARIABLE_DEFAULTS[name]) if VARIABLE_DEFAULTS[name] else None
