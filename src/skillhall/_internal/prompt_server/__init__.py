"""Prompt server: prompts and skills of configured, followed and uploaded sources."""
