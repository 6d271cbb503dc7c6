"""Virtual environments for tests, made once in the build tree."""

import fcntl
import hashlib
import subprocess
import sys


def environment(folder, requirements):
    """The interpreter of a virtual environment with the packages of a file."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    stamp = folder / "requirements.sha256"
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()
    python = folder / "bin" / "python"
    # Two tests may want it at the same time.
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (stamp.exists() and stamp.read_text() == digest):
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
            subprocess.run(
                [python, "-m", "pip", "install", "--quiet"]
                + ["--disable-pip-version-check", "--requirement", requirements],
                check=True,
            )
            stamp.write_text(digest)
    return python
