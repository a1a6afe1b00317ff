"""Viewers of sessions: who is notified, and what each one sees."""

from skillhall._internal.rest.sessions.session_viewers import MAX_NAMES, SessionViewers


def test_viewers_see_the_others_of_their_session() -> None:
    viewers, calls = SessionViewers(), list[str]()
    with viewers.join("one", "ada", lambda: calls.append("ada")) as ada:
        with (
            viewers.join("one", "ben", lambda: calls.append("ben")) as ben,
            viewers.join("one", "ada", lambda: None),
            viewers.join("two", "eve", lambda: calls.append("eve")),
        ):
            assert viewers.list_others("one", ada) == {"ada": 1, "ben": 1}
            assert viewers.list_others("one", ben) == {"ada": 2}
        assert viewers.list_others("one", ada) == {}
    assert calls.count("eve") == 1
    assert calls.count("ada") == 5  # itself, two others, and both when they left


def test_number_of_names_is_limited() -> None:
    viewers = SessionViewers()
    with viewers.join("one", "me", lambda: None) as me:
        others = [viewers.join("one", f"user-{n:02}", lambda: None) for n in range(MAX_NAMES + 5)]
        for other in others:
            other.__enter__()
        assert len(viewers.list_others("one", me)) == MAX_NAMES
        for other in others:
            other.__exit__(None, None, None)
