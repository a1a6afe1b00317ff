"""Well-known installers that guides pipe into a shell, matched by host and path."""

from __future__ import annotations

import re

from skillhall._internal.skill.risks.rule_engine import split_words

_URL = re.compile(r"\bhttps?://[^\s\"'`<>|)\\]{1,300}")
_HTTPS = "https://"
# Host and start of the path. Only hosts or paths whose content one trusted owner controls.
_KNOWN = split_words(
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
    """Whether a lowercase line has URLs, and all of them are known installers."""
    urls = _URL.findall(line)
    return bool(urls) and all(map(_is_known_installer, urls))


def _is_known_installer(url: str) -> bool:
    if not url.startswith(_HTTPS) or ".." in url or "$" in url:
        return False
    host, slash, path = url.removeprefix(_HTTPS).rstrip(".,;").partition("/")
    for known in _KNOWN:
        known_host, _, known_path = known.partition("/")
        if host == known_host and (slash + path).startswith(f"/{known_path}" if known_path else ""):
            return True
    return False
