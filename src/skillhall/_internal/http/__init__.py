"""What every surface that speaks HTTP stands on: requests, answers, logs, metrics."""
