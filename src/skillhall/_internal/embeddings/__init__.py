"""Optional embeddings for search: models, stored vectors and ranking by meaning.

Nothing here runs unless an embedding model is configured.
"""
