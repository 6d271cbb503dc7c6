"""Keratin as the backend of Keras 2.3.1: KERAS_BACKEND=keratin.keras2.

All names of keratin.backend, with the configuration that Keras holds (floatx,
epsilon and the image data format are what keras.backend says) and what Keras
2.3.1 misses on a present-day Python. Keras reads the dictionary of this module,
so every name is a plain global; and it may import this module while it is
imported itself, so nothing here imports Keras.
"""

import sys as _sys

from keratin import _compat
from keratin import _keratin
from keratin.backend import *  # noqa: F403
from keratin.backend import (  # not in `import *`: they are functions of ours
    backend,
    clear_session,
    manual_variable_initialization,
)

_compat.install()
_keratin.follow_keras()


def _common():
    return _sys.modules.get("keras.backend.common")


def set_floatx(floatx):
    """Sets the default float type, in Keras where that is loaded."""
    (_common() or _keratin).set_floatx(floatx)


def set_epsilon(e):
    """Sets the fuzz factor, in Keras where that is loaded."""
    (_common() or _keratin).set_epsilon(e)


def set_image_data_format(data_format):
    """Sets the default data format, in Keras where that is loaded."""
    (_common() or _keratin).set_image_data_format(data_format)


def _complete(keras_backend):
    """Documented as public, but Keras takes them from its own backends only."""
    if not hasattr(keras_backend, "clear_session"):
        keras_backend.clear_session = clear_session
        keras_backend.manual_variable_initialization = manual_variable_initialization


def _infer_lambda_shapes(core):
    """Keras takes the shape of a Lambda's input for that of its output unless
    the backend is one that it knows to infer shapes."""
    keras_shape = core.Lambda.compute_output_shape

    def compute_output_shape(self, input_shape):
        if self._output_shape is not None or core.K.backend() != __name__:
            return keras_shape(self, input_shape)
        if isinstance(input_shape, list):
            inputs = [
                core.K.placeholder(shape=shape, dtype=dtype)
                for shape, dtype in zip(input_shape, self._input_dtypes)
            ]
        else:
            inputs = core.K.placeholder(shape=input_shape, dtype=self._input_dtypes)
        outputs = self.call(inputs)
        if isinstance(outputs, list):
            return [core.K.int_shape(output) for output in outputs]
        return core.K.int_shape(outputs)

    core.Lambda.compute_output_shape = compute_output_shape


_compat.after_import("keras.backend", _complete)
_compat.after_import("keras.layers.core", _infer_lambda_shapes)
for _name in ("imdb", "reuters"):  # reviews and newswires, each a list of words
    _compat.after_import("keras.datasets." + _name, _compat.allow_ragged_arrays)
