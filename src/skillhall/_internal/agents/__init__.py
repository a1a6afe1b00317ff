"""The readers: what an agent is given of skills – instructions, functions, a tool, a sandbox."""
