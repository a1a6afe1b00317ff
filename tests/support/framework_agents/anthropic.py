"""An agent on Anthropic's SDK, with its tool runner."""

import anthropic

from skillhall._internal.agents.adapters.anthropic import skill_tools
from skillhall._internal.agents.agent_skills import AgentSkills
from skillhall._internal.agents.agent_tools import AgentTools
from tests.support.framework_agents import KEY
from tests.support.model_server import ModelServer


def ask(skills: AgentSkills, server: ModelServer, question: str) -> str:
    tools = AgentTools(skills)
    with anthropic.Anthropic(base_url=server.url, api_key=KEY) as client:
        runner = client.beta.messages.tool_runner(
            model="scripted",
            max_tokens=100,
            system=tools.system_prompt(),
            tools=skill_tools(tools),
            messages=[{"role": "user", "content": question}],
            thread=False,  # the scripted server stores no conversations
        )
        final = runner.until_done()
    return "".join(block.text for block in final.content if block.type == "text")
