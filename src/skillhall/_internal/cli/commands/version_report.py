"""`skillhall --version --json`: versions of Skillhall and what it uses."""

from skillhall._internal.cli.json_output import print_json_report
from skillhall._internal.wiring.installation import inspect_installation


def print_version_report() -> None:
    """Print the versions as one JSON object."""
    found = inspect_installation()
    print_json_report(
        "--version",
        {
            "version": found.version,
            "python": found.python,
            "implementation": found.implementation,
            "platform": found.platform,
            "sqlite": found.sqlite,
            "git": found.git,
            "extras": {
                name: {"installed": not missing, "missing": [*missing]}
                for name, missing in found.extras.items()
            },
        },
    )
