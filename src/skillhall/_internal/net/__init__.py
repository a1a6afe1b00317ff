"""Safe outgoing HTTP."""
