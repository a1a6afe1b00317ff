"""Trust: policies, risk levels, revocations, and the decision about one skill."""
