"""Markdown of a SKILL.md body: links to files, and headings."""
