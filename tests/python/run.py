"""Runs the tests of the Python package.

    run.py BUILD RESULTS [PYTEST_ARGUMENT…]

BUILD/python holds the package; RESULTS is the JUnit report to write.
"""

import os
import pathlib
import subprocess
import sys

from environment import environment

here = pathlib.Path(__file__).resolve().parent
build, results = map(pathlib.Path, sys.argv[1:3])
python = environment(
    build.resolve() / "keras2" / "pinned", here.parent / "keras2" / "pinned.txt"
)
sys.exit(
    subprocess.run(
        [python, "-m", "pytest", here, "-q", "-p", "no:cacheprovider"]
        + [f"--junitxml={results}", "--timeout=600", *sys.argv[3:]],
        env=dict(
            os.environ,
            PYTHONPATH=str(build.resolve() / "python"),
            PYTHONDONTWRITEBYTECODE="1",
        ),
    ).returncode
)
