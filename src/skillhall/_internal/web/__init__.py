"""Web pages: handlers build a page dataclass, and a template renders it."""
