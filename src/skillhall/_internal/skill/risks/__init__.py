"""Static scan for risky content. Its findings inform and never reject a skill."""
