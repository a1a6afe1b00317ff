"""Comparison of the portability rules with the programs that they describe."""
