"""Trust on a server: revocations that it publishes, and inventories that it receives."""
