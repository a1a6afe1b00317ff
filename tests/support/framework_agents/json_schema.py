"""An agent without a framework: OpenAI's client and a loop."""

from typing import Any

import openai

from skillhall._internal.agents.adapters.json_schema import call_tool, tool_schemas
from skillhall._internal.agents.agent_skills import AgentSkills
from skillhall._internal.agents.agent_tools import AgentTools
from tests.support.framework_agents import KEY
from tests.support.model_server import ModelServer


def ask(skills: AgentSkills, server: ModelServer, question: str) -> str:
    tools = AgentTools(skills)
    messages: list[Any] = [{"role": "system", "content": tools.system_prompt()}]
    messages.append({"role": "user", "content": question})
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=KEY) as client:
        while True:
            schemas: Any = tool_schemas(tools)
            reply = client.chat.completions.create(
                model="scripted", messages=messages, tools=schemas
            )
            message = reply.choices[0].message
            if not message.tool_calls:
                return message.content or ""
            messages.append(message.model_dump(exclude_none=True))
            for call in message.tool_calls:
                assert call.type == "function"
                text = call_tool(tools, call.function.name, call.function.arguments)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
