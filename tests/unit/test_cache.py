from itertools import count

from skillhall._internal.cache import AdaptiveCache, LruCache, SizedCache


class Clock:
    """Clock that is advanced manually."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def make_cache(clock: Clock, seconds: float, **options: float) -> AdaptiveCache[int]:
    """Create a cache whose computations take `seconds` and return 1, 2, 3…"""
    numbers = count(1)

    def compute() -> int:
        clock.now += seconds
        return next(numbers)

    return AdaptiveCache(compute, **options, clock=clock)


def test_ttl_is_proportional_to_the_cost() -> None:
    clock = Clock()
    cache = make_cache(clock, 2.0, ttl_factor=10.0)
    values = [cache.fresh_value, cache.get()]
    clock.now += 19.9
    values += [cache.fresh_value, cache.get()]
    clock.now += 0.2
    assert [*values, cache.fresh_value, cache.get()] == [None, 1, 1, 1, None, 2]


def test_ttl_has_a_minimum() -> None:
    clock = Clock()
    cache = make_cache(clock, 0.0, ttl_factor=10.0, min_ttl=3.0)
    assert cache.get() == 1
    clock.now += 2.9
    assert cache.get() == 1
    clock.now += 0.2
    assert cache.get() == 2


def test_ttl_has_a_maximum() -> None:
    clock = Clock()
    cache = make_cache(clock, 2.0, ttl_factor=10.0, max_ttl=1.0)
    values = [cache.get()]
    clock.now += 0.9
    values.append(cache.get())
    clock.now += 0.2
    assert [*values, cache.get()] == [1, 1, 2]


def test_zero_ttl_factor_disables_the_cache() -> None:
    cache = make_cache(Clock(), 1.0, ttl_factor=0.0)
    assert [cache.get(), cache.get(), cache.refresh()] == [1, 2, 3]


def request(cache: SizedCache[bytes], *keys: str, size: int = 10) -> list[str]:
    """Request values and return the keys of those that had to be created."""
    created: list[str] = []

    def create(key: str) -> bytes:
        created.append(key)
        return key.encode() * size

    for key in keys:
        cache.get_or_create(key, lambda key=key: create(key))  # type: ignore[misc]
    return created


def test_value_is_created_once() -> None:
    assert request(SizedCache(100, len), "a", "b", "a", "b") == ["a", "b"]


def test_oldest_value_is_evicted() -> None:
    cache = SizedCache[bytes](20, len)
    assert request(cache, "a", "b", "c") == ["a", "b", "c"]
    assert request(cache, "c", "b", "a") == ["a"]


def test_used_value_gets_a_second_chance() -> None:
    cache = SizedCache[bytes](20, len)
    request(cache, "a", "b", "a", "c")
    assert request(cache, "a", "c") == []
    assert request(cache, "b") == ["b"]


def test_value_larger_than_the_cache_evicts_nothing() -> None:
    cache = SizedCache[bytes](20, len)
    request(cache, "a", "b")
    request(cache, "x", size=21)
    assert request(cache, "a", "b") == []


def test_least_recently_used_value_is_evicted() -> None:
    evicted: list[int] = []
    cache = LruCache[str, int](2, evicted.append)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    assert cache.get_or_create("c", lambda: 3) == 3
    assert (cache.values(), evicted) == ([1, 3], [2])
    assert (cache.get("b"), cache.get_or_create("a", lambda: 4)) == (None, 1)


def test_replaced_value_is_not_dropped() -> None:
    cache = LruCache[str, list[int]](2)
    old, new = [1], [2]
    cache.put("a", old)
    cache.put("a", new)
    cache.drop("a", old)
    assert cache.values() == [new]
    cache.drop("a", new)
    assert cache.values() == []
