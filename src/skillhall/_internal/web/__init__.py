"""Web pages: each visit becomes one dataclass, and one template makes a page of it."""
