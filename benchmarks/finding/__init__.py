"""Whether the right skill is found: an evaluation set, baselines and costs."""
