"""Manifests: the files of a skill with sizes and digests, as published by MCP.

Digests are expensive, so manifests are cached while the stat signatures of all files and folders
are unchanged: adding or removing a file changes the times of its folder, an edit those of the file.
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
from skillhall._internal.catalog.skill_content import ALL_FILES_SCAN, read_skill_md, with_bundle
from skillhall._internal.policy.readable_files import remove_hidden_files
from skillhall._internal.skill.bundle import compute_digest, sha256_hex
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter_locator import SKILL_MD
from skillhall._internal.skill.parser import parse_frontmatter
from skillhall._internal.skill.yaml.frontmatter_json import to_json_fields
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypeAlias

    from skillhall._internal.catalog.catalog import CatalogSkill
    from skillhall._internal.catalog.skill_view import SkillView, ViewedSkill
    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.skill.bundle import Bundle, SkillFile
    from skillhall._internal.skill.yaml.values import JsonValue
    from skillhall._internal.sources.folder.candidate import Signature

    Signatures: TypeAlias = tuple[tuple[str, Signature | None], ...]

MAX_MANIFEST_FILES = 512  # per skill; every host of the MCP extension must accept that many
MAX_MANIFEST_BYTES = 16 * 1024 * 1024  # of all files together; likewise
MAX_DESCRIPTION = 1024  # characters; this and the following are limits of the specification
MAX_COMPATIBILITY = 500
_NAME_PATTERN = re.compile(r"(?!-)(?!.*--)[a-z0-9-]{1,64}(?<!-)")
_REQUIRED_FIELDS = ("name", "description")
# We accept these faults, but strict YAML parsers do not.
_LENIENT_ONLY_REASONS = {
    Code.YAML_REPAIRED: "its frontmatter is not valid YAML and had to be repaired",
    Code.DUPLICATE_KEY: "its frontmatter has a duplicate key",
    Code.LEADING_BLANK: "its frontmatter does not start on the first line",
}
_LIMIT_CODES = frozenset({Code.FILE_TOO_LARGE, Code.TOO_MANY_FILES})


class ManifestFile(NamedTuple):
    """One file of a manifest."""

    path: str  # in the skill; its main file is always "SKILL.md"
    size: int
    modified: float  # Unix time; 0 if unknown
    digest: str  # "" if the skill exceeds the limits: its files are not read


class Manifest(NamedTuple):
    """Files of a skill, SKILL.md first, and the frontmatter of that version."""

    files: tuple[ManifestFile, ...]
    frontmatter: Mapping[str, JsonValue]
    digest: str = ""  # of the skill, with its hidden files; "" if it exceeds the limits
    limit_problem: str = ""  # the limit that the skill exceeds
    rule_problem: str = ""  # the rule of the specification that it breaks
    frontmatter_problem: str = ""  # why other YAML parsers would reject the frontmatter

    @property
    def reason_not_served(self) -> str:
        """Why the skill cannot be published at all; "" if it can."""
        has_both = all(isinstance(self.frontmatter.get(key), str) for key in _REQUIRED_FIELDS)
        return (
            self.limit_problem
            or self.frontmatter_problem
            or ("" if has_both else self.rule_problem)
        )

    @property
    def reason_not_listed(self) -> str:
        """Why the skill is not listed; "" if it is."""
        # Hosts may reject a complete page because of one invalid entry.
        return self.limit_problem or self.frontmatter_problem or self.rule_problem


class _CachedManifest(NamedTuple):
    revision: str  # of the skill view
    signatures: Signatures
    other_signatures: Signatures  # without the SKILL.md
    manifest: Manifest


class ManifestCache:
    """Cache of manifests; thread-safe."""

    def __init__(self) -> None:
        self._cached: dict[str, _CachedManifest] = {}

    def get(self, view: SkillView, row: ViewedSkill) -> Manifest:
        """Return the current manifest; the same object while no file changes.

        Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
        """
        cached = self._cached.get(row.skill.location)
        if cached is None or not are_signatures_current(cached.signatures):
            return self._refresh(view, row)
        self._cached[row.skill.location] = cached._replace(revision=view.revision)
        return cached.manifest

    def get_or_none(self, view: SkillView, row: ViewedSkill) -> Manifest | None:
        """Return the current manifest; `None` if the files cannot be read."""
        try:
            return self.get(view, row)
        except (SkillhallError, OSError):
            return None

    def get_for_list(self, view: SkillView, row: ViewedSkill) -> Manifest | None:
        """Like `get_or_none`, but detect changes to SKILL.md by the view's revision."""
        cached = self._cached.get(row.skill.location)
        if (
            cached is not None
            and cached.revision == view.revision
            and are_signatures_current(cached.other_signatures)
        ):
            return cached.manifest
        return self.get_or_none(view, row)

    def _refresh(self, view: SkillView, row: ViewedSkill) -> Manifest:
        skill, started = row.skill, now_ns()
        bundle, manifest = with_bundle(
            skill, ALL_FILES_SCAN, lambda bundle: (bundle, _build_manifest(row, bundle))
        )
        self._cached.pop(skill.location, None)
        signatures = take_signatures(skill, bundle)
        if Fingerprint(signatures, started).is_stable:
            skill_md = os.path.join(skill.folder_handle.path, skill.file)
            others = tuple((path, s) for path, s in signatures.items() if path != skill_md)
            self._cached[skill.location] = _CachedManifest(
                view.revision, tuple(signatures.items()), others, manifest
            )
        return manifest

    def evict_others(self, view: SkillView) -> None:
        """Remove manifests of skills that are not in the view."""
        locations = {row.skill.location for row in view}
        for location in [key for key in self._cached if key not in locations]:
            self._cached.pop(location, None)


def list_published(view: SkillView) -> list[tuple[ViewedSkill, JudgedFinding | None]]:
    """Return the skills of a view, each with a finding if MCP does not list it."""
    manifests, published = ManifestCache(), []
    for row in view:
        finding = explain_exclusion(row, manifests.get_or_none(view, row))
        judged = view.profile.load_policy.judge([finding] if finding else [])
        published.append((row, judged[0] if judged else None))
    return published


def explain_exclusion(row: ViewedSkill, manifest: Manifest | None) -> Finding | None:
    """Return a finding if MCP's `skills/list` excludes the skill."""
    reason = "it cannot be read" if manifest is None else manifest.reason_not_listed
    if not reason:
        return None
    message = f"skills/list excludes {row.name!r}: {reason}"
    return Finding(Code.MCP_LEFT_OUT, message, path=row.skill.location, skill=row.skill.name)


def take_signatures(skill: CatalogSkill, bundle: Bundle) -> dict[str, Signature | None]:
    """Return the signatures of all files and their folders, by absolute path."""
    root = skill.folder_handle.path
    folders: set[str] = set() if skill.is_flat else {""}
    if not skill.is_flat:
        for path in bundle.files:
            while path := path.rpartition("/")[0]:
                folders.add(path)
    # Folders were listed before. One that changed since then is too young for a stable fingerprint.
    signatures = {
        os.path.join(root, folder): read_signature(f"{root}/{folder}") for folder in folders
    }
    for path, file in bundle.files.items():
        signatures[os.path.join(root, path)] = file.stat_signature
    if skill.file not in bundle.files:  # a link, whose target may change at any time
        signatures[skill.location] = None
    return signatures


def _build_manifest(row: ViewedSkill, bundle: Bundle) -> Manifest:
    main = bundle.files.get(row.skill.file)
    published = remove_hidden_files(bundle)
    others = [other for path, other in published.files.items() if path != row.skill.file]
    data = read_skill_md(row.skill) if main is None else main.read()
    size = len(data) + sum(other.size for other in others)
    limit_problem = ""
    if len(published.files) > MAX_MANIFEST_FILES:
        limit_problem = f"it has more than {MAX_MANIFEST_FILES} files"
    elif size > MAX_MANIFEST_BYTES or any(f.code in _LIMIT_CODES for f in published.findings):
        limit = f"{MAX_MANIFEST_BYTES >> 20} MiB"
        limit_problem = f"its files exceed {limit} in total, or one of them cannot be served"

    def build_file(path: str, size: int, file: SkillFile | None, content: bytes) -> ManifestFile:
        signature = None if file is None else file.stat_signature
        modified = signature[0] / 1e9 if signature else 0.0
        if limit_problem:
            return ManifestFile(path, size, modified, "")
        return ManifestFile(path, len(content), modified, f"sha256:{sha256_hex(content)}")

    files = [build_file(SKILL_MD, len(data), main, data)]
    for other in others:
        # A flat file may be next to a SKILL.md, whose path in the manifest is taken.
        if other.path.text != SKILL_MD:
            content = b"" if limit_problem else other.read()
            files.append(build_file(other.path.text, other.size, other, content))
    head = parse_frontmatter(data)
    fields = to_json_fields(data, head.frontmatter.fields)
    # Hosts compare the published frontmatter with the SKILL.md that they parse themselves.
    codes = (finding.code for finding in head.findings)
    lenient_only = next((_LENIENT_ONLY_REASONS[c] for c in codes if c in _LENIENT_ONLY_REASONS), "")
    rule_problem = next(_iter_broken_rules(fields), "")
    digest = "" if limit_problem else _compute_digest(row, bundle, files)
    return Manifest(tuple(files), fields, digest, limit_problem, rule_problem, lenient_only)


def _compute_digest(row: ViewedSkill, bundle: Bundle, files: Sequence[ManifestFile]) -> str:
    """Return the digest of all files. Only those that are not in the manifest are read."""
    known = {file.path: (file.size, file.digest.removeprefix("sha256:")) for file in files}
    known[row.skill.file] = known.pop(SKILL_MD)
    for path, file in bundle.files.items():
        if path not in known:
            data = file.read()
            known[path] = len(data), sha256_hex(data)
    return compute_digest((path, size, sha256) for path, (size, sha256) in known.items())


def _iter_broken_rules(fields: Mapping[str, JsonValue]) -> Iterator[str]:
    name, description = fields.get("name"), fields.get("description")
    if not isinstance(name, str) or _NAME_PATTERN.fullmatch(name) is None:
        yield "the name must be 1 to 64 characters: a to z, 0 to 9 and single hyphens between them"
    if not isinstance(description, str) or not description.strip():
        yield "there is no description"
    elif len(description) > MAX_DESCRIPTION:
        yield f"the description has more than {MAX_DESCRIPTION} characters"
    for key in ("license", "allowed-tools", "compatibility"):
        if key in fields and not isinstance(fields[key], str):
            yield f"{key!r} is not a string"
    compatibility = fields.get("compatibility")
    if isinstance(compatibility, str) and not 0 < len(compatibility) <= MAX_COMPATIBILITY:
        yield f"'compatibility' is empty or has more than {MAX_COMPATIBILITY} characters"
    metadata = fields.get("metadata", {})
    if not isinstance(metadata, Mapping) or not all(isinstance(v, str) for v in metadata.values()):
        yield "'metadata' is not a map of strings to strings"
