"""An agent on LangChain."""

import json
from typing import Any

import openai
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    convert_to_openai_messages,
)
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field

from skillhall._internal.agents.adapters.langchain import SkillsMiddleware
from skillhall._internal.agents.agent_skills import AgentSkills
from tests.support.framework_agents import KEY
from tests.support.model_server import ModelServer


class OpenAIChatModel(BaseChatModel):
    """A LangChain model on OpenAI's client, which avoids the langchain-openai package."""

    url: str
    tools: list[Any] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "wire"

    def bind_tools(self, tools: Any, **_: Any) -> Any:  # noqa: ANN401 - as in the base class
        return OpenAIChatModel(url=self.url, tools=[*map(convert_to_openai_tool, tools)])

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:  # noqa: ANN401
        with openai.OpenAI(base_url=f"{self.url}/v1", api_key=KEY) as client:
            sent: Any = convert_to_openai_messages(messages)
            tools: Any = self.tools or openai.omit
            reply = client.chat.completions.create(model="scripted", messages=sent, tools=tools)
        choice = reply.choices[0].message
        calls = [
            {"id": call.id, "name": call.function.name, "args": json.loads(call.function.arguments)}
            for call in choice.tool_calls or ()
            if call.type == "function"
        ]
        message = AIMessage(choice.content or "", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])


def ask(skills: AgentSkills, server: ModelServer, question: str) -> str:
    middleware = [SkillsMiddleware(skills)]
    agent = create_agent(OpenAIChatModel(url=server.url), middleware=middleware)
    result = agent.invoke({"messages": [HumanMessage(question)]})
    return str(result["messages"][-1].text)
