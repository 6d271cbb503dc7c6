//===- backend.h - the Keras backend API in C++ -----------------*- C++ -*-===//
//
//   namespace K = keratin::backend;
//   K::Tensor x = K::placeholder({K::None, 784});
//   K::Tensor w = K::variable(K::Array::full({784, 10}, 0.01));
//   K::Function predict = K::function({x}, {K::softmax(K::dot(x, w))});
//   K::Array scores = predict({images})[0];
//
// Names, argument order and defaults are Keras'. A mistake in shapes, dtypes or
// arguments throws keratin::Error at the call that made it. Includes no MLIR.
//
// The functions that are one op (abs, exp, tanh, sigmoid, add, maximum, pow,
// equal, logical_and, where, shape, stop_gradient …) are in keratin/ops.h,
// which keratin-opgen writes from the definitions of the ops. Numbers are
// accepted wherever a Tensor is.
//
// Threads: any thread may call any function; calls on one graph wait for each
// other. The scope of a NameScope is its thread.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_BACKEND_H
#define KERATIN_BACKEND_H

#include "keratin/array.h"
#include "keratin/config.h"
#include "keratin/function.h"
#include "keratin/ops.h"
#include "keratin/tensor.h"

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace keratin::backend {

//===----------------------------------------------------------------------===//
// Graphs and names
//===----------------------------------------------------------------------===//

/// Forgets the current graph: placeholders, variables and constants made from
/// now on are in a new one. Tensors of the old one stay valid.
void clear_session();

/// While it lives, placeholders, variables and constants of this thread are
/// made in a graph of their own.
class GraphScope {
public:
  GraphScope();
  ~GraphScope();
  GraphScope(const GraphScope &) = delete;
  GraphScope &operator=(const GraphScope &) = delete;

private:
  std::shared_ptr<Graph> previous;
};

/// Names the layer that the ops created in its scope (in this thread) belong
/// to; the name is seen in errors, dumps, kernels and profiles.
///
///   K::NameScope block("block1");
///   K::NameScope layer("conv"); // block1/conv
class NameScope {
public:
  explicit NameScope(std::string_view name);
  ~NameScope();
  NameScope(const NameScope &) = delete;
  NameScope &operator=(const NameScope &) = delete;
};

/// "block1/conv", or empty outside of any.
std::string current_name_scope();

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// A value given when a function is called.
Tensor placeholder(const Shape &shape, DType dtype = floatx(),
                   std::string_view name = "");

/// State with an initial value. Its present value is `get_value`.
Tensor variable(const Array &value, std::string_view name = "");
Tensor variable(const Array &value, DType dtype, std::string_view name = "");
Tensor zeros(const Shape &shape, DType dtype = floatx(),
             std::string_view name = "");
Tensor ones(const Shape &shape, DType dtype = floatx(),
            std::string_view name = "");

Tensor constant(const Array &value, std::string_view name = "");
Tensor constant(double value, DType dtype = floatx(), const Shape &shape = {},
                std::string_view name = "");
/// `value` broadcast to a shape that may be computed.
Tensor full(const Dims &shape, double value, DType dtype = floatx());
Tensor zeros_like(const Tensor &x, DType dtype = floatx(),
                  std::string_view name = "");
Tensor ones_like(const Tensor &x, DType dtype = floatx(),
                 std::string_view name = "");
Tensor full_like(const Tensor &x, double value);
Tensor eye(int64_t size, DType dtype = floatx(), std::string_view name = "");
Tensor identity(const Tensor &x, std::string_view name = "");
/// start, start + step … below stop; counts from 0 to start without `stop`.
Tensor arange(int64_t start, std::optional<int64_t> stop = std::nullopt,
              int64_t step = 1, DType dtype = DType::Int32);

bool is_tensor(const Tensor &x);
bool is_placeholder(const Tensor &x);
bool is_variable(const Tensor &x);
/// The name of a placeholder or variable; empty for others.
std::string name(const Tensor &x);

Shape int_shape(const Tensor &x);
DType dtype(const Tensor &x);
int64_t ndim(const Tensor &x);
/// Number of elements; Throws Error when it is not known.
int64_t count_params(const Tensor &x);
/// Number of elements, computed in the graph.
Tensor size(const Tensor &x, std::string_view name = "");
/// One extent: a number when it is known, else a scalar int64 tensor.
Dim extent(const Tensor &x, int64_t axis);

Array eval(const Tensor &x);
Array get_value(const Tensor &x);
std::vector<Array> batch_get_value(const Tensors &tensors);
/// Throws Error when dtype or shape are not the variable's.
void set_value(const Tensor &x, const Array &value);
void batch_set_value(const std::vector<std::pair<Tensor, Array>> &tuples);

Update update(const Tensor &x, const Tensor &new_x);
Update update_add(const Tensor &x, const Tensor &increment);
Update update_sub(const Tensor &x, const Tensor &decrement);
Update moving_average_update(const Tensor &x, const Tensor &value,
                             double momentum);

/// Throws Error when an output depends on a placeholder that is not an input.
Function function(const Tensors &inputs, const Tensors &outputs,
                  const std::vector<Update> &updates = {},
                  const FunctionNames &names = {});

/// d(sum of loss)/d(variable) for each; `None` where the loss does not depend
/// on it.
Tensors gradients(const Tensor &loss, const Tensors &variables);

/// A scalar bool tensor: false unless it is fed.
Tensor learning_phase();
/// Functions from now on are built for training (1) or for inference (0).
void set_learning_phase(int value);
/// `x` in training, `alt` otherwise; `training` unknown means learning_phase().
Tensor in_train_phase(const Tensor &x, const Tensor &alt,
                      std::optional<bool> training = std::nullopt);
Tensor in_test_phase(const Tensor &x, const Tensor &alt,
                     std::optional<bool> training = std::nullopt);

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

Tensor operator+(const Tensor &a, const Tensor &b);
Tensor operator-(const Tensor &a, const Tensor &b);
Tensor operator*(const Tensor &a, const Tensor &b);
/// True division: integers are cast to floatx().
Tensor operator/(const Tensor &a, const Tensor &b);
Tensor divide(const Tensor &a, const Tensor &b);
/// The sign of the result is that of `b`, as in Python.
Tensor operator%(const Tensor &a, const Tensor &b);
Tensor operator-(const Tensor &a);
Tensor operator<(const Tensor &a, const Tensor &b);
Tensor operator<=(const Tensor &a, const Tensor &b);
Tensor operator>(const Tensor &a, const Tensor &b);
Tensor operator>=(const Tensor &a, const Tensor &b);

/// `x` itself when it has the dtype.
Tensor cast(const Tensor &x, DType dtype);
Tensor square(const Tensor &x);
/// Negative numbers count as 0.
Tensor sqrt(const Tensor &x);
Tensor reciprocal(const Tensor &x);
/// Bounds may be `None`; a `max_value` below `min_value` counts as it.
Tensor clip(const Tensor &x, const Tensor &min_value, const Tensor &max_value);
Tensor isnan(const Tensor &x);
Tensor isfinite(const Tensor &x);

//===----------------------------------------------------------------------===//
// Reductions and scans
//===----------------------------------------------------------------------===//

Tensor sum(const Tensor &x, const Axes &axis = {}, bool keepdims = false);
Tensor prod(const Tensor &x, const Axes &axis = {}, bool keepdims = false);
Tensor max(const Tensor &x, const Axes &axis = {}, bool keepdims = false);
Tensor min(const Tensor &x, const Axes &axis = {}, bool keepdims = false);
/// Elements other than 0 are true.
Tensor any(const Tensor &x, const Axes &axis = {}, bool keepdims = false);
Tensor all(const Tensor &x, const Axes &axis = {}, bool keepdims = false);
/// The first of equal ones, as int64.
Tensor argmax(const Tensor &x, int64_t axis = -1, bool keepdims = false);
Tensor argmin(const Tensor &x, int64_t axis = -1, bool keepdims = false);
/// Bools count as floatx().
Tensor mean(const Tensor &x, const Axes &axis = {}, bool keepdims = false);
/// Population variance.
Tensor var(const Tensor &x, const Axes &axis = {}, bool keepdims = false);
Tensor std(const Tensor &x, const Axes &axis = {}, bool keepdims = false);
Tensor logsumexp(const Tensor &x, const Axes &axis = {}, bool keepdims = false);
Tensor cumsum(const Tensor &x, int64_t axis = 0);
Tensor cumprod(const Tensor &x, int64_t axis = 0);

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

/// One extent may be -1: it follows from the number of elements.
Tensor reshape(const Tensor &x, const Dims &shape);
Tensor flatten(const Tensor &x);
Tensor batch_flatten(const Tensor &x);
Tensor permute_dimensions(const Tensor &x, const std::vector<int64_t> &pattern);
/// Reverses the axes.
Tensor transpose(const Tensor &x);
Tensor swapaxes(const Tensor &x, int64_t axis1, int64_t axis2);
Tensor moveaxis(const Tensor &x, int64_t source, int64_t destination);
Tensor expand_dims(const Tensor &x, const Axes &axis = -1);
Tensor squeeze(const Tensor &x, const Axes &axis);
/// NumPy broadcasting; -1 keeps the extent of `x`.
Tensor broadcast_to(const Tensor &x, const Dims &shape);
Tensor concatenate(const Tensors &tensors, int64_t axis = -1);
Tensor stack(const Tensors &x, int64_t axis = 0);
/// The slices along `axis`, without it.
Tensors unstack(const Tensor &x, int64_t axis = 0);
/// Equal parts along `axis`.
Tensors split(const Tensor &x, int64_t parts, int64_t axis = -1);
/// Parts that end at `indices` along `axis`.
Tensors split(const Tensor &x, const std::vector<int64_t> &indices,
              int64_t axis = -1);
/// (samples, features) to (samples, n, features).
Tensor repeat(const Tensor &x, int64_t n);
/// Each element `rep` times along `axis`.
Tensor repeat_elements(const Tensor &x, int64_t rep, int64_t axis);
Tensor tile(const Tensor &x, const std::vector<int64_t> &n);
Tensor reverse(const Tensor &x, const Axes &axes);
Tensor roll(const Tensor &x, int64_t shift, int64_t axis);
/// From `start`, `size` elements along each axis; -1 means all that follow.
Tensor slice(const Tensor &x, const std::vector<int64_t> &start,
             const std::vector<int64_t> &size);

/// Python's `start:stop:step`.
struct Slice {
  std::optional<int64_t> start = std::nullopt;
  std::optional<int64_t> stop = std::nullopt;
  int64_t step = 1;
};
struct NewAxis {};
struct Ellipsis {};
using Index = std::variant<int64_t, Slice, NewAxis, Ellipsis>;
/// Python's `x[indices…]`; works on axes of unknown extent as well.
Tensor getitem(const Tensor &x, const std::vector<Index> &indices);

/// Adds `{before, after}` elements on each axis.
Tensor pad(const Tensor &x,
           const std::vector<std::pair<int64_t, int64_t>> &pad_width,
           double constant_value = 0);
using PadPair = std::pair<int64_t, int64_t>;
Tensor temporal_padding(const Tensor &x, PadPair padding = {1, 1});
Tensor spatial_2d_padding(const Tensor &x,
                          const std::vector<PadPair> &padding = {{1, 1},
                                                                 {1, 1}},
                          std::string_view data_format = "");
Tensor spatial_3d_padding(const Tensor &x,
                          const std::vector<PadPair> &padding = {{1, 1},
                                                                 {1, 1},
                                                                 {1, 1}},
                          std::string_view data_format = "");

//===----------------------------------------------------------------------===//
// Indexing and choice
//===----------------------------------------------------------------------===//

/// Rows of `reference`: `reference[indices]` along `axis`.
Tensor gather(const Tensor &reference, const Tensor &indices, int64_t axis = 0);
/// An index outside of 0..num_classes-1 gives zeros.
Tensor one_hot(const Tensor &indices, int64_t num_classes, int64_t axis = -1,
               DType dtype = floatx());
/// `condition` of a lower rank selects leading axes, as in Keras.
Tensor switch_(const Tensor &condition, const Tensor &then_expression,
               const Tensor &else_expression);
/// Whether the target class is among the `k` largest predictions.
Tensor in_top_k(const Tensor &predictions, const Tensor &targets, int64_t k);

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// The last axis of `x` with the second to last of `y` (the only one of a
/// vector).
Tensor dot(const Tensor &x, const Tensor &y);
/// `axes`: none, one for both, or one each.
Tensor batch_dot(const Tensor &x, const Tensor &y,
                 const std::vector<int64_t> &axes = {});
/// NumPy's matmul: leading axes broadcast.
Tensor matmul(const Tensor &x, const Tensor &y);
/// Sums of products over pairs of axes: NumPy's tensordot.
Tensor tensordot(const Tensor &x, const Tensor &y,
                 const std::vector<int64_t> &x_axes,
                 const std::vector<int64_t> &y_axes);
/// NumPy's einsum of one or more operands; `...` stands for leading axes.
Tensor einsum(std::string_view equation, const Tensors &operands);

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

Tensor softmax(const Tensor &x, int64_t axis = -1);
/// f(x) = max_value for x >= max_value, x for threshold <= x < max_value,
/// alpha (x - threshold) otherwise. `max_value` may be `None`.
Tensor relu(const Tensor &x, double alpha = 0, const Tensor &max_value = {},
            double threshold = 0);
Tensor relu6(const Tensor &x);
Tensor leaky_relu(const Tensor &x, double negative_slope = 0.2);
Tensor elu(const Tensor &x, double alpha = 1);
Tensor celu(const Tensor &x, double alpha = 1);
Tensor selu(const Tensor &x);
Tensor gelu(const Tensor &x, bool approximate = false);
Tensor silu(const Tensor &x);
Tensor mish(const Tensor &x);
Tensor softplus(const Tensor &x);
Tensor softsign(const Tensor &x);
/// clip(x/5 + 1/2, 0, 1) as in Keras 2; Keras 3 has x/6 + 1/2: see
/// hard_sigmoid3.
Tensor hard_sigmoid(const Tensor &x);
Tensor hard_sigmoid3(const Tensor &x);
Tensor hard_silu(const Tensor &x);
Tensor hard_tanh(const Tensor &x);
Tensor tanh_shrink(const Tensor &x);
Tensor hard_shrink(const Tensor &x, double threshold = 0.5);
Tensor soft_shrink(const Tensor &x, double threshold = 0.5);
Tensor threshold(const Tensor &x, double threshold, double default_value);
Tensor squareplus(const Tensor &x, double b = 4);
Tensor sparse_plus(const Tensor &x);
Tensor sparse_sigmoid(const Tensor &x);
Tensor log_sigmoid(const Tensor &x);
Tensor log_softmax(const Tensor &x, int64_t axis = -1);
Tensor glu(const Tensor &x, int64_t axis = -1);
Tensor l2_normalize(const Tensor &x, const Axes &axis = {});

//===----------------------------------------------------------------------===//
// Convolutions and pools. Kernels are spatial…, channels in / groups, channels
// out for both data formats; an empty data_format means image_data_format().
//===----------------------------------------------------------------------===//

using Ints = std::vector<int64_t>;

Tensor conv1d(const Tensor &x, const Tensor &kernel, int64_t strides = 1,
              const Padding &padding = "valid",
              std::string_view data_format = "", int64_t dilation_rate = 1,
              int64_t groups = 1);
Tensor conv2d(const Tensor &x, const Tensor &kernel,
              const Ints &strides = {1, 1}, const Padding &padding = "valid",
              std::string_view data_format = "",
              const Ints &dilation_rate = {1, 1}, int64_t groups = 1);
Tensor conv3d(const Tensor &x, const Tensor &kernel,
              const Ints &strides = {1, 1, 1}, const Padding &padding = "valid",
              std::string_view data_format = "",
              const Ints &dilation_rate = {1, 1, 1}, int64_t groups = 1);
/// Any number of spatial axes (1 to 3): the one that the others call.
Tensor conv(const Tensor &x, const Tensor &kernel, const Ints &strides,
            const Padding &padding, std::string_view data_format,
            const Ints &dilation_rate, int64_t groups = 1);

/// `depthwise_kernel` is spatial…, channels, multiplier.
Tensor depthwise_conv1d(const Tensor &x, const Tensor &depthwise_kernel,
                        int64_t strides = 1, const Padding &padding = "valid",
                        std::string_view data_format = "",
                        int64_t dilation_rate = 1);
Tensor depthwise_conv2d(const Tensor &x, const Tensor &depthwise_kernel,
                        const Ints &strides = {1, 1},
                        const Padding &padding = "valid",
                        std::string_view data_format = "",
                        const Ints &dilation_rate = {1, 1});
Tensor separable_conv1d(const Tensor &x, const Tensor &depthwise_kernel,
                        const Tensor &pointwise_kernel, int64_t strides = 1,
                        const Padding &padding = "valid",
                        std::string_view data_format = "",
                        int64_t dilation_rate = 1);
Tensor separable_conv2d(const Tensor &x, const Tensor &depthwise_kernel,
                        const Tensor &pointwise_kernel,
                        const Ints &strides = {1, 1},
                        const Padding &padding = "valid",
                        std::string_view data_format = "",
                        const Ints &dilation_rate = {1, 1});

/// The gradient of the convolution with respect to its input. `kernel` is
/// spatial…, channels out, channels in; `output_shape` has all axes, the batch
/// may be `None`; an explicit `padding` is that of the convolution.
Tensor conv1d_transpose(const Tensor &x, const Tensor &kernel,
                        const Shape &output_shape, int64_t strides = 1,
                        const Padding &padding = "valid",
                        std::string_view data_format = "",
                        int64_t dilation_rate = 1);
Tensor conv2d_transpose(const Tensor &x, const Tensor &kernel,
                        const Shape &output_shape, const Ints &strides = {1, 1},
                        const Padding &padding = "valid",
                        std::string_view data_format = "",
                        const Ints &dilation_rate = {1, 1});
Tensor conv3d_transpose(const Tensor &x, const Tensor &kernel,
                        const Shape &output_shape,
                        const Ints &strides = {1, 1, 1},
                        const Padding &padding = "valid",
                        std::string_view data_format = "",
                        const Ints &dilation_rate = {1, 1, 1});
Tensor conv_transpose(const Tensor &x, const Tensor &kernel,
                      const Shape &output_shape, const Ints &strides,
                      const Padding &padding, std::string_view data_format,
                      const Ints &dilation_rate);
/// The output shape that a ConvTranspose layer has; `output_padding` may be
/// empty.
Shape conv_transpose_output_shape(const Tensor &x, const Tensor &kernel,
                                  const Ints &strides, std::string_view padding,
                                  const Ints &output_padding,
                                  std::string_view data_format,
                                  const Ints &dilation_rate);

/// `pool_mode` is "max" or "avg", which does not count padding.
Tensor pool1d(const Tensor &x, int64_t pool_size, int64_t strides = 1,
              const Padding &padding = "valid",
              std::string_view data_format = "",
              std::string_view pool_mode = "max");
Tensor pool2d(const Tensor &x, const Ints &pool_size,
              const Ints &strides = {1, 1}, const Padding &padding = "valid",
              std::string_view data_format = "",
              std::string_view pool_mode = "max");
Tensor pool3d(const Tensor &x, const Ints &pool_size,
              const Ints &strides = {1, 1, 1}, const Padding &padding = "valid",
              std::string_view data_format = "",
              std::string_view pool_mode = "max");
/// Any number of spatial axes (1 to 3).
Tensor pool(const Tensor &x, const Ints &pool_size, const Ints &strides,
            const Padding &padding, std::string_view data_format,
            std::string_view pool_mode);
/// The mean or the maximum over all spatial axes.
Tensor global_pool(const Tensor &x, std::string_view data_format,
                   std::string_view pool_mode, bool keepdims = false);

/// `bias` has one axis (the channels) or all axes of `x` but the batch.
Tensor bias_add(const Tensor &x, const Tensor &bias,
                std::string_view data_format = "");

/// Upsampling by whole factors; bilinear samples as Keras 2 does.
Tensor resize_images(const Tensor &x, int64_t height_factor,
                     int64_t width_factor, std::string_view data_format,
                     std::string_view interpolation = "nearest");
Tensor resize_volumes(const Tensor &x, int64_t depth_factor,
                      int64_t height_factor, int64_t width_factor,
                      std::string_view data_format);
/// Resizes the two spatial axes to `size`; "nearest" or "bilinear" with the
/// centres of pixels at halves, as Keras 3 does.
Tensor resize(const Tensor &x, const Ints &size,
              std::string_view interpolation = "bilinear",
              std::string_view data_format = "");

//===----------------------------------------------------------------------===//
// Normalization
//===----------------------------------------------------------------------===//

/// `beta` and `gamma` may be `None`.
Tensor batch_normalization(const Tensor &x, const Tensor &mean,
                           const Tensor &var, const Tensor &beta,
                           const Tensor &gamma, int64_t axis = -1,
                           double epsilon = 1e-3);
struct BatchStatistics {
  Tensor normalized, mean, variance;
};
BatchStatistics normalize_batch_in_training(const Tensor &x,
                                            const Tensor &gamma,
                                            const Tensor &beta,
                                            const Axes &reduction_axes,
                                            double epsilon = 1e-3);
/// Zero mean and unit variance over `axis`; `gamma` and `beta` have the extents
/// of these axes, or are `None`.
Tensor layer_normalization(const Tensor &x, const Tensor &gamma,
                           const Tensor &beta, const Axes &axis = -1,
                           double epsilon = 1e-3);
/// x / sqrt(mean(x^2) + epsilon) * gamma.
Tensor rms_normalization(const Tensor &x, const Tensor &gamma,
                         const Axes &axis = -1, double epsilon = 1e-6);
/// `gamma` and `beta` have one element per channel, or are `None`.
Tensor group_normalization(const Tensor &x, int64_t groups, const Tensor &gamma,
                           const Tensor &beta, int64_t axis = -1,
                           double epsilon = 1e-3);

//===----------------------------------------------------------------------===//
// Losses
//===----------------------------------------------------------------------===//

Tensor categorical_crossentropy(const Tensor &target, const Tensor &output,
                                bool from_logits = false, int64_t axis = -1);
Tensor sparse_categorical_crossentropy(const Tensor &target,
                                       const Tensor &output,
                                       bool from_logits = false,
                                       int64_t axis = -1);
Tensor binary_crossentropy(const Tensor &target, const Tensor &output,
                           bool from_logits = false);

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// (input, states and then constants) to (output, new states).
using StepFunction = std::function<std::pair<Tensor, Tensors>(
    const Tensor &input, const Tensors &states)>;

/// The optional arguments of `rnn`.
struct RnnOptions {
  bool go_backwards = false;
  Tensor mask = {}; ///< (samples, time), of any dtype
  Tensors constants = {};
  bool unroll = false;
  std::optional<int64_t> input_length = std::nullopt;
  bool zero_output_for_mask = false;
  bool time_major = false; ///< inputs, outputs and mask are (time, samples, …)
};

struct RnnResult {
  Tensor last_output; ///< (samples, …)
  Tensor outputs;     ///< (samples, time, …), in the order of processing
  Tensors states;
};

/// Applies `step_function` to each time step of `inputs` (samples, time, …).
/// Where the mask is false the states are kept and the previous output is
/// repeated (zeros with `zero_output_for_mask`).
RnnResult rnn(const StepFunction &step_function, const Tensor &inputs,
              const Tensors &initial_states, const RnnOptions &options = {});

using UnaryFunction = std::function<Tensor(const Tensor &element)>;
using FoldFunction =
    std::function<Tensor(const Tensor &accumulator, const Tensor &element)>;
/// `fn` of each element along the first axis, stacked.
Tensor map_fn(const UnaryFunction &fn, const Tensor &elems);
/// Without an initializer the first (last) element is it.
Tensor foldl(const FoldFunction &fn, const Tensor &elems,
             const Tensor &initializer = {});
Tensor foldr(const FoldFunction &fn, const Tensor &elems,
             const Tensor &initializer = {});

} // namespace keratin::backend

#endif // KERATIN_BACKEND_H
