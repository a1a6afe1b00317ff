"""The Python package: a wheel that carries the skills in `.agents/skills`."""

from __future__ import annotations

import csv
import io
from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import TYPE_CHECKING

from skillhall._internal.publishing.file_tree import FILE_MODE
from skillhall._internal.publishing.release_notes import render_readme
from skillhall._internal.sources.archive.zip_writer import pack_entries

if TYPE_CHECKING:
    from skillhall._internal.publishing.file_tree import FileTree
    from skillhall._internal.publishing.publication import Publication

_SKILLS_FOLDER = ".agents/skills"


def render_python_wheel(publication: Publication, name: str) -> FileTree:
    """Return the wheel of the package `name`; it needs no build step."""
    module = name.replace("-", "_")
    prefix = f"{module}-{publication.release.version}"
    info = f"{prefix}.dist-info"
    docstring = f'"""Agent Skills, in {_SKILLS_FOLDER}."""\n'
    files = {
        f"{module}/__init__.py": (docstring.encode(), FILE_MODE),
        **publication.place_skills(f"{module}/{_SKILLS_FOLDER}"),
        f"{info}/METADATA": (_render_metadata(publication, name), FILE_MODE),
        f"{info}/WHEEL": (
            b"Wheel-Version: 1.0\nGenerator: skillhall\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            FILE_MODE,
        ),
    }
    record = f"{info}/RECORD"
    files[record] = _render_record(files, record), FILE_MODE
    wheel = pack_entries((path, data, mode) for path, (data, mode) in files.items())
    return {f"{prefix}-py3-none-any.whl": (wheel, FILE_MODE)}


def _render_metadata(publication: Publication, name: str) -> bytes:
    metadata = publication.metadata
    fields = {
        "Metadata-Version": "2.1",
        "Name": name,
        "Version": publication.release.version,
        "Summary": metadata.description,
        "Author": metadata.author,
        "Author-email": metadata.email,
        "License": metadata.license,
        "Project-URL": f"Homepage, {metadata.homepage}" if metadata.homepage else "",
        "Keywords": "agent-skills",
        "Requires-Python": ">=3.8",
        "Description-Content-Type": "text/markdown",
    }
    lines = [f"{key}: {value}" for key, value in fields.items() if value]
    return "\n".join([*lines, "", ""]).encode() + render_readme(publication)


def _render_record(files: FileTree, record: str) -> bytes:
    rows = io.StringIO(newline="")
    writer = csv.writer(rows, lineterminator="\n")
    for path, (data, _) in files.items():
        digest = urlsafe_b64encode(sha256(data).digest()).rstrip(b"=").decode()
        writer.writerow([path, f"sha256={digest}", len(data)])
    writer.writerow([record, "", ""])
    return rows.getvalue().encode()
