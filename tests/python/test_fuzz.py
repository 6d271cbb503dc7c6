"""Random calls of the API against NumPy: no abort, no wrong shape, no wrong value.

One call is one function with random shapes, dtypes, axes and other arguments.
Where NumPy refuses them the API must too, with ValueError or TypeError; else
shape and dtype class must be NumPy's when the tensor is made, and the values
when functions of some of these tensors are called.
"""

import os

import numpy as np
import pytest

from keratin import backend as K

CALLS = int(os.environ.get("KERATIN_FUZZ_CALLS", 10000))
AT_ONCE = 40

UNARY = {
    "abs": np.abs,
    "square": np.square,
    "sign": np.sign,
    "exp": np.exp,
    "tanh": np.tanh,
    "round": np.round,
    "sin": np.sin,
    "cos": np.cos,
    "transpose": np.transpose,
    "flatten": np.ravel,
}
BINARY = {
    "maximum": np.maximum,
    "minimum": np.minimum,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "greater": np.greater,
    "less_equal": np.less_equal,
}
REDUCTIONS = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min,
              "mean": np.mean, "var": np.var, "std": np.std}


class Case:
    """A call: what it is, NumPy's result or None, and the API's tensor or None."""

    def __init__(self, text, reference, build):
        self.text, self.expected, self.tensor, self.error = text, None, None, None
        try:
            self.expected = np.asarray(reference())
        except (ValueError, TypeError, IndexError, np.exceptions.AxisError
                if hasattr(np, "exceptions") else np.AxisError):
            pass
        try:
            self.tensor = build()
        except (ValueError, TypeError) as error:
            self.error = error

    def disagreement(self):
        """What is wrong before anything is computed; None when nothing is."""
        if self.expected is None:
            return None if self.tensor is None else "accepted, but NumPy refuses"
        if self.tensor is None:
            return f"NumPy gives {self.expected.shape}, but {self.error}"
        shape = K.int_shape(self.tensor)
        if shape != self.expected.shape:
            return f"has shape {shape}, in NumPy {self.expected.shape}"
        return None

    def wrong_value(self, value):
        value = np.asarray(value)
        if value.shape != self.expected.shape:
            return f"computed shape {value.shape}, in NumPy {self.expected.shape}"
        close = np.allclose(
            value.astype("float64"), self.expected.astype("float64"),
            rtol=1e-4, atol=1e-5, equal_nan=True,
        )
        return None if close else f"gives {value}, in NumPy {self.expected}"


def random_shape(rng, rank=None):
    rank = rng.integers(0, 5) if rank is None else rank
    return tuple(int(n) for n in rng.integers(1, 5, rank))


def random_array(rng, shape, dtype="float32"):
    if dtype == "float32":
        return rng.uniform(-2, 2, shape).astype(dtype)
    return rng.integers(-3, 4, shape).astype(dtype)


def random_axis(rng, rank):
    # One in a while is not there.
    choice = rng.integers(0, 4)
    if choice == 0:
        return None
    if choice == 1 and rank > 1:
        return [int(a) for a in rng.choice(rank, 2, replace=False)]
    return int(rng.integers(-rank - 1, rank + 1))


def unary(rng):
    name = rng.choice(list(UNARY))
    x = random_array(rng, random_shape(rng))
    return Case(f"{name}{x.shape}", lambda: UNARY[name](x),
                lambda: getattr(K, name)(K.variable(x)))


def binary(rng):
    name = rng.choice(list(BINARY))
    shape = random_shape(rng)
    other = tuple(1 if rng.random() < 0.3 else n for n in shape)[rng.integers(0, 2):]
    if rng.random() < 0.1:
        other = random_shape(rng)
    dtype = rng.choice(["float32", "int32"])
    x, y = random_array(rng, shape, dtype), random_array(rng, other, dtype)
    return Case(f"{name}{x.shape}{y.shape} {dtype}", lambda: BINARY[name](x, y),
                lambda: getattr(K, name)(K.variable(x, dtype), K.variable(y, dtype)))


def arithmetic(rng):
    operator = rng.choice(["+", "-", "*"])
    dtype = rng.choice(["float32", "int32", "int64"])
    x = random_array(rng, random_shape(rng), dtype)
    number = int(rng.integers(-3, 4))
    text = f"x {operator} n" if rng.random() < 0.5 else f"n {operator} x"
    return Case(f"{text} {x.shape} {dtype}",
                lambda: eval(text, {"x": x, "n": number}),
                lambda: eval(text, {"x": K.variable(x, dtype), "n": number}))


def reduction(rng):
    name = rng.choice(list(REDUCTIONS))
    x = random_array(rng, random_shape(rng, rng.integers(1, 5)))
    axis, keepdims = random_axis(rng, x.ndim), bool(rng.integers(0, 2))
    axes = tuple(axis) if isinstance(axis, list) else axis
    return Case(f"{name}{x.shape} axis={axis} keepdims={keepdims}",
                lambda: REDUCTIONS[name](x, axis=axes, keepdims=keepdims),
                lambda: getattr(K, name)(K.variable(x), axis=axis, keepdims=keepdims))


def arg(rng):
    name = rng.choice(["argmax", "argmin"])
    x = random_array(rng, random_shape(rng, rng.integers(1, 4)))
    axis = int(rng.integers(-x.ndim - 1, x.ndim + 1))
    return Case(f"{name}{x.shape} axis={axis}", lambda: getattr(np, name)(x, axis),
                lambda: getattr(K, name)(K.variable(x), axis))


def scan(rng):
    name = rng.choice(["cumsum", "cumprod"])
    x = random_array(rng, random_shape(rng, rng.integers(1, 4)))
    axis = int(rng.integers(-x.ndim - 1, x.ndim + 1))
    return Case(f"{name}{x.shape} axis={axis}", lambda: getattr(np, name)(x, axis),
                lambda: getattr(K, name)(K.variable(x), axis))


def reshape(rng):
    x = random_array(rng, random_shape(rng))
    shape = list(x.shape)
    rng.shuffle(shape)
    if rng.random() < 0.5:
        shape = [-1] + shape[1:] if shape else [-1]
    if rng.random() < 0.15:
        shape = list(random_shape(rng))
    return Case(f"reshape{x.shape} {shape}", lambda: np.reshape(x, shape),
                lambda: K.reshape(K.variable(x), shape))


def permute(rng):
    x = random_array(rng, random_shape(rng))
    pattern = [int(a) for a in rng.permutation(x.ndim)]
    if pattern and rng.random() < 0.1:
        pattern[0] = int(rng.integers(0, x.ndim + 1))
    return Case(f"permute{x.shape} {pattern}", lambda: np.transpose(x, pattern),
                lambda: K.permute_dimensions(K.variable(x), pattern))


def expand(rng):
    x = random_array(rng, random_shape(rng))
    axis = int(rng.integers(-x.ndim - 2, x.ndim + 2))
    return Case(f"expand_dims{x.shape} {axis}", lambda: np.expand_dims(x, axis),
                lambda: K.expand_dims(K.variable(x), axis))


def squeeze(rng):
    x = random_array(rng, random_shape(rng, rng.integers(1, 5)))
    axis = int(rng.integers(-x.ndim - 1, x.ndim + 1))
    return Case(f"squeeze{x.shape} {axis}", lambda: np.squeeze(x, axis),
                lambda: K.squeeze(K.variable(x), axis))


def concatenate(rng):
    shape = random_shape(rng, rng.integers(1, 4))
    axis = int(rng.integers(-len(shape) - 1, len(shape) + 1))
    parts = []
    for _ in range(rng.integers(1, 4)):
        part = list(shape)
        if -len(shape) <= axis < len(shape):
            part[axis] = int(rng.integers(1, 4))
        if rng.random() < 0.05:
            part[0] += 1
        parts.append(random_array(rng, part))
    return Case(f"concatenate{[p.shape for p in parts]} {axis}",
                lambda: np.concatenate(parts, axis),
                lambda: K.concatenate([K.variable(p) for p in parts], axis))


def stack(rng):
    shape = random_shape(rng, rng.integers(0, 4))
    parts = [random_array(rng, shape) for _ in range(rng.integers(1, 4))]
    axis = int(rng.integers(-len(shape) - 2, len(shape) + 2))
    return Case(f"stack{[p.shape for p in parts]} {axis}",
                lambda: np.stack(parts, axis),
                lambda: K.stack([K.variable(p) for p in parts], axis))


def index(rng):
    x = random_array(rng, random_shape(rng, rng.integers(1, 4)))
    key = []
    for extent in x.shape[: rng.integers(1, x.ndim + 1)]:
        kind = rng.integers(0, 4)
        if kind == 0:
            key.append(int(rng.integers(-extent - (rng.random() < 0.1), extent)))
        elif kind == 1:
            key.append(None)
            key.append(slice(None))
        else:
            bounds = [None if rng.random() < 0.4 else int(n)
                      for n in rng.integers(-extent - 1, extent + 2, 2)]
            key.append(slice(*bounds, int(rng.choice([-2, -1, 1, 2]))))
    if rng.random() < 0.2:
        key.append(Ellipsis)
    key = tuple(key)
    return Case(f"{x.shape}[{key}]", lambda: x[key], lambda: K.variable(x)[key])


def repeat(rng):
    x = random_array(rng, random_shape(rng, rng.integers(1, 4)))
    axis, times = int(rng.integers(0, x.ndim)), int(rng.integers(1, 4))
    return Case(f"repeat_elements{x.shape} {times} {axis}",
                lambda: np.repeat(x, times, axis),
                lambda: K.repeat_elements(K.variable(x), times, axis))


def tile(rng):
    x = random_array(rng, random_shape(rng, rng.integers(1, 4)))
    times = [int(n) for n in rng.integers(1, 3, x.ndim)]
    return Case(f"tile{x.shape} {times}", lambda: np.tile(x, times),
                lambda: K.tile(K.variable(x), times))


def clip(rng):
    x = random_array(rng, random_shape(rng))
    low = float(rng.uniform(-1, 0))
    high = low + float(rng.uniform(0, 1))
    return Case(f"clip{x.shape}", lambda: np.clip(x, low, high),
                lambda: K.clip(K.variable(x), low, high))


def dot(rng):
    a, b, c = (int(n) for n in rng.integers(1, 9, 3))
    d = b if rng.random() < 0.9 else b + 1
    x, y = random_array(rng, (a, b)), random_array(rng, (d, c))
    return Case(f"dot{x.shape}{y.shape}", lambda: np.dot(x, y),
                lambda: K.dot(K.variable(x), K.variable(y)))


def cast(rng):
    dtype = rng.choice(["float32", "float64", "int32", "int64", "bool"])
    x = random_array(rng, random_shape(rng))
    return Case(f"cast{x.shape} {dtype}", lambda: x.astype(dtype),
                lambda: K.cast(K.variable(x), dtype))


KINDS = [unary, binary, arithmetic, reduction, arg, scan, reshape, permute, expand,
         squeeze, concatenate, stack, index, repeat, tile, clip, dot, cast]


def test_random_calls_agree_with_numpy():
    rng = np.random.default_rng(20261121)
    waiting, wrong = [], []
    for call in range(CALLS):
        case = KINDS[rng.integers(0, len(KINDS))](rng)
        problem = case.disagreement()
        if problem:
            wrong.append(f"{case.text}: {problem}")
        # The values of a sample: compiling takes longer than calling.
        elif case.tensor is not None and case.expected.size and call % 8 == 0:
            waiting.append(case)
        if len(waiting) == AT_ONCE or call == CALLS - 1:
            values = K.function([], [case.tensor for case in waiting])([])
            for case, value in zip(waiting, values):
                problem = case.wrong_value(value)
                if problem:
                    wrong.append(f"{case.text}: {problem}")
            waiting = []
    assert not wrong, "\n".join(wrong[:30])


@pytest.mark.parametrize("length", [15, 16, 37, 100])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int64"])
def test_the_first_of_equals_and_of_no_numbers_is_the_extremum(dtype, length):
    # Rows of 16 and more are reduced along vectors.
    x = np.random.default_rng(5).integers(0, 4, (6, length)).astype(dtype)
    if x.dtype.kind == "f":
        x[1, 5] = np.nan
        x[2, [3, -1]] = np.nan
        x[3], x[4] = -np.inf, np.inf
        x[5] = np.where(x[5] > 1, 0.0, -0.0)
    for name in ("argmax", "argmin"):
        found = K.eval(getattr(K, name)(K.variable(x, dtype), -1))
        np.testing.assert_array_equal(found, getattr(np, name)(x, -1), name)


@pytest.mark.parametrize("length", [16, 37, 300])
@pytest.mark.parametrize(
    "formula",
    [
        lambda a, b: a * b + a,
        lambda a, b: (a + b) * b + a * b,
        lambda a, b: K.exp(a) * b - a,
        lambda a, b: K.tanh(a * b) + b * b,
        lambda a, b: K.softmax(a),
    ],
)
def test_extrema_are_found_where_elements_are_computed_twice(formula, length):
    # For the extremum, and to be compared with it: to the last bit the same.
    a, b = K.placeholder((40, length)), K.placeholder((40, length))
    x = formula(a, b)
    places = K.function([a, b], [K.argmax(x, -1), K.argmin(x, -1)])
    values = K.function([a, b], [x])
    rng = np.random.default_rng(3)
    fed = [rng.standard_normal((40, length)).astype("float32") for _ in range(2)]
    most, least = places(fed)
    (rows,) = values(fed)
    np.testing.assert_array_equal(most, rows.argmax(-1))
    np.testing.assert_array_equal(least, rows.argmin(-1))
