"""Skill pages."""
