"""REST API: routes, request and response models, handlers."""
