"""What holds for every test: a home of its own, and how many examples Hypothesis tries."""

import os

import pytest
from hypothesis import HealthCheck, settings

# Each value is named: on a build server Hypothesis starts from other defaults. How slow the machine
# is, and how many inputs a test sets aside, differ from run to run and are no failures.
QUICK = settings(
    max_examples=100,
    deadline=None,
    derandomize=False,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.register_profile("quick", QUICK)
settings.register_profile("deep", QUICK, max_examples=5_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

# Where programs look for a person's own files and for our settings.
PERSONAL = ("XDG_", "SKILLHALL_", "DOT_AI_")


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty home folder in place of the person's own, whatever the environment says."""
    folder = tmp_path_factory.mktemp("home")
    for variable in [name for name in os.environ if name.startswith(PERSONAL)]:
        monkeypatch.delenv(variable)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    monkeypatch.setenv("SKILLHALL_CACHE_DIR", str(folder / "cache"))
