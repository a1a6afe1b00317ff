"""Manifests: every file of an offered skill with its size and digest, as MCP publishes them.

Digests cost reading. They are kept as long as the stat signatures of all files and folders of the
skill stay what they are: a new or removed file moves its folder's times, an edit moves its file's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.catalog.fingerprint import (
    Fingerprint,
    are_signatures_current,
    read_signature,
)
from skillhall._internal.catalog.head_cache import now_ns
from skillhall._internal.catalog.reader import read_skill_md, with_bundle
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter import SKILL_MD
from skillhall._internal.skill.parser import parse_frontmatter
from skillhall._internal.skill.yaml.json_values import to_json_fields
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    from skillhall._internal.catalog.catalog import Skill
    from skillhall._internal.catalog.skill_view import SkillView, ViewedSkill
    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.skill.bundle import Bundle, SkillFile
    from skillhall._internal.skill.parser import ParsedFrontmatter
    from skillhall._internal.skill.yaml.values import JsonValue
    from skillhall._internal.sources.folder.candidate import Signature

    Signatures: TypeAlias = tuple[tuple[str, Signature | None], ...]

MAX_MANIFEST_FILES = 512  # of one skill; what every host of the extension must take
MAX_MANIFEST_BYTES = 16 * 1024 * 1024  # of all files together
MAX_DESCRIPTION = 1024  # characters; the specification's, as all below
MAX_COMPATIBILITY = 500
_NAME_PATTERN = re.compile(r"(?!-)(?!.*--)[a-z0-9-]{1,64}(?<!-)")  # what the strictest host takes
_REQUIRED_FIELDS = ("name", "description")
# What we read in spite of a fault, and strict readers of YAML do not.
_LENIENT_ONLY_REASONS = {
    Code.YAML_REPAIRED: "its frontmatter is not valid YAML and had to be repaired",
    Code.DUPLICATE_KEY: "its frontmatter has a duplicate key",
    Code.LEADING_BLANK: "its frontmatter does not start on the first line",
}
_LIMIT_CODES = frozenset({Code.FILE_TOO_LARGE, Code.TOO_MANY_FILES})


class ManifestFile(NamedTuple):
    """One file: its path in the skill, in which its own file is always `SKILL.md`."""

    path: str
    size: int
    modified: float  # seconds since 1970; 0 if unknown
    digest: str  # "" in a skill that is beyond the limits, where nothing is read


class Manifest(NamedTuple):
    """All files of a skill, its SKILL.md first, and what that says at the same moment."""

    files: tuple[ManifestFile, ...]
    frontmatter: Mapping[str, JsonValue]
    limit_problem: str = ""  # why no host has to take it
    rule_problem: str = ""  # the rule of the specification that it breaks
    frontmatter_problem: str = ""  # why other YAML readers do not read the announced frontmatter

    @property
    def reason_not_served(self) -> str:
        """Why it is no entry at all: no host has to take it, or it says too little."""
        has_both = all(isinstance(self.frontmatter.get(key), str) for key in _REQUIRED_FIELDS)
        return (
            self.limit_problem
            or self.frontmatter_problem
            or ("" if has_both else self.rule_problem)
        )

    @property
    def reason_not_listed(self) -> str:
        """Why the list leaves the skill out: one entry that is not right spoils a whole page."""
        return self.limit_problem or self.frontmatter_problem or self.rule_problem


class _CachedManifest(NamedTuple):
    """A manifest, and the signatures it was made from."""

    revision: str  # of the offer
    signatures: Signatures
    other_signatures: Signatures  # all but its own file's
    manifest: Manifest


class ManifestCache:
    """The manifests of one offering; any number of threads may ask at once."""

    def __init__(self) -> None:
        self._cached: dict[str, _CachedManifest] = {}

    def get(self, view: SkillView, row: ViewedSkill) -> Manifest:
        """The manifest as the files are at this moment; the same object while nothing changes.

        Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
        """
        kept = self._cached.get(row.skill.location)
        if kept is None or not are_signatures_current(kept.signatures):
            return self._refresh(view, row)
        self._cached[row.skill.location] = kept._replace(revision=view.revision)
        return kept.manifest

    def get_or_none(self, view: SkillView, row: ViewedSkill) -> Manifest | None:
        """The same; None if files are gone or cannot be read."""
        try:
            return self.get(view, row)
        except (SkillhallError, OSError):
            return None

    def get_for_list(self, view: SkillView, row: ViewedSkill) -> Manifest | None:
        """The same for one of many: that its SKILL.md is as it was, the offer's revision tells."""
        kept = self._cached.get(row.skill.location)
        if (
            kept is not None
            and kept.revision == view.revision
            and are_signatures_current(kept.other_signatures)
        ):
            return kept.manifest
        return self.get_or_none(view, row)

    def _refresh(self, view: SkillView, row: ViewedSkill) -> Manifest:
        began = now_ns()
        scan = view.profile.scan_policy.without_hidden_files
        bundle, manifest = with_bundle(
            row.skill, scan, lambda bundle: (bundle, _build_manifest(row, bundle))
        )
        self._cached.pop(row.skill.location, None)
        found = _take_signatures(row.skill, bundle)
        if Fingerprint(found, began).is_stable:
            own = os.path.join(row.skill.folder_handle.path, row.skill.file)
            others = tuple((path, signature) for path, signature in found.items() if path != own)
            kept = _CachedManifest(view.revision, tuple(found.items()), others, manifest)
            self._cached[row.skill.location] = kept
        return manifest

    def evict_others(self, view: SkillView) -> None:
        """Keep nothing of skills that are offered no more."""
        places = {row.skill.location for row in view}
        for key in [key for key in self._cached if key not in places]:
            self._cached.pop(key, None)


class PublishedSkill(NamedTuple):
    """One skill as MCP clients find it."""

    name: str
    uri: str
    is_listed: bool
    findings: tuple[JudgedFinding, ...]


def list_published(view: SkillView) -> list[PublishedSkill]:
    """Every skill of the offer, and why the extension's list leaves some out."""
    manifests, told = ManifestCache(), []
    for row in view:
        finding = explain_exclusion(row, manifests.get_or_none(view, row))
        judged = view.profile.load_policy.judge([finding] if finding else [])
        told.append(PublishedSkill(row.name, row.uri, finding is None, tuple(judged)))
    return told


def explain_exclusion(row: ViewedSkill, manifest: Manifest | None) -> Finding | None:
    """Why the extension's list leaves the skill out, if it does."""
    reason = "it cannot be read" if manifest is None else manifest.reason_not_listed
    if not reason:
        return None
    message = f"skills/list leaves out {row.name!r}: {reason}"
    place, name = row.skill.location, row.skill.name
    return Finding(Code.MCP_LEFT_OUT, message, path=place, skill=name)


def _take_signatures(skill: Skill, bundle: Bundle) -> dict[str, Signature | None]:
    """The signatures of all that was listed, files as they were then.

    A folder's is taken after it was listed: one that changed in between is too young to be trusted.
    """
    place = skill.folder_handle.path
    if skill.is_flat:
        folders: set[str] = set()
    else:
        folders = {path.rpartition("/")[0] for path in bundle.files} | {""}
        folders |= {up for folder in folders for up in _iter_parents(folder)}
    signatures = {
        os.path.join(place, folder): read_signature(f"{place}/{folder}") for folder in folders
    }
    for path, file in bundle.files.items():
        signatures[os.path.join(place, path)] = file.stat_signature
    if skill.file not in bundle.files:  # a link, which may lead to another file at any time
        signatures[skill.location] = None
    return signatures


def _iter_parents(folder: str) -> Iterator[str]:
    while folder:
        folder = folder.rpartition("/")[0]
        yield folder


def _build_manifest(row: ViewedSkill, bundle: Bundle) -> Manifest:
    own = row.skill.file
    others = [file for path, file in bundle.files.items() if path != own]
    found = bundle.files.get(own)
    data = read_skill_md(row.skill) if found is None else found.read()
    beyond = _check_limits(bundle, len(data) + sum(file.size for file in others))
    modified = _get_modified_time(bundle.files[own]) if own in bundle.files else 0
    digest = "" if beyond else f"sha256:{sha256_hex(data)}"
    first = ManifestFile(SKILL_MD, len(data), modified, digest)
    head = parse_frontmatter(data)
    frontmatter = to_json_fields(data, head.frontmatter.fields)
    rest = tuple(
        _build_manifest_file(file, read=not beyond) for file in others if file.path.text != SKILL_MD
    )
    broken, unverifiable = _find_broken_rule(frontmatter), _check_frontmatter(head)
    return Manifest((first, *rest), frontmatter, beyond, broken, unverifiable)


def _build_manifest_file(file: SkillFile, *, read: bool) -> ManifestFile:
    data = file.read() if read else b""
    size = len(data) if read else file.size
    digest = f"sha256:{sha256_hex(data)}" if read else ""
    return ManifestFile(file.path.text, size, _get_modified_time(file), digest)


def _get_modified_time(file: SkillFile) -> float:
    return file.stat_signature[0] / 1e9 if file.stat_signature else 0.0


def _check_limits(bundle: Bundle, size: int) -> str:
    if len(bundle.files) > MAX_MANIFEST_FILES:
        return f"it has more than {MAX_MANIFEST_FILES} files"
    if size > MAX_MANIFEST_BYTES or any(one.code in _LIMIT_CODES for one in bundle.findings):
        return (
            f"its files have more than {MAX_MANIFEST_BYTES >> 20} MiB, or one of them "
            "cannot be served"
        )
    return ""


def _check_frontmatter(head: ParsedFrontmatter) -> str:
    """Why a host that reads SKILL.md itself would not find the frontmatter that we announce."""
    reasons = (
        _LENIENT_ONLY_REASONS[one.code]
        for one in head.findings
        if one.code in _LENIENT_ONLY_REASONS
    )
    return next(reasons, "")


def _find_broken_rule(fields: Mapping[str, JsonValue]) -> str:
    """The first rule of the specification that the frontmatter breaks, "" if none."""
    return next(_iter_broken_rules(fields), "")


def _iter_broken_rules(fields: Mapping[str, JsonValue]) -> Iterator[str]:
    name, description = fields.get("name"), fields.get("description")
    if not isinstance(name, str) or _NAME_PATTERN.fullmatch(name) is None:
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
