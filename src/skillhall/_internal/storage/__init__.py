"""Data kept between runs: contents by digest, history, usage log, tokens, database."""
