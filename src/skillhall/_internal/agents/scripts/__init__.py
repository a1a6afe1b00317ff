"""Scripts of skills: bounded processes, sandboxes, and the tool that a program can add."""
