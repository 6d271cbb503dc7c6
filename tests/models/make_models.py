"""Makes the models of one family of layers each, with real Keras 3:

    KERAS_BACKEND=jax python make_models.py

Each FAMILY.keras has an output for every flavour of its layers; FAMILY.npz
holds its inputs and the outputs that Keras computes in float32. The tests do
not need Keras; this is for adding a layer.

Keras stores the files of its archives as they are, and HDF5 spends kilobytes
on each weight: what is checked in is deflated, a tenth of that.
"""

import os
import zipfile

import keras
import numpy as np
from keras import layers as L
from keras import ops

HERE = os.path.dirname(os.path.abspath(__file__))
rng = np.random.default_rng(5)


def normal(*shape):
    return rng.normal(0, 1, shape).astype("f4")


def randomize(model):
    for v in model.weights:
        name = v.path.split("/")[-1]
        shape = tuple(v.shape)
        if name in ("bias", "beta", "moving_mean", "alpha"):
            v.assign(rng.normal(0, 0.3, shape).astype("f4"))
        elif name in ("gamma", "moving_variance", "scale"):
            v.assign(rng.uniform(0.6, 1.4, shape).astype("f4"))


def deflate(path):
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            # A fixed time, so that the same model is the same file.
            archive.writestr(
                zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED, 9
            )


def save(name, inputs, outputs, *values):
    outputs = keras.tree.flatten(outputs)
    model = keras.Model(inputs, outputs, name=name)
    randomize(model)
    arguments = list(values) if len(values) > 1 else values[0]
    results = model(arguments, training=False)
    data = {f"in_{t.name}": v for t, v in zip(model.inputs, values)}
    for i, y in enumerate(keras.tree.flatten(results)):
        data[f"out_{i}"] = np.asarray(y)
    path = os.path.join(HERE, name)
    model.save(path + ".keras")
    np.savez_compressed(path + ".npz", **data)
    deflate(path + ".keras")
    deflate(path + ".npz")
    print(name, len(outputs), "outputs,", model.count_params(), "parameters")


def activations():
    x = L.Input((3, 4), name="x")
    names = """relu relu6 leaky_relu elu celu selu gelu glu silu mish sigmoid
        hard_sigmoid hard_silu hard_tanh hard_shrink soft_shrink tanh
        tanh_shrink softplus softsign squareplus sparse_plus sparse_sigmoid
        log_sigmoid exponential softmax log_softmax linear""".split()
    save(
        "activations",
        x,
        [L.Activation(name)(x) for name in names]
        + [
            L.ReLU(max_value=1.5, negative_slope=0.1, threshold=0.2)(x),
            L.LeakyReLU(0.25)(x),
            L.ELU(0.7)(x),
            L.Softmax(axis=(1, 2))(x),
            L.PReLU(shared_axes=[1])(x),
            L.Dense(5, activation=L.ReLU(max_value=1.0))(x),
        ],
        normal(3, 3, 4),
    )


def convolutions():
    images = L.Input((5, 4, 4), name="images")
    first = L.Permute((3, 1, 2))(images)
    steps = L.Input((9, 4), name="steps")
    outputs = []
    for x, form in ((images, "channels_last"), (first, "channels_first")):
        kw = {"data_format": form}
        outputs += [
            L.Conv2D(6, 3, strides=2, padding="same", **kw)(x),
            L.Conv2D(6, 2, dilation_rate=2, groups=2, **kw)(x),
            L.Conv2DTranspose(3, 3, strides=2, padding="same", **kw)(x),
            L.Conv2DTranspose(3, 2, strides=3, use_bias=False, **kw)(x),
            L.Conv2DTranspose(
                3, 3, strides=2, padding="same", output_padding=1, **kw
            )(x),
            L.DepthwiseConv2D(
                3, strides=2, padding="same", depth_multiplier=2, **kw
            )(x),
            L.SeparableConv2D(5, 3, depth_multiplier=2, **kw)(x),
            L.MaxPooling2D(3, strides=2, padding="same", **kw)(x),
            L.AveragePooling2D(3, strides=2, padding="same", **kw)(x),
            L.GlobalAveragePooling2D(keepdims=True, **kw)(x),
            L.GlobalMaxPooling2D(**kw)(x),
            L.ZeroPadding2D(((1, 2), (0, 3)), **kw)(x),
            L.Cropping2D(((1, 2), (0, 3)), **kw)(x),
            L.UpSampling2D((2, 3), interpolation="bilinear", **kw)(x),
            L.UpSampling2D((2, 1), **kw)(x),
            L.Flatten(**kw)(x),
        ]
    outputs += [
        L.Conv1D(4, 3, padding="causal", strides=2)(steps),
        L.Conv1DTranspose(3, 3, strides=2, padding="valid")(steps),
        L.DepthwiseConv1D(2, dilation_rate=2)(steps),
        L.SeparableConv1D(5, 3, padding="same")(steps),
        L.AveragePooling1D(3, strides=2, padding="same")(steps),
        L.MaxPooling1D(2)(steps),
        L.ZeroPadding1D((1, 2))(steps),
        L.Cropping1D((1, 2))(steps),
        L.UpSampling1D(3)(steps),
        L.Resizing(5, 9)(images),
        L.CenterCrop(4, 3)(images),
        L.RandomFlip()(images),
    ]
    values = normal(2, 5, 4, 4), normal(2, 9, 4)
    save("convolutions", [images, steps], outputs, *values)


def merging():
    a, b = L.Input((4, 3), name="a"), L.Input((4, 3), name="b")
    row, flat = L.Input((1, 3), name="row"), L.Input((3,), name="flat")
    pairs = [L.Add, L.Subtract, L.Multiply, L.Average, L.Maximum, L.Minimum]
    outputs = [layer()([a, other]) for layer in pairs for other in (b, row)]
    outputs += [
        L.Add()([a, flat]),
        L.Concatenate(axis=1)([a, b]),
        L.Concatenate()([a, b]),
        L.Dot(axes=(2, 2))([a, b]),
        L.Dot(axes=-1, normalize=True)([a, b]),
        L.Dot(axes=1)([flat, flat]),
    ]
    save(
        "merging",
        [a, b, row, flat],
        outputs,
        normal(3, 4, 3),
        normal(3, 4, 3),
        normal(3, 1, 3),
        normal(3, 3),
    )


def normalizations():
    x = L.Input((3, 4), name="x")
    outputs = [
        L.BatchNormalization(axis=1, scale=False)(x),
        L.BatchNormalization(center=False)(x),
        L.LayerNormalization(axis=[1, 2])(x),
        L.LayerNormalization(scale=False, axis=1)(x),
        L.LayerNormalization(rms_scaling=True)(x),
        L.RMSNormalization()(x),
        L.GroupNormalization(2)(x),
        L.GroupNormalization(-1, axis=1)(x),
        L.UnitNormalization(axis=1)(x),
        L.Normalization(mean=[1.0, 2, 3, 4], variance=[1.0, 4, 2, 1])(x),
        L.Normalization(mean=0.5, variance=2.0, invert=True)(x),
        L.Rescaling([2.0, 3, 4, 5], offset=[1.0, 2, 3, 4])(x),
        L.SpectralNormalization(L.Dense(4))(x),
        L.EinsumDense("abc,cde->abde", (None, 2, 3), bias_axes="de")(x),
        L.EinsumDense("...x,xy->...y", 7, bias_axes="y")(x),
        L.Dense(5, use_bias=False)(x),
        L.Reshape((2, -1))(x),
    ]
    save("normalizations", x, outputs, normal(3, 3, 4))


def recurrent():
    x, h = L.Input((6, 3), name="x"), L.Input((5,), name="h")
    backwards = {
        "return_sequences": True,
        "return_state": True,
        "go_backwards": True,
        "use_bias": False,
    }
    outputs = []
    for cell in (L.SimpleRNN, L.LSTM, L.GRU):
        pair = cell(5, return_sequences=True, return_state=True)
        outputs += [
            cell(5, activation="relu")(x),
            cell(5, **backwards)(x),
            L.Bidirectional(pair, merge_mode="ave")(x),
            L.Bidirectional(cell(5), merge_mode=None)(x),
        ]
    cells = [L.LSTMCell(4), L.GRUCell(5), L.LSTMCell(3), L.SimpleRNNCell(3)]
    stack = L.RNN(cells, return_sequences=True, return_state=True)
    block = keras.Sequential([L.Dense(4, activation="relu"), L.Dense(2)])
    outputs += [
        L.GRU(4, reset_after=False)(x),
        stack(x),
        L.RNN(L.GRUCell(5))(x),
        L.LSTM(5)(x, initial_state=[h, h]),
        L.TimeDistributed(block)(x),
    ]
    save("recurrent", [x, h], outputs, normal(3, 6, 3), normal(3, 5))


def attention():
    tokens = L.Input((7,), dtype="int32", name="tokens")
    y = L.Input((5, 8), name="y")
    small = {"value_dim": 4, "output_shape": 5, "use_bias": False}

    def masked():
        return L.Embedding(5, 8, mask_zero=True)(tokens)

    # MultiHeadAttention takes the masks off its arguments: one embedding each.
    e = [masked() for _ in range(7)]
    causal = L.MultiHeadAttention(2, 4, dropout=0.1)
    scored = L.MultiHeadAttention(2, 4)
    block = L.MultiHeadAttention(2, 4)
    outputs = [
        causal(e[0], e[0], use_causal_mask=True),
        L.MultiHeadAttention(2, 4, **small)(y, e[1]),
        scored(e[2], e[2], return_attention_scores=True),
        L.GlobalAveragePooling1D()(L.Add()([e[3], block(e[3], e[3])])),
        L.GroupQueryAttention(4, 4, 2)(y, y, use_causal_mask=True),
        L.Attention(use_scale=True)([y, e[4]]),
        L.Attention(score_mode="concat")([y, e[4]]),
        L.Attention()([e[4], e[4]], use_causal_mask=True),
        L.AdditiveAttention()([y, e[4]]),
        L.LSTM(3)(L.Add()([e[5], e[6]])),
        L.LSTM(3)(L.Concatenate()([e[5], L.Dense(2)(e[6])])),
    ]
    t = rng.integers(1, 5, (3, 7)).astype("i4")
    t[0, 4:] = 0
    t[1, 2:] = 0
    save("attention", [tokens, y], outputs, t, normal(3, 5, 8))


def operators():
    x = L.Input((4, 6), name="x")
    n = L.Input((5,), dtype="int32", name="n")
    p = ops.absolute(x) + 0.5
    unary = """negative sign square exp expm1 sin cos tan tanh floor ceil round
        relu relu6 sigmoid softplus softsign silu log_sigmoid leaky_relu
        hard_sigmoid hard_silu elu selu gelu celu glu softmax log_softmax erf
        tanh_shrink hard_tanh normalize""".split()
    positive = "log log2 log10 log1p sqrt rsqrt reciprocal".split()
    reduce = "sum mean max min prod var std logsumexp argmax argmin".split()
    binary = """add subtract multiply divide floor_divide mod maximum minimum
        power""".split()
    compare = "equal not_equal less less_equal greater greater_equal".split()
    outputs = [getattr(ops, name)(x) for name in unary]
    outputs += [getattr(ops, name)(p) for name in positive]
    outputs += [getattr(ops, name)(x, axis=1) for name in reduce]
    outputs += [ops.sum(x, axis=(1, 2)), ops.max(x, axis=-1, keepdims=True)]
    outputs += [getattr(ops, name)(p, 1.5) for name in binary]
    outputs += [getattr(ops, name)(2, p) for name in binary]
    outputs += [getattr(ops, name)(p, p[:, :1]) for name in binary]
    outputs += [ops.cast(getattr(ops, name)(x, 0.3), "int32") for name in compare]
    both = ops.logical_and(x > 0, ops.logical_not(x > 1))
    outputs += [
        ops.where(both, x, 0.5),
        ops.where(ops.logical_xor(x > 0, x < 1), x, -x),
        ops.clip(x, -0.5, 1),
        ops.cumsum(x, axis=1),
        ops.cumprod(x, axis=2),
        ops.reshape(x, (-1, 2, 2, 6)),
        ops.transpose(x, (0, 2, 1)),
        ops.squeeze(ops.expand_dims(x[:, :1], -1), 1),
        ops.concatenate([x, x * 2], axis=1),
        ops.stack([x, x * 2], axis=1),
        ops.split(x, [2, 5], axis=-1),
        ops.unstack(x, axis=1),
        ops.repeat(x, 2, axis=1),
        ops.tile(x, (1, 2, 3)),
        ops.flip(x, 1),
        ops.roll(x, 2, 1),
        ops.swapaxes(x, 1, 2),
        ops.moveaxis(x, 1, 2),
        ops.pad(x, ((0, 0), (1, 2), (0, 1)), constant_values=1.5),
        x[:, 2],
        x[:, -1, 1:-1],
        x[..., ::2],
        x[:, None, :, 3],
        ops.take(x, np.array([0, 2, 2], "i4"), axis=1),
        ops.one_hot(n, 7),
        ops.matmul(x, ops.transpose(x, (0, 2, 1))),
        ops.einsum("abc,adc->abd", x, x),
        ops.tensordot(x, normal(6, 3), axes=1),
        x + normal(6),
        # Integers with fractions become floats, with integers stay.
        (n * 2 + 1) // 3 - n % 2,
        n * 0.5,
        n / 2,
        ops.mean(n, axis=1),
        ops.cumsum(ops.ones_like(n), axis=1) - 1,
    ]
    integers = rng.integers(0, 7, (3, 5)).astype("i4")
    save("operators", [x, n], outputs, normal(3, 4, 6), integers)


def uncommon():
    """What is not in the common image and text models."""
    x = L.Input((14, 11, 6), name="x")
    v = L.Input((4, 5, 6, 2), name="v")
    s = L.Input((20, 12), name="s")

    def mirrored(mode, *widths):
        return ops.pad(x, [[0, 0], *widths, [0, 0]], mode=mode)

    outputs = [
        mirrored("reflect", [2, 3], [1, 0]),
        mirrored("symmetric", [2, 3], [1, 0]),
        L.Conv2D(3, 5)(mirrored("reflect", [2, 2], [2, 2])),
        # Few outputs of large windows.
        L.Conv2D(3, 7, padding="same", activation="tanh")(x),
        L.Conv2D(2, (3, 5), dilation_rate=(2, 1))(x),
        L.Conv1D(3, 9, padding="causal", dilation_rate=2)(s),
        L.Conv3D(2, 3, padding="same")(v),
        L.GroupNormalization(3)(x),
        L.GroupNormalization(1)(s),
        L.GroupNormalization(-1)(v),
        L.GroupNormalization(2, axis=1)(x),
        # Attention along several axes, and along one of several.
        L.MultiHeadAttention(2, 3)(x, x),
        L.MultiHeadAttention(2, 3, attention_axes=(2,))(x, x),
        # Parts of the columns of a product, then a border.
        L.DepthwiseConv1D(7, padding="same")(ops.glu(L.Conv1D(64, 1)(s))),
    ]
    save("uncommon", [x, v, s], outputs, normal(2, 14, 11, 6),
         normal(2, 4, 5, 6, 2), normal(2, 20, 12))


def conv_recurrent():
    x = L.Input((5, 7, 6, 3), name="x")
    s = L.Input((4, 9, 2), name="s")
    v = L.Input((3, 4, 5, 4, 2), name="v")
    first = L.Input((3, 2, 6, 5), name="first")
    pair = L.ConvLSTM2D(3, 3, padding="same", return_sequences=True)
    states = L.ConvLSTM2D(4, (3, 2), return_state=True, go_backwards=True)(x)
    outputs = [
        L.ConvLSTM2D(3, 3, padding="same", activation="relu")(x),
        L.ConvLSTM2D(5, (3, 2), strides=(2, 1), return_sequences=True)(x),
        states,
        L.ConvLSTM2D(4, (3, 2), use_bias=False)(x, initial_state=states[1:]),
        L.ConvLSTM2D(3, 2, dilation_rate=2, recurrent_activation="relu")(x),
        L.Bidirectional(pair, merge_mode="sum")(x),
        L.ConvLSTM1D(4, 3, padding="same")(s),
        L.ConvLSTM3D(2, 3, padding="same")(v),
        L.ConvLSTM2D(3, 3, data_format="channels_first")(first),
    ]
    save("conv_recurrent", [x, s, v, first], outputs, normal(2, 5, 7, 6, 3),
         normal(2, 4, 9, 2), normal(2, 3, 4, 5, 4, 2), normal(2, 3, 2, 6, 5))


def corners():
    """Options that few models use."""
    x = L.Input((4, 6), name="x")
    n = L.Input((5,), dtype="int32", name="n")

    def einsum(equation, shape, axes):
        return L.EinsumDense(equation, shape, bias_axes=axes)(x)

    a, b = x, ops.tanh(x)
    for _ in range(40):
        a, b = b, (a + b) * 0.5
    outputs = [
        # Indices below 0 count from the end.
        ops.take(x, np.array([0, -1, 2], "i4"), axis=1),
        ops.take(normal(6, 2), n, axis=0),
        ops.take(x, -2, axis=2),
        ops.roll(x, (1, -2), (1, 2)),
        # A bias along other axes than the last.
        einsum("abc,cde->adbe", (3, 4, 2), "d"),
        einsum("abc,cde->adbe", (3, 4, 2), "de"),
        einsum("ab...,bd->ad...", (3,), "d"),
        einsum("...c,cde->...de", (3, 2), "d"),
        L.LayerNormalization(axis=(1, -1))(x),
        # There are more ways from the input to these than can be gone.
        a,
        b,
    ]
    indices = rng.integers(-6, 6, (3, 5)).astype("i4")
    save("corners", [x, n], outputs, normal(3, 4, 6), indices)


def attention_axes():
    x = L.Input((5, 4, 6), name="x")
    y = L.Input((7, 4, 6), name="y")
    v = L.Input((3, 4, 2, 6), name="v")

    def along(*axes, **options):
        return L.MultiHeadAttention(2, 3, attention_axes=axes, **options)

    outputs = [
        # The first of two axes, and others than the last of three.
        along(1)(x, x),
        along(-3)(x, y),
        along(1, output_shape=(2, 5))(x, y),
        along(2)(v, v),
        along(1, 3)(v, v),
        along(3, 2, value_dim=5)(v, v),
    ]
    save("attention_axes", [x, y, v], outputs, normal(2, 5, 4, 6),
         normal(2, 7, 4, 6), normal(2, 3, 4, 2, 6))


if __name__ == "__main__":
    for family in (
        activations,
        convolutions,
        merging,
        normalizations,
        recurrent,
        attention,
        operators,
        uncommon,
        conv_recurrent,
        corners,
        attention_axes,
    ):
        keras.utils.set_random_seed(1)
        family()
