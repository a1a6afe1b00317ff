"""The audit log: its hash chain, the thread that seals it, queries, and journals for files."""
