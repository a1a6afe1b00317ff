"""Account pages: names of browsers."""

import pytest

from skillhall._internal.web.account_pages import describe_browser

WEBKIT = "AppleWebKit/537.36 (KHTML, like Gecko)"


@pytest.mark.parametrize(
    ("user_agent", "browser"),
    [
        (f"Mozilla/5.0 (X11; Linux x86_64) {WEBKIT} Chrome/156.0 Safari/537.36", "Chrome on Linux"),
        (
            f"Mozilla/5.0 (Windows NT 10.0) {WEBKIT} Chrome/156.0 Safari/537.36 Edg/156.0",
            "Edge on Windows",
        ),
        (
            "Mozilla/5.0 (X11; Linux x86_64; rv:150.0) Gecko/20100101 Firefox/150.0",
            "Firefox on Linux",
        ),
        (f"Mozilla/5.0 (Macintosh; Intel Mac OS X 15_0) {WEBKIT} Safari/605.1", "Safari on macOS"),
        (f"Mozilla/5.0 (iPhone; CPU iPhone OS 19_0) {WEBKIT} Safari/604.1", "Safari on iPhone"),
        (
            f"Mozilla/5.0 (Linux; Android 16) {WEBKIT} Chrome/156.0 Safari/537.36",
            "Chrome on Android",
        ),
        ("curl/8.9", "curl/8.9"),
        ("", ""),
    ],
)
def test_browser_is_described_by_its_name_and_system(user_agent: str, browser: str) -> None:
    assert describe_browser(user_agent) == browser
