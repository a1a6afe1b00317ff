"""Recorded requests and responses, replayed to prove that interfaces stay compatible."""
