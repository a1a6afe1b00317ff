"""The options of a run: sizes, rounds, folders and the executable to measure."""

import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import BenchmarkError


@dataclass(frozen=True, slots=True)
class Scale:
    """Number of skills in each tree."""

    flat: int
    registry: int
    mirror: int
    growth_from: int
    growth_by: int
    few: int = 100
    served: tuple[int, ...] = (100, 1_000, 10_000, 50_000)  # skills of a server
    finding: int = 6_000
    finding_many: int = 60_000


SCALES = {
    "full": Scale(flat=60_000, registry=60_000, mirror=15_000, growth_from=1_000, growth_by=15_000),
    "small": Scale(
        flat=2_000,
        registry=2_000,
        mirror=1_000,
        growth_from=500,
        growth_by=1_000,
        served=(100, 1_000),
        finding=1_000,
        finding_many=2_000,
    ),
}


@dataclass(frozen=True, slots=True)
class Plan:
    """The options of a run."""

    scale: Scale
    rounds: int
    data: Path
    executable: Path
    half: str = "reporting"  # of the evaluation set of `finding`
    without: str = ""  # ingredient of the ranking that `finding` leaves out
    sizes: tuple[int, ...] = ()  # skills of the servers of `growth`; those of the scale if empty
    store: str = "both"  # of `growth`


def installed_executable() -> Path:
    """Return the console script next to the running interpreter."""
    return Path(sys.executable).parent / "skillhall"


def check_executable(executable: Path) -> None:
    """Check that the executable exists.

    Raises:
        BenchmarkError: it does not exist.
    """
    if not executable.is_file():
        hint = "install Skillhall into this environment, or pass --executable"
        message = f"no executable at {str(executable)!r}\nhint: {hint}"
        raise BenchmarkError(message)
