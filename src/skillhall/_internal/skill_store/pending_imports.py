"""Reviews: skills that wait for a person to look at them before they are imported.

They wait in memory, for a while and up to a size; whatever was looked at is what is written.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from skillhall._internal.cache import Waiting
from skillhall._internal.installer.preflight import description_of, digest_of, name_of
from skillhall._internal.policy.effects import Effect
from skillhall._internal.policy.profiles import LOCAL_SKILLS
from skillhall._internal.policy.readable_files import published
from skillhall._internal.skill.bundle import folded
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.skill.risks.scanner import scan_bundle
from skillhall._internal.skill.token_count import estimate_tokens
from skillhall._internal.skill_store.draft import judged_text
from skillhall._internal.skill_store.input_checks import own_id, prepare_all, skill_md_of
from skillhall._internal.skill_store.version_diff import compare, contents_of
from skillhall._internal.sources.folder.bundle_reader import in_memory
from skillhall.errors import ChangedMeanwhile, SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from skillhall._internal.policy.effects import Judged
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.skill_store.changes import LocalChanges
    from skillhall._internal.skill_store.folder_store import ImportReport
    from skillhall._internal.skill_store.version_diff import FileChange

Standing: TypeAlias = Literal["new", "same", "replaces", "taken", "refused"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A skill that could be imported, and what that would mean."""

    key: str  # what it is chosen by
    id: str
    name: str
    description: str
    tokens: int
    files: int
    standing: Standing
    problem: str  # why it is refused
    findings: tuple[Judged, ...]
    changes: tuple[FileChange, ...]  # to the one that it replaces
    against: str  # the digest of that one
    bundle: Bundle

    @property
    def can_be_taken(self) -> bool:
        """Whether importing it would do something, and may."""
        return self.standing in ("new", "replaces")


class Review(NamedTuple):
    """Candidates of one source, in order."""

    id: str
    source: str  # in words
    candidates: tuple[Candidate, ...]


@dataclass(slots=True)
class Reviews:
    """Everything that waits; safe to use from several threads."""

    changes: LocalChanges
    system_ids: Callable[[], Iterable[str]] = tuple
    waiting: Waiting[_Waiting] = field(default_factory=Waiting)

    def begin(self, source: str, bundles: Iterable[Bundle]) -> Review:
        """Let bundles wait. Raises: what reading them raises."""
        held = tuple(in_memory(bundle) for bundle in bundles)
        size = sum(file.size for bundle in held for file in bundle.files.values())
        waiting = _Waiting(source, held)
        return self._review(self.waiting.put(waiting, size), waiting, {})

    def find(self, review_id: str, ids: Mapping[str, str] | None = None) -> Review:
        """What waits under that id, with other ids for some candidates. Raises: ReviewGone."""
        return self._review(review_id, self.waiting.find(review_id), ids or {})

    def take(self, review: Review, chosen: Sequence[Candidate]) -> tuple[ImportReport, str]:
        """Import what was chosen, if it would still do what was shown.

        Raises: ChangedMeanwhile, and what importing raises.
        """
        for one in chosen:
            present = self.changes.own.files(one.id)
            if (digest_of(present) if present else "") != one.against:
                raise ChangedMeanwhile(one.id)
        is_replacing = any(one.standing == "replaces" for one in chosen)
        bundles = [one.bundle for one in chosen]
        report = self.changes.import_(bundles, replace=is_replacing)
        self.waiting.drop(review.id)
        return report

    def _review(self, review_id: str, waiting: _Waiting, ids: Mapping[str, str]) -> Review:
        system = {folded(one) for one in self.system_ids()}
        candidates: list[Candidate] = []
        for number, bundle in enumerate(waiting.bundles):
            key = str(number)
            given = ids.get(key)
            one = self._candidate(key, bundle if not given else replace(bundle, folder=given))
            if one.standing != "refused" and folded(one.id) in system:
                one = replace(one, standing="taken", problem=one.id)
            candidates.append(one)
        return Review(review_id, waiting.source, tuple(candidates))

    def _candidate(self, key: str, bundle: Bundle) -> Candidate:
        try:
            prepared = prepare_all([bundle], None)[0]
        except SkillhallError as error:
            return _refused(key, bundle, error)
        identity = prepared.item.id
        present = self.changes.own.files(identity)
        changes: tuple[FileChange, ...] = ()
        standing: Standing = "new"
        if present is not None:
            # Hidden files of the skill that is replaced are not shown to the importer.
            changes = compare(contents_of(published(present)), contents_of(bundle))
            standing = "replaces" if digest_of(present) != digest_of(bundle) else "same"
        data = bundle.files[skill_md_of(bundle)].read()
        return Candidate(
            key=key,
            id=identity,
            name=prepared.item.name,
            description=prepared.item.description,
            tokens=estimate_tokens(parse_skill(data).body),
            files=len(bundle.files),
            standing=standing,
            problem="",
            findings=(*judged_text(identity, data), *_beside(bundle, data)),
            changes=changes,
            against=digest_of(present) if present else "",
            bundle=bundle,
        )


@dataclass(frozen=True, slots=True)
class _Waiting:
    source: str
    bundles: tuple[Bundle, ...]


def _beside(bundle: Bundle, data: bytes) -> tuple[Judged, ...]:
    """What is worth telling about the other files."""
    own = skill_md_of(bundle)
    found = (*bundle.findings, *scan_bundle(bundle, parse_skill(data).frontmatter))
    judged = LOCAL_SKILLS.load.judge(one for one in found if one.path != own)
    return tuple(one for one in judged if one.effect is not Effect.ACCEPT)


def _refused(key: str, bundle: Bundle, error: SkillhallError) -> Candidate:
    reasons = getattr(error, "reasons", None) or (str(error),)
    return Candidate(
        key=key,
        id=own_id(bundle),
        name=name_of(bundle),
        description=description_of(bundle),
        tokens=0,
        files=len(bundle.files),
        standing="refused",
        problem="; ".join(reasons),
        findings=(),
        changes=(),
        against="",
        bundle=bundle,
    )
