"""YAML readers for frontmatter."""
