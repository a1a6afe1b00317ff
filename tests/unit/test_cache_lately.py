from itertools import count

from skillhall._internal.cache_lately import Lately


class Clock:
    """Time that passes only when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def looked(clock: Clock, seconds: float, **options: float) -> Lately[int]:
    """A look that takes so long; each gives another number."""
    numbers = count(1)

    def look() -> int:
        clock.now += seconds
        return next(numbers)

    return Lately(look, **options, clock=clock)


def test_a_value_is_kept_for_some_times_as_long_as_the_look_took() -> None:
    clock = Clock()
    lately = looked(clock, 2.0, share=10.0)
    told = [lately.ready, lately.value()]
    clock.now += 19.9
    told += [lately.ready, lately.value()]
    clock.now += 0.2
    assert [*told, lately.ready, lately.value()] == [None, 1, 1, 1, None, 2]


def test_a_value_can_be_kept_for_a_time_in_any_case() -> None:
    clock = Clock()
    lately = looked(clock, 0.0, share=10.0, least=3.0)
    assert lately.value() == 1
    clock.now += 2.9
    assert lately.value() == 1
    clock.now += 0.2
    assert lately.value() == 2


def test_without_a_share_every_call_looks() -> None:
    lately = looked(Clock(), 1.0, share=0.0)
    assert [lately.value(), lately.value(), lately.renewed()] == [1, 2, 3]
