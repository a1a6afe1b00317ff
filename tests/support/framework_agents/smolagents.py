"""Agents on smolagents."""

from typing import Any

from smolagents import CodeAgent, LogLevel, OpenAIModel, ToolCallingAgent

from skillhall._internal.agents.adapters.smolagents import skill_tools
from skillhall._internal.agents.agent_skills import AgentSkills
from skillhall._internal.agents.agent_tools import AgentTools
from tests.support.framework_agents import KEY
from tests.support.model_server import ModelServer


def ask(skills: AgentSkills, server: ModelServer, question: str, *, code: bool = False) -> str:
    tools = AgentTools(skills)
    model = OpenAIModel("scripted", api_base=f"{server.url}/v1", api_key=KEY)
    kind: Any = CodeAgent if code else ToolCallingAgent
    agent = kind(
        tools=skill_tools(tools),
        model=model,
        instructions=tools.system_prompt(),
        verbosity_level=LogLevel.OFF,
        max_steps=8,
    )
    try:
        return str(agent.run(question))
    finally:
        model.client.close()
