"""Sets the wall clock of a Python process wrong by WRONG_CLOCK_S seconds: imported at start from PYTHONPATH.

Not libfaketime, which breaks `time.sleep` in Python: it takes deadlines of the monotonic clock for wall time.
"""

import os
import time

_wall, _wall_ns, _offset_s = time.time, time.time_ns, float(os.environ.get("WRONG_CLOCK_S", "0"))
if _offset_s:
    time.time = lambda: _wall() + _offset_s
    time.time_ns = lambda: _wall_ns() + int(_offset_s * 1e9)
