"""Benchmarks of Skillhall: generated trees, interleaved rounds, ratios; never installed."""
