"""pytest -p keratin_plugin: the unmodified tests of Keras 2.3.1 on Keratin.

tests/keras/backend/backend_test.py compares keras.backend.tensorflow_backend
with its NumPy reference for any backend that it does not know, so that name
stands for Keratin here. `theano_backend` is another module with the same
contents: being equal to it makes the tests flip kernels.
"""

import json
import os
import pathlib
import sys
import types

import keratin.backend
import keratin.keras2

import keras.backend
import pytest


@pytest.fixture(autouse=True)
def _clear_session():
    """What tests/conftest.py does for the backends that it knows.

    One test sets the learning phase for good.
    """
    yield
    keras.backend.clear_session()


def pytest_sessionfinish(session):
    """Leaves for run.py how often compiled code was found."""
    folder = os.environ.get("KERATIN_TEST_STATISTICS")
    if folder:
        file = pathlib.Path(folder) / f"{os.getpid()}.json"
        file.write_text(json.dumps(keratin.backend.compile_cache_statistics()))


def _resize_images(x, height_factor, width_factor, data_format, interpolation="nearest"):
    # The tests want Theano's refusal.
    if interpolation == "bilinear" and (height_factor, width_factor) != (2, 2):
        raise NotImplementedError("Theano resizes bilinearly by 2 only")
    return keratin.keras2.resize_images(
        x, height_factor, width_factor, data_format, interpolation
    )


def _alias(name, module):
    sys.modules["keras.backend." + name] = module
    setattr(keras.backend, name, module)


_theano = types.ModuleType("keras.backend.theano_backend")
_theano.__dict__.update(
    {
        name: value
        for name, value in vars(keratin.keras2).items()
        if not name.startswith("__")
    },
    resize_images=_resize_images,
)
_alias("tensorflow_backend", keratin.keras2)
_alias("theano_backend", _theano)

if os.environ.get("KERATIN_AS_TENSORFLOW"):
    # Tests that are skipped for backends other than TensorFlow are collected
    # too; they run under the real name. Some import TensorFlow and only ask it for
    # its version.
    sys.modules["tensorflow"] = types.ModuleType("tensorflow")
    sys.modules["tensorflow"].__version__ = "1.15.0"
    keratin.keras2._is_tf_1 = lambda: False  # no sessions
    keratin.keras2._get_available_gpus = lambda: []
    _name = keras.backend.backend
    keras.backend.backend = lambda: "tensorflow"

    def pytest_collection_finish(session):
        keras.backend.backend = _name
