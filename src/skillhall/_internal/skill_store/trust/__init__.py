"""Trust on a server: published revocations, and inventories of machines."""
