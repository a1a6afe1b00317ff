"""An agent on Microsoft Agent Framework."""

import asyncio

import openai
from agent_framework import (
    Agent,
    AggregatingSkillsSource,
    ContextProvider,
    InlineSkill,
    InMemorySkillsSource,
    SkillFrontmatter,
    SkillsProvider,
)
from agent_framework.openai import OpenAIChatCompletionClient

from skillhall._internal.agents.adapters.agent_framework import (
    SkillhallSource,
    SkillsContextProvider,
)
from skillhall._internal.agents.agent_skills import AgentSkills
from tests.support.framework_agents import KEY
from tests.support.model_server import ModelServer, ToolCall

PATH = "references/layout.md"
OWN_SCRIPT = (
    ToolCall("load_skill", {"skill_name": "csv-report"}),
    ToolCall("load_skill", {"skill_name": "csv-rapport"}),
    ToolCall("read_skill_resource", {"skill_name": "csv-report", "resource_name": PATH}),
)


def ask(skills: AgentSkills, server: ModelServer, question: str) -> str:
    return run_agent(SkillsContextProvider(skills), server, question)


def ask_twice(skills: AgentSkills, server: ModelServer, question: str) -> str:
    return run_agent(SkillsContextProvider(skills), server, question, question)


def ask_with_own_tools(skills: AgentSkills, server: ModelServer, question: str) -> str:
    front = SkillFrontmatter(name="own", description="Greets.")
    own = InlineSkill(frontmatter=front, instructions="Say hello.")
    source = AggregatingSkillsSource([SkillhallSource(skills), InMemorySkillsSource([own])])
    provider = SkillsProvider(
        source, disable_load_skill_approval=True, disable_read_skill_resource_approval=True
    )
    return run_agent(provider, server, question)


def run_agent(provider: ContextProvider, server: ModelServer, *questions: str) -> str:
    async def ask() -> str:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=KEY) as client:
            model = OpenAIChatCompletionClient("scripted", async_client=client)
            agent = Agent(model, context_providers=[provider])
            session = agent.create_session()
            return [(await agent.run(question, session=session)).text for question in questions][-1]

    return asyncio.run(ask())
