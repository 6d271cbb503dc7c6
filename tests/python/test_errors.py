"""A mistake is a ValueError or TypeError that names the function and the facts."""

import numpy as np
import pytest

from keratin import backend as K


def matrix():
    return K.placeholder((2, 3))


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: K.dot(matrix(), K.placeholder((4, 5))), ["dot", "(2, 3)", "(4, 5)"]),
        (lambda: matrix() + K.placeholder((4, 5)), ["add", "3", "5"]),
        (lambda: K.sum(matrix(), axis=2), ["sum", "axis 2", "2 axes"]),
        (lambda: K.sum(matrix(), axis="a"), ["sum", "axis", "'a'"]),
        (lambda: K.sum("text"), ["sum", "x", "'text'"]),
        (lambda: K.sum(None), ["sum", "x", "None"]),
        (lambda: K.sum(object()), ["sum", "x", "object"]),
        (lambda: K.reshape(matrix(), (4, 4)), ["reshape", "6", "(4, 4)"]),
        (lambda: K.reshape(matrix(), (2, "b")), ["reshape", "shape", "'b'"]),
        (lambda: K.permute_dimensions(matrix(), (0, 0)), ["permute_dimensions", "0"]),
        (lambda: K.concatenate([matrix(), K.placeholder((4, 5))]), ["concatenate"]),
        (lambda: K.concatenate(3), ["concatenate", "tensors", "3"]),
        (lambda: K.conv2d(K.placeholder((1, 8, 8, 3)), K.placeholder((3, 3, 4, 8))),
         ["conv2d", "3", "4"]),
        (lambda: K.conv2d(K.placeholder((1, 2, 2, 3)), K.placeholder((3, 3, 3, 8))),
         ["conv2d", "2", "3"]),
        (lambda: K.pool2d(K.placeholder((1, 8, 8, 3)), (2, 2), pool_mode="mean"),
         ["pool", "mean"]),
        (lambda: K.conv2d(K.placeholder((1, 8, 8, 3)), K.placeholder((3, 3, 3, 8)),
                          padding="around"), ["around"]),
        (lambda: K.bias_add(K.placeholder((1, 8, 3)), K.placeholder((4,))),
         ["bias_add", "4", "3"]),
        (lambda: K.placeholder((2, -3)), ["-3"]),
        (lambda: K.placeholder(ndim=-1), ["placeholder", "ndim", "-1"]),
        (lambda: K.variable([1.0], dtype="complex64"), ["complex64"]),
        (lambda: K.variable("text"), ["variable", "value"]),
        (lambda: K.variable([[1], [2, 3]]), ["variable"]),
        (lambda: K.cast(matrix(), "nothing"), ["nothing"]),
        (lambda: K.constant([1, 2, 3], dtype="int32") + 1.5, ["1.5", "int32"]),
        (lambda: K.set_value(K.variable([1.0]), [1.0, 2.0]), ["(1,)", "(2,)"]),
        (lambda: K.set_value(matrix(), 1), ["set_value"]),
        (lambda: K.set_learning_phase(2), ["2", "0 or 1"]),
        (lambda: K.set_floatx("int32"), ["floatx", "int32"]),
        (lambda: K.set_image_data_format("middle"), ["middle", "channels_last"]),
        (lambda: K.eval(3.0), ["eval"]),
        (lambda: K.gather(matrix(), "rows"), ["gather", "indices"]),
        (lambda: K.one_hot(K.placeholder((2,), dtype="int32"), "five"), ["one_hot"]),
        (lambda: K.batch_dot(matrix(), K.placeholder((4, 3))), ["batch_dot"]),
        (lambda: K.switch(matrix(), K.placeholder(()), K.placeholder(())), ["switch"]),
        (lambda: K.rnn(3, matrix(), []), ["rnn", "step_function"]),
        (lambda: K.rnn(lambda x, s: x, K.placeholder((2, 3, 4)), []), ["rnn"]),
        (lambda: matrix()["a"], ["index"]),
        (lambda: matrix()[5], ["5"]),
        (lambda: matrix()[0, 0, 0], ["getitem"]),
        (lambda: K.gradients(3, [matrix()])[0] + 1, []),
        (lambda: K.repeat_elements(matrix(), -1, 0), ["-1"]),
        (lambda: K.tile(matrix(), (1, -2)), ["-2"]),
        (lambda: K.arange(0, 5, 0), ["arange", "step"]),
        (lambda: K.zeros((10**10, 10**10)), ["2^6"]),
        (lambda: K.variable(np.zeros((1,) * 20)), ["20 axes"]),
    ],
)
def test_mistake(call, words):
    with pytest.raises((ValueError, TypeError)) as raised:
        call()
    for word in words:
        assert word in str(raised.value)
