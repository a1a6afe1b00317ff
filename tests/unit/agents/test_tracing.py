import sys
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from skillhall._internal.agents.agent_tools import AgentTools
from skillhall._internal.agents.tracing import span
from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.policy.folder_walk_rules import ScanPolicy
from skillhall._internal.sources.folder.bundle_reader import open_bundle
from tests.support.agents import make_agent
from tests.support.skills import make_skill

UNSET, ERROR = trace.StatusCode.UNSET, trace.StatusCode.ERROR


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """Collects the spans of a test. The global provider can be set only once."""
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    return spans


def test_tool_call_span_has_names_but_no_content(
    tmp_path: Path, exporter: InMemorySpanExporter
) -> None:
    make_skill(tmp_path / "skills", "pdf")
    tools = AgentTools(make_agent(tmp_path))
    digest = open_bundle(FolderHandle(str(tmp_path / "skills"), "pdf"), ScanPolicy()).digest()
    tools.call("load_skill", {"name": "pdf"})
    tools.call("load_skill", {"name": "secret text"})
    loaded, failed = exporter.get_finished_spans()
    assert loaded.name == "execute_tool load_skill"
    assert loaded.attributes is not None
    tokens = loaded.attributes["skillhall.tokens"]
    assert dict(loaded.attributes) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.type": "function",
        "skillhall.digest": digest,
        "gen_ai.tool.name": "load_skill",
        "gen_ai.agent.id": "coding",
        "skillhall.tokens": tokens,
        "skillhall.skill": "pdf",
    }
    assert failed.attributes is not None
    assert failed.attributes["error.type"] == "not_found"
    assert (loaded.status.status_code, failed.status.status_code) == (UNSET, ERROR)
    assert "secret" not in failed.to_json()


def test_span_of_an_exception_is_an_error_without_its_message(
    exporter: InMemorySpanExporter,
) -> None:
    with pytest.raises(ValueError, match="secret"), span("x", {}):
        raise ValueError("secret text")
    [failed] = exporter.get_finished_spans()
    assert failed.status.status_code is ERROR
    assert dict(failed.attributes or {}) == {"error.type": "ValueError"}
    assert "secret" not in failed.to_json()


def test_tracing_without_opentelemetry_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "opentelemetry.trace")
    with span("x", {"a": 1}) as noticed:
        noticed["b"] = 2
    assert "opentelemetry.trace" not in sys.modules
