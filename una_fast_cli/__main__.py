"""`python -m una_fast_cli`: the same as `una-fast`."""

import sys

from una_fast_cli.main import main

sys.exit(main())
