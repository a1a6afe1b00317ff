"""What holds for the repository as a whole: records, set-up, and nothing about anyone's machine."""

import hashlib
import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import dev

ROOT = Path(__file__).resolve().parents[2]
RECORDS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
# A bracket round one character keeps each pattern from matching its own text.
REGISTRY = re.compile(r'index[-]url|find[-]links|"resolved[":]+ *"http|[:]//\S+/simpl[e]\b')
# Documentation may speak of the homes of `user` and `ada`, who do not exist.
HOME = re.compile(
    r"(?<![\w.}~])[/](?:root|(?:home|Users)/(?!user\b|ada\b)[A-Za-z]\w*)/"
    r"|[A-Za-z]:\\+Users\\+(?!user\b|ada\b)[A-Za-z]"
)


# Digests of the hosts of well-known registries, which this repository does not name either.
REGISTRY_HOSTS = frozenset(
    {
        "3ca29e55be4befa4",
        "8743857e3ea00fd1",
        "8b5bb5eb9d758455",
        "a4aa2ac280bb8d1a",
    }
)
# The lookbehind keeps the search linear in long runs of letters, such as encoded images.
HOST = re.compile(r"(?<![a-z0-9-])[a-z0-9-]+(?:[.][a-z0-9-]+)+")


def names_a_registry_host(text: str) -> bool:
    """Whether the text holds the host of a registry, or one below it."""
    ends = {".".join(host.split(".")[-2:]) for host in HOST.findall(text.lower())}
    return any(hashlib.sha256(end.encode()).hexdigest()[:16] in REGISTRY_HOSTS for end in ends)


def tracked_files() -> list[Path]:
    """Files that git holds or would take in."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    # A checkout owned by somebody else is ordinary in containers; git would refuse to list it.
    listing = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z", "-co", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    ).stdout.decode()
    paths = (ROOT / name for name in sorted(set(listing.split("\0"))) if name)
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def lines_matching(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in tracked_files()
        for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), start=1)
        if pattern.search(line)
    ]


def readme_commands() -> Iterator[str]:
    """The command lines in the README's fenced blocks, without prompt sign and comment."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for block in re.findall(r"^```\w*\n(.*?)^```", readme, flags=re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            yield line.removeprefix("$ ").partition("  #")[0].strip()


def test_decision_records_are_numbered_one_by_one() -> None:
    numbers = [int(record.name.partition("-")[0]) for record in RECORDS]
    assert numbers == list(range(1, len(RECORDS) + 1))


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem)
def test_a_decision_record_tells_context_choice_consequences_and_status(record: Path) -> None:
    text = record.read_text(encoding="utf-8")
    assert text.startswith(f"# {record.name[:4]}: ")
    headings = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
    assert headings == ["Context", "Choice", "Consequences", "Status"]


def test_no_file_names_a_package_registry() -> None:
    assert lines_matching(REGISTRY) == []
    files = tracked_files()
    assert [f for f in files if names_a_registry_host(f.read_text("utf-8", "replace"))] == []


def test_no_file_names_the_home_directory_of_a_person() -> None:
    assert lines_matching(HOME) == []


@pytest.mark.parametrize(
    "line",
    ["--extra-index" + "-url x", "https:/" + "/mirror.example/simpl" + "e"],
)
def test_a_registry_is_recognised(line: str) -> None:
    assert REGISTRY.search(line)


def test_the_host_of_a_registry_is_recognised() -> None:
    assert names_a_registry_host("see https://files.py" + "pi.org/x")
    assert not names_a_registry_host("see https://example.org/x and tomllib.load")


@pytest.mark.parametrize("home", ["/home" + "/eve/x", "/ro" + "ot/x", "/Users" + "/Eve/x"])
def test_the_home_directory_of_a_person_is_recognised(home: str) -> None:
    assert HOME.search(f"see {home}")


def test_the_readme_gives_the_commands_that_run_and_test() -> None:
    assert {"python3 dev.py run", "python3 dev.py test"} <= set(readme_commands())


def test_ci_runs_the_test_command_of_the_readme_and_nothing_else() -> None:
    script = ROOT / ".ci" / "run"
    shebang, *lines = script.read_text(encoding="utf-8").splitlines()
    assert shebang == "#!/usr/bin/env bash"
    assert [line for line in lines if not line.startswith(("set ", "cd "))] == [
        "python3 dev.py test"
    ]
    assert os.access(script, os.X_OK)


@pytest.mark.parametrize("command", dev.COMMANDS)
def test_every_dev_command_is_in_its_help_and_in_contributing(command: str) -> None:
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert re.search(rf"`(?:python3 dev\.py )?{command}\b", contributing)
    assert f"python3 dev.py {command} " in str(dev.__doc__)


def test_make_names_only_dev_commands() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.+)$", makefile, flags=re.MULTILINE)
    assert phony is not None
    assert set(phony[1].split()) - {"check"} <= set(dev.COMMANDS)


def test_the_lock_holds_every_dependency_with_hashes() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    names = {re.split(r"[\[<>=~! ]", requirement)[0].lower() for requirement in wanted}
    lock = (ROOT / dev.LOCK).read_text(encoding="utf-8")
    pins = re.findall(r"^([\w.-]+)==\S+[^\n]*\\\n +--hash=sha256:", lock, flags=re.MULTILINE)
    assert len(pins) == len(re.findall(r"^\w", lock, flags=re.MULTILINE))
    assert names <= set(pins)


def test_guidance_for_agents_stays_short() -> None:
    assert len((ROOT / "AGENTS.md").read_text(encoding="utf-8").splitlines()) <= 60
