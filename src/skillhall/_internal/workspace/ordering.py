"""Where a block goes: beside another one, or at an end of its zone."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.workspace.ordering_positions import LONGEST, between, window
from skillhall._internal.workspace.unit_of_work import is_id
from skillhall.errors import Displaced, FieldRefused

if TYPE_CHECKING:
    from skillhall._internal.storage.records import Zone
    from skillhall._internal.workspace.unit_of_work import Change


class Place(NamedTuple):
    """A place in a zone: after a block, before one, at the beginning, else at the end."""

    after: str = ""  # ids of blocks
    before: str = ""
    first: bool = False


END = Place()


class Spot(NamedTuple):
    """A place that was found: the position, and which block stands before it."""

    position: str
    after: str  # an id, or nothing


def find_spot(change: Change, zone: Zone, place: Place, moving: str = "") -> Spot:
    """The position of a place, for a new block or for one that is `moving`.

    Raises: Displaced if the block beside it is not in the zone, FieldRefused.
    """
    if bool(place.after) + bool(place.before) + place.first > 1:
        raise FieldRefused("place", "a block stands after one, before one, or first")
    if moving and moving in (place.after, place.before):
        raise FieldRefused("place", "a block cannot stand beside itself")
    low, high = _neighbours(change, zone, place, moving)
    position = between(low[1], high[1])
    if len(position) > LONGEST:
        position = _with_more_room(change, zone, high[0], moving)
    return Spot(position, low[0])


_NOBODY = ("", "")


def _neighbours(
    change: Change, zone: Zone, place: Place, moving: str
) -> tuple[tuple[str, str], tuple[str, str]]:
    """The ids and positions of the blocks on both sides, as if the moving one were not there."""
    if place.after:
        low = place.after, _key(change, zone, place.after)
        return low, _step(change, zone, low[1], moving, forward=True)
    if place.before:
        high = place.before, _key(change, zone, place.before)
        return _step(change, zone, high[1], moving, forward=False), high
    if place.first:
        return _NOBODY, _step(change, zone, "", moving, forward=True)
    return _step(change, zone, "", moving, forward=False), _NOBODY


def _step(change: Change, zone: Zone, key: str, moving: str, *, forward: bool) -> tuple[str, str]:
    look = change.write.following if forward else change.write.preceding
    found = look(change.session.id, zone, key)
    if found is not None and found[0] == moving:
        found = look(change.session.id, zone, found[1])
    return found or _NOBODY


def _key(change: Change, zone: Zone, identity: str) -> str:
    block = change.write.block(change.session.id, identity) if is_id(identity) else None
    if block is None or block.deleted is not None or block.zone is not zone:
        raise Displaced(identity)
    return block.position


def _with_more_room(change: Change, zone: Zone, high: str, moving: str) -> str:
    """A position where too many were put between the same two: the neighbours move apart."""
    session = change.session.id
    keys = [one for one in change.write.keys(session, zone) if one[0] != moving]
    at = next((n for n, one in enumerate(keys) if one[0] == high), len(keys))
    first, end, found = window(keys, at)
    own = found.pop(at - first)
    moved = [(one[0], key) for one, key in zip(keys[first:end], found, strict=True)]
    change.write.place_blocks(session, moved)
    return own
