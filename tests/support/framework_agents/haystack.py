"""An agent on Haystack."""

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import SkillToolset
from haystack.utils import Secret

from skillhall._internal.agents.adapters.haystack import SkillhallStore, SkillsHook, SkillsToolset
from skillhall._internal.agents.agent_skills import AgentSkills
from tests.support.framework_agents import KEY
from tests.support.model_server import ModelServer, ToolCall

OWN_SCRIPT = (
    ToolCall("load_skill", {"name": "csv-report"}),
    ToolCall("load_skill", {"name": "csv-rapport"}),
    ToolCall("read_skill_file", {"name": "csv-report", "path": "references/layout.md"}),
)


def ask(skills: AgentSkills, server: ModelServer, question: str) -> str:
    return run_agent(build_agent(skills, server), question)


def ask_twice(skills: AgentSkills, server: ModelServer, question: str) -> str:
    return run_agent(build_agent(skills, server), question, question)


def ask_with_own_tools(skills: AgentSkills, server: ModelServer, question: str) -> str:
    tools = SkillToolset(SkillhallStore(skills))
    return run_agent(Agent(chat_generator=build_generator(server), tools=tools), question)


def build_agent(skills: AgentSkills, server: ModelServer) -> Agent:
    return Agent(
        chat_generator=build_generator(server),
        tools=SkillsToolset(skills),
        hooks={"before_llm": [SkillsHook(skills)]},
    )


def build_generator(server: ModelServer) -> OpenAIChatGenerator:
    return OpenAIChatGenerator(Secret.from_token(KEY), "scripted", api_base_url=f"{server.url}/v1")


def run_agent(agent: Agent, *questions: str) -> str:
    messages: list[ChatMessage] = []
    for question in questions:
        result = agent.run([*messages, ChatMessage.from_user(question)])
        messages = result["messages"]
    agent.close()
    return str(messages[-1].text)
