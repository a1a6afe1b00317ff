"""Skills for agent frameworks: one module per framework, each with its own extra."""
