"""Language server for SKILL.md files, by stdio."""
