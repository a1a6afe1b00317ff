"""`python -m skillhall` is the command line."""

import sys

from skillhall.surfaces.cli.entry import main

sys.exit(main())
