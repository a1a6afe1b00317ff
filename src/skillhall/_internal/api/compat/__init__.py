"""Functions of the designs behind Skillhall, implemented with its core."""
