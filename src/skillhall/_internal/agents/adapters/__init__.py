"""Framework adapters. Only the adapter's own module imports its framework."""
