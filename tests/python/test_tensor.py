"""What Keras relies on of a tensor object."""

import gc
import weakref

import numpy as np
import pytest

from keratin import Tensor
from keratin import backend as K


@pytest.fixture
def x():
    return K.variable(np.arange(6.0).reshape(2, 3), name="x")


def test_is_hashed_and_compared_by_identity(x):
    y = K.variable(np.zeros((2, 3)))
    assert x == x and x != y and x in [y, x] and y not in [x]
    assert {x: 1, y: 2}[x] == 1


def test_keeps_attributes_on_the_same_object(x):
    x._keras_history = ("layer", 0, 0)
    same = K.cast(x, "float32")
    assert same is x and same._keras_history == ("layer", 0, 0)
    assert not hasattr(K.identity(x), "_keras_history")


def test_dies_with_its_last_reference(x):
    y = x + 1
    gone = weakref.ref(y)
    del y
    gc.collect()
    assert gone() is None


def test_tells_dtype_shape_rank_and_name(x):
    assert (x.dtype, x.shape, x.ndim) == ("float32", (2, 3), 2)
    assert x.name.startswith("x")
    y = K.placeholder((None, 3), dtype="int32")
    assert (y.dtype, y.shape, (y + 1).name) == ("int32", (None, 3), None)
    assert isinstance(x, Tensor) and K.is_tensor(x) and not K.is_tensor(1)


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: x + 1,
        lambda x: 1 - x,
        lambda x: 2.5 * x,
        lambda x: x / 4,
        lambda x: 1 / (x + 1),
        lambda x: x**2,
        lambda x: 2**x,
        lambda x: -x,
        lambda x: abs(x - 3),
        lambda x: x // 2,
        lambda x: x % 4,
        lambda x: x > 2,
        lambda x: 2 >= x,
        lambda x: np.float64(2) * x,
        lambda x: np.ones((2, 3)) - x,
        lambda x: np.array([1, 2, 3]) * x,
        lambda x: x + [1, 2, 3],
        lambda x: sum([x, x]),
        lambda x: x @ np.ones((3, 2), "float32"),
    ],
)
def test_computes_with_numbers_and_arrays_on_either_side(x, compute):
    expected = compute(np.arange(6, dtype="float32").reshape(2, 3))
    actual = K.eval(compute(x))
    np.testing.assert_allclose(actual, expected, rtol=1e-6)
    assert actual.dtype == ("bool" if expected.dtype == bool else "float32")


@pytest.mark.parametrize(
    "key",
    [
        0,
        -1,
        (1, 2),
        slice(None, None, -1),
        (slice(None), slice(None, None, -2)),
        (Ellipsis, 1),
        (None, slice(0, 1)),
        (slice(None), None, 1),
        np.int64(1),
    ],
)
def test_is_indexed_as_numpy_is(x, key):
    value = np.arange(6, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(K.eval(x[key]), value[key])


def test_is_indexed_by_tensors(x):
    index = K.constant([2, 0], dtype="int32")
    value = np.arange(6, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(K.eval(x[:, index]), value[:, [2, 0]])


@pytest.mark.parametrize("use", [bool, iter, len, list, lambda x: 1 in x, np.asarray])
def test_has_no_truth_length_or_elements(x, use):
    with pytest.raises(TypeError):
        use(x)


def test_lists_of_tensors_are_stacked(x):
    shape = K.shape(x)
    assert K.eval(K.prod([shape[0], shape[1]])) == 6
    np.testing.assert_array_equal(K.eval(K.stack([shape[0], 5])), [2, 5])


def test_knows_that_it_depends_on_the_learning_phase(x):
    y = K.in_train_phase(x, x * 2) + 1
    assert y._uses_learning_phase and not x._uses_learning_phase
    assert not hasattr(x + 1, "_uses_learning_phase")
    x._uses_learning_phase = True
    assert x._uses_learning_phase
