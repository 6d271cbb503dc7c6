"""The functions of the API: that they are there, and what is Python's own."""

import ast
import inspect
import pathlib
import re

import numpy as np
import pytest

from keratin import _keratin
from keratin import backend as K

SIGNATURES = pathlib.Path(__file__).with_name("keras_signatures.txt")


def arguments_of(function):
    """(name, default as text) of each argument."""
    if inspect.isfunction(function):
        return [
            (name, None if p.default is p.empty else repr(p.default))
            for name, p in inspect.signature(function).parameters.items()
            if p.kind is not p.VAR_KEYWORD
        ]
    text = function.__nb_signature__[0][0]
    inner = text[text.index("(") + 1 : text.rindex(") ->")]
    parts = re.split(r", (?=\w+:)", inner) if inner else []
    return [
        (part.split(":")[0], part.rpartition(" = ")[2] if " = " in part else None)
        for part in parts
    ]


def defaults_agree(ours, theirs):
    if ours is None or theirs is None:
        return ours == theirs
    ours, theirs = eval(ours), eval(theirs)
    # None is Keras' word for "not told" where it does not have the empty name.
    return ours == theirs or (ours is None and theirs == "")


@pytest.mark.parametrize("line", SIGNATURES.read_text().splitlines())
def test_has_the_arguments_and_defaults_of_keras(line):
    name, wanted = re.fullmatch(r"(\w+)\((.*)\)", line).groups()
    # What ast.unparse prints of a definition is one again.
    scope = {}
    exec(f"def function({wanted}): pass", scope)
    theirs = arguments_of(scope["function"])
    ours = arguments_of(getattr(K, name))
    # More optional ones may follow.
    assert [n for n, _ in ours[: len(theirs)]] == [n for n, _ in theirs]
    assert all(default is not None for _, default in ours[len(theirs) :])
    for (argument, our), (_, their) in zip(ours, theirs):
        assert defaults_agree(our, their), argument


def test_functions_have_docstrings():
    for name in dir(_keratin):
        if not name.startswith("_"):
            doc = getattr(_keratin, name).__doc__
            # A signature, and something that it does not say.
            assert doc and doc.strip().partition("\n")[2].strip() or isinstance(
                getattr(_keratin, name), type), name


def test_stubs_tell_the_types_of_every_function():
    stub = pathlib.Path(_keratin.__file__).with_name("_keratin.pyi")
    defined = {node.name: node for node in ast.parse(stub.read_text()).body
               if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    for name in dir(_keratin):
        if name.startswith("_"):
            continue
        node = defined[name]
        if isinstance(node, ast.FunctionDef) and name != "make_function":
            hints = [a.annotation for a in node.args.args + node.args.kwonlyargs]
            for hint in [*hints, node.returns]:
                assert hint and ast.unparse(hint) not in ("object", "list"), name
    methods = {node.name: ast.unparse(node) for node in defined["Tensor"].body
               if isinstance(node, ast.FunctionDef)}
    assert "other: TensorLike) -> Tensor" in methods["__radd__"]
    assert "-> tuple[int | None, ...]" in methods["shape"]


@pytest.mark.parametrize(
    "value, dtype, expected",
    [
        (1, None, "float32"),
        (np.ones(3), None, "float32"),
        (np.arange(3), None, "float32"),
        (np.arange(3), "int64", "int64"),
        ([True, False], "bool", "bool"),
        ([1.5], np.float64, "float64"),
        ([1.5], "float16", "float16"),
    ],
)
def test_variables_are_floats_unless_told(value, dtype, expected):
    for make in (K.variable, K.constant):
        x = make(value, dtype=dtype)
        assert K.dtype(x) == expected and K.eval(x).dtype == expected
        np.testing.assert_array_equal(K.eval(x), np.asarray(value, expected))


def test_variables_own_their_values():
    value = np.zeros(3, "float32")
    x = K.variable(value)
    value[:] = 1
    read = K.get_value(x)
    read[:] = 2
    np.testing.assert_array_equal(K.get_value(x), np.zeros(3))


def test_constant_takes_a_shape():
    assert K.eval(K.constant(3, shape=(2, 2))).tolist() == [[3, 3], [3, 3]]
    assert K.eval(K.constant([1, 2, 3, 4], shape=(2, 2))).tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int16",
                                   "int32", "int64", "uint8", "bool"])
def test_arrays_of_every_dtype_and_order_go_in_and_out(dtype):
    value = (np.arange(12).reshape(3, 4) % 2).astype(dtype)
    for array in (value, value.T, value[::-1], value[:, 1:3], np.asfortranarray(value),
                  value.astype(np.dtype(dtype).newbyteorder())):
        np.testing.assert_array_equal(K.eval(K.variable(array, dtype)), array)


def test_float16_and_float64_are_the_float_type_when_told():
    try:
        K.set_floatx("float64")
        assert K.dtype(K.variable([1.0])) == "float64"
        assert K.cast_to_floatx([1]).dtype == "float64"
    finally:
        K.set_floatx("float32")


def test_names_are_scoped_and_unique():
    with K.name_scope("block"):
        with K.name_scope("dense"):
            names = [K.variable(0.0, name="kernel").name for _ in range(2)]
    assert names == ["block/dense/kernel", "block/dense/kernel_1"]


def test_a_seed_of_numpy_repeats_what_is_built_after_it():
    def draw():
        np.random.seed(7)
        return K.eval(K.random_uniform((4,)))

    np.testing.assert_array_equal(draw(), draw())


def test_updates_are_evaluated_and_waited_for():
    count = K.variable(1.0)
    assert K.eval(K.update_add(count, 2)) == 3
    with K.control_dependencies([K.update_add(count, 1)]):
        doubled = count * 2
    assert K.eval(doubled) == 8


@pytest.mark.parametrize("shape", [(1, 1), (1, 2), (2, 1)])
def test_rows_learn_from_however_few_indices(shape):
    table = K.variable(np.ones((3, 2)))
    rows, y = K.placeholder((None, None), dtype="int32"), K.placeholder((None, None, 2))
    loss = K.sum(K.square(K.gather(table, rows) - y))
    gradient, = K.gradients(loss, [table])
    function = K.function([rows, y], [loss, gradient])
    loss, gradient = function([np.full(shape, 2), np.zeros(shape + (2,))])
    count = np.prod(shape)
    assert loss == 2 * count
    np.testing.assert_array_equal(gradient, [[0, 0], [0, 0], [2 * count] * 2])


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("shape, axis", [((3,), 0), ((2, 3), 1), ((2, 3), 0)])
def test_many_tensors_are_concatenated_in_their_order(dtype, shape, axis):
    # More than one kernel takes, and a group of one among them.
    arrays = [np.full(shape, number, dtype) for number in range(129)]
    inputs = [K.placeholder(shape=shape, dtype=dtype) for _ in arrays]
    whole = K.function(inputs, [K.concatenate(inputs, axis=axis)])
    np.testing.assert_array_equal(whole(arrays)[0],
                                  np.concatenate(arrays, axis))


def test_loops_call_python():
    x = K.placeholder((None, 3, 2))
    last, outputs, (state,) = K.rnn(
        lambda element, states: (element + states[0], [element + states[0]]),
        x,
        [K.zeros_like(x[:, 0])],
    )
    value = np.arange(6.0).reshape(1, 3, 2)
    results = K.function([x], [last, outputs, state])([value])
    np.testing.assert_array_equal(results[0], value.sum(1))
    np.testing.assert_array_equal(results[1], value.cumsum(1))
    np.testing.assert_array_equal(results[2], value.sum(1))
    x = K.constant([1.0, 2.0, 3.0])
    assert K.eval(K.foldl(lambda a, b: a - b, x)) == -4
    assert K.eval(K.foldr(lambda a, b: a - b, x)) == 0
    assert K.eval(K.map_fn(lambda a: a * a, x)).tolist() == [1, 4, 9]


def test_an_exception_in_a_step_is_the_callers():
    class Mine(Exception):
        pass

    def step(element, states):
        raise Mine

    with pytest.raises(Mine):
        K.rnn(step, K.placeholder((2, 3, 4)), [])
    assert K.eval(K.variable(1.0) + 1) == 2


def test_branches_are_called_once_and_only_when_taken():
    calls = []

    def branch(name):
        calls.append(name)
        return K.variable(1.0)

    K.in_train_phase(lambda: branch("train"), lambda: branch("test"), training=1)
    assert calls == ["train"]
    del calls[:]
    K.in_train_phase(lambda: branch("train"), lambda: branch("test"))
    assert sorted(calls) == ["test", "train"]


def test_print_tensor_prints_when_it_is_computed(capsys):
    x = K.placeholder((1, 1))
    y = K.print_tensor(x, "msg") + 1
    function = K.function([x], [y])
    assert capsys.readouterr().out == ""
    assert function([np.ones((1, 1))])[0] == 2
    assert capsys.readouterr().out == "msg [[1.]]\n"
    K.clear_session()
