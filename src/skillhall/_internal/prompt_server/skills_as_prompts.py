"""Prompts made from skills, so that users can call skills by name in a client."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from skillhall._internal.catalog.skill_content import open_skill_bundle, read_accepted_body
from skillhall._internal.prompt_server.arguments import (
    check_arguments,
    parse_arguments,
    render_prompt,
)
from skillhall._internal.prompt_server.prompt_model import Prompt
from skillhall.errors import PromptNotFound, PromptsSourceError, SkillhallError, SkillRejected

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillhall._internal.catalog.trust.gate import ClearedSkill
    from skillhall._internal.policy.profiles import Profile


class SkillPrompts:
    """Skills served as prompts. Bodies are read on demand.

    If several skills have the same name, the first wins. Skills hidden from models are included,
    because users call prompts.
    """

    def __init__(self, digest: str, skills: Sequence[ClearedSkill], profile: Profile) -> None:
        self.digest = digest  # changes with the skills
        self._skills = skills
        self._profile = profile

    @cached_property
    def _skills_by_name(self) -> Mapping[str, ClearedSkill]:
        # Reversed, so that the first skill with a name replaces the later ones.
        return {skill.name: skill for skill in reversed(self._skills)}

    @property
    def names(self) -> Sequence[str]:
        """Names of all prompts."""
        return [*self._skills_by_name]

    def summary(self, name: str) -> Prompt:
        """Return a prompt without its body. Raises: PromptNotFound."""
        skill = self._skills_by_name.get(name)
        if skill is None:
            raise PromptNotFound(name)
        arguments, _ = parse_arguments(skill.frontmatter.fields)
        try:
            bundle = open_skill_bundle(skill, self._profile.scan_policy.without_hidden_files)
            # A finding means that a file was skipped.
            has_files = bool(bundle.findings) or any(path != skill.file for path in bundle.files)
        except SkillhallError:
            has_files = True  # it may have files that cannot be read now
        return Prompt(
            name, skill.description, arguments, "", "user", has_files=has_files, hidden=skill.hidden
        )

    def prompt_json(self, name: str, values: Mapping[str, object] | None = None) -> bytes:
        """Return a rendered prompt as JSON: description and message.

        Raises: PromptNotFound, MissingArguments, InvalidArguments, PromptsSourceError.
        """
        prompt = self.summary(name)
        # Checked first, so that wrong arguments are reported even if the file is unreadable.
        check_arguments(prompt.arguments, values or {})
        try:
            body = read_accepted_body(self._skills_by_name[name], self._profile)
        except SkillRejected as error:
            raise PromptsSourceError(name, error.reasons[0]) from None
        except SkillhallError:
            raise PromptsSourceError(name, "its file was changed or removed") from None
        return json.dumps(render_prompt(replace(prompt, body=body), values or {})).encode()
