"""Runs a program with its kernels compiled for a debugger: ``python -m pycuda.debug SCRIPT``."""

import sys
from optparse import OptionParser
from pathlib import Path

from . import driver

driver.set_debugging()

parser = OptionParser(usage="usage: %prog [options] SCRIPT-TO-RUN [SCRIPT-ARGUMENTS]")
parser.disable_interspersed_args()
options, args = parser.parse_args()

if not args:
    parser.print_help()
    sys.exit(2)

mainpyfile = args[0]

if not Path(mainpyfile).is_file():
    print("Error:", mainpyfile, "does not exist")
    sys.exit(1)

sys.argv = args
exec(compile(Path(mainpyfile).read_bytes(), mainpyfile, "exec"))
