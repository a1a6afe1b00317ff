"""One conversation, held through every adapter: what each framework sends to the model is the same."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import agents
import anthropic
import openai
import pytest
from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel
from google.adk.agents import LlmAgent
from google.adk.models.google_llm import Gemini
from google.adk.runners import InMemoryRunner
from google.genai import types
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    convert_to_openai_messages,
)
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from skillhall.agents.adapters import google_adk, langchain, openai_agents, plain
from skillhall.agents.adapters import anthropic as anthropic_adapter
from skillhall.agents.adapters import pydantic_ai as pydantic_adapter
from skillhall.agents.agent_skills import AgentSkills
from skillhall.agents.agent_tools import AgentTools
from skillhall.settings import Settings
from tests.support.model_server import Call, ModelServer, model_server
from tests.support.skills import make_skill, make_skill_md

QUESTION = "Summarise the sales."
ANSWER = "Totals come first."
KEY = "test-key"
SCRIPT = (
    Call("load_skill", {"name": "csv-report"}),
    Call("read_skill_file", {"name": "csv-report", "path": "references/layout.md"}),
    ANSWER,
)


@pytest.fixture
def skills(tmp_path: Path) -> AgentSkills:
    make_skill(
        tmp_path / "skills",
        "csv-report",
        data=make_skill_md("csv-report", "Summarises CSV files.", "# Read the layout first\n"),
        files={"references/layout.md": b"Totals first.\n"},
    )
    settings = Settings(str(tmp_path), str(tmp_path / "cache"), data_directory=str(tmp_path / "d"))
    return AgentSkills.of("skills", settings=settings)


def ask_pydantic_ai(skills: AgentSkills, server: ModelServer) -> str:
    provider = OpenAIProvider(base_url=f"{server.url}/v1", api_key=KEY)
    model = OpenAIChatModel("scripted", provider=provider)
    agent = Agent(model, toolsets=[pydantic_adapter.SkillsToolset(skills)])
    return agent.run_sync(QUESTION).output


def ask_openai_agents(skills: AgentSkills, server: ModelServer) -> str:
    async def ask() -> str:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=KEY) as client:
            model = OpenAIChatCompletionsModel("scripted", client)
            agent = openai_agents.with_skills(agents.Agent("a", model=model), skills)
            config = agents.RunConfig(tracing_disabled=True)
            result = await agents.Runner.run(agent, QUESTION, run_config=config)
            return str(result.final_output)

    return asyncio.run(ask())


class OpenAIWire(BaseChatModel):
    """A LangChain model on OpenAI's client; the usual one is a package of its own."""

    url: str
    tools: list[Any] = []

    @property
    def _llm_type(self) -> str:
        return "wire"

    def bind_tools(self, tools: Any, **_: Any) -> Any:  # noqa: ANN401 - as the class above has it
        return OpenAIWire(url=self.url, tools=[*tools])

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:  # noqa: ANN401
        with openai.OpenAI(base_url=f"{self.url}/v1", api_key=KEY) as client:
            sent: Any = convert_to_openai_messages(messages)
            tools: Any = self.tools or openai.omit
            reply = client.chat.completions.create(model="scripted", messages=sent, tools=tools)
        said = reply.choices[0].message
        calls = [
            {"id": call.id, "name": call.function.name, "args": json.loads(call.function.arguments)}
            for call in said.tool_calls or ()
            if call.type == "function"
        ]
        message = AIMessage(said.content or "", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])


def ask_langchain(skills: AgentSkills, server: ModelServer) -> str:
    middleware = [langchain.SkillsMiddleware(skills)]
    agent = create_agent(OpenAIWire(url=server.url), middleware=middleware)
    result = agent.invoke({"messages": [HumanMessage(QUESTION)]})
    return str(result["messages"][-1].text)


def ask_anthropic(skills: AgentSkills, server: ModelServer) -> str:
    tools = AgentTools(skills)
    with anthropic.Anthropic(base_url=server.url, api_key=KEY) as client:
        runner = client.beta.messages.tool_runner(
            model="scripted",
            max_tokens=100,
            system=tools.system_prompt(),
            tools=anthropic_adapter.skill_tools(tools),
            messages=[{"role": "user", "content": QUESTION}],
            thread=False,  # this server keeps no conversations
        )
        final = runner.until_done()
    return "".join(block.text for block in final.content if block.type == "text")


def ask_google_adk(skills: AgentSkills, server: ModelServer) -> str:
    async def ask() -> str:
        model = Gemini(model="gemini-scripted", base_url=server.url, client_kwargs={"api_key": KEY})
        agent = LlmAgent(name="a", model=model, tools=[google_adk.SkillsToolset(skills)])
        runner = InMemoryRunner(agent, app_name="t")
        session = await runner.session_service.create_session(app_name="t", user_id="u")
        message = types.Content(role="user", parts=[types.Part(text=QUESTION)])
        said = ""
        async for event in runner.run_async(
            user_id="u", session_id=session.id, new_message=message
        ):
            if event.is_final_response() and event.content and event.content.parts:
                said = event.content.parts[0].text or ""
        await runner.close()
        return said

    return asyncio.run(ask())


def ask_by_hand(skills: AgentSkills, server: ModelServer) -> str:
    tools = AgentTools(skills)
    messages: list[Any] = [{"role": "system", "content": tools.system_prompt()}]
    messages.append({"role": "user", "content": QUESTION})
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=KEY) as client:
        while True:
            given: Any = plain.tool_schemas(tools)
            reply = client.chat.completions.create(model="scripted", messages=messages, tools=given)
            said = reply.choices[0].message
            if not said.tool_calls:
                return said.content or ""
            messages.append(said.model_dump(exclude_none=True))
            for call in said.tool_calls:
                assert call.type == "function"
                text = plain.call_tool(tools, call.function.name, call.function.arguments)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": text})


ADAPTERS = [
    ask_pydantic_ai,
    ask_openai_agents,
    ask_langchain,
    ask_anthropic,
    ask_google_adk,
    ask_by_hand,
]
Ask = Callable[[AgentSkills, ModelServer], str]
every_adapter = pytest.mark.parametrize("ask", ADAPTERS, ids=lambda ask: ask.__name__)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server(*SCRIPT) as running:
        yield running


@every_adapter
def test_a_model_finds_loads_and_reads_a_skill_and_answers(
    ask: Ask, skills: AgentSkills, server: ModelServer
) -> None:
    assert ask(skills, server) == ANSWER
    first, second, third = server.asked
    assert skills.text() in first.system
    assert "<name>csv-report</name>" in first.system
    assert first.tools["load_skill"]["properties"]["name"]["enum"] == ["csv-report"]
    assert set(first.tools) == set(skills.agent.tools)
    assert [one.said for one in server.asked] == [[QUESTION]] * 3
    assert (first.results, len(second.results)) == ([], 1)
    assert second.results[0].startswith('<skill_content name="csv-report">\n# Read the layout')
    assert "<file>references/layout.md</file>" in second.results[0]
    assert third.results[1] == "Totals first.\n"
