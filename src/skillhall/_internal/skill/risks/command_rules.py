"""Rules for risky commands, and for requests to paste a command into a terminal.

Every quantifier is bounded and no repeated group contains another long repetition, so that no line
can make a pattern slow. There are no rules for sudo, network use or eval: they are too common.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice

from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.risks.exfiltration_rules import EXFILTRATION_RULE
from skillhall._internal.skill.risks.lazy_pattern import LazyPattern
from skillhall._internal.skill.risks.rule_engine import (
    Finder,
    Piece,
    RiskRule,
    RuleHit,
    ScannedText,
    all_of,
    any_of,
    either,
    in_order,
    split_words,
)
from skillhall._internal.skill.risks.triggers import (
    Trigger,
    all_words,
    any_word,
    combine_words,
    with_literals,
)

_DOWNLOADED_URL = LazyPattern(r"\bhttps?://[^\s\"'`<>|)\\]{1,300}")
_HTTPS = "https://"
# Well-known installers that guides pipe into a shell: host and start of the path. Only hosts or
# paths whose content one trusted owner controls.
_KNOWN_INSTALLERS = split_words(
    "aka.ms/installazurecli astral.sh/ awscli.amazonaws.com/ bootstrap.pypa.io/get-pip.py "
    "bun.com/install bun.sh/install claude.ai/install cli.doppler.com/install.sh "
    "community.chocolatey.org/install.ps1 cursor.com/install deb.nodesource.com/setup_ "
    "deno.land/install deno.land/x/install/ direnv.net/install.sh fly.io/install.sh "
    "fnm.vercel.app/install foundry.paradigm.xyz get.docker.com get.helm.sh/ get.k3s.io "
    "get.pnpm.io/install get.pulumi.com get.rvm.io get.scoop.sh get.sdkman.io get.volta.sh "
    "gh.io/copilot-install install.determinate.systems/ install.duckdb.org "
    "install.python-poetry.org just.systems/install.sh mise.run nixos.org/nix/install "
    "ollama.com/install.sh opencode.ai/install pyenv.run raw.githubusercontent.com/helm/helm/ "
    "raw.githubusercontent.com/homebrew/install/ raw.githubusercontent.com/nvm-sh/nvm/ "
    "raw.githubusercontent.com/ohmyzsh/ohmyzsh/ sdk.cloud.google.com sh.rustup.rs "
    "starship.rs/install.sh tailscale.com/install.sh zed.dev/install.sh"
)


def has_only_known_installers(line: str) -> bool:
    """Whether a lowercase line has URLs, and all of them are those of known installers."""
    urls = _DOWNLOADED_URL.findall(line)
    return bool(urls) and all(map(_is_known_installer, urls))


def _is_known_installer(url: str) -> bool:
    if not url.startswith(_HTTPS) or ".." in url or "$" in url:
        return False
    host, slash, path = url.removeprefix(_HTTPS).rstrip(".,;").partition("/")
    for known in _KNOWN_INSTALLERS:
        known_host, _, known_path = known.partition("/")
        if host == known_host and (slash + path).startswith(f"/{known_path}" if known_path else ""):
            return True
    return False


_END = r"(?=$|[\s;&)'\"`])"
_SHELL = r"(?:ba|z|da|k|a)?sh(?![\w./=-])(?!\s{0,8}\|)"  # not a table cell
# An interpreter that reads its program from the pipe, not "python3 -m json.tool".
_INTERPRETER = (
    rf"(?:python[23]?|perl|ruby|node|php)(?:\s{{1,4}}-{_END}|(?=\s{{0,8}}(?:$|[;&)'\"`])))"
)
_SUDO = r"(?:sudo\s{1,4}(?:-\w{1,8}\s{1,4}){0,2})?(?:/usr)?(?:/bin/)?(?:env\s{1,4})?"
_INTO_SHELL = rf"\|\s{{0,8}}(?:{_SUDO}(?:{_SHELL}|{_INTERPRETER})|(?:iex|invoke-expression)\b)"
_RUN_SUBSTITUTION = (
    r"(?:\beval\s{1,4}|\b(?:ba|z|da|k)?sh\s{1,4}(?:-\w{1,4}\s{1,4})?|\bsource\s{1,4})"
    r"[\"']?(?:<<<\s{0,2}[\"']?)?(?:\$\(|<\()"
)
_DOWNLOAD = r"\b(?:curl|wget|iwr|irm|invoke-webrequest|invoke-restmethod)\b"
_URL = r"https?://[\w$\[{<]|\$\{?\w|\b[a-z0-9-]{1,63}\.[a-z]{2,10}/"
_DECODE = (
    r"\bbase(?:64|32)\s{1,4}(?:-d\b|-di\b|--decode\b)|\bxxd\s{1,4}-r\b"
    r"|\bopenssl\s{1,4}(?:enc|base64)\b[^\n|]{0,80}\s-d\b"
)
_DECODE_CALL = (
    r"(?:b64decode|b32decode|\batob\(|frombase64string|fromhex\("
    r"|buffer\.from\([^\n)]{0,120}base64)"
)

_find_pipe_to_shell: Finder = either(
    in_order(_DOWNLOAD, _URL, _INTO_SHELL),
    in_order(_RUN_SUBSTITUTION + rf"[^\n)]{{0,20}}{_DOWNLOAD}", _URL),
    any_of(
        r"\b(?:iex|invoke-expression)\b[\s(&\"']{1,8}[^\n]{0,60}"
        r"(?:\biwr\b|\birm\b|invoke-webrequest|invoke-restmethod|downloadstring)"
    ),
)


def _find_installer(*, is_known: bool) -> Finder:
    def find(piece: Piece) -> int | None:
        at = _find_pipe_to_shell(piece)
        return at if at is not None and has_only_known_installers(piece.lower) is is_known else None

    return find


_ARCHIVE = r"\.(?:zip|rar|7z)\b|\b(?:unzip|unrar|archive|extract|unpack)\b"
_PASSWORD_IN_TEXT = LazyPattern(
    r"\bpass(?:word|phrase|code|wd)?\b(?:\s{1,3}is)?\s{0,3}[:=]?\s{0,3}"
    r"[\"'`*]{1,3}([\w!@#$%.-]{3,40})[\"'`*]"
)
# Case matters: "unzip -p" prints, "unzip -P" takes a password.
_PASSWORD_OPTION = LazyPattern(
    r"\bunzip\b[^\n|;]{0,60}\s-P\s{0,2}[\"']?([\w!@#%.-]{3,40})"
    r"|\b(?:7z[ar]?|unrar)\s{1,4}[xe]\b[^\n|;]{0,80}\s-p[\"']?([\w!@#%.-]{3,40})"
)
_PLACEHOLDER = LazyPattern(
    r"(?i)pass|pwd|secret|your|example|xxx|protected|incorrect|required|test"
)
_find_archive = any_of(_ARCHIVE)


def _find_password_archive(piece: Piece) -> int | None:
    if _find_archive(piece) is None:
        return None
    for match in (_PASSWORD_OPTION.search(piece.text), _PASSWORD_IN_TEXT.search(piece.lower)):
        if match is not None:
            word = next(group for group in match.groups() if group)
            if _PLACEHOLDER.search(word) is None:
                return match.start()
    return None


_AGENT_FILES = (
    r"\.claude/(?:settings|hooks|claude\.md)|\bclaude\.md\b|\bagents\.md\b|\bgemini\.md\b"
    r"|\.cursorrules|\.cursor/(?:mcp\.json|rules)|\.mcp\.json|\.codex/config|\.claude\.json"
    r"|claude_desktop_config\.json|copilot-instructions\.md|\bsoul\.md\b|\bmemory\.md\b"
)
_WRITE_ACTION = (
    r">>?\s{0,3}[\"'~$./\w]|\btee\b|\bsed\s{1,4}-i"
    r"|\b(?:append|add|write|insert|inject|edit|modify|update|install)\b"
)
_DOWNLOAD_TRIGGERS = (
    *any_word("curl wget iwr irm iex"),
    *all_words("webrequest invoke", "restmethod invoke", "expression invoke"),
)
# Calls that run code, and what all forms of `_DECODE_CALL` contain.
_RUN_WORDS = ("exec", "eval", "execsync", "system", "popen", "subprocess")
_DECODE_LITERALS = ("decode", "base64", "fromhex(", "atob(")

COMMAND_RULES = (
    RiskRule(
        Code.DECODE_AND_RUN,
        "decodes and runs a program",
        split_words("base64 base32 b64decode b32decode xxd openssl atob( fromhex( powershell pwsh"),
        either(
            in_order(_DECODE, _INTO_SHELL),
            in_order(_RUN_SUBSTITUTION, _DECODE),
            any_of(
                r"(?:(?<![.\w])(?:exec|eval|execsync|system|popen)|\bnew function"
                r"|\bos\.(?:system|popen)|\bsubprocess\.\w{1,12}|\bchild_process\.\w{1,12})"
                rf"\s?\([^\n]{{0,60}}{_DECODE_CALL}"
            ),
            any_of(
                r"\b(?:powershell|pwsh)(?:\.exe)?\b[^\n]{0,120}\s-e[a-z]{0,14}\s{1,4}[a-z0-9+/=]{40}"
            ),
            any_of(r"\b(?:iex|invoke-expression)\b[^\n]{0,120}frombase64string"),
            in_order(r"frombase64string", r"[|;]\s{0,4}(?:iex|invoke-expression)\b"),
        ),
        (
            *any_word("base64 base32 xxd openssl powershell pwsh iex"),
            *all_words("expression invoke", "function new", "child process"),
            *(Trigger((word,), literal) for word in _RUN_WORDS for literal in _DECODE_LITERALS),
        ),
    ),
    RiskRule(
        Code.PASSWORD_ARCHIVE,
        "archive with a password",
        ("pass", "unzip", "7z", "unrar"),
        _find_password_archive,
        combine_words(
            "unzip unrar 7z 7za 7zr pass password passphrase passcode passwd",
            "zip rar 7z unzip unrar archive extract unpack",
        ),
    ),
    RiskRule(
        Code.PIPE_TO_SHELL,
        "pipes a download into a shell",
        ("curl", "wget", "iex", "invoke-expression"),
        _find_installer(is_known=False),
        _DOWNLOAD_TRIGGERS,
    ),
    RiskRule(
        Code.KNOWN_INSTALLER,
        "pipes a well-known installer into a shell",
        ("curl", "wget", "iex", "invoke-expression"),
        _find_installer(is_known=True),
        _DOWNLOAD_TRIGGERS,
    ),
    EXFILTRATION_RULE,
    RiskRule(
        Code.REVERSE_SHELL,
        "connects a shell to another machine",
        (*split_words("/dev/tcp/ /dev/udp/ ncat netcat socat socket fsockopen"), "nc "),
        either(
            any_of(r"\b(?:ba|z|da|k)?sh\s{1,4}-i\b[^\n]{0,40}/dev/(?:tcp|udp)/"),
            any_of(
                r"\b(?:nc|ncat|netcat)\b[^\n|;]{0,80}\s(?:-[a-z]{0,4}[ec]|--exec|--sh-exec)\s{1,4}"
                r"[\"']?[\w/.]{0,20}(?:sh|cmd|cmd\.exe|powershell)\b"
            ),
            in_order(
                r"\bmkfifo\b", r"\|\s{0,4}(?:/bin/)?(?:ba)?sh\s{1,4}-i\b", r"\b(?:nc|ncat|netcat)\b"
            ),
            in_order(r"<>\s{0,2}/dev/(?:tcp|udp)/", r"\b(?:ba|z|da|k)?sh\s{0,4}<&"),
            in_order(r"\bsocat\b", r"exec:[\"']?(?:/bin/)?(?:ba|z)?sh\b"),
            in_order(r"\bsocket\.socket\(", r"\bdup2\(", r"\b(?:ba|z)?sh\b"),
            in_order(r"\bfsockopen\(", r"\b(?:exec|shell_exec|proc_open|passthru)\("),
        ),
        (
            *any_word("nc ncat netcat socat dup2 fsockopen"),
            *with_literals({"/dev/tcp/": "tcp", "/dev/udp/": "udp"}),
        ),
    ),
    RiskRule(
        Code.DANGEROUS_FLAG,
        "option that disables a safeguard",
        split_words(
            "--dangerously- --yolo bypasspermissions --trust-all-tools --no-sandbox "
            "--disable-sandbox --full-auto --no-verify --privileged"
        ),
        any_of(
            r"--dangerously-[a-z]|--yolo\b|\bbypasspermissions\b|--trust-all-tools\b"
            r"|--(?:no|disable)-sandbox\b|--full-auto\b|--no-verify\b|--privileged\b"
        ),
        (
            *any_word("dangerously yolo bypasspermissions privileged"),
            *all_words("sandbox no", "sandbox disable", "trust all tools", "verify no"),
            *all_words("full auto"),
        ),
    ),
    RiskRule(
        Code.AGENT_CONFIG_WRITE,
        "writes to the settings or memory of an agent",
        split_words(
            ".claude claude.md agents.md gemini.md .cursor .mcp.json .codex/ "
            "claude_desktop_config copilot-instructions soul.md memory.md"
        ),
        all_of(_AGENT_FILES, _WRITE_ACTION),
        with_literals(
            {
                ".claude/": ".claude",
                ".claude.json": ".claude",
                "claude.md": "claude .md",
                "agents.md": "agents .md",
                "gemini.md": "gemini .md",
                ".cursorrules": "",
                ".cursor/": ".cursor",
                ".mcp.json": ".mcp",
                ".codex/config": ".codex",
                "claude_desktop_config.json": "desktop config",
                "copilot-instructions.md": "instructions",
                "soul.md": "soul .md",
                "memory.md": "memory .md",
            }
        ),
    ),
    RiskRule(
        Code.PERSISTENCE,
        "sets up a program that starts automatically",
        split_words(
            "crontab launchagents launchdaemons launchctl systemctl schtasks "
            "authorized_keys currentversion\\run /etc/cron rc.local .bashrc .zshrc .profile "
            ".bash_profile"
        ),
        any_of(
            r"\bcrontab\s{1,4}(?:-\s|-$|[\w/.]{2})|\|\s{0,4}crontab\b"
            r"|\blaunchctl\s{1,4}(?:load|bootstrap)\b"
            r"|library/launch(?:agents|daemons)/\S|\bsystemctl\s{1,4}(?:--\w{1,12}\s{1,4}){0,2}enable\b"
            r"|\bschtasks\b[^\n]{0,40}/create\b|currentversion\\run\b|/etc/cron\.|/etc/rc\.local\b"
            r"|>>?\s{0,4}[\"']?[\w~$/{}.-]{0,60}"
            r"(?:authorized_keys|\.bashrc|\.zshrc|\.profile|\.bash_profile)\b"
        ),
        (
            *any_word("crontab launchctl launchagents launchdaemons systemctl schtasks"),
            *any_word(".bashrc .zshrc .profile"),
            *with_literals(
                {
                    "currentversion\\run": "run",
                    "/etc/cron.": "cron etc",
                    "/etc/rc.local": "rc etc .local",
                    "authorized_keys": "keys",
                    ".bash_profile": ".bash profile",
                }
            ),
        ),
    ),
)


# Requests to paste a command into a terminal, as "ClickFix" attacks make them. Manuals make such
# requests too. But in a manual the command is visible, and it neither downloads nor decodes
# anything.
_LINES_BELOW = 12  # lines after the request that may contain its command
_LINES_ABOVE = 8  # lines before it: "copy the above and paste it"
_MAX_REQUESTS = 100  # of one file
PASTE_RULE = RiskRule(
    Code.PASTE_INTO_TERMINAL,
    "asks the user to paste a command",
    (),
    lambda _: None,
    combine_words("paste pasting", "terminal prompt line powershell cmd box dialog"),
)
_PASTE_REQUEST = LazyPattern(
    r"\bpast(?:e|ing)\b[^.\n]{0,60}\bin(?:to|side)?\s{1,3}"
    r"(?:the |your |a |an? open )?(?:\w{1,12} ){0,2}"
    r"(?:terminal|command prompt|command line|powershell|cmd|run (?:box|dialog))\b"
)
_VISIBLE_COMMAND = LazyPattern(r"```|~~~|`[^`\n]{3,}`|^ {4,}\S|^\s{0,8}\$ ", re.MULTILINE)
_DOWNLOAD_OR_DECODE = LazyPattern(
    r"\b(?:iex|invoke-expression|mshta|certutil|bitsadmin|osascript)\b|frombase64string"
    r"|\bbase64\s{1,4}(?:-d\b|--decode\b)|\s-e(?:nc|ncodedcommand)\s|\|\s{0,4}(?:ba|z)?sh\b"
    r"|\b(?:ba|z)?sh\s{1,4}(?:-c\s{1,4})?[\"']?(?:<\(|\$\()\s{0,4}(?:curl|wget)\b"
)
# The request is about a command, and not about some text.
_COMMAND_WORD = LazyPattern(r"\b(?:it|command|this|that|them|script|line)\b")
_REMOTE_URL = LazyPattern(r"https?://(?!localhost|127\.)")


def find_paste_requests(lines: ScannedText, is_mention: Callable[[int], bool]) -> Iterator[RuleHit]:
    """Find requests to paste a command that is hidden or that downloads or decodes data."""
    text = lines.lower
    for match in islice(_PASTE_REQUEST.finditer(text), _MAX_REQUESTS):
        # The slices bound the work on files with very long lines.
        above = text[max(0, match.start() - 2000) : match.start()]
        above = "\n".join(above.split("\n")[-_LINES_ABOVE:])
        below = "\n".join(text[match.end() : match.end() + 4000].split("\n")[:_LINES_BELOW])
        visible = _VISIBLE_COMMAND.search(below) or _VISIBLE_COMMAND.search(above)
        context = f"{above}\n{below}"
        if visible is None:
            is_risky = bool(_REMOTE_URL.search(context) or _COMMAND_WORD.search(match.group()))
        else:
            is_risky = any(
                _DOWNLOAD_OR_DECODE.search(line) and not has_only_known_installers(line)
                for line in context.split("\n")
            )
        if not is_risky:
            continue
        yield lines.build_hit(PASTE_RULE, match.start(), is_mention=is_mention(match.start()))
