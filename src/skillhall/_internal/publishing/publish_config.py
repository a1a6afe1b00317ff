"""The table `publish` in skillhall.toml or skillhall.json: what is published, and where."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from skillhall._internal.config_file.nodes import read_config_document
from skillhall._internal.skill.bundle import fold_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.config_file.nodes import ConfigNode

_KEYS = ("name", "description", "author", "email", "license", "homepage", "skills", "targets")
_TARGET_KEYS = ("folder", "name", "url")
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_NPM_NAME = re.compile(r"(@[a-z0-9][a-z0-9._-]*/)?[a-z0-9][a-z0-9._-]*")
_CONTROL_CHARACTERS = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_MAX_NAME = 64  # characters


class PublishTarget(StrEnum):
    """A kind of output that others install from."""

    STATIC = "static"
    GIT = "git"
    PYTHON = "python"
    NPM = "npm"
    CLAUDE_PLUGIN = "claude-plugin"
    GEMINI = "gemini"
    OCI = "oci"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishMetadata:
    """What the packages say about themselves."""

    name: str
    description: str
    author: str
    email: str = ""
    license: str = ""
    homepage: str = ""


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """The options of one target."""

    folder: str  # absolute
    name: str = ""  # of the package, if it differs from that of the manifest
    url: str = ""  # of the static site


@dataclass(frozen=True, slots=True)
class PublishConfig:
    """The manifest: metadata, the paths of the skills, and the targets, in file order."""

    path: str  # of the config file, absolute
    metadata: PublishMetadata
    skills: tuple[str, ...]  # skill folders and folders of skills, absolute
    targets: Mapping[PublishTarget, TargetOptions]


def read_publish_config(path: str) -> PublishConfig:
    """Read the table of a config file. Raises: ConfigInvalid."""
    document = read_config_document(Path(path).absolute())
    table = document.child("publish").require()
    table.child("name")  # raises an error if the table is not one
    table.reject_unknown_keys(_KEYS)
    base = os.path.dirname(os.path.abspath(path))
    metadata = PublishMetadata(
        name=_read_name(table.child("name").require()),
        description=_read_line(table.child("description").require()),
        author=_read_line(table.child("author").require()),
        email=_read_line(table.child("email")),
        license=_read_line(table.child("license")),
        homepage=_read_url(table.child("homepage")),
    )
    skills = tuple(
        os.path.normpath(os.path.join(base, one))
        for one in table.child("skills").as_strings() or ("skills",)
    )
    return PublishConfig(
        os.path.abspath(path), metadata, skills, _read_targets(table.child("targets"), base)
    )


def _read_targets(node: ConfigNode, base: str) -> dict[PublishTarget, TargetOptions]:
    node.require().child("static")  # raises an error if it is not a table
    known = [target.value for target in PublishTarget]
    node.reject_unknown_keys(known)
    assert isinstance(node.value, dict)  # noqa: S101 - as `child` has checked
    targets: dict[PublishTarget, TargetOptions] = {}
    folders: set[str] = set()
    for key in node.value:
        target, options = PublishTarget(key), node.child(key)
        folder = options.child("folder")
        name = options.child("name")
        options.reject_unknown_keys(_TARGET_KEYS)
        if name.value is not None:
            pattern = _NPM_NAME if target is PublishTarget.NPM else _NAME
            if not pattern.fullmatch(name.as_string()):
                raise name.build_requirement_error("be the name of a package")
        text = folder.as_string() or f"dist/{target}"
        if "\0" in text:
            raise folder.build_requirement_error("be the path of a folder")
        place = os.path.normpath(os.path.join(base, text))
        if fold_name(place) in folders:
            raise folder.build_requirement_error("differ from those of the other targets")
        folders.add(fold_name(place))
        targets[target] = TargetOptions(place, name.as_string(), _read_url(options.child("url")))
    if not targets:
        raise node.build_requirement_error("name at least one target", f"targets: {known}")
    return targets


def _read_name(node: ConfigNode) -> str:
    text = node.as_string()
    if not _NAME.fullmatch(text) or len(text) > _MAX_NAME:
        raise node.build_requirement_error(
            f"have lowercase letters, digits and single hyphens, at most {_MAX_NAME}"
        )
    return text


def _read_line(node: ConfigNode) -> str:
    """Return a text for metadata files, where a line break could add a field."""
    text = node.as_string().strip()
    if _CONTROL_CHARACTERS.search(text) or (node.value is not None and not text):
        raise node.build_requirement_error("be one line of text")
    return text


def _read_url(node: ConfigNode) -> str:
    text = _read_line(node)
    if text and not re.fullmatch(r"https?://[^\s<>\"]+", text):
        raise node.build_requirement_error("be an http or https URL")
    return text.rstrip("/")
