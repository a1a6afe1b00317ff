"""Versions of skills: reviews, pinned versions and differences."""
