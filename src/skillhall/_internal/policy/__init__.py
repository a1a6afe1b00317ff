"""The decisions: what to scan, what a finding means, which of two equal names wins. Pure data."""
