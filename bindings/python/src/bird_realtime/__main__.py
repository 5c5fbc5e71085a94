"""`python -m bird_realtime` is the command `bird-realtime`."""

import sys

from .cli import main

sys.exit(main())
