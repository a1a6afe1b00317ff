"""Skills in stores with the S3 API."""
