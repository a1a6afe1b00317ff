"""An agent on LlamaIndex."""

import asyncio
import json
import warnings
from collections.abc import Sequence
from typing import Any

import openai
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import TextBlock, ToolCallBlock
from llama_index.core.llms import ChatMessage, MockFunctionCallingLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.tools import BaseTool
from pydantic.warnings import PydanticDeprecationWarning

from skillhall._internal.agents.adapters.llama_index import SkillsToolSpec
from skillhall._internal.agents.agent_skills import AgentSkills
from tests.support.framework_agents import KEY
from tests.support.model_server import ModelServer


def ask(skills: AgentSkills, server: ModelServer, question: str) -> str:
    return run_agent(skills, server, question)


def ask_twice(skills: AgentSkills, server: ModelServer, question: str) -> str:
    return run_agent(skills, server, question, question)


def run_agent(skills: AgentSkills, server: ModelServer, *questions: str) -> str:
    async def ask() -> str:
        spec = SkillsToolSpec(skills)
        agent = FunctionAgent(
            tools=[*spec.to_tool_list()],
            system_prompt=spec.system_prompt(),
            llm=MockFunctionCallingLLM(response_generator=generate),
        )
        memory = ChatMemoryBuffer.from_defaults()
        return [str(await agent.run(question, memory=memory)) for question in questions][-1]

    # The package llama-index-llms-openai needs an older version of OpenAI's client.
    def generate(
        messages: Sequence[ChatMessage], *, tools: Sequence[BaseTool] = (), **_: object
    ) -> ChatMessage:
        sent: Any = [to_openai(message) for message in messages]
        schemas: Any = [tool.metadata.to_openai_tool() for tool in tools] or openai.omit
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key=KEY) as client:
            reply = client.chat.completions.create(model="scripted", messages=sent, tools=schemas)
        message = reply.choices[0].message
        blocks = [
            ToolCallBlock(
                tool_call_id=call.id,
                tool_name=call.function.name,
                tool_kwargs=json.loads(call.function.arguments),
            )
            for call in message.tool_calls or ()
            if call.type == "function"
        ]
        return ChatMessage([TextBlock(text=message.content or ""), *blocks], role="assistant")

    with warnings.catch_warnings():
        # The framework inspects deprecated attributes of its own agents.
        warnings.simplefilter("ignore", PydanticDeprecationWarning)
        return asyncio.run(ask())


def to_openai(message: ChatMessage) -> dict[str, object]:
    calls = [
        {
            "id": block.tool_call_id,
            "type": "function",
            "function": {"name": block.tool_name, "arguments": json.dumps(block.tool_kwargs)},
        }
        for block in message.blocks
        if isinstance(block, ToolCallBlock)
    ]
    sent = {"role": message.role.value, "content": message.content, **message.additional_kwargs}
    return {**sent, "tool_calls": calls} if calls else sent
