"""Real Keras on keratin.keras2, each case in an interpreter of its own."""

import json
import os
import subprocess
import sys
import textwrap

import pytest


def run(tmp_path, program, configuration=None, **variables):
    home = tmp_path / "keras"
    home.mkdir(exist_ok=True)
    if configuration is not None:
        (home / "keras.json").write_text(json.dumps(configuration))
    environment = {k: v for k, v in os.environ.items() if k != "KERAS_BACKEND"}
    environment.update(KERAS_HOME=str(home), **variables)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done


OURS = {"KERAS_BACKEND": "keratin.keras2"}


def test_is_chosen_by_the_environment_or_the_configuration(tmp_path):
    program = "import keras.backend as K; print(K.backend())"
    done = run(tmp_path, program, {"backend": "other"}, **OURS)
    assert done.stdout == "keratin.keras2\n"
    assert "Using keratin.keras2 backend." in done.stderr
    done = run(tmp_path, program, {"backend": "keratin.keras2"})
    assert done.stdout == "keratin.keras2\n"


def test_may_be_imported_before_keras(tmp_path):
    program = """
        import keratin.keras2
        import keras
        assert keras.backend.backend() == "keratin.keras2"
        keras.backend.clear_session()
        keras.backend.manual_variable_initialization(False)
        import sys
        assert "tensorflow" not in sys.modules
    """
    run(tmp_path, program, **OURS)


def test_follows_the_configuration_of_keras(tmp_path):
    program = """
        from keras import backend as K
        assert K.dtype(K.variable([10])) == "float64"
        K.set_floatx("float16")
        assert K.dtype(K.variable([10])) == "float16"
        K.set_floatx("float32")
        K.set_image_data_format("channels_first")
        y = K.conv2d(K.placeholder((2, 3, 8, 8)), K.placeholder((3, 3, 3, 5)))
        assert K.int_shape(y) == (2, 5, 6, 6)
    """
    run(tmp_path, program, {"floatx": "float64", "epsilon": 1e-5}, **OURS)


def test_infers_the_shapes_of_lambdas(tmp_path):
    program = """
        from keras import backend as K
        from keras.layers import Input, Lambda
        y = Lambda(lambda x: K.sum(x, axis=1))(Input((3, 4)))
        assert y._keras_shape == (None, 4), y._keras_shape
    """
    run(tmp_path, program, **OURS)


def test_names_of_weights_differ(tmp_path):
    program = """
        from keras.layers import Dense, Bidirectional, LSTM
        from keras.models import Sequential, load_model
        import numpy as np
        m = Sequential([Bidirectional(LSTM(3), input_shape=(4, 2)), Dense(1)])
        names = [w.name for w in m.weights]
        assert len(set(names)) == len(names), names
        m.compile("rmsprop", "mse")
        x, y = np.random.rand(8, 4, 2), np.random.rand(8, 1)
        m.fit(x, y, verbose=0)
        m.save("model.h5")
        np.testing.assert_allclose(load_model("model.h5").predict(x), m.predict(x),
                                   rtol=1e-5)
    """
    run(tmp_path, "import os; os.chdir(%r)\n" % str(tmp_path) + textwrap.dedent(program), **OURS)


@pytest.mark.parametrize("name", ["imdb", "reuters"])
def test_data_sets_of_texts_are_arrays_of_lists(tmp_path, name):
    program = f"""
        import numpy as np
        from keras.datasets import {name} as data
        texts = np.empty(4, dtype=object)
        texts[:] = [[1, 2], [3], [4, 5, 6], [7]]
        y = np.array([0, 1, 0, 1])
        np.savez("data.npz", x_train=texts, x_test=texts, x=texts, y_train=y,
                 y_test=y, y=y)
        data.get_file = lambda *arguments, **keywords: "data.npz"
        (x, y), (x_test, y_test) = data.load_data(start_char=None, index_from=0)
        assert x.dtype == object and x.shape == y.shape, x
        assert sorted(map(len, x[:4]))[0] == 1 and type(x[0]) is list, x
    """
    run(tmp_path, "import os; os.chdir(%r)\n" % str(tmp_path) + textwrap.dedent(program), **OURS)


def test_a_network_learns(tmp_path):
    program = """
        import numpy as np
        np.random.seed(0)
        from keras.layers import Dense, Dropout, BatchNormalization, Flatten, Conv2D, MaxPooling2D
        from keras.models import Sequential
        x = np.random.rand(256, 8, 8, 1)
        y = (x[:, :, :4].sum((1, 2, 3)) > x[:, :, 4:].sum((1, 2, 3))).astype(int)
        m = Sequential([
            Conv2D(4, 3, activation="relu", input_shape=(8, 8, 1)), MaxPooling2D(),
            BatchNormalization(momentum=0.5), Flatten(), Dense(16, activation="relu"),
            Dropout(0.1), Dense(2, activation="softmax"),
        ])
        m.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
        h = m.fit(x, y, epochs=15, batch_size=32, verbose=0).history
        assert h["loss"][-1] < 0.8 * h["loss"][0], h["loss"]
        loss, accuracy = m.evaluate(x, y, verbose=0)
        assert accuracy > 0.7, accuracy
    """
    run(tmp_path, program, **OURS)


@pytest.mark.parametrize(
    "program, message",
    [
        ("K.function([x], [x], bogus=1)", "bogus"),
        ("K.eval(x)", "image"),
        ("K.function([x], [x])([np.ones((2, 4))])", "(None, 3)"),
    ],
)
def test_mistakes_are_value_errors(tmp_path, program, message):
    program = f"""
        import numpy as np
        from keras import backend as K
        x = K.placeholder((None, 3), name="image")
        try:
            {program}
        except ValueError as error:
            assert {message!r} in str(error), error
        else:
            raise SystemExit("accepted")
    """
    run(tmp_path, program, **OURS)
