"""External agents, scripts of skills and recordings in `skillhall eval run`."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from skillhall._internal.cli.runner import run as main_code
from skillhall._internal.evals.runs.evaluated_skill import read_evaluated_skill
from tests.support.eval_skills import (
    MODEL,
    make_case,
    make_eval_skill,
    read_run_file,
    run_eval,
    use_model,
)
from tests.support.model_server import ModelRequest, ModelServer, ToolCall, Turn, model_server

CANARY_SCRIPT = b"import pathlib; pathlib.Path('ran.txt').write_text('ran'); print('TOTAL 6')\n"
AGENT = """
import os, pathlib, sys
skills = pathlib.Path.home() / ".agents/skills"
names = sorted(path.name for path in skills.iterdir())
prompt = sys.argv[1] if len(sys.argv) > 1 else sys.stdin.read()
print(prompt, names, sorted(os.listdir()), os.environ.get("AGENT_KEY"), os.environ.get("OTHER"))
pathlib.Path("answer.txt").write_text(str(pathlib.Path.cwd()))
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SKILLHALL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (tmp_path / "agent.py").write_text(AGENT)
    return tmp_path


@pytest.fixture
def agent(project: Path) -> str:
    return f"{sys.executable} {project / 'agent.py'}"


def run_script(request: ModelRequest) -> Turn:
    """Run the script of the skill if there is a tool for it, then reply with its output."""
    if "RunScript" in request.tools and "load_skill" in request.tools and not request.tool_results:
        return ToolCall("RunScript", {"name": "csv-report", "path": "scripts/total.py"})
    return f"Result: {request.tool_results[-1] if request.tool_results else 'none'}"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    with model_server(function=run_script, max_requests=1000) as running:
        use_model(monkeypatch, running)
        yield running


def test_external_agent_runs_with_the_skill_in_its_home_folder(
    project: Path, agent: str, capsys: pytest.CaptureFixture[str]
) -> None:
    case = make_case(prompt="Sum $(rm -rf /); {x} it", files=["evals/files/a.csv"])
    skill = make_eval_skill(project / "skills", [case], files={"evals/files/a.csv": b"1\n"})

    result = run_eval(capsys, skill, "--agent-command", f"{agent} {{prompt}}", "--repeats", "1")

    assert (result.code, result.skill["statuses"]) == (0, {"completed": 2}), result.err
    with_skill = read_run_file(skill, "with_skill", repeats=1)
    without_skill = read_run_file(skill, "without_skill", repeats=1)
    assert with_skill["reply"] == ("Sum $(rm -rf /); {x} it ['csv-report'] ['a.csv'] None None")
    assert without_skill["reply"] == "Sum $(rm -rf /); {x} it [] ['a.csv'] None None"
    assert with_skill["usage"]["cost"] is None
    arm = result.skill["summary"]["arms"]["with_skill"]
    assert (arm["usage"]["cost"], arm["tokens"]) == (None, None)  # it reports neither
    assert result.skill["summary"]["agent"].endswith("agent.py '{prompt}'")
    outputs = skill.with_name("csv-report-workspace") / "iteration-1/eval-sum/with_skill/outputs"
    assert [path.name for path in outputs.iterdir()] == ["answer.txt"]
    assert not Path((outputs / "answer.txt").read_text()).is_relative_to(project / "skills")


def test_external_agent_without_a_placeholder_reads_the_prompt_as_input(
    project: Path, agent: str, capsys: pytest.CaptureFixture[str]
) -> None:
    skill = make_eval_skill(project / "skills", [make_case(prompt="-n Sum")])

    run_eval(capsys, skill, "--agent-command", agent, "--repeats", "1")

    assert read_run_file(skill, "with_skill", repeats=1)["reply"].startswith("-n Sum [")


def test_external_agent_gets_only_named_variables_and_they_are_redacted(
    project: Path, agent: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_KEY", "very-secret-value")
    monkeypatch.setenv("OTHER", "other")
    skill = make_eval_skill(project / "skills", [make_case()])

    argv = ("--agent-command", agent, "--env", "AGENT_KEY", "--repeats", "1")
    result = run_eval(capsys, skill, *argv)

    assert read_run_file(skill, "with_skill", repeats=1)["reply"].endswith("*** None")
    files = skill.with_name("csv-report-workspace").rglob("*.json")
    assert not any("very-secret-value" in path.read_text() for path in files)
    assert "very-secret-value" not in f"{result.out}{result.err}"


def test_variable_that_is_not_set_is_an_error(
    project: Path, agent: str, capsys: pytest.CaptureFixture[str]
) -> None:
    skill = make_eval_skill(project / "skills", [make_case()])

    result = run_eval(capsys, skill, "--agent-command", agent, "--env", "AGENT_KEY")

    assert result.code == 2


@pytest.mark.parametrize(
    ("code", "ending"),
    [
        ("import sys; sys.exit(3)", "failed: the command ended with exit code 3"),
        ("import time; time.sleep(60)", "limited: the limit of 1 seconds was reached"),
        (
            "while True: print('x' * 1000)",
            "limited: the limit of 104858 bytes of output was reached",
        ),
    ],
)
def test_external_agent_is_limited(
    project: Path, agent: str, capsys: pytest.CaptureFixture[str], code: str, ending: str
) -> None:
    (project / "agent.py").write_text(code)
    skill = make_eval_skill(project / "skills", [make_case()])
    limits = ("--timeout", "1", "--max-output", "0.1", "--repeats", "1")

    run_eval(capsys, skill, "--agent-command", agent, *limits)

    run = read_run_file(skill, "with_skill", repeats=1)
    assert f"{run['status']}: {run['reason']}" == ending


def make_scripted_skill(project: Path, *, needs_scripts: bool = False) -> Path:
    case = make_case(needs_scripts=needs_scripts)
    files = {
        "scripts/total.py": CANARY_SCRIPT,
        "evals/scripts/check.py": CANARY_SCRIPT,
        "evals/conftest.py": CANARY_SCRIPT,
    }
    return make_eval_skill(project / "skills", [case], files=files)


def find_canaries(project: Path) -> list[Path]:
    return [*project.rglob("ran.txt")]


def test_scripts_do_not_run_without_consent(
    project: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    skill = make_scripted_skill(project)

    result = run_eval(capsys, skill, "--model", MODEL)

    assert find_canaries(project) == []
    assert all("RunScript" not in request.tools for request in server.requests)
    assert "scripts of csv-report did not run" in result.err


def test_script_runs_in_the_folder_of_the_run_with_consent(
    project: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    skill = make_scripted_skill(project)

    result = run_eval(capsys, skill, "--model", MODEL, "--repeats", "1", "--allow-scripts")

    run = read_run_file(skill, "with_skill", repeats=1)
    assert run["reply"] == "Result: Exit code: 0\nOutput:\nTOTAL 6\n"
    (canary,) = find_canaries(project)
    assert canary.parent.name == "outputs"
    assert "scripts of csv-report: scripts" in result.err


def test_cases_that_need_scripts_are_skipped_and_counted_without_consent(
    project: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    skill = make_scripted_skill(project, needs_scripts=True)

    result = run_eval(capsys, skill, "--model", MODEL)

    assert result.skill["statuses"] == {"skipped": 6}
    assert server.requests == []
    (reason,) = result.skill["skip_reasons"]
    assert reason == "the case needs scripts of the skill, which are not allowed to run"


def test_external_agent_does_not_get_scripts_without_consent(
    project: Path, agent: str, capsys: pytest.CaptureFixture[str]
) -> None:
    runs_everything = """
import pathlib, runpy
for path in pathlib.Path.home().rglob("*.py"):
    runpy.run_path(str(path))
"""
    (project / "agent.py").write_text(runs_everything)
    skill = make_scripted_skill(project)

    refused = run_eval(capsys, skill, "--agent-command", agent)
    assert refused.skill["statuses"] == {"skipped": 6}
    assert find_canaries(project) == []

    argv = (skill, "--agent-command", agent, "--allow-scripts", "--repeats", "1")
    allowed = run_eval(capsys, *argv)
    assert allowed.skill["statuses"] == {"completed": 2}
    assert find_canaries(project) != []


def test_external_agent_does_not_get_scripts_among_input_files_without_consent(
    project: Path, agent: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = [make_case("plain"), make_case("script", files=["evals/files/total.py"])]
    files = {"evals/files/total.py": CANARY_SCRIPT}
    skill = make_eval_skill(project / "skills", cases, files=files)

    argv = (skill, "--agent-command", agent, "--repeats", "1")
    refused = run_eval(capsys, *argv)
    assert refused.skill["statuses"] == {"completed": 2, "skipped": 2}
    allowed = run_eval(capsys, *argv, "--allow-scripts")
    assert allowed.skill["statuses"] == {"completed": 4}


@pytest.mark.parametrize(
    "path", ["../outside.txt", "/etc/passwd", "evals/link.txt", "evals/linked/outside.txt"]
)
def test_input_files_outside_of_the_skill_are_refused(
    project: Path, server: ModelServer, capsys: pytest.CaptureFixture[str], path: str
) -> None:
    skill = make_eval_skill(project / "skills", [make_case(files=[path])])
    outside = project / "outside"
    outside.mkdir()
    (outside / "outside.txt").write_text("secret")
    (skill / "evals/link.txt").symlink_to(outside / "outside.txt")
    (skill / "evals/linked").symlink_to(outside)

    result = run_eval(capsys, skill, "--model", MODEL)

    assert result.code == 3
    assert server.requests == []


def record(skill: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]) -> Path:
    """Record one run of each arm; return the iteration."""
    result = run_eval(capsys, skill, "--model", MODEL, "--repeats", "1")
    return Path(result.skill["iteration"])


def test_recording_replays_without_a_model(
    project: Path,
    server: ModelServer,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    skill = make_eval_skill(project / "skills", [make_case()])
    recording = record(skill, server, capsys)
    monkeypatch.delenv("OPENAI_API_KEY")
    before = len(server.requests)

    result = run_eval(capsys, skill, "--replay", recording, "--results", project / "ci")

    assert len(server.requests) == before
    assert (result.code, result.skill["statuses"]) == (0, {"completed": 2})
    replayed = Path(result.skill["iteration"])
    assert replayed == project / "ci/csv-report-workspace/iteration-1"
    for name in ("run.json", "transcript.json"):
        path = f"eval-sum/with_skill/{name}"
        assert (replayed / path).read_bytes() == (recording / path).read_bytes()


def test_recording_of_another_version_is_refused(
    project: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    skill = make_eval_skill(project / "skills", [make_case()])
    recording = record(skill, server, capsys)
    (skill / "SKILL.md").write_text((skill / "SKILL.md").read_text() + "More.\n")

    result = run_eval(capsys, skill, "--replay", recording)

    assert (result.code, result.skill["statuses"]) == (1, {"completed": 1, "skipped": 1})
    assert "record the runs again" in result.err


def test_recording_with_an_old_version_replays_without_it(
    project: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    skill = make_eval_skill(project / "skills", [make_case()])
    old = make_eval_skill(project / "old", [make_case()], body="Old.\n")
    argv = (skill, "--model", MODEL, "--repeats", "1", "--against", old)
    run_eval(capsys, *argv)

    workspace = skill.with_name("csv-report-workspace")
    result = run_eval(capsys, skill, "--replay", workspace, "--results", project / "ci")

    assert (result.code, result.skill["statuses"]) == (0, {"completed": 3})


def test_folder_without_a_recording_is_an_error(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    skill = make_eval_skill(project / "skills", [make_case()])

    assert run_eval(capsys, skill, "--replay", project).code == 3


def commit_all(folder: Path) -> None:
    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)

    if not (folder / ".git").exists():
        git("init", "--quiet")
    git("add", "--all")
    git("commit", "--quiet", "--message", "Change")


def test_revision_of_the_repository_is_the_old_version(
    project: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    skill = make_eval_skill(project / "skills", [make_case()], body="Old body.\n")
    commit_all(project)
    (skill / "SKILL.md").write_text((skill / "SKILL.md").read_text().replace("Old", "New"))

    result = run_eval(capsys, skill, "--model", MODEL, "--repeats", "1", "--against", "HEAD")

    assert result.skill["statuses"] == {"completed": 3}
    plan: Any = json.loads((Path(result.skill["iteration"]) / "plan.json").read_text())
    assert plan["old_skill"]["label"] == "HEAD"
    assert plan["old_skill"]["digest"] != plan["skill_digest"]


@pytest.mark.parametrize("version", ["no-such-tag", "--version", "HEAD~99"])
def test_unknown_revision_is_an_error(
    project: Path, server: ModelServer, capsys: pytest.CaptureFixture[str], version: str
) -> None:
    skill = make_eval_skill(project / "skills", [make_case()])
    commit_all(project)

    result = run_eval(capsys, skill, "--model", MODEL, f"--against={version}")

    assert result.code == 4, result.err
    assert server.requests == []


def test_agent_has_the_other_skills_of_a_catalog_in_every_arm(
    project: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    skill = make_eval_skill(project / "skills", [make_case()])
    make_eval_skill(project / "others", [], name="pdf-tools")
    make_eval_skill(project / "others", [], name="csv-report", body="Another one.\n")

    argv = (skill, "--model", MODEL, "--repeats", "1", "--catalog", project / "others")
    run_eval(capsys, *argv)

    listed = [("pdf-tools" in one.system, "csv-report" in one.system) for one in server.requests]
    assert sorted(listed) == [(True, False), (True, True)]


@pytest.mark.parametrize("rules", ['deny = [{ name = "csv-*" }]', "not TOML"])
def test_skill_that_a_policy_may_block_is_not_run(
    project: Path, server: ModelServer, capsys: pytest.CaptureFixture[str], rules: str
) -> None:
    skill = make_eval_skill(project / "skills", [make_case()])
    (project / "skillhall-policy.toml").write_text(f"version = 1\n{rules}\n")

    result = run_eval(capsys, skill, "--model", MODEL)

    assert result.code == 3, result.out
    assert server.requests == []


def deny_by_policy(digest: str, project: Path) -> None:
    text = f'version = 1\ndeny = [{{ digest = "{digest}" }}]\n'
    (project / "skillhall-policy.toml").write_text(text)


def revoke(digest: str, project: Path) -> None:
    text = f'{{"number": 1, "issued": "2026-01-01T00:00:00Z", "expires": "2099-01-01T00:00:00Z", \
"revoked": [{{"digest": "{digest}", "reason": "It steals keys.", "at": "2026-01-01T00:00:00Z"}}]}}'
    (project / "revoked.json").write_text(text)
    assert (
        main_code(["advisories", str(project / "revoked.json"), "--server", "http://localhost"])
        == 0
    )


@pytest.mark.parametrize("block", [deny_by_policy, revoke])
@pytest.mark.parametrize("version", ["HEAD", "old/csv-report"])
def test_old_version_that_agents_must_not_get_is_not_run(
    project: Path,
    server: ModelServer,
    capsys: pytest.CaptureFixture[str],
    block: Callable[[str, Path], None],
    version: str,
) -> None:
    skill = make_eval_skill(project / "skills", [make_case()], body="Old body.\n")
    commit_all(project)
    block(read_evaluated_skill("csv-report", str(skill)).digest, project)
    shutil.copytree(skill, project / "old/csv-report")
    (skill / "SKILL.md").write_text((skill / "SKILL.md").read_text().replace("Old", "New"))

    result = run_eval(capsys, skill, "--model", MODEL, "--against", version)

    assert result.code == 3, result.out
    assert f"csv-report at {version}" in result.out + result.err
    assert server.requests == []
