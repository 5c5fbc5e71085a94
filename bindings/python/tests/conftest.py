from __future__ import annotations

import signal

# A shell that runs the tests in the background has them ignore SIGINT, and their programs would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
