"""The doors: each surface reads its caller's words, calls a service and words the report."""
