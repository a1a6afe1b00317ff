"""The table `check` in skillhall.toml or skillhall.json."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from skillhall._internal.config_file.nodes import read_config_document
from skillhall._internal.evals.gates import Gate, InvalidGate, parse_gates
from skillhall._internal.policy.profiles import PROFILES
from skillhall._internal.project_checks.check_findings import ProjectCheck

if TYPE_CHECKING:
    from skillhall._internal.config_file.nodes import ConfigNode

_KEYS = ("paths", "profile", "baseline", "skip", "gates", "depth", "followLinks")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckConfig:
    """The settings of `check` in a config file. Paths are absolute."""

    paths: tuple[str, ...] = ()
    profile: str = ""
    baseline: str = ""
    skip: frozenset[ProjectCheck] = frozenset()
    gates: tuple[Gate, ...] = ()
    depth: int | None = None
    follow_links: bool = False


def read_check_config(path: str) -> CheckConfig:
    """Read the table of a config file; the default if it has none. Raises: ConfigInvalid."""
    table = read_config_document(Path(path).absolute()).child("check")
    if table.value is None:
        return CheckConfig()
    folder = os.path.dirname(os.path.abspath(path))
    table.child("paths")  # raises ConfigInvalid if the value is not a table
    table.reject_unknown_keys(_KEYS)
    baseline = table.child("baseline").as_string()
    return CheckConfig(
        paths=tuple(os.path.join(folder, one) for one in table.child("paths").as_strings() or ()),
        profile=_parse_profile(table.child("profile")),
        baseline=os.path.join(folder, baseline) if baseline else "",
        skip=frozenset(map(_parse_kind, table.child("skip").as_list())),
        gates=tuple(gate for node in table.child("gates").as_list() for gate in _parse_gate(node)),
        depth=table.child("depth").as_positive_int(),
        follow_links=table.child("followLinks").as_bool(),
    )


def _parse_profile(node: ConfigNode) -> str:
    name = node.as_string()
    if name and name not in PROFILES:
        raise node.build_requirement_error(
            "be the name of a profile", f"profiles: {', '.join(PROFILES)}"
        )
    return name


def _parse_kind(node: ConfigNode) -> ProjectCheck:
    try:
        return ProjectCheck(node.as_string())
    except ValueError:
        kinds = ", ".join(ProjectCheck)
        raise node.build_requirement_error("be the name of a check", f"checks: {kinds}") from None


def _parse_gate(node: ConfigNode) -> tuple[Gate, ...]:
    try:
        return parse_gates(node.as_string())
    except InvalidGate as error:
        raise node.build_error(str(error)) from None
