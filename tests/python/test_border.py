"""Windows over images that have no room for the border they need."""

import numpy as np
import pytest

from keratin import backend as K


def frames(x, window, stride, border):
    """The elements under each tap of a window with the padding "same"."""
    rows, columns = (-(-extent // stride) for extent in x.shape[1:3])
    missing = [max((count - 1) * stride + window - extent, 0)
               for count, extent in zip((rows, columns), x.shape[1:3])]
    around = [(0, 0), *((m // 2, m - m // 2) for m in missing), (0, 0)]
    x = np.pad(x, around, constant_values=border)
    return [[x[:, i:i + rows * stride:stride, j:j + columns * stride:stride]
             [:, :rows, :columns] for j in range(window)] for i in range(window)]


# Tiles that divide the image and tiles that do not, narrow images, one of which
# every tile is at the border, lanes that are not all there.
@pytest.mark.parametrize("height, width, channels, window, stride", [
    (56, 56, 16, 3, 1), (57, 47, 24, 3, 2), (30, 31, 40, 5, 1), (2, 300, 64, 5, 2),
    (300, 3, 48, 3, 1), (200, 201, 1, 3, 1), (80, 80, 7, 5, 2)])
@pytest.mark.parametrize("threads", [1, 3])
def test_reads_around_the_border(height, width, channels, window, stride, threads):
    random = np.random.default_rng(0)
    image = random.standard_normal((2, height, width, channels), "float32")
    weights = random.standard_normal((window, window, channels, 1), "float32")
    x = K.placeholder((None, height, width, channels))
    options = dict(padding="same", data_format="channels_last")
    window_of, steps = (window, window), (stride, stride)
    function = K.function([x], [
        K.depthwise_conv2d(x, K.constant(weights), steps, **options),
        K.pool2d(x, window_of, steps, pool_mode="max", **options)])
    K.set_num_threads(threads)
    try:
        sums, largest = function([image])
    finally:
        K.set_num_threads(0)
    taps = frames(image.astype("float64"), window, stride, 0)
    expected = sum(tap * weights[i, j, :, 0] for i, row in enumerate(taps)
                   for j, tap in enumerate(row))
    np.testing.assert_allclose(sums, expected, rtol=0, atol=1e-4)
    taps = frames(image, window, stride, -np.inf)
    assert (largest == np.max([tap for row in taps for tap in row], axis=0)).all()
