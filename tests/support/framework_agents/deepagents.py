"""An agent on deepagents."""

from deepagents import create_deep_agent
from deepagents.backends import CompositeBackend, StateBackend
from langchain_core.messages import HumanMessage

from skillhall._internal.agents.adapters.deepagents import SkillsBackend
from skillhall._internal.agents.agent_skills import AgentSkills
from tests.support.framework_agents.langchain import OpenAIChatModel
from tests.support.model_server import ModelServer


def ask(skills: AgentSkills, server: ModelServer, question: str) -> str:
    backend = CompositeBackend(StateBackend(), {"/skills/": SkillsBackend(skills)})
    model = OpenAIChatModel(url=server.url)
    agent = create_deep_agent(model, backend=backend, skills=["/skills/"])
    result = agent.invoke({"messages": [HumanMessage(question)]})
    return str(result["messages"][-1].text)
