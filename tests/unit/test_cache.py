from itertools import count

from skillhall._internal.cache import AdaptiveCache, SizedCache


class Clock:
    """Time that passes only when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def looked(clock: Clock, seconds: float, **options: float) -> AdaptiveCache[int]:
    """A look that takes so long; each gives another number."""
    numbers = count(1)

    def look() -> int:
        clock.now += seconds
        return next(numbers)

    return AdaptiveCache(look, **options, clock=clock)


def test_a_value_is_kept_for_some_times_as_long_as_the_look_took() -> None:
    clock = Clock()
    lately = looked(clock, 2.0, ttl_factor=10.0)
    told = [lately.fresh_value, lately.get()]
    clock.now += 19.9
    told += [lately.fresh_value, lately.get()]
    clock.now += 0.2
    assert [*told, lately.fresh_value, lately.get()] == [None, 1, 1, 1, None, 2]


def test_a_value_can_be_kept_for_a_time_in_any_case() -> None:
    clock = Clock()
    lately = looked(clock, 0.0, ttl_factor=10.0, min_ttl=3.0)
    assert lately.get() == 1
    clock.now += 2.9
    assert lately.get() == 1
    clock.now += 0.2
    assert lately.get() == 2


def test_without_a_share_every_call_looks() -> None:
    lately = looked(Clock(), 1.0, ttl_factor=0.0)
    assert [lately.get(), lately.get(), lately.refresh()] == [1, 2, 3]


def filled(kept: SizedCache[bytes], *names: str, size: int = 10) -> list[str]:
    """The names that had to be made."""
    made: list[str] = []

    def make(name: str) -> bytes:
        made.append(name)
        return name.encode() * size

    for name in names:
        kept.get_or_create(name, lambda name=name: make(name))  # type: ignore[misc]
    return made


def test_a_value_is_made_once() -> None:
    assert filled(SizedCache(100, len), "a", "b", "a", "b") == ["a", "b"]


def test_the_oldest_goes_when_there_is_no_room() -> None:
    kept = SizedCache[bytes](20, len)
    assert filled(kept, "a", "b", "c") == ["a", "b", "c"]
    assert filled(kept, "c", "b", "a") == ["a"]


def test_what_somebody_asked_for_gets_a_second_chance() -> None:
    kept = SizedCache[bytes](20, len)
    filled(kept, "a", "b", "a", "c")
    assert filled(kept, "a", "c") == []
    assert filled(kept, "b") == ["b"]


def test_what_is_larger_than_the_whole_memory_pushes_nothing_out() -> None:
    kept = SizedCache[bytes](20, len)
    filled(kept, "a", "b")
    filled(kept, "x", size=21)
    assert filled(kept, "a", "b") == []
