# Thin names for `python3 dev.py …`, which works where make does not exist.
# Arguments: make test ARGS="-k frontmatter"

PYTHON ?= python3
ARGS ?=

.PHONY: check test lint types layers golden bench fix

check: test

test lint types layers golden bench fix:
	$(PYTHON) dev.py $@ $(ARGS)
