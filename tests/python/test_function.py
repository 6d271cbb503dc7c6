"""Functions: feeding, updates, metrics, threads."""

import threading

import numpy as np
import pytest

from keratin import backend as K


def test_takes_lists_tuples_numbers_and_other_dtypes():
    x, y = K.placeholder((None,)), K.placeholder(())
    f = K.function([x, y], [x * y])
    for inputs in ([[1, 2], 3], (np.array([1, 2]), 3.0), [np.float64([1, 2]), True * 3]):
        (result,) = f(inputs)
        assert result.dtype == "float32" and result.tolist() == [3, 6]


def test_truncates_floats_for_integers_as_keras_does():
    x = K.placeholder((None,), dtype="int32")
    assert K.function([x], [x])([[1.7, 2.0]])[0].tolist() == [1, 2]


def test_scalars_are_numpy_scalars():
    (result,) = K.function([], [K.constant(2.0)])([])
    assert isinstance(result, np.float32) and result == 2


def test_outputs_see_old_values_and_metrics_new_ones():
    total = K.variable(1.0)
    metric = total * 10
    metric._is_metric = True
    f = K.function([], [total + 0, metric], updates=[K.update_add(total, 1)])
    assert f([]) == [1, 20]
    assert f([]) == [2, 30]


def test_updates_swap():
    a, b = K.variable(1.0), K.variable(2.0)
    assert K.function([], [], updates=[(a, b), (b, a)])([]) == []
    assert K.batch_get_value([a, b]) == [2, 1]


def test_feeds_the_learning_phase():
    phase = K.learning_phase()
    f = K.function([phase], [K.in_train_phase(K.constant(1.0), K.constant(2.0))])
    assert [f([value])[0] for value in (0, 1, 1.0, True, np.bool_(False))] == [2, 1, 1, 1, 2]
    assert K.eval(K.in_train_phase(K.constant(1.0), K.constant(2.0))) == 2


def test_results_belong_to_the_caller():
    x = K.variable([1.0, 2.0])
    f = K.function([], [x], updates=[(x, x + 1)])
    (first,) = f([])
    first[:] = 100
    assert f([])[0].tolist() == [2, 3]


def test_does_not_touch_its_inputs():
    x = K.placeholder((3,))
    value = np.arange(3, dtype="float32")
    value.flags.writeable = False
    assert K.function([x], [x])([value])[0].tolist() == [0, 1, 2]


def test_is_called_from_several_threads():
    x = K.placeholder((None, 8))
    w = K.variable(np.eye(8))
    f = K.function([x], [K.dot(x, w)])
    wrong = []

    def work(number):
        value = np.full((2, 8), number, "float32")
        for _ in range(50):
            y = x + number  # builds while others run
            if not (f([value])[0] == value).all() or y.shape != (None, 8):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
        assert not thread.is_alive()
    assert not wrong


def test_saves_an_object_and_its_header(tmp_path):
    x = K.placeholder((None, 4), name="image")
    f = K.function([x], [K.softmax(x)], name="digits")
    kernels = f.save(str(tmp_path / "digits"))
    assert kernels and "digits_" in (tmp_path / "digits.h").read_text()
    assert (tmp_path / "digits.o").stat().st_size > 0
    assert "ktn.softmax" in f.lower("graph")


def test_compiles_as_it_is_told():
    x = K.placeholder((None, 5, 2))
    last = K.rnn(lambda a, s: (a + s[0], [a + s[0]]), x, [K.zeros_like(x[:, 0])])[0]
    f = K.function([x], [last])
    value = np.arange(20.0).reshape(2, 5, 2)
    rolled = f.lower("linalg", batch=2)
    assert "scf.for" in rolled
    assert "scf.for" not in f.lower("linalg", batch=2, unroll_factor=0)
    for settings in ({}, {"optimize": False}, {"unroll_factor": 2}, {"threads": 1},
                     {"target": "x86-64-v2"}, {"checkpoint_every": 2}):
        f.configure(**settings)
        np.testing.assert_array_equal(f([value])[0], value.sum(1))
    with pytest.raises(ValueError, match="unrollFactor is -1 but must be 0 or more"):
        f.lower("linalg", unroll_factor=-1)
    with pytest.raises(TypeError, match="configure: unknown argument 'unroll'"):
        f.configure(unroll=3)
    with pytest.raises(TypeError, match="save: .*input_shapes"):
        f.save("never", input_shapes=3)
    with pytest.raises(ValueError, match="unknown target 'z80'"):
        f.lower("asm", target="z80")


def test_saves_several_functions_with_their_state(tmp_path):
    x = K.placeholder((None, 2), name="x")
    w = K.variable([3.0, 4.0], name="w")
    predict = K.function([x], [x * w])
    noisy = K.in_train_phase(x * 2, x)
    step = K.function([x], [K.sum(noisy)], updates=[K.update_add(w, K.sum(noisy, 0))])
    prefix = str(tmp_path / "model")
    kernels = K.save(prefix, {"predict": predict, "step": (step, True)}, weights="external")
    header = (tmp_path / "model.h").read_text()
    assert kernels and "model_predict(" in header and "model_step(" in header
    assert "MODEL_STATE_BYTES" in header and (tmp_path / "model.o").stat().st_size > 0
    K.save(prefix, {"predict": predict, "step": step}, emit="graph", name="other")
    graph = (tmp_path / "model.mlir").read_text()
    assert "@predict(" in graph and "@step(" in graph and "ktn.assign @w" in graph


@pytest.mark.parametrize(
    "functions, error, message",
    [
        ({}, ValueError, "no function"),
        ([], TypeError, "no dict"),
        ({"predict": 3}, TypeError, "'predict' is neither a Function"),
        ({"1st": None}, TypeError, "'1st' is neither"),
    ],
)
def test_refuses_to_save_what_is_no_function(functions, error, message):
    with pytest.raises(error, match=message):
        K.save("never", functions)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda f: f([]), "takes 1 inputs .* but 0 are given"),
        (lambda f: f([[1.0], [2.0]]), "takes 1 inputs .* but 2 are given"),
        (lambda f: f([np.ones((2, 4))]), r"has shape \(2, 4\) .* takes \(None, 3\)"),
        (lambda f: f([["a", "b", "c"]]), "holds no numbers"),
        (lambda f: f([K.constant(1.0)]), "tensor of the graph"),
        (lambda f: f(3), "list of its inputs"),
    ],
)
def test_refuses_what_does_not_fit(call, message):
    x = K.placeholder((None, 3), name="x")
    with pytest.raises((ValueError, TypeError), match=message):
        call(K.function([x], [x + 1]))


def test_refuses_placeholders_that_are_not_fed():
    x, y = K.placeholder((2,), name="fed"), K.placeholder((2,), name="forgotten")
    with pytest.raises(ValueError, match="forgotten"):
        K.function([x], [x + y])
    with pytest.raises(ValueError, match="forgotten"):
        K.eval(y)
    with pytest.raises(ValueError, match="bogus"):
        K.function([x], [x], bogus=1)
