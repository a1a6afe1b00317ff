"""Skills on web sites that publish an index of them."""
