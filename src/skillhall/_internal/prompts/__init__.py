"""The counter: the verbs on prompts and skills that a server hands out."""
