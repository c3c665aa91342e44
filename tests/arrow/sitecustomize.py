"""Makes `pyarrow.cuda` pygpu's module, in the tests and in the processes that they start.

Python imports this file at start-up, because its folder is on `PYTHONPATH`.
"""

import sys

import pyarrow

from pygpu import arrow

sys.modules["pyarrow.cuda"] = pyarrow.cuda = arrow
