"""Publishing: collects the skills, derives their versions, and updates the targets."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from skillhall._internal.authoring.validate import validate
from skillhall._internal.fs.handles import FolderHandle, is_inside
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.policy.effects import Effect
from skillhall._internal.policy.profiles import LENIENT, SPECIFICATION
from skillhall._internal.policy.readable_files import is_publishable
from skillhall._internal.publishing.agent_plugins import (
    render_claude_manifests,
    render_gemini_manifest,
    render_skill_repository,
)
from skillhall._internal.publishing.file_tree import EXECUTABLE_MODE, FILE_MODE, plan_folder
from skillhall._internal.publishing.git_publisher import plan_repository
from skillhall._internal.publishing.npm_package import render_npm_package
from skillhall._internal.publishing.oci_image import render_oci_image
from skillhall._internal.publishing.publication import Publication, PublishedSkill
from skillhall._internal.publishing.publish_config import PublishTarget
from skillhall._internal.publishing.python_wheel import render_python_wheel
from skillhall._internal.publishing.static_site import render_static_site
from skillhall._internal.publishing.version_log import (
    Bump,
    VersionLog,
    parse_version_log,
    record_versions,
    render_version_log,
    yank_version,
)
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.skill.frontmatter_locator import SKILL_MD
from skillhall._internal.skill.line_diff import is_diffable, render_diff
from skillhall._internal.skill.parser import parse_frontmatter
from skillhall._internal.sources.folder.bundle_reader import read_bundle
from skillhall._internal.strict_json import InvalidJson
from skillhall.errors import ConfigInvalid, SkillNotApproved, SkillRejected

if TYPE_CHECKING:
    from skillhall._internal.policy.trust.trust_decision import Decision
    from skillhall._internal.publishing.file_tree import FileTree, PlannedFolder
    from skillhall._internal.publishing.git_publisher import PlannedRepository
    from skillhall._internal.publishing.publish_config import PublishConfig
    from skillhall._internal.settings import Settings
    from skillhall._internal.skill.bundle import Bundle

LOG_FILE = "skillhall.versions.json"  # next to the config file

JudgeBundle: TypeAlias = "Callable[[str, Bundle], Decision | None]"


class ReleaseChange(NamedTuple):
    """A skill whose published version changes; "" if it has none before or after."""

    name: str
    old: str
    new: str
    changes: tuple[str, ...]


class TargetPlan(NamedTuple):
    """A target and what publishing changes there."""

    target: PublishTarget
    plan: PlannedFolder | PlannedRepository


@dataclass(frozen=True, slots=True)
class PublishPlan:
    """What publishing changes: versions and targets."""

    config: PublishConfig
    publication: Publication
    versions: tuple[ReleaseChange, ...]
    targets: tuple[TargetPlan, ...]
    warnings: tuple[str, ...]

    def render_diffs(self) -> Iterator[str]:
        """Yield the unified diff of each changed text file. Raises: SkillhallError, OSError."""
        for target, planned in self.targets:
            for path, kind in planned.changes:
                if path not in planned.files and kind != "removed":
                    continue  # a tag
                old = planned.read_present(path)
                new, _ = planned.files.get(path, (b"", 0))
                name = f"{target}/{path}"
                if is_diffable(old) and is_diffable(new):
                    yield render_diff(old, new, f"a/{name}", f"b/{name}")
                else:
                    yield f"Binary files a/{name} and b/{name} differ\n"

    def apply(self) -> None:
        """Store the versions, then update the targets. Raises: SkillhallError, OSError."""
        write_version_log(self.config, self.publication.log)
        for one in self.targets:
            one.plan.apply()


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishRequest:
    """What is published, and how."""

    targets: Sequence[PublishTarget] = ()  # by default all that the config has
    bump: Bump = Bump.PATCH
    now: str  # UTC, such as 2026-01-31T12:00:00Z


def plan_publication(
    config: PublishConfig, request: PublishRequest, settings: Settings, judge: JudgeBundle
) -> PublishPlan:
    """Examine all skills, and compare the targets with what they should have.

    `judge` returns the decision of the policies about a skill.
    Raises: SkillRejected, SkillNotApproved, ConfigInvalid, SkillFileNotFound, UnsafePath,
    SourceUnavailable, OSError.
    """
    for target in request.targets:
        if target not in config.targets:
            known = ", ".join(config.targets)
            problem = f"'publish.targets' has no target {target.value!r}"
            raise ConfigInvalid(config.path, problem, f"targets: {known}")
    _check_folders(config)
    bundles = _read_skills(config, settings, judge)
    trees = {name: _build_tree(bundle) for name, bundle in bundles.items()}
    old = read_version_log(config)
    log = record_versions(old, trees, _digest_metadata(config), request.bump, request.now)
    skills = [
        PublishedSkill(name, _read_description(bundles[name]), files, log.skills[name].latest)
        for name, files in sorted(trees.items())
        if log.skills[name].latest.yanked is None
    ]
    publication = Publication(config.metadata, skills, log)
    chosen = [one for one in config.targets if one in request.targets or not request.targets]
    plans = tuple(TargetPlan(one, _plan_target(one, config, publication)) for one in chosen)
    warnings = [
        f"{name}: {one.latest.version} is yanked, and is left out until it changes"
        for name, one in sorted(log.skills.items())
        if name in trees and one.latest.yanked is not None
    ]
    warnings += [
        f"{name}: hidden file left out: {path}"
        for name, bundle in sorted(bundles.items())
        for path in bundle.files
        if not is_publishable(path)
    ]
    return PublishPlan(config, publication, _list_versions(old, log), plans, tuple(warnings))


def _plan_target(
    target: PublishTarget, config: PublishConfig, publication: Publication
) -> PlannedFolder | PlannedRepository:
    options, metadata = config.targets[target], config.metadata
    name = options.name or metadata.name
    if target is PublishTarget.GIT:
        files = {**render_skill_repository(publication)}
        if PublishTarget.CLAUDE_PLUGIN in config.targets:
            files.update(render_claude_manifests(publication))
        if PublishTarget.GEMINI in config.targets:
            files.update(render_gemini_manifest(publication))
        return plan_repository(options.folder, files, publication, config.path)
    if target is PublishTarget.STATIC:
        tree = render_static_site(publication, options.url)
    elif target is PublishTarget.PYTHON:
        tree = render_python_wheel(publication, name)
    elif target is PublishTarget.NPM:
        tree = render_npm_package(publication, name)
    elif target is PublishTarget.OCI:
        tree = render_oci_image(publication)
    elif target is PublishTarget.CLAUDE_PLUGIN:
        tree = {**render_skill_repository(publication), **render_claude_manifests(publication)}
    else:
        tree = {**render_skill_repository(publication), **render_gemini_manifest(publication)}
    return plan_folder(options.folder, tree, config.path)


def _check_folders(config: PublishConfig) -> None:
    """Check that no output is among the skills, or contains them. Raises: ConfigInvalid."""
    for options in config.targets.values():
        folder = os.path.realpath(options.folder)
        for other in (*map(os.path.realpath, config.skills), config.path):
            if is_inside(other, folder) or (is_inside(folder, other) and other != config.path):
                problem = f"the folder {options.folder!r} of a target overlaps with {other!r}"
                raise ConfigInvalid(config.path, problem, "choose another folder for the target")


def _read_skills(
    config: PublishConfig, settings: Settings, judge: JudgeBundle
) -> dict[str, Bundle]:
    """Read the skills by name. Raises: as `plan_publication`."""
    report = validate(config.skills, SPECIFICATION, settings)
    rejected = [one for one in report.scan_findings if one.effect is Effect.REJECT]
    if rejected:
        path = rejected[0].finding.path or config.path
        raise SkillRejected(path, [one.finding.message for one in rejected])
    bundles: dict[str, Bundle] = {}
    for result in report.results:
        if not result.accepted:
            reasons = [f.message for f in result.findings if f.effect is Effect.REJECT]
            raise SkillRejected(result.location, reasons)
        # Policies and revocations judge all files, although hidden ones are not published.
        policy = LENIENT.scan_policy.with_hidden_files
        bundle = read_bundle(FolderHandle(os.path.realpath(result.path)), policy)
        if bundle.findings or SKILL_MD not in bundle.files:
            reasons = [finding.message for finding in bundle.findings] or [f"no {SKILL_MD} found"]
            raise SkillRejected(result.location, reasons)
        if result.name in bundles:
            raise SkillRejected(result.location, [f"another skill is named {result.name!r}"])
        decision = judge(result.name, bundle)
        if decision is not None and not decision.is_cleared:
            raise SkillNotApproved(result.name, decision.rule)
        bundles[result.name] = bundle
    return bundles


def _build_tree(bundle: Bundle) -> FileTree:
    return {
        path: (file.read(), EXECUTABLE_MODE if file.executable else FILE_MODE)
        for path, file in sorted(bundle.files.items())
        if is_publishable(path)
    }


def _read_description(bundle: Bundle) -> str:
    parsed = parse_frontmatter(bundle.files[SKILL_MD].read())
    return parsed.frontmatter.description


def _digest_metadata(config: PublishConfig) -> str:
    """Return the digest of what the manifests say, whose change is a new version too."""
    names = {target.value: one.name for target, one in config.targets.items() if one.name}
    document = {"metadata": asdict(config.metadata), "names": names}
    return f"sha256:{sha256_hex(json.dumps(document, sort_keys=True).encode())}"


def _list_versions(old: VersionLog, new: VersionLog) -> tuple[ReleaseChange, ...]:
    """Return the skills whose version in the latest collection differs from the one before."""
    before = old.releases[-1].skills if old.releases else {}
    after = new.releases[-1].skills
    return tuple(
        ReleaseChange(
            name,
            before.get(name, ""),
            after.get(name, ""),
            new.skills[name].latest.changes if name in after else (),
        )
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    )


def read_version_log(config: PublishConfig) -> VersionLog:
    """Read the versions; none if there is no file. Raises: ConfigInvalid, OSError."""
    path = get_log_path(config)
    try:
        return parse_version_log(Path(path).read_bytes())
    except FileNotFoundError:
        return VersionLog()
    except InvalidJson as error:
        raise ConfigInvalid(path, str(error), "restore it from version control") from None


def write_version_log(config: PublishConfig, log: VersionLog) -> None:
    """Write the versions, if they differ from those in the file. Raises: OSError."""
    path, data = Path(get_log_path(config)), render_version_log(log)
    if not path.exists() or path.read_bytes() != data:
        with WritableFolder(str(path.parent)) as folder:
            folder.write_file(path.name, data)


def get_log_path(config: PublishConfig) -> str:
    """Return the path of the file with the versions."""
    return os.path.join(os.path.dirname(config.path), LOG_FILE)


def yank(config: PublishConfig, name: str, version: str, reason: str) -> None:
    """Mark a version as yanked. Raises: VersionNotFound, ConfigInvalid, OSError."""
    write_version_log(config, yank_version(read_version_log(config), name, version, reason))
