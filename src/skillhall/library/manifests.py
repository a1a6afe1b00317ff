"""Manifests: every file of an offered skill with its size and digest, as MCP publishes them.

Digests cost reading. They are kept as long as the stat signatures of all files stay what they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from skillhall.catalog.index import GRAIN, now
from skillhall.catalog.read import bundle_of, read_skill_file
from skillhall.errors import SkillhallError
from skillhall.skill.bundle import sha256_of
from skillhall.skill.core_values import json_fields
from skillhall.skill.finding import Code, Finding
from skillhall.skill.frontmatter import SKILL_MD
from skillhall.skill.parse import parse_head

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillhall.library.offering import Offer, Offered
    from skillhall.policy.loading import Judged
    from skillhall.skill.bundle import Bundle, SkillFile
    from skillhall.skill.values import Json

MAX_FILES = 512  # of one skill; what every host of the extension must take
MAX_BYTES = 16 * 1024 * 1024  # of all files together
MAX_DESCRIPTION = 1024  # characters; the specification's, as all below
MAX_COMPATIBILITY = 500
_NAME = re.compile(r"(?!-)(?!.*--)[a-z0-9-]{1,64}(?<!-)")  # what the strictest host takes
_REQUIRED = ("name", "description")
_BEYOND = frozenset({Code.FILE_TOO_LARGE, Code.TOO_MANY_FILES})


class ManifestFile(NamedTuple):
    """One file: its path in the skill, in which its own file is always `SKILL.md`."""

    path: str
    size: int
    modified: float  # seconds since 1970; 0 if unknown
    digest: str  # "" in a skill that is beyond the limits, where nothing is read


class Manifest(NamedTuple):
    """All files of a skill, its SKILL.md first, and what that says at the same moment."""

    files: tuple[ManifestFile, ...]
    frontmatter: Mapping[str, Json]
    beyond: str = ""  # why no host has to take it
    unusual: str = ""  # the rule of the specification that it breaks

    @property
    def reason_against_serving(self) -> str:
        """Why it is no entry at all: no host has to take it, or it says too little."""
        has_both = all(isinstance(self.frontmatter.get(key), str) for key in _REQUIRED)
        return self.beyond or ("" if has_both else self.unusual)

    @property
    def reason_against_listing(self) -> str:
        """Why the list leaves the skill out: one entry that is not right spoils a whole page."""
        return self.beyond or self.unusual


class Manifests:
    """The manifests of one offering; any number of threads may ask at once."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[tuple[object, ...], Manifest]] = {}

    def of(self, offer: Offer, row: Offered) -> Manifest:
        """The manifest as the files are at this moment.

        Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
        """
        began = now()
        bundle = bundle_of(row.skill, offer.profile.scan)
        signature = (*sorted((path, file.signature) for path, file in bundle.files.items()),)
        key = row.skill.location
        kept = self._kept.get(key)
        if kept is not None and kept[0] == signature:
            return kept[1]
        manifest = _made(row, bundle)
        self._kept.pop(key, None)
        if row.skill.file in bundle.files and _are_settled(bundle, began):
            self._kept[key] = signature, manifest
        return manifest

    def read(self, offer: Offer, row: Offered) -> Manifest | None:
        """The same; None if files are gone or cannot be read."""
        try:
            return self.of(offer, row)
        except (SkillhallError, OSError):
            return None

    def forget_others(self, offer: Offer) -> None:
        """Keep nothing of skills that are offered no more."""
        places = {row.skill.location for row in offer}
        for key in [key for key in self._kept if key not in places]:
            self._kept.pop(key, None)


class Published(NamedTuple):
    """One skill as MCP clients find it."""

    name: str
    uri: str
    is_listed: bool
    findings: tuple[Judged, ...]


def published(offer: Offer) -> list[Published]:
    """Every skill of the offer, and why the extension's list leaves some out."""
    manifests, told = Manifests(), []
    for row in offer:
        finding = left_out(row, manifests.read(offer, row))
        judged = offer.profile.load.judge([finding] if finding else [])
        told.append(Published(row.name, row.uri, finding is None, tuple(judged)))
    return told


def left_out(row: Offered, manifest: Manifest | None) -> Finding | None:
    """Why the extension's list leaves the skill out, if it does."""
    reason = "it cannot be read" if manifest is None else manifest.reason_against_listing
    if not reason:
        return None
    message = f"skills/list leaves out {row.name!r}: {reason}"
    place, name = row.skill.location, row.skill.name
    return Finding(Code.MCP_LEFT_OUT, message, path=place, skill=name)


def _are_settled(bundle: Bundle, began: int) -> bool:
    """Whether all is older than the clock's grain: two edits within it look like one."""
    youngest = max((max(file.signature[:2]) for file in bundle.files.values()), default=0)
    return youngest < began - GRAIN


def _made(row: Offered, bundle: Bundle) -> Manifest:
    own = row.skill.file
    others = [file for path, file in bundle.files.items() if path != own]
    data = read_skill_file(row.skill, own)
    beyond = _reason_beyond(bundle, len(data) + sum(file.size for file in others))
    modified = bundle.files[own].signature[0] if own in bundle.files else 0
    digest = "" if beyond else f"sha256:{sha256_of(data)}"
    first = ManifestFile(SKILL_MD, len(data), modified / 1e9, digest)
    frontmatter = json_fields(data, parse_head(data).frontmatter.fields)
    rest = tuple(_entry(file, read=not beyond) for file in others if file.path.text != SKILL_MD)
    return Manifest((first, *rest), frontmatter, beyond, _rule_broken(frontmatter))


def _entry(file: SkillFile, *, read: bool) -> ManifestFile:
    data = file.read() if read else b""
    size = len(data) if read else file.size
    digest = f"sha256:{sha256_of(data)}" if read else ""
    return ManifestFile(file.path.text, size, file.signature[0] / 1e9, digest)


def _reason_beyond(bundle: Bundle, size: int) -> str:
    if len(bundle.files) > MAX_FILES:
        return f"it has more than {MAX_FILES} files"
    if size > MAX_BYTES or any(one.code in _BEYOND for one in bundle.findings):
        return f"its files have more than {MAX_BYTES >> 20} MiB, or one of them cannot be served"
    return ""


def _rule_broken(fields: Mapping[str, Json]) -> str:
    """The first rule of the specification that the frontmatter breaks, "" if none."""
    return next(_rules_broken(fields), "")


def _rules_broken(fields: Mapping[str, Json]) -> Iterator[str]:
    name, description = fields.get("name"), fields.get("description")
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        yield "the name is not of lower-case letters a to z, digits and single hyphens"
    if not isinstance(description, str) or not len(description.strip()) > 0:
        yield "there is no description"
    elif len(description) > MAX_DESCRIPTION:
        yield f"the description has more than {MAX_DESCRIPTION} characters"
    for key in ("license", "allowed-tools", "compatibility"):
        if key in fields and not isinstance(fields[key], str):
            yield f"{key} is not text"
    compatibility = fields.get("compatibility")
    if isinstance(compatibility, str) and not 0 < len(compatibility) <= MAX_COMPATIBILITY:
        yield f"compatibility is empty, or has more than {MAX_COMPATIBILITY} characters"
    metadata = fields.get("metadata", {})
    if not isinstance(metadata, Mapping) or not all(isinstance(v, str) for v in metadata.values()):
        yield "metadata is not a map of text to text"
