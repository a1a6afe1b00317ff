"""The static scan: risky content of skills, as findings that inform and never block."""
