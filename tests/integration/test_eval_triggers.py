"""`skillhall eval triggers` against scripted models, in two formats."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from skillhall._internal.cli.runner import run
from skillhall._internal.evals.eval_workspace import EvalWorkspace
from skillhall._internal.evals.triggers.trigger_files import TriggerJournal
from tests.support.model_server import (
    HttpFailure,
    ModelRequest,
    ModelServer,
    ToolCall,
    Turn,
    model_server,
)
from tests.support.skills import make_skill, make_skill_md

OPENAI, ANTHROPIC = "openai-chat:scripted", "anthropic:scripted"
CSV = [f"Summarize table {number}" for number in range(6)]
PDF = [f"Read form {number}" for number in range(6)]


def choose_skill(request: ModelRequest, chosen: Mapping[str, str]) -> Turn | HttpFailure:
    """Load the skill whose word is in the query; `chosen` maps words to skills."""
    query = request.user_messages[-1]
    name = next((name for word, name in chosen.items() if word in query), "")
    return ToolCall("load_skill", {"name": name}) if name else "Without a skill."


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    chosen = {"table": "csv", "form": "pdf"}
    with model_server(
        function=lambda request: choose_skill(request, chosen), max_requests=500
    ) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{running.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", running.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
        yield running


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two skills, each with the queries of the other as near misses."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SKILLHALL_DATA_DIR", str(tmp_path / "data"))
    folder = tmp_path / "skills"
    for name, own, others in (("csv", CSV, PDF), ("pdf", PDF, CSV)):
        queries = [{"query": one, "should_trigger": one in own} for one in (*own, *others)]
        data = make_skill_md(name, f"Handles {name} files.", f"# Steps of {name}\n")
        files = {"evals/triggers.json": json.dumps(queries).encode()}
        make_skill(folder, name, data=data, files=files)
    return folder


def measure(
    root: Path, capsys: pytest.CaptureFixture[str], *argv: str, model: str = OPENAI
) -> tuple[int, Any]:
    capsys.readouterr()
    code = run(["eval", "triggers", *argv, "--root", str(root), "--model", model, "--json"])
    return code, json.loads(capsys.readouterr().out)["data"]


@pytest.mark.parametrize("model", [OPENAI, ANTHROPIC])
def test_skill_with_a_good_description_triggers_as_expected(
    root: Path, server: ModelServer, capsys: pytest.CaptureFixture[str], model: str
) -> None:
    code, data = measure(root, capsys, "csv", model=model)

    assert code == 0
    (skill,) = data["skills"]
    assert skill["verdict"] == "triggers as expected"
    assert (skill["recall"]["value"], skill["precision"]["value"]) == (1.0, 1.0)
    # Repeats are not independent: six queries, not 18 runs.
    assert skill["recall"]["low"] == pytest.approx(0.6097, abs=1e-4)
    assert skill["catalog"] == ["csv", "pdf"]
    assert len(server.requests) == 36  # one request decides
    assert "<name>pdf</name>" in server.requests[0].system
    assert "Steps of csv" not in str(server.requests)  # never injected


def test_skill_that_never_triggers_differs_from_the_one_that_takes_its_queries(
    root: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.script = lambda request: choose_skill(request, {"table": "pdf", "form": "pdf"})
    _, data = measure(root, capsys)

    never, thief = data["skills"]
    assert never["verdict"] == "never triggers"
    assert never["recall"]["high"] < 0.5
    assert never["confusion"]["should_trigger"] == [{"skill": "pdf", "runs": 18}]
    assert thief["verdict"] == "triggers for most queries of other skills"
    assert thief["recall"]["value"] == 1.0
    assert (thief["precision"]["value"], thief["false_triggers"]["value"]) == (0.5, 1.0)


def test_reading_the_skill_md_counts_as_loading_the_skill(
    root: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(root / "csv" / "SKILL.md")
    server.script = lambda request: (
        ToolCall("ReadFile", {"path": path}) if "table" in request.user_messages[-1] else "No."
    )
    _, data = measure(root, capsys, "csv")
    assert data["skills"][0]["recall"]["value"] == 1.0


def test_few_queries_or_repeats_get_no_verdict(
    root: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    _, data = measure(root, capsys, "csv", "--repeats", "2")
    assert data["skills"][0]["verdict"].startswith("not enough runs: fewer than 3")
    assert data["skills"][0]["is_enough"] is False


def test_second_command_asks_nothing_and_stores_the_result(
    root: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    _, first = measure(root, capsys, "csv")
    count = len(server.requests)
    _, second = measure(root, capsys, "csv")

    assert (len(server.requests), second["new_runs"]) == (count, 0)
    assert second["skills"] == first["skills"]
    stored = json.loads((root / "csv-workspace/iteration-1/triggers.json").read_bytes())
    assert {**stored, "gates": []} == first["skills"][0]


def test_changed_description_of_another_skill_is_measured_again(
    root: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    measure(root, capsys, "csv", "--repeats", "1")
    (root / "pdf" / "SKILL.md").write_bytes(make_skill_md("pdf", "Something else."))
    _, data = measure(root, capsys, "csv", "--repeats", "1")
    assert data["new_runs"] == 12


def replay(root: Path, capsys: pytest.CaptureFixture[str], recording: Path) -> tuple[int, Any]:
    results = str(root.with_name("ci"))
    argv = ["csv", "--root", str(root), "--replay", str(recording), "--results", results]
    capsys.readouterr()
    code = run(["eval", "triggers", *argv, "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("folder", ["", "csv-workspace", "csv-workspace/iteration-1"])
def test_recorded_runs_are_replayed_without_a_model(
    root: Path,
    server: ModelServer,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    folder: str,
) -> None:
    _, recorded = measure(root, capsys, "csv", "--repeats", "1")
    count = len(server.requests)
    monkeypatch.delenv("OPENAI_API_KEY")
    code, replayed = replay(root, capsys, root / folder)

    assert (code, len(server.requests)) == (0, count)
    assert replayed["data"]["skills"] == recorded["skills"]
    assert (root.with_name("ci") / "csv-workspace/iteration-1/triggers.json").exists()


def test_recording_with_another_listing_is_refused(
    root: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    measure(root, capsys, "csv", "--repeats", "1")
    (root / "pdf" / "SKILL.md").write_bytes(make_skill_md("pdf", "Something else."))
    code, replayed = replay(root, capsys, root)

    assert code == 1
    assert replayed["error"]["message"] == (
        "12 of 12 runs of csv are not recorded for its queries and listing"
    )
    assert not root.with_name("ci").exists()


def test_recording_without_trigger_queries_is_refused(
    root: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    EvalWorkspace(root / "csv-workspace").create_iteration({"repeats": 1}, 1)
    code, replayed = replay(root, capsys, root)

    assert (code, len(server.requests)) == (3, 0)
    assert "no recorded runs of trigger queries" in replayed["error"]["message"]


def test_token_limit_stops_and_the_next_command_continues(
    root: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    code, data = measure(root, capsys, "csv", "--max-tokens", "150", "--jobs", "1")
    assert (code, data["new_runs"]) == (1, 10)  # 15 tokens each
    assert data["stopped"] == "the limit of 150 tokens is reached"

    code, data = measure(root, capsys, "csv")
    assert (code, data["new_runs"], len(server.requests)) == (0, 26, 36)


def test_cost_limit_stops_at_the_given_price(
    root: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    price = ("--price", "1000,2000")  # two cents for a run
    code, data = measure(root, capsys, "csv", "--max-cost", "0.1", "--jobs", "1", *price)
    assert (code, data["new_runs"], data["cost"]) == (1, 5, pytest.approx(0.1))
    assert data["stopped"] == "the limit of $0.1 is reached"


def test_cost_limit_needs_a_known_price(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["eval", "triggers", "csv", "--root", str(root), "--model", OPENAI, "--max-cost", "1"]
    assert run(argv) == 2
    assert "--max-cost needs the price" in capsys.readouterr().err


def test_provider_that_is_down_is_not_asked_for_every_query(
    root: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.script = lambda _: HttpFailure(400)
    code, data = measure(root, capsys, "csv", "--jobs", "1")
    assert (code, len(server.requests)) == (1, 5)
    assert data["stopped"].startswith("5 runs in a row failed: the model 'openai-chat:scripted'")


def test_failed_runs_are_reported_with_their_reason_and_repeated(
    root: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    script = server.script
    server.script = lambda request: (
        HttpFailure(404) if request.user_messages[-1] == CSV[0] else "Without a skill."
    )
    argv = ["eval", "triggers", "csv", "--root", str(root), "--model", OPENAI, "--repeats", "1"]
    assert run(argv) == 1
    assert (
        "1 run failed: the model 'openai-chat:scripted' cannot be used: the provider has no "
        in (capsys.readouterr().err)
    )
    server.script = script
    code, data = measure(root, capsys, "csv", "--repeats", "1")
    assert (code, data["new_runs"], data["failed_runs"]) == (0, 1, 0)


def test_agent_that_searches_forever_is_stopped_and_has_not_loaded_the_skill(
    root: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.script = lambda _: ToolCall("list_skills", {})
    _, data = measure(root, capsys, "csv", "--repeats", "1")
    assert len(server.requests) == 12 * 8
    assert data["skills"][0]["recall"]["value"] == 0.0


def test_long_reply_is_not_read_to_its_end_and_loads_no_skill(
    root: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.script = lambda _: " ".join(["x" * 10_000] * 1000)
    queries = [{"query": "Summarize table 1", "should_trigger": True}]
    (root / "csv/evals/triggers.json").write_text(json.dumps(queries))
    code, data = measure(root, capsys, "csv", "--repeats", "1")

    (one,) = data["skills"][0]["runs"]
    assert (code, one["status"], one["loaded_skills"]) == (0, "completed", [])
    assert one["reason"] == "no skill loaded in 200000 characters"
    assert one["reply"] == "x" * 2000


def test_dry_run_counts_requests_without_a_key(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    code, data = measure(root, capsys, "--dry-run")
    assert code == 0
    assert [one["new_runs"] for one in data["skills"]] == [36, 36]
    assert data["skills"][0]["input_tokens"] > 1000
    assert not (root / "csv-workspace").exists()


def test_invalid_trigger_file_is_reported_with_its_line(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "csv/evals/triggers.json").write_text('[{"query": "q"},\n]')
    assert run(["eval", "triggers", "csv", "--root", str(root), "--model", OPENAI, "--json"]) == 1
    output = json.loads(capsys.readouterr().out)
    assert output["error"]["code"] == "invalid_skill"
    assert output["findings"][0]["line"] == 2
    assert output["error"]["hint"].endswith(f"skillhall eval check {root / 'csv'}")


def test_folder_that_the_agent_does_not_see_is_named_with_its_root(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    assert run(["eval", "triggers", "csv", "--model", OPENAI]) == 4
    assert f"the agent does not see this folder; add --root {root}" in capsys.readouterr().err


def improve(server: ModelServer, better: str) -> None:
    """Load `csv` only if its description is `better`, which the model suggests."""

    def play(request: ModelRequest) -> Turn:
        if not request.tools:
            return better
        is_new = "<description>Summarizes tables.</description>" in request.system
        is_table = "table" in request.user_messages[-1]
        return ToolCall("load_skill", {"name": "csv"}) if is_new and is_table else "No."

    server.script = play


def test_improved_description_is_measured_on_held_out_queries_and_not_written(
    root: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    improve(server, "Summarizes tables.")
    before = (root / "csv" / "SKILL.md").read_bytes()
    _, data = measure(root, capsys, "csv", "--improve")

    (one,) = data["improvements"]
    assert (one["suggested"], one["is_better"], one["written"]) == (
        "Summarizes tables.",
        True,
        False,
    )
    assert one["held_out"]["before"]["recall"]["value"] == 0.0
    assert one["held_out"]["after"]["recall"]["value"] == 1.0
    assert (root / "csv" / "SKILL.md").read_bytes() == before
    (request,) = [each for each in server.requests if not each.tools]
    seen = [query for query in (*CSV, *PDF) if f'"{query}"' in request.user_messages[-1]]
    assert len(seen) == 6  # the training half
    held_out = {each["query"] for each in one["held_out"]["before"]["queries"]}
    assert held_out.isdisjoint(seen)


def test_cost_of_a_suggestion_is_in_the_totals_and_in_the_dry_run(
    root: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    improve(server, "Summarizes tables.")
    argv = ("csv", "--improve", "--repeats", "1", "--price", "1000,2000")
    _, planned = measure(root, capsys, *argv, "--dry-run")
    _, data = measure(root, capsys, *argv)

    (skill,) = planned["skills"]
    assert skill["improvement"]["requests"] == 1 + 12
    assert skill["improvement"]["input_tokens"] > skill["input_tokens"]
    assert len(server.requests) == 12 + 1 + 12
    assert (data["tokens"], data["cost"]) == (15 * 25, pytest.approx(0.02 * 25))


def test_suggestion_that_reaches_a_limit_is_not_measured_or_written(
    root: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    improve(server, "Summarizes tables.")
    argv = ("csv", "--improve", "--write", "--repeats", "1", "--max-tokens", str(15 * 13))
    code, data = measure(root, capsys, *argv)

    assert (code, data["improvements"], len(server.requests)) == (1, [], 13)
    assert data["stopped"] == "the limit of 195 tokens is reached"


def test_second_command_does_not_pay_for_queries_in_progress(
    root: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    measure(root, capsys, "csv", "--repeats", "1")
    (iteration,) = EvalWorkspace(root / "csv-workspace").iterations()
    with TriggerJournal(iteration).lock():
        argv = ["eval", "triggers", "csv", "--root", str(root), "--model", OPENAI]
        code = run(argv)

    assert (code, len(server.requests)) == (5, 12)
    assert "another command is running these evals" in capsys.readouterr().err


def test_runs_that_another_command_made_in_the_meantime_are_not_repeated(
    root: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    def run_another_command(request: ModelRequest) -> Turn | HttpFailure:
        if len(server.requests) == 1:
            measure(root, capsys, "pdf", "--repeats", "1")
        return choose_skill(request, {"table": "csv", "form": "pdf"})

    server.script = run_another_command
    _, data = measure(root, capsys, "--repeats", "1", "--jobs", "1")

    assert (len(server.requests), data["new_runs"]) == (24, 12)


def test_written_description_changes_one_line_and_needs_no_new_runs(
    root: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    improve(server, "Summarizes tables.")
    before = (root / "csv" / "SKILL.md").read_text().splitlines()
    _, data = measure(root, capsys, "csv", "--improve", "--write")

    assert data["improvements"][0]["written"] is True
    after = (root / "csv" / "SKILL.md").read_text().splitlines()
    assert [new for old, new in zip(before, after, strict=True) if old != new] == [
        "description: Summarizes tables."
    ]
    _, again = measure(root, capsys, "csv")
    assert (again["new_runs"], again["skills"][0]["recall"]["value"]) == (0, 1.0)


def test_description_that_is_not_better_is_not_written(
    root: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    improve(server, "Something else.")
    _, data = measure(root, capsys, "csv", "--improve", "--write")
    assert data["improvements"][0]["written"] is False


def test_text_names_rates_and_wrong_queries(
    root: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.script = lambda request: choose_skill(request, {"table 1": "pdf", "table": "csv"})
    assert run(["eval", "triggers", "csv", "--root", str(root), "--model", OPENAI]) == 0
    out, err = capsys.readouterr()
    assert "  recall          0.83  (0.44 to 0.97, 6 queries)\n" in out
    assert "  should trigger  csv 15, pdf 3\n" in out
    assert "  wrong: 'Summarize table 1' should trigger; loaded in 0 of 3 runs\n" in out
    assert err == "36 new runs, 540 tokens, unknown cost\n"


def test_reports_are_written_and_markdown_is_appended(
    root: Path, server: ModelServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    files = [tmp_path / name for name in ("junit.xml", "summary.md", "report.html")]
    files[1].write_text("Earlier step\n")
    names = zip(("--junit", "--markdown", "--html"), map(str, files), strict=True)
    measure(root, capsys, "csv", *(one for pair in names for one in pair))

    junit, markdown, page = (file.read_text() for file in files)
    assert 'tests="12" failures="0"' in junit
    assert markdown.startswith("Earlier step\n# Eval results\n")
    assert "Triggers: triggers as expected" in page


@pytest.mark.parametrize(
    ("output_format", "text"),
    [
        ("text", "csv: triggers as expected\n"),
        ("json", '"is_current": true'),
        ("junit", '<testcase classname="csv.triggers" name="Summarize table 0" />'),
        ("markdown", "**Triggers: triggers as expected**"),
        ("html", "<h3>Triggers: triggers as expected</h3>"),
    ],
)
def test_stored_results_are_reported_without_a_model(
    root: Path,
    server: ModelServer,
    capsys: pytest.CaptureFixture[str],
    output_format: str,
    text: str,
) -> None:
    measure(root, capsys, "csv")
    count = len(server.requests)
    assert run(["eval", "report", str(root), "--format", output_format]) == 0
    assert text in capsys.readouterr().out
    assert len(server.requests) == count


def test_report_says_that_the_skill_has_changed(
    root: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    measure(root, capsys, "csv", "--repeats", "1")
    (root / "csv" / "SKILL.md").write_bytes(make_skill_md("csv", "Something else."))
    assert run(["eval", "report", str(root)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("csv: the skill has changed since these results\n")


def test_results_in_another_folder_are_found_there(
    root: Path, server: ModelServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    results = ["--results", str(tmp_path / "results")]
    measure(root, capsys, "csv", "--repeats", "1", *results)
    assert not (root / "csv-workspace").exists()
    assert run(["eval", "report", str(root), *results]) == 0
    assert run(["eval", "report", str(root)]) == 4
    assert "no skill here has results" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("gate", "code"),
    [
        ("triggers.recall>=0.9, triggers.false_triggers<=0.1", 0),
        ("triggers.recall.low>=0.9", 1),  # six queries are too few to be that sure
        ("pass_rate>=0.8", 1),  # not measured
    ],
)
def test_gate_decides_the_exit_code_of_the_run_and_of_the_report(
    root: Path, server: ModelServer, capsys: pytest.CaptureFixture[str], gate: str, code: int
) -> None:
    found, data = measure(root, capsys, "csv", "--gate", gate)
    assert found == code
    assert all(one["passed"] for one in data["skills"][0]["gates"]) is (code == 0)
    assert run(["eval", "report", str(root), "--gate", gate]) == code
    assert f"gate {gate.split(',', maxsplit=1)[0]}: " in capsys.readouterr().out


def test_gate_fails_for_results_of_another_version(
    root: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    measure(root, capsys, "csv")
    (root / "csv" / "SKILL.md").write_bytes(make_skill_md("csv", "Something else."))
    assert run(["eval", "report", str(root), "--gate", "triggers.recall>=0"]) == 1
    assert "another version of the skill" in capsys.readouterr().out
