"""An agent on Pydantic AI."""

import asyncio

import openai
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from skillhall._internal.agents.adapters.pydantic_ai import SkillsToolset
from skillhall._internal.agents.agent_skills import AgentSkills
from tests.support.framework_agents import KEY
from tests.support.model_server import ModelServer


def ask(skills: AgentSkills, server: ModelServer, question: str) -> str:
    async def ask() -> str:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=KEY) as client:
            model = OpenAIChatModel("scripted", provider=OpenAIProvider(openai_client=client))
            agent = Agent(model, toolsets=[SkillsToolset(skills)])
            return (await agent.run(question)).output

    return asyncio.run(ask())
