"""REST: each route reads a request, calls a service and words the report."""
