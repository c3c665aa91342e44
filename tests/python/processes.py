"""Programs run in processes of their own, with a time limit."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

LIMIT = 120


def run_python(
    code: str, *arguments: str, check: bool = True, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs `code`; asserts, with `check`, that it ended well and wrote nothing to stderr."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        env=os.environ | environment,
        check=False,
    )
    if check:
        assert (done.returncode, done.stderr) == (0, ""), done.stderr[-3000:]
    return done
