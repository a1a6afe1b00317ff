"""The version, alone in its module: `skillhall --version` reads nothing else."""

VERSION = "0.1.0"
