"""Adapters: an agent's skills for one framework each, which only its own module imports."""
