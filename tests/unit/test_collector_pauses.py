"""Tests for the limit of garbage collector pauses."""

import gc
from collections.abc import Iterator

import pytest

from skillhall._internal import background
from skillhall._internal.background import limit_collector_pauses


@pytest.fixture(autouse=True)
def _unchanged_collector() -> Iterator[None]:
    callbacks = [*gc.callbacks]
    yield
    gc.callbacks[:] = callbacks
    gc.unfreeze()


def test_present_objects_are_exempt_from_collection() -> None:
    limit_collector_pauses()
    assert gc.get_freeze_count() > len(gc.get_objects())


def test_objects_are_exempt_after_a_collection_that_took_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limit_collector_pauses()
    before = gc.get_freeze_count()
    later: list[list[int]] = [[] for _ in range(1000)]
    gc.collect()
    assert gc.get_freeze_count() <= before
    monkeypatch.setattr(background, "_MAX_PAUSE", -1.0)
    gc.collect()
    assert gc.get_freeze_count() >= before + len(later)


def test_a_second_server_adds_no_callback() -> None:
    limit_collector_pauses()
    callbacks = [*gc.callbacks]
    limit_collector_pauses()
    assert gc.callbacks == callbacks
