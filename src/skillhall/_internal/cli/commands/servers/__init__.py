"""Run and use servers."""
