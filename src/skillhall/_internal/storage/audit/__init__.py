"""Audit log: hash chain, sealing thread, queries, and journals for files."""
