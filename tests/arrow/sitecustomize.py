"""Makes `pyarrow.cuda` the module of pygpu, in the tests and in the processes that they start.

Python imports this file when it starts, because its folder is on `PYTHONPATH`.
"""

import sys

import pyarrow

from pygpu import arrow

sys.modules["pyarrow.cuda"] = pyarrow.cuda = arrow
