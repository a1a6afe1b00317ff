"""Manifests: every file of an offered skill with its size and digest, as MCP publishes them.

Digests cost reading. They are kept as long as the stat signatures of all files and folders of the
skill stay what they are: a new or removed file moves its folder's times, an edit moves its file's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.catalog.fingerprint import Stamps, still_hold, take_signature
from skillhall._internal.catalog.head_cache import now
from skillhall._internal.catalog.reader import read_own_file, with_bundle
from skillhall._internal.skill.bundle import sha256_of
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter import SKILL_MD
from skillhall._internal.skill.parser import parse_head
from skillhall._internal.skill.yaml.json_values import json_fields
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    from skillhall._internal.catalog.catalog import Skill
    from skillhall._internal.catalog.skill_view import Offer, Offered
    from skillhall._internal.policy.effects import Judged
    from skillhall._internal.skill.bundle import Bundle, SkillFile
    from skillhall._internal.skill.parser import Head
    from skillhall._internal.skill.yaml.values import Json
    from skillhall._internal.sources.folder.candidate import Signature

    Signatures: TypeAlias = tuple[tuple[str, Signature | None], ...]

MAX_FILES = 512  # of one skill; what every host of the extension must take
MAX_BYTES = 16 * 1024 * 1024  # of all files together
MAX_DESCRIPTION = 1024  # characters; the specification's, as all below
MAX_COMPATIBILITY = 500
_NAME = re.compile(r"(?!-)(?!.*--)[a-z0-9-]{1,64}(?<!-)")  # what the strictest host takes
_REQUIRED = ("name", "description")
# What we read in spite of a fault, and strict readers of YAML do not.
_OURS_ALONE = {
    Code.YAML_REPAIRED: "its frontmatter is not valid YAML and had to be repaired",
    Code.DUPLICATE_KEY: "its frontmatter has a duplicate key",
    Code.LEADING_BLANK: "its frontmatter does not start on the first line",
}
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
    unverifiable: str = ""  # why other YAML readers do not read the announced frontmatter

    @property
    def reason_against_serving(self) -> str:
        """Why it is no entry at all: no host has to take it, or it says too little."""
        has_both = all(isinstance(self.frontmatter.get(key), str) for key in _REQUIRED)
        return self.beyond or self.unverifiable or ("" if has_both else self.unusual)

    @property
    def reason_against_listing(self) -> str:
        """Why the list leaves the skill out: one entry that is not right spoils a whole page."""
        return self.beyond or self.unverifiable or self.unusual


class _Kept(NamedTuple):
    """A manifest, and the signatures it was made from."""

    revision: str  # of the offer
    signatures: Signatures
    others: Signatures  # all but its own file's
    manifest: Manifest


class Manifests:
    """The manifests of one offering; any number of threads may ask at once."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}

    def of(self, offer: Offer, row: Offered) -> Manifest:
        """The manifest as the files are at this moment; the same object while nothing changes.

        Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
        """
        kept = self._kept.get(row.skill.location)
        if kept is None or not still_hold(kept.signatures):
            return self._renewed(offer, row)
        self._kept[row.skill.location] = kept._replace(revision=offer.revision)
        return kept.manifest

    def read(self, offer: Offer, row: Offered) -> Manifest | None:
        """The same; None if files are gone or cannot be read."""
        try:
            return self.of(offer, row)
        except (SkillhallError, OSError):
            return None

    def read_for_list(self, offer: Offer, row: Offered) -> Manifest | None:
        """The same for one of many: that its SKILL.md is as it was, the offer's revision tells."""
        kept = self._kept.get(row.skill.location)
        if kept is not None and kept.revision == offer.revision and still_hold(kept.others):
            return kept.manifest
        return self.read(offer, row)

    def _renewed(self, offer: Offer, row: Offered) -> Manifest:
        began = now()
        scan = offer.profile.scan.published
        bundle, manifest = with_bundle(row.skill, scan, lambda bundle: (bundle, _made(row, bundle)))
        self._kept.pop(row.skill.location, None)
        found = _signatures(row.skill, bundle)
        if Stamps(found, began).are_settled:
            own = os.path.join(row.skill.place.path, row.skill.file)
            others = tuple((path, signature) for path, signature in found.items() if path != own)
            kept = _Kept(offer.revision, tuple(found.items()), others, manifest)
            self._kept[row.skill.location] = kept
        return manifest

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


def _signatures(skill: Skill, bundle: Bundle) -> dict[str, Signature | None]:
    """The signatures of all that was listed, files as they were then.

    A folder's is taken after it was listed: one that changed in between is too young to be trusted.
    """
    place = skill.place.path
    if skill.is_flat:
        folders: set[str] = set()
    else:
        folders = {path.rpartition("/")[0] for path in bundle.files} | {""}
        folders |= {up for folder in folders for up in _above(folder)}
    signatures = {
        os.path.join(place, folder): take_signature(f"{place}/{folder}") for folder in folders
    }
    for path, file in bundle.files.items():
        signatures[os.path.join(place, path)] = file.signature
    if skill.file not in bundle.files:  # a link, which may lead to another file at any time
        signatures[skill.location] = None
    return signatures


def _above(folder: str) -> Iterator[str]:
    while folder:
        folder = folder.rpartition("/")[0]
        yield folder


def _made(row: Offered, bundle: Bundle) -> Manifest:
    own = row.skill.file
    others = [file for path, file in bundle.files.items() if path != own]
    found = bundle.files.get(own)
    data = read_own_file(row.skill) if found is None else found.read()
    beyond = _reason_beyond(bundle, len(data) + sum(file.size for file in others))
    modified = _modified(bundle.files[own]) if own in bundle.files else 0
    digest = "" if beyond else f"sha256:{sha256_of(data)}"
    first = ManifestFile(SKILL_MD, len(data), modified, digest)
    head = parse_head(data)
    frontmatter = json_fields(data, head.frontmatter.fields)
    rest = tuple(_entry(file, read=not beyond) for file in others if file.path.text != SKILL_MD)
    broken, unverifiable = _rule_broken(frontmatter), _reason_unverifiable(head)
    return Manifest((first, *rest), frontmatter, beyond, broken, unverifiable)


def _entry(file: SkillFile, *, read: bool) -> ManifestFile:
    data = file.read() if read else b""
    size = len(data) if read else file.size
    digest = f"sha256:{sha256_of(data)}" if read else ""
    return ManifestFile(file.path.text, size, _modified(file), digest)


def _modified(file: SkillFile) -> float:
    return file.signature[0] / 1e9 if file.signature else 0.0


def _reason_beyond(bundle: Bundle, size: int) -> str:
    if len(bundle.files) > MAX_FILES:
        return f"it has more than {MAX_FILES} files"
    if size > MAX_BYTES or any(one.code in _BEYOND for one in bundle.findings):
        return f"its files have more than {MAX_BYTES >> 20} MiB, or one of them cannot be served"
    return ""


def _reason_unverifiable(head: Head) -> str:
    """Why a host that reads SKILL.md itself would not find the frontmatter that we announce."""
    reasons = (_OURS_ALONE[one.code] for one in head.findings if one.code in _OURS_ALONE)
    return next(reasons, "")


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
