"""The bounded memory of answers."""

from skillhall._internal.cache_kept import Kept


def filled(kept: Kept[bytes], *names: str, size: int = 10) -> list[str]:
    """The names that had to be made."""
    made: list[str] = []

    def make(name: str) -> bytes:
        made.append(name)
        return name.encode() * size

    for name in names:
        kept.value(name, lambda name=name: make(name))  # type: ignore[misc]
    return made


def test_a_value_is_made_once() -> None:
    assert filled(Kept(100, len), "a", "b", "a", "b") == ["a", "b"]


def test_the_oldest_goes_when_there_is_no_room() -> None:
    kept = Kept[bytes](20, len)
    assert filled(kept, "a", "b", "c") == ["a", "b", "c"]
    assert filled(kept, "c", "b", "a") == ["a"]


def test_what_somebody_asked_for_gets_a_second_chance() -> None:
    kept = Kept[bytes](20, len)
    filled(kept, "a", "b", "a", "c")
    assert filled(kept, "a", "c") == []
    assert filled(kept, "b") == ["b"]


def test_what_is_larger_than_the_whole_memory_pushes_nothing_out() -> None:
    kept = Kept[bytes](20, len)
    filled(kept, "a", "b")
    filled(kept, "x", size=21)
    assert filled(kept, "a", "b") == []
