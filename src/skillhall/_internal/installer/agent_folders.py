"""Supported coding agents, their skill folders, and the targets of installations.

The ids are those of `npx skills`. A folder in the tables has one of three forms: `.claude/skills`
is relative to the project, `~/.claude/skills` to the home folder, and `$CODEX_HOME/skills` to the
value of the variable, or to its default in the home folder.
"""

from __future__ import annotations

import os
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from skillhall._internal.hints import find_close_names
from skillhall.errors import AgentHasNoPlace, UnknownAgent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from skillhall._internal.installer.lock import TargetKind
    from skillhall._internal.installer.project import Project

ALL_AGENTS = "*"  # every agent detected here
UNIVERSAL_FOLDER: Final = ".agents/skills"  # shared by many agents

# Defaults below the home folder; "" means that the folder exists only if the variable is set.
VARIABLE_DEFAULTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "APPDATA": "",
        "AUTOHAND_HOME": ".autohand",
        "CLAUDE_CONFIG_DIR": ".claude",
        "CODEX_HOME": ".codex",
        "FLATPAK_XDG_CONFIG_HOME": "",
        "GROK_HOME": ".grok",
        "HERMES_HOME": ".hermes",
        "SARVAM_HOME": ".sarvam",
        "VIBE_HOME": ".vibe",
        "XDG_CONFIG_HOME": ".config",
    }
)

# Agents with one folder name: id, label, and the folder in the project and in the home folder.
_OWN_FOLDER_AGENTS = """
adal | AdaL | .adal
aider-desk | AiderDesk | .aider-desk
augment | Augment | .augment
bob | IBM Bob | .bob
codearts-agent | CodeArts Agent | .codeartsdoer
codebuddy | CodeBuddy | .codebuddy
codemaker | Codemaker | .codemaker
codestudio | Code Studio | .codestudio
command-code | Command Code | .commandcode
continue | Continue | .continue
droid | Droid | .factory
forgecode | ForgeCode | .forge
iflow-cli | iFlow CLI | .iflow
inference-sh | inference.sh | .inferencesh
jazz | Jazz | .jazz
junie | Junie | .junie
kilo | Kilo Code | .kilocode
kiro-cli | Kiro CLI | .kiro
kode | Kode | .kode
lingma | Lingma | .lingma
mcpjam | MCPJam | .mcpjam
minimax-code | MiniMax Code | .minimax
moxby | Moxby | .moxby
mux | Mux | .mux
neovate | Neovate | .neovate
ona | Ona | .ona
openhands | OpenHands | .openhands
pochi | Pochi | .pochi
qoder | Qoder | .qoder
qwen-code | Qwen Code | .qwen
reasonix | Reasonix | .reasonix
roo | Roo Code | .roo
rovodev | Rovo Dev | .rovodev
terramind | Terramind | .terramind
tinycloud | Tinycloud | .tinycloud
trae | Trae | .trae
zcode | ZCode | .zcode
zencoder | Zencoder | .zencoder
zenflow | Zenflow | .zencoder
"""

# Agents that read the shared folder of a project: id, label, the parent of the user's folder
# `skills` (may be empty), and markers.
_UNIVERSAL_FOLDER_AGENTS = """
amp | Amp | $XDG_CONFIG_HOME/agents | $XDG_CONFIG_HOME/amp
antigravity | Antigravity | ~/.gemini/antigravity | ~/.gemini/antigravity
antigravity-cli | Antigravity CLI | ~/.gemini/antigravity-cli | ~/.gemini/antigravity-cli
cline | Cline | ~/.agents | ~/.cline .cline
codex | Codex | $CODEX_HOME | $CODEX_HOME .codex
cursor | Cursor | ~/.cursor | ~/.cursor .cursor
deepagents | Deep Agents | ~/.deepagents/agent | ~/.deepagents
dexto | Dexto | ~/.agents | ~/.dexto
firebender | Firebender | ~/.firebender | ~/.firebender
fx | fx | ~/.agents | ~/.fx
gemini-cli | Gemini CLI | ~/.gemini | ~/.gemini .gemini
github-copilot | GitHub Copilot | ~/.copilot |
  ~/.copilot .github/skills .github/copilot-instructions.md
kimi-code-cli | Kimi Code CLI | ~/.agents | ~/.kimi-code ~/.kimi
loaf | Loaf | ~/.agents | ~/.loaf
opencode | OpenCode | $XDG_CONFIG_HOME/opencode | $XDG_CONFIG_HOME/opencode .opencode
promptscript | PromptScript | | .promptscript promptscript.yaml
replit | Replit | $XDG_CONFIG_HOME/agents | .replit
sarvam-code | Sarvam Code | ~/.agents | $SARVAM_HOME
warp | Warp | ~/.agents | ~/.warp .warp
zed | Zed | ~/.agents | $XDG_CONFIG_HOME/zed $APPDATA/Zed $FLATPAK_XDG_CONFIG_HOME/zed .zed
"""

# All others: id, label, folder in the project, user's folder (may be empty), and markers.
_OTHER_AGENTS = """
astrbot | AstrBot | data/skills | ~/.astrbot/data/skills | ~/.astrbot data/skills
autohand-code | Autohand Code CLI | .autohand/skills | $AUTOHAND_HOME/skills |
  $AUTOHAND_HOME .autohand
claude-code | Claude Code | .claude/skills | $CLAUDE_CONFIG_DIR/skills | $CLAUDE_CONFIG_DIR .claude
cortex | Cortex Code | .cortex/skills | ~/.snowflake/cortex/skills | ~/.snowflake/cortex .cortex
crush | Crush | .crush/skills | ~/.config/crush/skills | ~/.config/crush .crush
devin | Devin for Terminal | .devin/skills | $XDG_CONFIG_HOME/devin/skills |
  $XDG_CONFIG_HOME/devin .devin
eve | Eve | agent/skills |  | agent/skills
goose | Goose | .goose/skills | $XDG_CONFIG_HOME/goose/skills | $XDG_CONFIG_HOME/goose .goose
grok | Grok Build | .grok/skills | $GROK_HOME/skills | $GROK_HOME .grok
hermes-agent | Hermes Agent | .hermes/skills | $HERMES_HOME/skills | $HERMES_HOME .hermes
kimchi | Kimchi | .kimchi/skills | ~/.config/kimchi/harness/skills | ~/.config/kimchi .kimchi
mistral-vibe | Mistral Vibe | .vibe/skills | $VIBE_HOME/skills | $VIBE_HOME .vibe
openclaw | OpenClaw | skills | ~/.openclaw/skills | ~/.openclaw ~/.clawdbot ~/.moltbot
pi | Pi | .pi/skills | ~/.pi/agent/skills | ~/.pi/agent .pi
posit-assistant | Posit Assistant | .posit/assistant/skills | ~/.posit/assistant/skills |
  ~/.posit/assistant ~/.positai .posit/assistant
qoder-cn | Qoder CN | .qoder/skills | ~/.qoder-cn/skills | ~/.qoder-cn
tabnine-cli | Tabnine CLI | .tabnine/agent/skills | ~/.tabnine/agent/skills | ~/.tabnine .tabnine
trae-cn | Trae CN | .trae/skills | ~/.trae-cn/skills | ~/.trae-cn
windsurf | Windsurf | .windsurf/skills | ~/.codeium/windsurf/skills | ~/.codeium/windsurf .windsurf
"""


class CodingAgent(NamedTuple):
    """Coding agent and its skill folders."""

    id: str
    label: str
    project_folder: str
    user_folder: str  # "" if the agent has no user scope
    markers: tuple[str, ...]  # the agent is in use if one of these paths exists


def _parse_tables() -> Iterator[CodingAgent]:
    for agent, label, folder in _split_rows(_OWN_FOLDER_AGENTS):
        markers = (f"~/{folder}", folder)
        yield CodingAgent(agent, label, f"{folder}/skills", f"~/{folder}/skills", markers)
    for agent, label, parent, marks in _split_rows(_UNIVERSAL_FOLDER_AGENTS):
        user_folder = f"{parent}/skills" if parent else ""
        yield CodingAgent(agent, label, UNIVERSAL_FOLDER, user_folder, tuple(marks.split()))
    for agent, label, folder, user_folder, marks in _split_rows(_OTHER_AGENTS):
        yield CodingAgent(agent, label, folder, user_folder, tuple(marks.split()))


def _split_rows(table: str) -> Iterator[list[str]]:
    rows = table.strip().replace("\n  ", " ").splitlines()  # an indented line continues a row
    return ([cell.strip() for cell in row.split("|")] for row in rows)


_UNIVERSAL = CodingAgent("universal", "Universal", UNIVERSAL_FOLDER, f"~/{UNIVERSAL_FOLDER}", ())
AGENTS: Final[Mapping[str, CodingAgent]] = MappingProxyType(
    {agent.id: agent for agent in (_UNIVERSAL, *sorted(_parse_tables()))}
)


class InstallTargets(NamedTuple):
    """Folders of a project: the first gets the files, the others get copies or links."""

    folder: str = UNIVERSAL_FOLDER
    other_folders: tuple[str, ...] = ()
    kind: TargetKind = "link"


def resolve_targets(
    project: Project, names: Iterable[str], *, copy: bool = False
) -> InstallTargets:
    """Return the targets for agents with these ids; many agents share a folder.

    Raises: UnknownAgent, AgentHasNoPlace.
    """
    folders: list[str] = []
    for agent in find_agents(project, names):
        folder: str | None = agent.project_folder
        if project.is_user and folder != UNIVERSAL_FOLDER:
            path = resolve_user_folder(agent, project.root, project.settings.variables)
            folder = None if path is None else project.key(path)
        if folder is None:
            raise AgentHasNoPlace(agent.id)
        if folder not in folders:
            folders.append(folder)
    if len(folders) == 1 or (copy and folders):
        return InstallTargets(folders[0], tuple(folders[1:]), "copy")
    # An agent's folder may itself be a link to the universal folder.
    universal = os.path.realpath(project.path(UNIVERSAL_FOLDER))
    others = [folder for folder in folders if os.path.realpath(project.path(folder)) != universal]
    return InstallTargets(UNIVERSAL_FOLDER, tuple(others), "link")


def is_agent_folder(project: Project, folder: str) -> bool:
    """Whether an agent reads skills from this folder."""
    if not project.is_user:
        return any(agent.project_folder == folder for agent in AGENTS.values())
    home, variables = project.root, project.settings.variables
    folders = (resolve_user_folder(agent, home, variables) for agent in AGENTS.values())
    return folder == UNIVERSAL_FOLDER or project.path(folder) in folders


def find_agents(project: Project, names: Iterable[str]) -> Sequence[CodingAgent]:
    """Return the agents with these ids; "*" means all in use. Raises: UnknownAgent."""
    names = list(names)
    if ALL_AGENTS in names:
        settings = project.settings
        return detect_agents(settings.home, settings.working_directory, settings.variables)
    for name in names:
        if name not in AGENTS:
            raise UnknownAgent(name, find_close_names(name, AGENTS))
    return [AGENTS[name] for name in names]


def detect_agents(home: str, project: str, variables: Mapping[str, str]) -> list[CodingAgent]:
    """Return the agents in use (with an existing marker), in the order of `AGENTS`."""
    return [
        agent
        for agent in AGENTS.values()
        if any(
            path is not None and os.path.exists(path)
            for path in (resolve_folder(mark, home, project, variables) for mark in agent.markers)
        )
    ]


def resolve_user_folder(agent: CodingAgent, home: str, variables: Mapping[str, str]) -> str | None:
    """Return the absolute path of the agent's user folder; `None` if it has none."""
    return resolve_folder(agent.user_folder, home, home, variables) if agent.user_folder else None


def resolve_folder(
    folder: str, home: str, project: str, variables: Mapping[str, str]
) -> str | None:
    """Return the absolute path of a table entry; `None` if its variable is not set."""
    first, _, rest = folder.partition("/")
    if first == "~":
        return os.path.join(home, *rest.split("/"))
    if not first.startswith("$"):
        return os.path.join(project, *folder.split("/"))
    base, default = variables.get(first[1:], "").strip(), VARIABLE_DEFAULTS[first[1:]]
    # The XDG specification requires relative values to be ignored.
    if not os.path.isabs(base):
        base = os.path.join(home, default) if default else ""
    return os.path.join(base, *rest.split("/")).rstrip(os.sep) if base else None
