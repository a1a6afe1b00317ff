"""Benchmarks of Skillhall against baselines. Not part of the installed package."""
