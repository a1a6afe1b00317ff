"""Write the recordings again: `python -m tests.compatibility.record [SURFACE…]`.

The database and the backup of an earlier version are written only if they are missing.
"""

import sys
import tempfile
from pathlib import Path

from tests.compatibility import database
from tests.compatibility.recorder import RECORDINGS, SURFACES, save
from tests.compatibility.world import World


def main(names: list[str]) -> None:
    """Record the named surfaces, or all of them."""
    RECORDINGS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if not (RECORDINGS / database.SQL).exists():
            database.write_old(World(folder / "first"), World(folder / "second"), RECORDINGS)
        for name in names or SURFACES:
            for recording, document in SURFACES[name](folder / name).items():
                save(recording, document)
                sys.stdout.write(f"{recording}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
