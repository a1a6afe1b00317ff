"""Persistent data: contents by digest, history, usage log, tokens, database."""
