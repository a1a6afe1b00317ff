"""The cellar: what is kept between runs. File contents by digest, and a history of changes."""
