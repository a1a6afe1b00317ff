"""Run the official MCP conformance suite against `skillhall serve`, on this machine.

The suite is an npm package and needs Node.js 22. Its server scenarios are written for a reference
server with particular tools. Those that need them are not applicable, for the reason given here;
all others must pass without a failed check.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
NODE_VERSION = 22  # required by the suite
START_SECONDS = 60
SUITE_SECONDS = 300
ENTRY = "node_modules/@modelcontextprotocol/conformance/dist/index.js"
REFERENCE_TOOLS = "calls a tool of the reference server; a skill server has four fixed tools"
REFERENCE_RESOURCES = "reads test:// resources of the reference server; ours are skill:// files"
TEXT_PROMPTS = "needs a prompt with other content than text; skills are text"
NO_INPUT = "asks the client for input; our tools need none"
NO_TASKS = "tests the tasks extension, which is not offered: no call takes long"
NO_LOGGING = "tests logging, which is not offered: protocol 2026-07-28 removes its method"
# Scenarios that are not applicable, with the reason.
NOT_APPLICABLE = {
    "elicitation-sep1034-defaults": NO_INPUT,
    "elicitation-sep1330-enums": NO_INPUT,
    "http-custom-header-server-validation": "needs a tool with x-mcp-header parameters",
    "json-schema-2020-12": REFERENCE_TOOLS,
    "logging-set-level": NO_LOGGING,
    "prompts-get-embedded-resource": TEXT_PROMPTS,
    "prompts-get-with-image": TEXT_PROMPTS,
    "resources-read-binary": REFERENCE_RESOURCES,
    "resources-read-text": REFERENCE_RESOURCES,
    "resources-templates-read": REFERENCE_RESOURCES,
    "server-sse-polling": REFERENCE_TOOLS,
    "tasks-capability-negotiation": NO_TASKS,
    "tasks-dispatch-and-envelope": NO_TASKS,
    "tasks-lifecycle": NO_TASKS,
    "tasks-mrtr-composition": NO_TASKS,
    "tasks-mrtr-input": NO_TASKS,
    "tasks-request-headers": NO_TASKS,
    "tasks-request-state-removal": NO_TASKS,
    "tasks-required-task-error": NO_TASKS,
    "tasks-status-notifications": NO_TASKS,
    "tasks-wire-fields": NO_TASKS,
    "tools-call-audio": REFERENCE_TOOLS,
    "tools-call-elicitation": NO_INPUT,
    "tools-call-embedded-resource": REFERENCE_TOOLS,
    "tools-call-error": REFERENCE_TOOLS,
    "tools-call-image": REFERENCE_TOOLS,
    "tools-call-mixed-content": REFERENCE_TOOLS,
    "tools-call-sampling": NO_INPUT,
    "tools-call-simple-text": REFERENCE_TOOLS,
    "tools-call-with-logging": NO_LOGGING,
    "tools-call-with-progress": "needs a tool that reports progress; no tool takes long",
    "input-required-result-basic-elicitation": NO_INPUT,
    "input-required-result-basic-list-roots": NO_INPUT,
    "input-required-result-basic-sampling": NO_INPUT,
    "input-required-result-capability-check": NO_INPUT,
    "input-required-result-ignore-extra-params": NO_INPUT,
    "input-required-result-missing-input-response": NO_INPUT,
    "input-required-result-multi-round": NO_INPUT,
    "input-required-result-multiple-input-requests": NO_INPUT,
    "input-required-result-non-tool-request": NO_INPUT,
    "input-required-result-request-state": NO_INPUT,
    "input-required-result-result-type": NO_INPUT,
    "input-required-result-tampered-state": NO_INPUT,
    "input-required-result-validate-input": NO_INPUT,
}
# Checks of an applicable scenario that need tools of the reference server.
NOT_APPLICABLE_CHECKS = {
    "sep-2575-server-rejects-undeclared-capability": REFERENCE_TOOLS,
    "sep-2575-missing-capability-http-400": REFERENCE_TOOLS,
    "sep-2575-http-server-no-independent-requests-on-stream": REFERENCE_TOOLS,
    "sep-2575-server-no-log-without-loglevel": NO_LOGGING,
}
SKILL = "---\nname: pdf-tools\ndescription: Work with PDF files.\n---\nRead references/forms.md.\n"
# The prompts of the reference server, as skills.
PROMPTS = {
    "test_simple_prompt": "description: Without arguments.\n---\nThis is a simple prompt.\n",
    "test_prompt_with_arguments": (
        "description: With two arguments.\narguments:\n"
        "  - {name: arg1, description: First., required: true}\n"
        "  - {name: arg2, description: Second., required: true}\n---\n"
        "Prompt with {{arg1}} and {{arg2}}.\n"
    ),
}


def write_fixtures(folder: Path) -> None:
    """Write a skill into the run directory `run`, and prompts into `prompts`."""
    skill = folder / "run/.agents/skills/pdf-tools"
    (skill / "references").mkdir(parents=True)
    (skill / "SKILL.md").write_text(SKILL, encoding="utf-8")
    (skill / "references/forms.md").write_text("# Forms\n", encoding="utf-8")
    for name, text in PROMPTS.items():
        path = folder / "prompts" / name / "SKILL.md"
        path.parent.mkdir(parents=True)
        path.write_text(f"---\nname: {name}\n{text}", encoding="utf-8")


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Start the server on a free port of loopback and yield the URL of its endpoint."""
    options = ["--port", "0", "--run-dir", str(folder / "run"), "--repo", str(folder / "prompts")]
    command = [sys.executable, "-m", "skillhall", "serve", *options]
    private = {"HOME": str(folder), "SKILLHALL_DATA_DIR": str(folder / "data")}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SKILLHALL")}
    log = folder / "server.log"
    with (
        log.open("w", encoding="utf-8") as output,
        subprocess.Popen(
            command, cwd=folder / "run", env={**kept, **private}, stdout=output, stderr=output
        ) as process,
    ):
        try:
            yield f"{_wait_for_url(log, process)}/mcp"
        finally:
            process.terminate()


def _wait_for_url(log: Path, process: "subprocess.Popen[bytes]") -> str:
    for _ in range(START_SECONDS * 10):
        text = log.read_text(encoding="utf-8")
        if text.startswith("http://") and "\n" in text:
            return text.split()[0]
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise SystemExit(f"the server did not start: {log.read_text(encoding='utf-8')}")


def run_suite(node: str, folder: Path, url: str) -> dict[str, list[dict[str, Any]]]:
    """Run all server scenarios and return the checks of each."""
    results = folder / "results"
    suite = [node, str(folder / ENTRY)]
    command = [*suite, "server", "--url", url, "--suite", "all", "-o", str(results)]
    # It fails if any scenario fails, applicable or not.
    subprocess.run(
        command,
        check=False,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=SUITE_SECONDS,
    )
    listed = subprocess.run(
        [*suite, "list", "--server"], check=True, capture_output=True, text=True
    )
    names = [line.split()[1] for line in listed.stdout.splitlines() if line.startswith("  - ")]
    checks: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for name in names:
        # A folder is named after the scenario and the time, which starts with the year.
        for path in sorted(results.glob(f"server-{name}-20*/checks.json")):
            checks[name] += json.loads(path.read_text(encoding="utf-8"))
    return checks


def report(results: dict[str, list[dict[str, Any]]]) -> int:
    """Print the result of each scenario, and return 1 if an applicable one failed."""
    totals: Counter[str] = Counter()
    failed = []
    for name, checks in sorted(results.items()):
        if name in NOT_APPLICABLE:
            print(f"not applicable  {name}: {NOT_APPLICABLE[name]}")
            continue
        for check in checks:
            # A check that could be made counts, whatever its id.
            is_untestable = (check.get("details") or {}).get("untestable") is True
            if check["id"] in NOT_APPLICABLE_CHECKS and is_untestable:
                check["status"] = "NOT APPLICABLE"
                check["errorMessage"] = NOT_APPLICABLE_CHECKS[check["id"]]
        counts = Counter(check["status"] for check in checks)
        totals += counts
        has_failed = bool(counts["FAILURE"]) or not counts["SUCCESS"]
        failed += [name] if has_failed else []
        print(f"{'FAILED' if has_failed else 'passed':14}  {name}: {_format(counts)}")
        for check in checks:
            if check["status"] not in ("SUCCESS", "INFO"):
                status = check["status"].lower()
                print(f"{'':16}{status} {check['id']}: {check.get('errorMessage', '')}")
    applicable = len(results) - len(NOT_APPLICABLE.keys() & results.keys())
    print(f"{len(results)} scenarios, {applicable} applicable, {len(failed)} failed")
    print(f"checks: {_format(totals)}")
    unknown = sorted(NOT_APPLICABLE.keys() - results.keys())
    if unknown:
        print(f"not in the suite: {', '.join(unknown)}")
    return 1 if failed or unknown else 0


def _format(counts: Counter[str]) -> str:
    return ", ".join(
        f"{counts[status]} {status.lower()}"
        for status in ("SUCCESS", "FAILURE", "WARNING", "NOT APPLICABLE")
        if counts[status]
    )


def main(arguments: list[str]) -> int:
    """Install the suite into a temporary folder and run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--node", default="node", help="Node.js 22 or newer")
    options = parser.parse_args(arguments)
    node, npm = shutil.which(options.node), shutil.which("npm")
    if node is None or npm is None:
        parser.error(f"Node.js {NODE_VERSION} and npm are needed")
    version = subprocess.run([node, "--version"], check=True, capture_output=True, text=True).stdout
    if int(version.removeprefix("v").partition(".")[0]) < NODE_VERSION:
        parser.error(f"the suite needs Node.js {NODE_VERSION}; this is {version.strip()}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        install = [npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent", SUITE]
        subprocess.run(install, cwd=folder, check=True)
        write_fixtures(folder)
        with serve(folder) as url:
            return report(run_suite(node, folder, url))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
