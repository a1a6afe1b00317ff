"""The compiled context of a session, with its token counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from skillhall._internal.storage.records import Zone
from skillhall._internal.workspace.unit_of_work import get_session

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skillhall._internal.storage.records import Block, BlockContent, Session, ZoneSize
    from skillhall._internal.workspace.unit_of_work import UnitOfWork

BudgetLevel: TypeAlias = Literal["fine", "warning", "danger"]

_SEPARATOR = "\n\n"
_WARNING_SHARE, _DANGER_SHARE = 0.80, 0.95  # of the budget


class Spending(NamedTuple):
    """Estimated tokens compared with a budget."""

    tokens: int
    budget: int | None

    @property
    def is_over(self) -> bool:
        """Whether the tokens exceed the budget."""
        return self.budget is not None and self.tokens > self.budget

    @property
    def share(self) -> float:
        """Return the used share of the budget, which may exceed 1; 0 without a budget."""
        if self.budget is None:
            return 0.0
        # Any token uses up a budget of 0.
        return self.tokens / self.budget if self.budget else float(bool(self.tokens))

    @property
    def level(self) -> BudgetLevel:
        """Return how close the token count is to the budget."""
        if self.share < _WARNING_SHARE:
            return "fine"
        return "warning" if self.share < _DANGER_SHARE else "danger"


class ZoneContext(NamedTuple):
    """The blocks of a zone, in order, and their token counts."""

    zone: Zone
    blocks: Sequence[Block]
    spending: Spending


class Context(NamedTuple):
    """A session compiled for a model."""

    session: Session
    zones: tuple[ZoneContext, ...]
    total: Spending
    text: str


@dataclass(frozen=True, slots=True)
class Contexts:
    """Compiles the contexts of sessions."""

    unit_of_work: UnitOfWork

    def compile(self, session: str) -> Context:
        """Return the current context of a session. Raises: RecordNotFound."""
        return self.unit_of_work.store.read(
            lambda read: compile_context(get_session(read, session), read.blocks(session))
        )


def compile_context(session: Session, blocks: Sequence[Block]) -> Context:
    """Return the context: the blocks in PERMANENT, then STABLE, then WORKING."""
    zones = []
    for zone in Zone:
        own = [block for block in blocks if block.zone is zone]
        tokens = sum(block.content.tokens for block in own)
        zones.append(ZoneContext(zone, own, Spending(tokens, session.budgets.for_zone(zone))))
    total = Spending(sum(zone.spending.tokens for zone in zones), session.budgets.total)
    ordered = (block.content for zone in zones for block in zone.blocks)
    return Context(session, tuple(zones), total, compile_text(ordered))


def compute_spending(
    session: Session, sizes: Mapping[Zone, ZoneSize]
) -> dict[Zone | None, Spending]:
    """Return the spending of each zone, and of the session under the key None."""
    spent: dict[Zone | None, Spending] = {}
    for zone in Zone:
        tokens = sizes[zone].tokens if zone in sizes else 0
        spent[zone] = Spending(tokens, session.budgets.for_zone(zone))
    total = sum(spending.tokens for spending in spent.values())
    return {**spent, None: Spending(total, session.budgets.total)}


def compile_text(contents: Iterable[BlockContent]) -> str:
    """Join the contents of blocks with blank lines, skipping empty ones."""
    texts = (content.text.strip("\r\n") for content in contents)
    joined = _SEPARATOR.join(text for text in texts if text.strip())
    return f"{joined}\n" if joined else ""
