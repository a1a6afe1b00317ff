"""Skills in OCI images and artifacts."""
