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
// equal, logical_and, where, stop_gradient …) are in keratin/ops.h,
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
#include "keratin/cache.h"
#include "keratin/config.h"
#include "keratin/function.h"
#include "keratin/ops.h"
#include "keratin/tensor.h"

#include <functional>
#include <map>
#include <optional>
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

/// The scope under Keras' name: `auto layer = K::name_scope("conv");`
[[nodiscard]] inline NameScope name_scope(std::string_view name) {
  return NameScope(name);
}

/// "block1/conv", or empty outside of any.
std::string current_name_scope();

/// While it lives, what this thread makes waits for the assignments that
/// `tensors` depend on: a variable that is assigned is read with its new value,
/// and evaluating a tensor made in the scope from one made outside performs
/// the assignments too. A constant, placeholder or variable that is made in the
/// scope waits for nothing, and neither does what is made of such only.
///
///   K::ControlDependencies counted({K::update_add(count, 1)});
///   K::Tensor mean = total / count; // the new count
class ControlDependencies {
public:
  explicit ControlDependencies(const Tensors &tensors);
  ~ControlDependencies();
  ControlDependencies(const ControlDependencies &) = delete;
  ControlDependencies &operator=(const ControlDependencies &) = delete;
};

/// The scope under Keras' name: `auto counted = K::control_dependencies({…});`
[[nodiscard]] inline ControlDependencies
control_dependencies(const Tensors &control_inputs) {
  return ControlDependencies(control_inputs);
}

/// What Keras decorates its functions with. Every function here builds a graph
/// and there is no eager mode: both give `func` itself.
template <typename F> F symbolic(F func) { return func; }
template <typename F> F eager(F func) { return func; }

/// Counts calls for each prefix in the current graph, from 1.
int64_t get_uid(std::string_view prefix = "");
/// The count of each prefix so far.
std::map<std::string, int64_t> get_uids();
/// Forgets the counts of the current graph.
void reset_uids();
/// Keras' flag, kept and told, which changes nothing: a variable has its value
/// from the start.
void manual_variable_initialization(bool value);
/// What manual_variable_initialization was told.
bool is_manual_variable_initialization();

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// A value given when a function is called.
Tensor placeholder(const Shape &shape, DType dtype = floatx(),
                   std::string_view name = "");

/// State with an initial value. Its present value is `get_value`.
Tensor variable(const Array &value, std::string_view name = "");
Tensor variable(const Array &value, DType dtype, std::string_view name = "");
/// Starts with the present value of a tensor, or with a number as floatx().
Tensor variable(const Tensor &value, std::string_view name = "");
/// A variable of zeros.
Tensor zeros(const Shape &shape, DType dtype = floatx(),
             std::string_view name = "");
/// A variable of ones.
Tensor ones(const Shape &shape, DType dtype = floatx(),
            std::string_view name = "");

/// A matrix of which few elements are not zero, as scipy's csr_matrix: row r
/// has the elements data[i] in the columns indices[i] for i from indptr[r] to
/// below indptr[r + 1].
struct CsrArray {
  Array data, indices, indptr;
  Shape shape;
};
/// A sparse tensor whose elements are a variable: `dot` and `concatenate` work
/// on its elements; to all others it is the dense matrix.
Tensor variable(const CsrArray &value, DType dtype = floatx(),
                std::string_view name = "");
/// Whether x was made of a sparse matrix.
bool is_sparse(const Tensor &tensor);
/// `tensor` as one that is not sparse.
Tensor to_dense(const Tensor &tensor);

Tensor constant(const Array &value, std::string_view name = "");
Tensor constant(double value, DType dtype = floatx(), const Shape &shape = {},
                std::string_view name = "");
/// `value` broadcast to a shape that may be computed.
Tensor full(const Dims &shape, double value, DType dtype = floatx());
/// Zeros in the shape of x.
Tensor zeros_like(const Tensor &x, DType dtype = floatx(),
                  std::string_view name = "");
/// Ones in the shape of x.
Tensor ones_like(const Tensor &x, DType dtype = floatx(),
                 std::string_view name = "");
/// `value` in the shape of x.
Tensor full_like(const Tensor &x, double value);
/// The identity matrix.
Tensor eye(int64_t size, DType dtype = floatx(), std::string_view name = "");
Tensor identity(const Tensor &x, std::string_view name = "");
/// start, start + step … below stop; from 0 to below start without `stop`.
Tensor arange(int64_t start, std::optional<int64_t> stop = std::nullopt,
              int64_t step = 1, DType dtype = DType::Int32);
/// The same where bounds are scalar tensors.
Tensor arange(const Tensor &start, const Tensor &stop = {}, int64_t step = 1,
              DType dtype = DType::Int32);

/// Whether x is a value of a graph.
bool is_tensor(const Tensor &x);
/// Whether a call of a function gives x its value.
bool is_placeholder(const Tensor &x);
/// Whether x is state, which set_value and updates change.
bool is_variable(const Tensor &x);
/// Whether a layer of Keras has x as its input or output, as the inputs and
/// outputs of a loaded model are, and not just functions of the backend. Throws
/// Error for a number or `None`.
bool is_keras_tensor(const Tensor &x);
/// Makes x what is_keras_tensor tells: for code that builds layers.
void mark_as_keras_tensor(const Tensor &x);
/// The name of a placeholder or variable; empty for others.
std::string name(const Tensor &x);

/// The extents, as an int32 tensor.
Tensor shape(const Tensor &x);
Shape int_shape(const Tensor &x);
/// The element type.
DType dtype(const Tensor &x);
/// The number of axes.
int64_t ndim(const Tensor &x);
/// Number of elements; Throws Error when it is not known.
int64_t count_params(const Tensor &x);
/// Number of elements, computed in the graph.
Tensor size(const Tensor &x, std::string_view name = "");
/// One extent: a number when it is known, else a scalar int64 tensor.
Dim extent(const Tensor &x, int64_t axis);

/// The value of a tensor that depends on no placeholder. Performs the updates
/// that it depends on. Throws Error for a number, which is no tensor.
Array eval(const Tensor &x);
/// The same: Keras' name for variables.
Array get_value(const Tensor &x);
/// The values of several.
std::vector<Array> batch_get_value(const Tensors &tensors);
/// Converts to the variable's dtype. Throws Error when the shape is not its.
void set_value(const Tensor &x, const Array &value);
void batch_set_value(const std::vector<std::pair<Tensor, Array>> &tuples);

/// The new value of the variable `x`. Evaluating it, or a function that has it
/// among its outputs or updates, assigns it.
Tensor update(const Tensor &x, const Tensor &new_x);
/// The same for x + increment.
Tensor update_add(const Tensor &x, const Tensor &increment);
/// The same for x - decrement.
Tensor update_sub(const Tensor &x, const Tensor &decrement);
/// x - (x - value) (1 - momentum)
Tensor moving_average_update(const Tensor &x, const Tensor &value,
                             double momentum);

/// Computes `outputs`, and then makes the updates: those given and those that
/// an output depends on. All new values are computed from the old ones; of two
/// updates of one variable the second starts from what the first gave. Throws
/// Error when an output depends on a placeholder that is not an input.
Function function(const Tensors &inputs, const Tensors &outputs,
                  const std::vector<Update> &updates = {},
                  const FunctionNames &names = {},
                  const FunctionOptions &options = {});

/// `x`; each call of a function that computes it prints the message and the
/// value, after the call. A saved function computes the same and does not
/// print: let it have what is to be seen as an output. Throws Error inside the
/// step of a loop.
Tensor print_tensor(const Tensor &x, std::string_view message = "");
/// Where print_tensor prints; null for the standard output.
using PrintSink =
    std::function<void(const std::string &message, const Array &value)>;
void set_print_sink(PrintSink sink);
/// The elements as NumPy prints them.
std::string array_string(const Array &value);

/// d(sum of loss)/d(variable) for each; `None` where the loss does not depend
/// on it, or only through what has no derivative, such as argmax or round.
Tensors gradients(const Tensor &loss, const Tensors &variables);

/// A scalar bool tensor: what a function is fed for it, else false. A number
/// after set_learning_phase.
Tensor learning_phase();
/// What learning_phase() gives in the current graph from now on: 0 or 1.
void set_learning_phase(int value);
/// The number of set_learning_phase, none before.
std::optional<int> fixed_learning_phase();
/// Whether the value may depend on learning_phase().
bool uses_learning_phase(const Tensor &x);
/// `x` in training, `alt` otherwise. `training` is learning_phase() when it is
/// `None`; when it is a number only the branch that it chooses is made.
Tensor in_train_phase(const Branch &x, const Branch &alt,
                      const Tensor &training = {});
/// `alt` in training, `x` otherwise.
Tensor in_test_phase(const Branch &x, const Branch &alt,
                     const Tensor &training = {});

/// Where random ops without a seed take theirs; null for the system's own.
void set_seed_source(std::function<uint64_t()> source);
/// A number of that source.
uint64_t draw_seed();

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

Tensor operator+(const Tensor &a, const Tensor &b);
Tensor operator-(const Tensor &a, const Tensor &b);
Tensor operator*(const Tensor &a, const Tensor &b);
/// True division: integers of 32 and 64 bits are cast to float64, smaller ones
/// to float32.
Tensor operator/(const Tensor &a, const Tensor &b);
/// True division, as operator/.
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
/// `x` as floatx(), as Keras' layers take the weights that a user has.
Tensor cast_to_floatx(const Tensor &x);
Array cast_to_floatx(const Array &x);
/// x^2.
Tensor square(const Tensor &x);
/// Negative numbers count as 0.
Tensor sqrt(const Tensor &x);
/// 1 / x.
Tensor reciprocal(const Tensor &x);
/// Bounds may be `None`; a `max_value` below `min_value` counts as it.
Tensor clip(const Tensor &x, const Tensor &min_value, const Tensor &max_value);
/// Whether an element is NaN.
Tensor isnan(const Tensor &x);
/// Whether an element is neither infinite nor NaN.
Tensor isfinite(const Tensor &x);

//===----------------------------------------------------------------------===//
// Reductions and scans
//===----------------------------------------------------------------------===//

/// The sum of the elements.
Tensor sum(const Tensor &x, const Axes &axis = {}, bool keepdims = false);
/// The product of the elements.
Tensor prod(const Tensor &x, const Axes &axis = {}, bool keepdims = false);
/// The largest element; NaN if one is.
Tensor max(const Tensor &x, const Axes &axis = {}, bool keepdims = false);
/// The smallest element; NaN if one is.
Tensor min(const Tensor &x, const Axes &axis = {}, bool keepdims = false);
/// Elements other than 0 are true.
Tensor any(const Tensor &x, const Axes &axis = {}, bool keepdims = false);
/// Whether all elements are other than 0.
Tensor all(const Tensor &x, const Axes &axis = {}, bool keepdims = false);
/// The first of equal ones, as int64.
Tensor argmax(const Tensor &x, int64_t axis = -1, bool keepdims = false);
/// The first of equal ones, as int64.
Tensor argmin(const Tensor &x, int64_t axis = -1, bool keepdims = false);
/// Bools count as floatx().
Tensor mean(const Tensor &x, const Axes &axis = {}, bool keepdims = false);
/// Population variance.
Tensor var(const Tensor &x, const Axes &axis = {}, bool keepdims = false);
/// Population standard deviation.
Tensor std(const Tensor &x, const Axes &axis = {}, bool keepdims = false);
/// log(sum(e^x)), without overflow.
Tensor logsumexp(const Tensor &x, const Axes &axis = {}, bool keepdims = false);
/// Sums of the elements up to each along `axis`.
Tensor cumsum(const Tensor &x, int64_t axis = 0);
/// Products of the elements up to each along `axis`.
Tensor cumprod(const Tensor &x, int64_t axis = 0);

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

/// One extent may be -1: it follows from the number of elements.
Tensor reshape(const Tensor &x, const Dims &shape);
/// All elements on one axis.
Tensor flatten(const Tensor &x);
/// (samples, …) to (samples, features).
Tensor batch_flatten(const Tensor &x);
/// Axis i of the result is axis pattern[i] of x.
Tensor permute_dimensions(const Tensor &x, const std::vector<int64_t> &pattern);
/// Reverses the axes.
Tensor transpose(const Tensor &x);
/// Two axes change places.
Tensor swapaxes(const Tensor &x, int64_t axis1, int64_t axis2);
/// The axis `source` at the place `destination`.
Tensor moveaxis(const Tensor &x, int64_t source, int64_t destination);
/// Axes of extent 1, counted in the result.
Tensor expand_dims(const Tensor &x, const Axes &axis = -1);
/// x without axes of extent 1.
Tensor squeeze(const Tensor &x, const Axes &axis);
/// NumPy broadcasting; -1 keeps the extent of `x`.
Tensor broadcast_to(const Tensor &x, const Dims &shape);
/// Joins along an axis.
Tensor concatenate(const Tensors &tensors, int64_t axis = -1);
/// Tensors of one shape along a new axis.
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
/// `n` copies along each axis.
Tensor tile(const Tensor &x, const Dims &n);
/// The elements in the other order along `axes`.
Tensor reverse(const Tensor &x, const Axes &axes);
/// The elements moved by `shift`, the last ones to the front.
Tensor roll(const Tensor &x, int64_t shift, int64_t axis);
/// From `start`, `size` elements along each axis; -1 means all that follow. A
/// computed start is moved so that it is in x.
Tensor slice(const Tensor &x, const Dims &start, const Dims &size);

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
/// Zeros before and after axis 1 of three.
Tensor temporal_padding(const Tensor &x, PadPair padding = {1, 1});
/// Zeros around two spatial axes: {before, after} of each.
Tensor spatial_2d_padding(const Tensor &x,
                          const std::vector<PadPair> &padding = {{1, 1},
                                                                 {1, 1}},
                          std::string_view data_format = "");
/// Zeros around three spatial axes: {before, after} of each.
Tensor spatial_3d_padding(const Tensor &x,
                          const std::vector<PadPair> &padding = {{1, 1},
                                                                 {1, 1},
                                                                 {1, 1}},
                          std::string_view data_format = "");

//===----------------------------------------------------------------------===//
// Indexing and choice
//===----------------------------------------------------------------------===//

/// Rows of `reference`: `reference[indices]` along `axis`. The first
/// `batch_dims` axes of both are the same ones, and `axis` comes after them:
/// `reference[b, .., indices[b, ..], ..]`. An index outside is clamped.
Tensor gather(const Tensor &reference, const Tensor &indices, int64_t axis = 0,
              int64_t batch_dims = 0);
/// An index outside of 0..num_classes-1 gives zeros.
Tensor one_hot(const Tensor &indices, int64_t num_classes, int64_t axis = -1,
               DType dtype = floatx());
/// `condition` of a lower rank selects leading axes, as in Keras. The
/// expressions of a scalar one may differ in shape: then the condition is
/// computed first, and only what it selects after it. Of expressions of one
/// shape both are computed, unless the condition is known before a call, such
/// as a learning phase.
Tensor switch_(const Tensor &condition, const Branch &then_expression,
               const Branch &else_expression);
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

/// e^x / sum(e^x) along `axis`.
Tensor softmax(const Tensor &x, int64_t axis = -1);
/// f(x) = max_value for x >= max_value, x for threshold <= x < max_value,
/// alpha (x - threshold) otherwise. `max_value` may be `None`.
Tensor relu(const Tensor &x, double alpha = 0, const Tensor &max_value = {},
            double threshold = 0);
/// min(max(x, 0), 6).
Tensor relu6(const Tensor &x);
/// x for x >= 0, negative_slope x otherwise.
Tensor leaky_relu(const Tensor &x, double negative_slope = 0.2);
/// x for x > 0, alpha (e^x - 1) otherwise.
Tensor elu(const Tensor &x, double alpha = 1);
/// max(x, 0) + min(0, alpha (e^(x / alpha) - 1)).
Tensor celu(const Tensor &x, double alpha = 1);
/// 1.0507 elu(x, 1.67326).
Tensor selu(const Tensor &x);
/// x Phi(x) with the normal distribution Phi, or its approximation by tanh.
Tensor gelu(const Tensor &x, bool approximate = false);
/// x sigmoid(x).
Tensor silu(const Tensor &x);
/// x tanh(log(1 + e^x)).
Tensor mish(const Tensor &x);
/// log(1 + e^x), without overflow.
Tensor softplus(const Tensor &x);
/// x / (1 + |x|).
Tensor softsign(const Tensor &x);
/// clip(x/5 + 1/2, 0, 1) as in Keras 2; Keras 3 has x/6 + 1/2: see
/// hard_sigmoid3.
Tensor hard_sigmoid(const Tensor &x);
/// clip(x/6 + 1/2, 0, 1), as in Keras 3.
Tensor hard_sigmoid3(const Tensor &x);
/// x hard_sigmoid3(x).
Tensor hard_silu(const Tensor &x);
/// clip(x, -1, 1).
Tensor hard_tanh(const Tensor &x);
/// x - tanh(x).
Tensor tanh_shrink(const Tensor &x);
/// x where |x| > threshold, else 0.
Tensor hard_shrink(const Tensor &x, double threshold = 0.5);
/// x moved towards 0 by `threshold`, and 0 where it is nearer.
Tensor soft_shrink(const Tensor &x, double threshold = 0.5);
/// x where x > threshold, else default_value.
Tensor threshold(const Tensor &x, double threshold, double default_value);
/// (x + sqrt(x^2 + b)) / 2.
Tensor squareplus(const Tensor &x, double b = 4);
/// 0 below -1, x above 1, (x + 1)^2 / 4 between.
Tensor sparse_plus(const Tensor &x);
/// clip((x + 1) / 2, 0, 1).
Tensor sparse_sigmoid(const Tensor &x);
/// log(sigmoid(x)), without overflow.
Tensor log_sigmoid(const Tensor &x);
/// log(softmax(x)), without overflow.
Tensor log_softmax(const Tensor &x, int64_t axis = -1);
/// The first half along `axis` times the sigmoid of the second.
Tensor glu(const Tensor &x, int64_t axis = -1);
/// x / sqrt(max(sum(x^2), 1e-12)) over `axis`.
Tensor l2_normalize(const Tensor &x, const Axes &axis = {});

//===----------------------------------------------------------------------===//
// Convolutions and pools. Kernels are spatial…, channels in / groups, channels
// out for both data formats; an empty data_format means image_data_format().
//===----------------------------------------------------------------------===//

using Ints = std::vector<int64_t>;

/// Keras' convolutions: strides or a dilation, not both.
Tensor conv1d(const Tensor &x, const Tensor &kernel, int64_t strides = 1,
              const Padding &padding = "valid",
              std::string_view data_format = "", int64_t dilation_rate = 1,
              int64_t groups = 1);
/// Keras' convolution: strides or a dilation, not both.
Tensor conv2d(const Tensor &x, const Tensor &kernel,
              const Ints &strides = {1, 1}, const Padding &padding = "valid",
              std::string_view data_format = "",
              const Ints &dilation_rate = {1, 1}, int64_t groups = 1);
/// Keras' convolution: strides or a dilation, not both.
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
/// The same for two spatial axes.
Tensor depthwise_conv2d(const Tensor &x, const Tensor &depthwise_kernel,
                        const Ints &strides = {1, 1},
                        const Padding &padding = "valid",
                        std::string_view data_format = "",
                        const Ints &dilation_rate = {1, 1});
/// A depthwise convolution and then one of windows of 1.
Tensor separable_conv1d(const Tensor &x, const Tensor &depthwise_kernel,
                        const Tensor &pointwise_kernel, int64_t strides = 1,
                        const Padding &padding = "valid",
                        std::string_view data_format = "",
                        int64_t dilation_rate = 1);
/// The same for two spatial axes.
Tensor separable_conv2d(const Tensor &x, const Tensor &depthwise_kernel,
                        const Tensor &pointwise_kernel,
                        const Ints &strides = {1, 1},
                        const Padding &padding = "valid",
                        std::string_view data_format = "",
                        const Ints &dilation_rate = {1, 1});

/// The gradient of the convolution with respect to its input. `kernel` is
/// spatial…, channels out, channels in; `output_shape` has all axes. Its batch
/// is that of x; a spatial extent that is `None` is the one without output
/// padding, one that is a tensor follows from the shapes of a call. An explicit
/// `padding` is that of the convolution.
Tensor conv1d_transpose(const Tensor &x, const Tensor &kernel,
                        const Dims &output_shape, int64_t strides = 1,
                        const Padding &padding = "valid",
                        std::string_view data_format = "",
                        int64_t dilation_rate = 1);
/// The same for two spatial axes.
Tensor conv2d_transpose(const Tensor &x, const Tensor &kernel,
                        const Dims &output_shape, const Ints &strides = {1, 1},
                        const Padding &padding = "valid",
                        std::string_view data_format = "",
                        const Ints &dilation_rate = {1, 1});
/// The same for three spatial axes.
Tensor conv3d_transpose(const Tensor &x, const Tensor &kernel,
                        const Dims &output_shape,
                        const Ints &strides = {1, 1, 1},
                        const Padding &padding = "valid",
                        std::string_view data_format = "",
                        const Ints &dilation_rate = {1, 1, 1});
/// The same for any number of spatial axes (1 to 3).
Tensor conv_transpose(const Tensor &x, const Tensor &kernel,
                      const Dims &output_shape, const Ints &strides,
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
/// The same for two spatial axes.
Tensor pool2d(const Tensor &x, const Ints &pool_size,
              const Ints &strides = {1, 1}, const Padding &padding = "valid",
              std::string_view data_format = "",
              std::string_view pool_mode = "max");
/// The same for three spatial axes.
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

/// Convolutions with a matrix for each place of the result: `kernel` is
/// places, elements of a window, filters. (samples, steps, features) in either
/// format.
Tensor local_conv1d(const Tensor &inputs, const Tensor &kernel,
                    const Ints &kernel_size, const Ints &strides,
                    std::string_view data_format = "");
/// The places are those of `output_shape`, row by row. A window is flat in the
/// order of its axes in x.
Tensor local_conv2d(const Tensor &inputs, const Tensor &kernel,
                    const Ints &kernel_size, const Ints &strides,
                    const Ints &output_shape,
                    std::string_view data_format = "");

/// `bias` has one axis (the channels) or all axes of `x` but the batch.
Tensor bias_add(const Tensor &x, const Tensor &bias,
                std::string_view data_format = "");

/// Upsampling by whole factors; bilinear samples as Keras 2 does.
Tensor resize_images(const Tensor &x, int64_t height_factor,
                     int64_t width_factor, std::string_view data_format,
                     std::string_view interpolation = "nearest");
/// The same for three spatial axes: nearest elements.
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
/// x normalized by the mean and the variance over `reduction_axes`, and these.
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
// Random numbers. Each call of one of these functions makes a sequence of its
// own: from `seed`, or from draw_seed() without one. A compiled function gives
// the next numbers of it at each call; in one call all users of a tensor see
// the same numbers. They do not depend on threads, targets or optimisation.
//===----------------------------------------------------------------------===//

/// Uniform from `minval` to below `maxval`; integers are equally likely.
Tensor random_uniform(const Dims &shape, const Tensor &minval = 0.0,
                      const Tensor &maxval = 1.0, DType dtype = floatx(),
                      std::optional<uint64_t> seed = std::nullopt);
/// Normally distributed.
Tensor random_normal(const Dims &shape, const Tensor &mean = 0.0,
                     const Tensor &stddev = 1.0, DType dtype = floatx(),
                     std::optional<uint64_t> seed = std::nullopt);
/// Normal, without what is further than 2 `stddev` from `mean`.
Tensor truncated_normal(const Dims &shape, const Tensor &mean = 0.0,
                        const Tensor &stddev = 1.0, DType dtype = floatx(),
                        std::optional<uint64_t> seed = std::nullopt);
/// 1 with probability `p`, else 0.
Tensor random_binomial(const Dims &shape, const Tensor &p = 0.0,
                       DType dtype = floatx(),
                       std::optional<uint64_t> seed = std::nullopt);
/// Zeros with probability `level`, the other elements divided by 1 - level.
/// Decided for each element of `noise_shape`, which broadcasts to x; a `None`
/// of it is the extent of x.
Tensor dropout(const Tensor &x, double level,
               const std::optional<Dims> &noise_shape = std::nullopt,
               std::optional<uint64_t> seed = std::nullopt);
/// Variables that start with such numbers.
Tensor random_uniform_variable(const Shape &shape, double low, double high,
                               DType dtype = floatx(),
                               std::string_view name = "",
                               std::optional<uint64_t> seed = std::nullopt);
/// A variable that starts with normal numbers.
Tensor random_normal_variable(const Shape &shape, double mean, double scale,
                              DType dtype = floatx(),
                              std::string_view name = "",
                              std::optional<uint64_t> seed = std::nullopt);

//===----------------------------------------------------------------------===//
// Losses. Computed from the logits where a softmax or a sigmoid makes `output`.
//===----------------------------------------------------------------------===//

/// -sum(target * log(output)) over `axis`.
Tensor categorical_crossentropy(const Tensor &target, const Tensor &output,
                                bool from_logits = false, int64_t axis = -1);
/// The same for targets that are numbers of classes.
Tensor sparse_categorical_crossentropy(const Tensor &target,
                                       const Tensor &output,
                                       bool from_logits = false,
                                       int64_t axis = -1);
/// -(target log(output) + (1 - target) log(1 - output)).
Tensor binary_crossentropy(const Tensor &target, const Tensor &output,
                           bool from_logits = false);

//===----------------------------------------------------------------------===//
// Connectionist temporal classification: the last class is the blank
//===----------------------------------------------------------------------===//

/// The labels (samples, length) as a sparse tensor without what is behind the
/// `label_lengths` (samples).
Tensor ctc_label_dense_to_sparse(const Tensor &labels,
                                 const Tensor &label_lengths);
/// (samples, 1): minus the logarithm of the probability of the labels `y_true`
/// (samples, length) given the probabilities `y_pred` (samples, time, classes).
/// The lengths are (samples, 1). Infinite when the input is too short.
Tensor ctc_batch_cost(const Tensor &y_true, const Tensor &y_pred,
                      const Tensor &input_length, const Tensor &label_length);

struct CtcPaths {
  /// For each path the labels (samples, longest), int64, filled up with -1.
  Tensors decoded;
  /// (samples, paths): logarithms of the probabilities; of a greedy path minus
  /// the sum of the logarithms of its steps.
  Tensor log_prob;
};
/// The likeliest label sequences, decoded after a call by the program: they can
/// only be outputs of functions, and not be computed with. A saved function has
/// room for a label of a greedy path at each step, and none for beams.
/// `input_length` is (samples,). Of `greedy` only the path of the likeliest
/// classes; else a beam search as TensorFlow's, whose paths are without
/// repeated labels if `merge_repeated`.
CtcPaths ctc_decode(const Tensor &y_pred, const Tensor &input_length,
                    bool greedy = true, int64_t beam_width = 100,
                    int64_t top_paths = 1, bool merge_repeated = false);

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
  /// The gradient keeps one state in so many steps and computes the others
  /// again, to take less memory; all of them when it is not given.
  std::optional<int64_t> checkpoint_every = std::nullopt;
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

/// The same for several tensors whose first axes have one extent: functions of
/// the elements of all at one place.
using MapFunction = std::function<Tensors(const Tensors &elements)>;
using FoldsFunction = std::function<Tensors(const Tensors &accumulators,
                                            const Tensors &elements)>;
Tensors map_fn(const MapFunction &fn, const Tensors &elems);
Tensors foldl(const FoldsFunction &fn, const Tensors &elems,
              const Tensors &initializer = {});
Tensors foldr(const FoldsFunction &fn, const Tensors &elems,
              const Tensors &initializer = {});

} // namespace keratin::backend

#endif // KERATIN_BACKEND_H
