"""Skills for LLM agents: system prompt, tools, chat and framework adapters."""
