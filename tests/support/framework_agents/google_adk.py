"""An agent on Google's Agent Development Kit."""

import asyncio
import warnings

from google import genai
from google.adk.agents import LlmAgent
from google.adk.models.google_llm import Gemini
from google.adk.runners import InMemoryRunner
from google.genai import types

from skillhall._internal.agents.adapters.google_adk import SkillsToolset
from skillhall._internal.agents.agent_skills import AgentSkills
from tests.support.framework_agents import KEY
from tests.support.model_server import ModelServer


def ask(skills: AgentSkills, server: ModelServer, question: str) -> str:
    async def ask() -> str:
        client = genai.Client(api_key=KEY, http_options={"base_url": server.url})
        model = Gemini(model="gemini-scripted", client=client)
        agent = LlmAgent(name="a", model=model, tools=[SkillsToolset(skills)])
        runner = InMemoryRunner(agent, app_name="t")
        session = await runner.session_service.create_session(app_name="t", user_id="u")
        message = types.Content(role="user", parts=[types.Part(text=question)])
        reply = ""
        async for event in runner.run_async(
            user_id="u", session_id=session.id, new_message=message
        ):
            if event.is_final_response() and event.content and event.content.parts:
                reply = event.content.parts[0].text or ""
        await runner.close()
        await client.aio.aclose()
        client.close()
        return reply

    with warnings.catch_warnings():
        # Google's client subclasses a class of aiohttp, which comes with other frameworks.
        warnings.filterwarnings("ignore", "Inheritance class", DeprecationWarning)
        return asyncio.run(ask())
