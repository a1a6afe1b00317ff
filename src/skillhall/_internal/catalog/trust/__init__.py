"""Trust: the gates that clear skills for models, and the hashes they compare."""
