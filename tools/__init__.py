"""Programs of the project: the documentation site and releases. Never shipped."""
