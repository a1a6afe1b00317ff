import sys
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from skillhall._internal.agents.agent_tools import AgentTools
from skillhall._internal.agents.tracing import span
from tests.support.agents import make_agent
from tests.support.skills import make_skill


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
    tools.call("load_skill", {"name": "pdf"})
    tools.call("load_skill", {"name": "secret text"})
    loaded, failed = exporter.get_finished_spans()
    assert loaded.name == "execute_tool load_skill"
    assert loaded.attributes is not None
    tokens = loaded.attributes["skillhall.tokens"]
    assert dict(loaded.attributes) == {
        "gen_ai.tool.name": "load_skill",
        "gen_ai.agent.id": "coding",
        "skillhall.tokens": tokens,
        "skillhall.skill": "pdf",
    }
    assert failed.attributes is not None
    assert failed.attributes["error.type"] == "not_found"
    assert "secret" not in failed.to_json()


def test_tracing_without_opentelemetry_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "opentelemetry.trace")
    with span("x", {"a": 1}) as noticed:
        noticed["b"] = 2
    assert "opentelemetry.trace" not in sys.modules
