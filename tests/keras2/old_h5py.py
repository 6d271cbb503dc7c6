"""h5py 2.10, the last version that Keras 2.3.1 was made for.

PyPI has no wheel of it for Python 3.8 or later, and its source does not build with
the present-day Cython and setuptools. With those of its time it does, against the
HDF5 that is installed with its headers (Debian: libhdf5-dev).
"""

import os
import subprocess
import sys

VERSION = "2.10.0"
TOOLS = ["setuptools<60", "wheel", "cython<3", "pkgconfig"]


def _hdf5():
    """The folder above HDF5's include/ and lib/, or None where it is not found."""
    if "HDF5_DIR" in os.environ:
        return os.environ["HDF5_DIR"]
    # Debian keeps several builds beside each other.
    machine = f"{os.uname().machine}-linux-gnu"
    folder = f"/usr/lib/{machine}/hdf5/serial"
    return folder if os.path.exists(f"{folder}/include/hdf5.h") else None


def _wheel(folder, numpy):
    """The wheel in `folder`, built where it is not there yet. Takes minutes."""
    for wheel in folder.glob("h5py-*.whl"):
        return wheel
    folder.mkdir(parents=True, exist_ok=True)
    python = folder / "tools" / "bin" / "python"
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder / "tools"], check=True)
    variables = dict(os.environ)
    if _hdf5():
        variables["HDF5_DIR"] = _hdf5()
    with open(folder / "log.txt", "w") as log:
        for arguments in (
            ["install"] + TOOLS + [f"numpy=={numpy}"],
            ["wheel", "--no-build-isolation", "--no-deps", "--no-binary", "h5py"]
            + [f"h5py=={VERSION}", "--wheel-dir", folder],
        ):
            subprocess.run(
                pip + arguments, env=variables, stdout=log, stderr=log, check=True
            )
    return next(folder.glob("h5py-*.whl"))


def install(python, folder):
    """Puts it into the environment of `python`; says so where it cannot."""
    ask = "import h5py, numpy; print(h5py.__version__, numpy.__version__)"
    found = subprocess.run(
        [python, "-c", ask], capture_output=True, text=True, check=True
    ).stdout.split()
    if found[0] == VERSION:
        return
    try:
        print(f"building h5py {VERSION} in {folder}", flush=True)
        wheel = _wheel(folder, found[1])
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", "--no-deps"]
            + ["--disable-pip-version-check", wheel],
            check=True,
        )
    except subprocess.CalledProcessError:
        print(
            f"h5py {VERSION} does not build here (libhdf5-dev and a C compiler are "
            f"needed; {folder / 'log.txt'}): {found[0]} stays"
        )
