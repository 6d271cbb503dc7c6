"""The Keras backend API.

Names, arguments and defaults are Keras 2's. A mistake in shapes, dtypes or
arguments raises ValueError or TypeError at the call that made it, in a sentence
that names the function, the argument and both facts that disagree.

Most functions are defined by the extension module, from the same declarations
as in C++ (keratin/backend.h). Here are those that only Python needs.
"""

from __future__ import annotations

import typing as _typing

from keratin import _keratin
from keratin._keratin import *  # noqa: F403
from keratin._keratin import Function, Tensor

if _typing.TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy
    from keratin._keratin import ArrayLike, DTypeLike, TensorLike

del annotations  # Keras takes every public name for one of the backend's

# The list type of this module's functions: `any`, `max`, `slice` and others are
# Keras' here, not Python's.
_list, _tuple = list, tuple


def _listed(function: str, argument: str, given: object) -> _list:
    """The elements of an argument that must be a list."""
    if not isinstance(given, (Tensor, str, bytes)):
        try:
            return _list(given)
        except TypeError:
            pass
    raise TypeError(f"{function}: {argument} is {given!r} but must be a list")


def symbolic(func: Callable) -> Callable:
    """`func`: every function here builds a graph."""
    return func


def eager(func: Callable) -> Callable:
    """`func`: there is no eager mode."""
    return func


def cast_to_floatx(x: TensorLike) -> Tensor | numpy.ndarray:
    """A tensor or array as `floatx()`."""
    if isinstance(x, Tensor):
        return _keratin.cast(x, _keratin.floatx())
    import numpy

    try:
        return numpy.asarray(x, dtype=_keratin.floatx())
    except (ValueError, TypeError) as error:
        raise TypeError(f"cast_to_floatx: x is {x!r}: {error}") from None


def is_tensor(x: object) -> bool:
    """Whether `x` is a value of a graph."""
    return isinstance(x, Tensor)


def is_variable(x: object) -> bool:
    """Whether `x` is state that `set_value` and updates change."""
    return isinstance(x, Tensor) and _keratin.is_variable(x)


def is_sparse(tensor: object) -> bool:
    """Whether `tensor` was made from a sparse matrix."""
    return isinstance(tensor, Tensor) and _keratin.is_sparse(tensor)


def is_placeholder(x: object) -> bool:
    """Whether `x` is given when a function is called."""
    return isinstance(x, Tensor) and _keratin.is_placeholder(x)


def is_keras_tensor(x: Tensor) -> bool:
    """Whether a Keras layer made the tensor `x`."""
    if not isinstance(x, Tensor):
        raise ValueError(
            f"is_keras_tensor: x is of type {type(x)}, which is no tensor"
        )
    return hasattr(x, "_keras_history")


def get_variable_shape(x: Tensor) -> tuple[int | None, ...]:
    """The extents of a variable."""
    return _keratin.int_shape(x)


def count_params(x: Tensor) -> int:
    """Number of elements of a tensor whose shape is known."""
    count = 1
    for extent in _keratin.int_shape(x):
        if extent is None:
            raise ValueError(
                "count_params: the number of elements of a tensor of shape "
                f"{_keratin.int_shape(x)} is not known"
            )
        count *= extent
    return count


def eye(
    size: int | tuple[int, int], dtype: DTypeLike = None, name: str | None = None
) -> Tensor:
    """The identity matrix, or one of `size = (rows, columns)`."""
    import numpy

    shape = size if isinstance(size, (_tuple, _list)) else (size, size)
    try:
        return _keratin.constant(numpy.eye(*shape), dtype=dtype, name=name)
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        mistake = TypeError if isinstance(error, TypeError) else ValueError
        raise mistake(
            f"eye: size is {size!r}, dtype {dtype!r} and name {name!r}: {error}"
        ) from None


def repeat_elements(x: TensorLike, rep: int, axis: int) -> Tensor:
    """Each element `rep` times along `axis`."""
    y = _keratin.repeat_elements(x, rep, axis)
    y._keras_shape = _keratin.int_shape(y)
    return y


def batch_get_value(ops: Sequence[Tensor]) -> _list[numpy.ndarray]:
    """The values of several variables."""
    return [_keratin.get_value(x) for x in _listed("batch_get_value", "ops", ops)]


def batch_set_value(tuples: Sequence[tuple[Tensor, ArrayLike]]) -> None:
    """Sets each variable of `(variable, value)` pairs."""
    for pair in _listed("batch_set_value", "tuples", tuples):
        if not isinstance(pair, (_tuple, _list)) or len(pair) != 2:
            raise TypeError(
                f"batch_set_value: tuples has {pair!r} but must have pairs "
                "(variable, value)"
            )
        _keratin.set_value(*pair)


def gradients(
    loss: Tensor, variables: Tensor | Sequence[Tensor]
) -> _list[Tensor | None]:
    """d(sum of loss)/d(variable) of each variable; `None` where there is none."""
    if isinstance(variables, Tensor):
        variables = [variables]
    return _keratin.gradients(loss, _listed("gradients", "variables", variables))


def stop_gradient(
    variables: TensorLike | Sequence[TensorLike],
) -> Tensor | _list[Tensor]:
    """The same values, through which no gradient flows."""
    if isinstance(variables, (_tuple, _list)):
        return [_keratin.stop_gradient(x) for x in variables]
    return _keratin.stop_gradient(variables)


def function(
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    updates: Sequence[Tensor | tuple[Tensor, TensorLike]] | None = None,
    name: str | None = None,
    **kwargs: object,
) -> Function:
    """Compiles `outputs` as a function of `inputs`.

    Calling it with the list of input values gives the list of output values and
    then makes `updates`: pairs `(variable, new value)` and tensors of `update`,
    `update_add` and the like. Outputs that Keras marks as metrics are computed
    from the values after the updates.
    """
    if kwargs:
        raise ValueError(
            f'Invalid argument "{next(iter(kwargs))}" passed to K.function: '
            "the Keratin backend takes inputs, outputs, updates and name"
        )
    for argument, given in ("inputs", inputs), ("outputs", outputs):
        if not isinstance(given, (_tuple, _list)):
            raise TypeError(
                f"function: {argument} is {given!r} but must be a list of tensors"
            )
    outputs = _list(outputs)
    updates = [] if updates is None else _listed("function", "updates", updates)
    after = [
        index
        for index, output in enumerate(outputs)
        if getattr(output, "_is_metric", False)
    ]
    return _keratin.make_function(
        _list(inputs), outputs, updates, name or "", after, []
    )
