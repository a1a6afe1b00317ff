"""Decisions as data: what to scan, the effect of a finding, which duplicate wins."""
