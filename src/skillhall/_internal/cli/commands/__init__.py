"""One module per command: its words, its help, and how its answer is shown."""
