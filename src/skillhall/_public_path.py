"""Public module paths for the public names."""

from __future__ import annotations

import sys


def show_public_path(module: str) -> None:
    """Set `__module__` of the names in a public module to the path of that module.

    Tracebacks, `repr` and pickles then have the path that programs import.
    """
    for name in sys.modules[module].__all__:
        value = getattr(sys.modules[module], name)
        if "._internal." in value.__module__:
            value.__module__ = module
