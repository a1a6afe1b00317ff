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

UNIVERSAL: Final = ".agents/skills"  # the folder that many agents share
SINGULAR: Final = ".agent/skills"  # its former name: read, never written

# Where a variable points if it is not set; one without such a place then leads nowhere.
USUAL: Final[Mapping[str, str]] = MappingProxyType(
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


class Agent(NamedTuple):
    """One agent and its places."""

    id: str
    label: str
    project: str  # where it finds a project's skills
    user: str  # where it finds its user's skills; "" if it has no such place
    markers: tuple[str, ...]  # whichever of them exists shows that it is used here
    also_reads: tuple[str, ...] = ()  # further folders with skills, never written to


def _own(agent: str, label: str, folder: str) -> Agent:
    """An agent that keeps all it has in folders of one name."""
    markers = (f"~/{folder}", folder)
    return Agent(agent, label, f"{folder}/skills", f"~/{folder}/skills", markers)


def _sharing(agent: str, label: str, user: str, *markers: str, also: tuple[str, ...] = ()) -> Agent:
    """An agent that reads the folder that many share."""
    return Agent(agent, label, UNIVERSAL, user, markers, also)


_CONFIG = "$XDG_CONFIG_HOME"
_AGENTS = (
    Agent("universal", "Universal", UNIVERSAL, f"~/{UNIVERSAL}", (), (SINGULAR,)),
    _own("adal", "AdaL", ".adal"),
    _own("aider-desk", "AiderDesk", ".aider-desk"),
    _sharing("amp", "Amp", f"{_CONFIG}/agents/skills", f"{_CONFIG}/amp"),
    _sharing(
        "antigravity",
        "Antigravity",
        "~/.gemini/antigravity/skills",
        "~/.gemini/antigravity",
        also=(SINGULAR,),
    ),
    _sharing(
        "antigravity-cli",
        "Antigravity CLI",
        "~/.gemini/antigravity-cli/skills",
        "~/.gemini/antigravity-cli",
    ),
    Agent(
        "astrbot",
        "AstrBot",
        "data/skills",
        "~/.astrbot/data/skills",
        ("~/.astrbot", "data/skills"),
    ),
    _own("augment", "Augment", ".augment"),
    Agent(
        "autohand-code",
        "Autohand Code CLI",
        ".autohand/skills",
        "$AUTOHAND_HOME/skills",
        ("$AUTOHAND_HOME", ".autohand"),
    ),
    _own("bob", "IBM Bob", ".bob"),
    Agent(
        "claude-code",
        "Claude Code",
        ".claude/skills",
        "$CLAUDE_CONFIG_DIR/skills",
        ("$CLAUDE_CONFIG_DIR", ".claude"),
    ),
    _sharing("cline", "Cline", f"~/{UNIVERSAL}", "~/.cline", ".cline", also=(".cline/skills",)),
    _own("codearts-agent", "CodeArts Agent", ".codeartsdoer"),
    _own("codebuddy", "CodeBuddy", ".codebuddy"),
    _own("codemaker", "Codemaker", ".codemaker"),
    _own("codestudio", "Code Studio", ".codestudio"),
    _sharing(
        "codex",
        "Codex",
        "$CODEX_HOME/skills",
        "$CODEX_HOME",
        ".codex",
        also=(f"~/{UNIVERSAL}", ".codex/skills"),
    ),
    _own("command-code", "Command Code", ".commandcode"),
    _own("continue", "Continue", ".continue"),
    Agent(
        "cortex",
        "Cortex Code",
        ".cortex/skills",
        "~/.snowflake/cortex/skills",
        ("~/.snowflake/cortex", ".cortex"),
    ),
    Agent(
        "crush", "Crush", ".crush/skills", "~/.config/crush/skills", ("~/.config/crush", ".crush")
    ),
    _sharing(
        "cursor", "Cursor", "~/.cursor/skills", "~/.cursor", ".cursor", also=(".cursor/skills",)
    ),
    _sharing("deepagents", "Deep Agents", "~/.deepagents/agent/skills", "~/.deepagents"),
    Agent(
        "devin",
        "Devin for Terminal",
        ".devin/skills",
        f"{_CONFIG}/devin/skills",
        (f"{_CONFIG}/devin", ".devin"),
    ),
    _sharing("dexto", "Dexto", f"~/{UNIVERSAL}", "~/.dexto"),
    _own("droid", "Droid", ".factory"),
    Agent("eve", "Eve", "agent/skills", "", ("agent/skills",)),
    _sharing("firebender", "Firebender", "~/.firebender/skills", "~/.firebender"),
    _own("forgecode", "ForgeCode", ".forge"),
    _sharing(
        "gemini-cli",
        "Gemini CLI",
        "~/.gemini/skills",
        "~/.gemini",
        ".gemini",
        also=(".gemini/skills",),
    ),
    _sharing(
        "github-copilot",
        "GitHub Copilot",
        "~/.copilot/skills",
        "~/.copilot",
        ".github/skills",
        ".github/copilot-instructions.md",
        also=(".github/skills",),
    ),
    Agent(
        "goose",
        "Goose",
        ".goose/skills",
        f"{_CONFIG}/goose/skills",
        (f"{_CONFIG}/goose", ".goose"),
    ),
    Agent(
        "hermes-agent",
        "Hermes Agent",
        ".hermes/skills",
        "$HERMES_HOME/skills",
        ("$HERMES_HOME", ".hermes"),
    ),
    _own("iflow-cli", "iFlow CLI", ".iflow"),
    _own("inference-sh", "inference.sh", ".inferencesh"),
    _own("jazz", "Jazz", ".jazz"),
    _own("junie", "Junie", ".junie"),
    _own("kilo", "Kilo Code", ".kilocode"),
    _sharing("kimi-code-cli", "Kimi Code CLI", f"~/{UNIVERSAL}", "~/.kimi-code", "~/.kimi"),
    _own("kiro-cli", "Kiro CLI", ".kiro"),
    _own("kode", "Kode", ".kode"),
    _own("lingma", "Lingma", ".lingma"),
    _sharing("loaf", "Loaf", f"~/{UNIVERSAL}", "~/.loaf"),
    _own("mcpjam", "MCPJam", ".mcpjam"),
    Agent(
        "mistral-vibe",
        "Mistral Vibe",
        ".vibe/skills",
        "$VIBE_HOME/skills",
        ("$VIBE_HOME", ".vibe"),
    ),
    _own("moxby", "Moxby", ".moxby"),
    _own("mux", "Mux", ".mux"),
    _own("neovate", "Neovate", ".neovate"),
    _own("ona", "Ona", ".ona"),
    Agent(
        "openclaw",
        "OpenClaw",
        "skills",
        "~/.openclaw/skills",
        ("~/.openclaw", "~/.clawdbot", "~/.moltbot"),
        ("~/.clawdbot/skills", "~/.moltbot/skills"),
    ),
    _sharing(
        "opencode",
        "OpenCode",
        f"{_CONFIG}/opencode/skills",
        f"{_CONFIG}/opencode",
        ".opencode",
        also=(".opencode/skills",),
    ),
    _own("openhands", "OpenHands", ".openhands"),
    Agent("pi", "Pi", ".pi/skills", "~/.pi/agent/skills", ("~/.pi/agent", ".pi")),
    _own("pochi", "Pochi", ".pochi"),
    _sharing("promptscript", "PromptScript", "", ".promptscript", "promptscript.yaml"),
    _own("qoder", "Qoder", ".qoder"),
    Agent("qoder-cn", "Qoder CN", ".qoder/skills", "~/.qoder-cn/skills", ("~/.qoder-cn",)),
    _own("qwen-code", "Qwen Code", ".qwen"),
    _own("reasonix", "Reasonix", ".reasonix"),
    _sharing("replit", "Replit", f"{_CONFIG}/agents/skills", ".replit"),
    _own("roo", "Roo Code", ".roo"),
    _own("rovodev", "Rovo Dev", ".rovodev"),
    Agent(
        "tabnine-cli",
        "Tabnine CLI",
        ".tabnine/agent/skills",
        "~/.tabnine/agent/skills",
        ("~/.tabnine", ".tabnine"),
    ),
    _own("terramind", "Terramind", ".terramind"),
    _own("tinycloud", "Tinycloud", ".tinycloud"),
    _own("trae", "Trae", ".trae"),
    Agent("trae-cn", "Trae CN", ".trae/skills", "~/.trae-cn/skills", ("~/.trae-cn",)),
    _sharing("warp", "Warp", f"~/{UNIVERSAL}", "~/.warp", ".warp"),
    Agent(
        "windsurf",
        "Windsurf",
        ".windsurf/skills",
        "~/.codeium/windsurf/skills",
        ("~/.codeium/windsurf", ".windsurf"),
    ),
    _own("zcode", "ZCode", ".zcode"),
    _sharing(
        "zed",
        "Zed",
        f"~/{UNIVERSAL}",
        f"{_CONFIG}/zed",
        "$APPDATA/Zed",
        "$FLATPAK_XDG_CONFIG_HOME/zed",
        ".zed",
    ),
    _own("zencoder", "Zencoder", ".zencoder"),
    _own("zenflow", "Zenflow", ".zencoder"),
)
AGENTS: Final[Mapping[str, Agent]] = MappingProxyType({agent.id: agent for agent in _AGENTS})


def agent_named(name: str) -> Agent:
    """The agent with that id. Raises: UnknownAgent."""
    found = AGENTS.get(name)
    if found is None:
        raise UnknownAgent(name, get_close_matches(name, AGENTS))
    return found


def shares_universal(agent: Agent) -> bool:
    """Whether the agent reads the project folder that many share: one copy serves them all."""
    return agent.project == UNIVERSAL


def project_folder(agent: Agent) -> str:
    """Where the agent finds a project's skills, relative to the project."""
    return agent.project


def user_folder(agent: Agent, home: str, variables: Mapping[str, str]) -> str | None:
    """Where the agent finds its user's skills, as a whole path; `None` if it has no such place."""
    return _resolved(agent.user, home, home, variables) if agent.user else None


def read_folders(agent: Agent, home: str, project: str, variables: Mapping[str, str]) -> list[str]:
    """Every folder that the agent may find skills in, as whole paths, its own ones first."""
    places = [agent.project, agent.user, *agent.also_reads]
    found = [_resolved(place, home, project, variables) for place in places if place]
    return list(dict.fromkeys(path for path in found if path is not None))


def detect(home: str, project: str, variables: Mapping[str, str]) -> list[Agent]:
    """The agents that are used here, as far as their folders tell, in the order of the table."""
    return [
        agent
        for agent in AGENTS.values()
        if any(
            path is not None and os.path.exists(path)
            for path in (_resolved(mark, home, project, variables) for mark in agent.markers)
        )
    ]


def _resolved(place: str, home: str, project: str, variables: Mapping[str, str]) -> str | None:
    """The whole path of a place of the table; `None` if its variable leads nowhere."""
    first, _, rest = place.partition("/")
    if first == "~":
        return os.path.join(home, *rest.split("/"))
    if not first.startswith("$"):
        return os.path.join(project, *place.split("/"))
    base = _variable(first[1:], home, variables)
    return os.path.join(base, *rest.split("/")).rstrip(os.sep) if base else None


def _variable(name: str, home: str, variables: Mapping[str, str]) -> str | None:
    """Where the variable points; a value that is no whole path is as good as none."""
    value = variables.get(name, "").strip()
    if value and os.path.isabs(value):
        return value
    return os.path.join(home, USUAL[name]) if USUAL[name] else None
