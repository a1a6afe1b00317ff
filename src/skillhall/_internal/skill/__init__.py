"""The format: what a skill's bytes say. Pure; nothing here touches a disk, a network or a clock."""
