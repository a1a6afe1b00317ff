"""Builds the documentation site, and serves it.

    python3 dev.py docs                      build, then serve on 127.0.0.1:8000
    python3 dev.py docs build [--into DIR]   only build, by default into build/site

The folder gets one subfolder for the version, a copy of it as `latest`, and `versions.json` for the
menu of versions. Subfolders of other versions stay, so a checkout of the published site can be the
folder. A warning, such as a link to a missing page or heading, fails the build.
"""

import argparse
import functools
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from skillhall._version import VERSION

ROOT = Path(__file__).resolve().parents[1]
# Pages that are not in `docs`, because their readers look for them elsewhere.
OTHER_PAGES = {
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "benchmarks/README.md": "project/benchmarks.md",
}
# A link to a file: its text and its path. URLs do not match, because they have a colon.
LINK = re.compile(r"(\]\()([^)#:\s]+)(#[^)\s]*)?(\))")
PORT = 8000


class BrokenLink(Exception):
    """A page links to a file that does not exist."""


def main(arguments: list[str]) -> int:
    """Build the site and, unless told otherwise, serve it. Return the exit code."""
    parser = argparse.ArgumentParser(prog="dev.py docs", description="Build the documentation.")
    parser.add_argument("command", nargs="?", choices=["serve", "build"], default="serve")
    parser.add_argument("--into", type=Path, default=ROOT / "build" / "site")
    parser.add_argument("--port", type=int, default=PORT)
    options = parser.parse_args(arguments)
    try:
        build(options.into)
    except BrokenLink as error:
        print(error, file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        return int(error.returncode)
    if options.command == "serve":
        serve(options.into, options.port)
    return 0


def build(folder: Path) -> None:
    """Build this version of the site into a subfolder of `folder`."""
    version = ".".join(VERSION.split(".")[:2])
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        collect_pages(work / "docs")
        config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
        config = config.replace("docs_dir: build/site-source", "docs_dir: docs")
        (work / "mkdocs.yml").write_text(config, encoding="utf-8")
        program = Path(sys.executable).with_name("zensical")
        subprocess.run([program, "build", "--strict", "--clean"], cwd=work, check=True)
        for target in (version, "latest"):
            shutil.rmtree(folder / target, ignore_errors=True)
            shutil.copytree(work / "site", folder / target)
    write_versions(folder)


def write_versions(folder: Path) -> None:
    """List the versions in the folder for the menu, and redirect its root to `latest`."""
    numbers = [path.name for path in folder.iterdir() if re.fullmatch(r"\d+\.\d+", path.name)]
    numbers.sort(key=lambda number: [int(part) for part in number.split(".")], reverse=True)
    current = ".".join(VERSION.split(".")[:2])
    versions = [
        {"version": one, "title": one, "aliases": ["latest"] if one == current else []}
        for one in numbers
    ]
    (folder / "versions.json").write_text(json.dumps(versions) + "\n", encoding="utf-8")
    redirect = '<!doctype html><meta http-equiv="refresh" content="0; url=latest/">\n'
    (folder / "index.html").write_text(redirect, encoding="utf-8")


def collect_pages(target: Path) -> None:
    """Copy all pages, with links that lead to the copies."""
    pages = {
        path.relative_to(ROOT).as_posix(): path.relative_to(ROOT / "docs").as_posix()
        for path in sorted((ROOT / "docs").rglob("*"))
        if path.is_file()
    }
    pages |= OTHER_PAGES
    for source, page in list(pages.items()):
        place = target / page
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.endswith(".md"):
            text = (ROOT / source).read_text(encoding="utf-8")
            place.write_text(rewrite_links(text, source, page, pages), encoding="utf-8")
        else:
            shutil.copyfile(ROOT / source, place)
    for source, page in pages.items():
        if page.startswith("files/"):
            (target / page).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / source, target / page)


def rewrite_links(text: str, source: str, page: str, pages: dict[str, str]) -> str:
    """Return the text of a page with links relative to its place on the site.

    Adds linked files that are not pages to `pages`. Raises: BrokenLink.
    """

    def rewrite(match: re.Match[str]) -> str:
        opening, link, anchor, closing = match.groups()
        wanted = (ROOT / source).parent / link
        path = Path(os.path.normpath(wanted))
        if path.is_dir():
            path = next((p for n in ("index.md", "README.md") if (p := path / n).is_file()), path)
        if not path.is_file() or not path.is_relative_to(ROOT):
            raise BrokenLink(f"{source} links to {link}, which is not a file of this repository")
        name = path.relative_to(ROOT).as_posix()
        # A page of another folder is a download, like the files of `deploy`.
        place = pages.setdefault(name, f"files/{name.replace('.md', '.txt')}")
        return f"{opening}{os.path.relpath(place, Path(page).parent)}{anchor or ''}{closing}"

    return LINK.sub(rewrite, text)


def serve(folder: Path, port: int) -> None:
    """Serve the folder on this machine until Ctrl-C."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        print(f"http://127.0.0.1:{server.server_port}/latest/", file=sys.stderr, flush=True)
        with suppress(KeyboardInterrupt):
            server.serve_forever()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
