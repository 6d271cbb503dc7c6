"""A mistake is a ValueError or TypeError that names the function and the facts."""

import numpy as np
import pytest

from keratin import backend as K


NAN = float("nan")
OBJECTS = np.array([1, "a", None], dtype=object)


def matrix():
    return K.placeholder((2, 3))


def image():
    return K.placeholder((1, 8, 8, 3))


def twice():
    x = matrix()
    return K.function([x], [x * 2])


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
        # Composites name themselves, not what they are made of.
        (lambda: K.batch_dot(None, matrix()), ["batch_dot", "x", "None"]),
        (lambda: K.clip(None, 0, 1), ["clip", "x", "None"]),
        (lambda: K.flatten(None), ["flatten", "None"]),
        (lambda: K.cumsum(matrix(), axis=5), ["cumsum", "axis 5", "2 axes"]),
        (lambda: K.var(matrix(), axis=9), ["var", "axis 9", "2 axes"]),
        (lambda: K.l2_normalize(matrix(), axis=8), ["l2_normalize", "axis 8"]),
        (lambda: K.logsumexp(K.placeholder((2,), dtype="int32")), ["logsumexp", "int32"]),
        (lambda: K.stack([matrix()], axis=9), ["stack", "axis 9"]),
        (lambda: K.one_hot(K.placeholder((2,), dtype="int32"), -2),
         ["one_hot", "num_classes", "-2"]),
        (lambda: K.spatial_2d_padding(matrix()), ["spatial", "(2, 3)"]),
        (lambda: K.resize_images(image(), -1, 2, "channels_last"), ["resize_images", "-1"]),
        (lambda: K.resize_images(image(), 2, 2, "channels_last", "cubic"),
         ["resize_images", "cubic", "bilinear"]),
        (lambda: K.separable_conv2d(image(), K.placeholder((3, 3, 3, 2)),
                                    K.placeholder((1, 1, 7, 4))),
         ["separable_conv2d", "6", "7"]),
        (lambda: K.foldl(None, matrix()), ["foldl", "fn"]),
        (lambda: K.foldr(lambda a, b: "x", matrix()), ["foldr", "'x'"]),
        (lambda: K.update_add(3, 4), ["update_add", "a number", "variable"]),
        (lambda: K.update(matrix(), 1), ["update", "(2, 3)", "variable"]),
        (lambda: K.moving_average_update(K.variable([1.0, 2.0]), K.placeholder((9,)), 0.9),
         ["moving_average_update", "(2,)", "(9,)"]),
        (lambda: K.batch_set_value([K.variable([1.0])]), ["batch_set_value", "pairs"]),
        (lambda: K.function(None, [matrix()]), ["function", "inputs", "None"]),
        (lambda: K.function([matrix()], "x"), ["function", "outputs", "'x'"]),
        (lambda: K.eye(-1), ["eye", "-1"]),
        (lambda: K.eye("3"), ["eye", "'3'"]),
        (lambda: K.cast_to_floatx(object()), ["cast_to_floatx", "object"]),
        # Numbers that are none of the kind, or too large for any.
        (lambda: K.expand_dims(matrix(), 10**30), ["expand_dims", "axis", "2^63"]),
        (lambda: K.sum(matrix(), axis=NAN), ["sum", "axis", "nan"]),
        (lambda: K.sum(matrix(), axis=[0, 0]), ["sum", "axis 0", "twice"]),
        (lambda: K.reshape(matrix(), (NAN, 2)), ["reshape", "shape", "nan"]),
        (lambda: K.reshape(matrix(), (-1, -1)), ["reshape", "2 unknown"]),
        (lambda: K.reshape(matrix(), OBJECTS), ["reshape", "shape", "'a'"]),
        (lambda: K.arange(0, float("inf")), ["arange", "stop", "inf"]),
        (lambda: K.dropout(matrix(), NAN), ["dropout", "level", "nan"]),
        (lambda: K.dropout(matrix(), 1.5), ["dropout", "level", "1.5"]),
        (lambda: K.random_normal((10**30,)), ["random_normal", "2^63"]),
        (lambda: K.random_normal((2,), seed=NAN), ["random_normal", "seed", "nan"]),
        (lambda: matrix()[1.5], ["getitem", "float"]),
        (lambda: matrix()[10**30], ["getitem", "2^63"]),
        (lambda: matrix()[::0], ["getitem", "step", "0"]),
        (lambda: matrix()[np.array([True, False])], ["getitem", "integer"]),
        # What is no tensor, and arrays of objects.
        (lambda: K.variable(OBJECTS), ["variable", "object"]),
        (lambda: K.variable(None), ["variable", "object"]),
        (lambda: K.set_value(K.variable([1.0]), OBJECTS), ["set_value", "object"]),
        (lambda: K.maximum(matrix(), "x"), ["maximum", "y", "'x'"]),
        (lambda: K.equal(matrix(), OBJECTS), ["equal", "y", "object"]),
        (lambda: matrix() * OBJECTS, ["multiply", "object"]),
        (lambda: matrix() + "x", ["+", "str"]),
        (lambda: list(matrix()), ["iterated"]),
        (lambda: bool(matrix()), ["truth"]),
        (lambda: len(matrix()), ["length"]),
        (lambda: K.placeholder((2.5,)), ["placeholder", "shape", "2.5"]),
        (lambda: K.placeholder("abc"), ["placeholder", "shape", "'abc'"]),
        (lambda: K.placeholder((1,), name=[]), ["placeholder", "name"]),
        (lambda: K.print_tensor(matrix(), message=5), ["print_tensor", "message", "5"]),
        (lambda: K.name_scope(3).__enter__(), ["name_scope", "name", "3"]),
        (lambda: twice().configure(threads=-1), ["configure", "threads", "-1"]),
        (lambda: twice().configure(threads="many"), ["configure", "threads", "'many'"]),
        (lambda: twice().configure(bogus=1), ["configure", "bogus"]),
        (lambda: twice().lower("nothing"), ["nothing", "graph"]),
        (lambda: twice().save("/nonexistent/folder/x"), ["/nonexistent/folder/x"]),
        (lambda: twice()([]), ["takes 1", "0 are given"]),
        (lambda: twice()([np.zeros((3, 3))]), ["(3, 3)", "(2, 3)"]),
        (lambda: twice()([OBJECTS]), ["input", "object"]),
        (lambda: twice()([None]), ["input", "object"]),
        (lambda: twice()([np.zeros((2, 3), complex)]), ["input", "complex128"]),
        (lambda: twice()([np.zeros((2, 3), "datetime64[s]")]), ["input", "datetime64"]),
        (lambda: twice()(3), ["list of its inputs"]),
    ],
)
def test_mistake(call, words):
    with pytest.raises((ValueError, TypeError)) as raised:
        call()
    for word in words:
        assert word in str(raised.value)
