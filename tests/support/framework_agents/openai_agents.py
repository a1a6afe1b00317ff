"""An agent on the OpenAI Agents SDK."""

import asyncio

import agents
import openai
from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel

from skillhall._internal.agents.adapters.openai_agents import with_skills
from skillhall._internal.agents.agent_skills import AgentSkills
from tests.support.framework_agents import KEY
from tests.support.model_server import ModelServer


def ask(skills: AgentSkills, server: ModelServer, question: str) -> str:
    async def ask() -> str:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=KEY) as client:
            model = OpenAIChatCompletionsModel("scripted", client)
            agent = with_skills(agents.Agent("a", model=model), skills)
            config = agents.RunConfig(tracing_disabled=True)
            result = await agents.Runner.run(agent, question, run_config=config)
            return str(result.final_output)

    return asyncio.run(ask())
