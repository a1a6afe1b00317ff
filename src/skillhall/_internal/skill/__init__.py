"""The SKILL.md format. Pure: no disk, network, process, clock or log."""
