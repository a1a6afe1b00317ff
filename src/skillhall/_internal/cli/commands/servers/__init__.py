"""Commands that run and use servers."""
