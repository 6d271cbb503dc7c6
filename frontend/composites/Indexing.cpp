//===- Indexing.cpp - parts and choices of elements -----------------------===//
#include "Extents.h"

#include "../Emit.h"
#include "keratin/backend.h"

#include <algorithm>

namespace keratin::backend {

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

/// The elements of x at start, start + 1 … along one axis.
static Tensor sliceComputed(const Tensor &x, int64_t axis, const Dim &start,
                            const Dim &size) {
  Dim count = size;
  if (!size.tensor && size.extent == -1) {
    Dim extent = backend::extent(x, axis);
    Tensor whole = extent.tensor ? extent.tensor : Tensor(extent.extent);
    count = cast(whole, DType::Int64) - cast(start.tensor, DType::Int64);
  }
  Tensor stop = count.tensor ? count.tensor
                             : constant(Array::of<int64_t>({}, {count.extent}));
  Tensor positions = arange(Tensor(0), stop, 1, DType::Int64);
  Tensor first =
      start.tensor ? cast(start.tensor, DType::Int64) : Tensor(start.extent);
  return gather(x, positions + first, axis);
}

Tensor slice(const Tensor &x, const Dims &start, const Dims &size) {
  CalledAs function("slice");
  requireTensor(x, "slice", "x");
  Shape shape = int_shape(x);
  std::vector<Dim> from = resolve(start).values(),
                   count = resolve(size).values();
  if (from.size() != shape.size() || count.size() != shape.size())
    throw Error("slice: start has " + std::to_string(from.size()) +
                " elements and size " + std::to_string(count.size()) +
                " but the tensor has shape " + shapeName(shape));
  std::vector<int64_t> starts, ends;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    bool computed = from[axis].tensor || count[axis].tensor;
    starts.push_back(computed ? 0 : from[axis].extent);
    ends.push_back(computed || count[axis].extent == -1
                       ? shape[axis]
                       : starts.back() + count[axis].extent);
  }
  Tensor y = emit("slice", {x},
                  {{"starts", starts},
                   {"ends", Extents{ends}},
                   {"strides", std::vector<int64_t>(shape.size(), 1)}});
  for (size_t axis = 0; axis < shape.size(); ++axis)
    if (from[axis].tensor || count[axis].tensor)
      y = sliceComputed(y, static_cast<int64_t>(axis), from[axis], count[axis]);
  return y;
}

namespace {

/// A part of one axis: `begin`, every `stride`-th below `end`.
struct Range {
  int64_t begin = 0, end = None, stride = 1;
};

/// Python's indexing. Indices are gathered as one range an axis and become one
/// slice at the end; an axis of unknown extent that is counted from its end is
/// reversed, cut and reversed back.
class Indexer {
public:
  explicit Indexer(const Tensor &x)
      : x(x), ranges(static_cast<size_t>(ndim(x))) {
    for (int64_t axis = 0; axis < ndim(x); ++axis)
      ranges[axis].end = int_shape(x)[axis];
  }

  Tensor run(const std::vector<Index> &indices) {
    int64_t axis = 0, added = 0;
    for (const Index &index : indices) {
      if (std::holds_alternative<Ellipsis>(index)) {
        axis = ndim(x) - countAxes(indices, index);
      } else if (std::holds_alternative<NewAxis>(index)) {
        newAxes.push_back(axis - dropped() + added++);
      } else {
        if (axis >= ndim(x))
          throw Error("getitem: " + std::to_string(axis + 1) +
                      " indices for a tensor of shape " +
                      shapeName(int_shape(x)));
        if (const int64_t *position = std::get_if<int64_t>(&index))
          select(axis, *position);
        else
          cut(axis, std::get<Slice>(index));
        ++axis;
      }
    }
    return finish();
  }

private:
  int64_t dropped() const { return static_cast<int64_t>(squeezed.size()); }

  /// The axes that the indices after an ellipsis take.
  int64_t countAxes(const std::vector<Index> &indices, const Index &ellipsis) {
    int64_t count = 0;
    for (const Index *index = &ellipsis + 1;
         index != indices.data() + indices.size(); ++index) {
      if (std::holds_alternative<Ellipsis>(*index))
        throw Error("getitem: there are two ellipses");
      count += !std::holds_alternative<NewAxis>(*index);
    }
    return count;
  }

  void select(int64_t axis, int64_t position) {
    int64_t extent = int_shape(x)[axis];
    if (extent != None && (position < -extent || position >= extent))
      throw Error("getitem: index " + std::to_string(position) + " on axis " +
                  std::to_string(axis) + " is out of a tensor of shape " +
                  shapeName(int_shape(x)));
    if (position < 0 && extent == None) {
      x = reverse(x, axis);
      position = -position - 1;
    } else if (position < 0) {
      position += extent;
    }
    ranges[axis] = {position, position + 1, 1};
    squeezed.push_back(axis);
  }

  void cut(int64_t axis, const Slice &slice) {
    if (slice.step == 0)
      throw Error("getitem: the step on axis " + std::to_string(axis) +
                  " is 0");
    int64_t extent = int_shape(x)[axis];
    if (extent == None)
      cutUnknown(axis, slice);
    else if (slice.step > 0)
      ranges[axis] = knownRange(slice, extent);
    else
      cutBackwards(axis, slice, extent);
  }

  /// Python's slice.indices for a positive step.
  static Range knownRange(const Slice &slice, int64_t extent) {
    auto bound = [&](int64_t at) {
      return std::clamp(at < 0 ? at + extent : at, int64_t(0), extent);
    };
    int64_t begin = bound(slice.start.value_or(0));
    int64_t end = bound(slice.stop.value_or(extent));
    return {begin, std::max(begin, end), slice.step};
  }

  void cutBackwards(int64_t axis, const Slice &slice, int64_t extent) {
    auto mirror = [&](int64_t at) {
      return extent - 1 -
             std::clamp(at < 0 ? at + extent : at, int64_t(-1), extent - 1);
    };
    x = reverse(x, axis);
    int64_t begin = slice.start ? mirror(*slice.start) : 0;
    int64_t end = slice.stop ? mirror(*slice.stop) : extent;
    ranges[axis] = {begin, std::max(begin, end), -slice.step};
  }

  void cutUnknown(int64_t axis, const Slice &slice) {
    bool startsAtEnd = slice.start && *slice.start < 0;
    bool stopsAtEnd = slice.stop && *slice.stop < 0;
    if (slice.step < 0 && !slice.start && !slice.stop) {
      x = reverse(x, axis);
      ranges[axis].stride = -slice.step;
    } else if (slice.step < 0 || (startsAtEnd && slice.stop && !stopsAtEnd)) {
      throw Error("getitem: this slice of axis " + std::to_string(axis) +
                  " needs its extent to be known");
    } else if (startsAtEnd || stopsAtEnd) {
      Range fromEnd{stopsAtEnd ? -*slice.stop : 0,
                    startsAtEnd ? -*slice.start : None, 1};
      ranges[axis] = fromEnd;
      x = apply(reverse(x, axis), axis);
      x = reverse(x, axis);
      ranges[axis] = {startsAtEnd ? 0 : slice.start.value_or(0), None,
                      slice.step};
    } else {
      ranges[axis] = {slice.start.value_or(0), slice.stop.value_or(None),
                      slice.step};
    }
  }

  /// Applies the range of one axis.
  Tensor apply(const Tensor &tensor, int64_t axis) {
    std::vector<Range> one(ranges.size());
    for (size_t other = 0; other < one.size(); ++other)
      one[other].end = int_shape(tensor)[other];
    one[axis] = ranges[axis];
    return emitSlice(tensor, one);
  }

  static Tensor emitSlice(const Tensor &x, const std::vector<Range> &ranges) {
    std::vector<int64_t> starts, ends, strides;
    bool whole = true;
    for (size_t axis = 0; axis < ranges.size(); ++axis) {
      starts.push_back(ranges[axis].begin);
      ends.push_back(ranges[axis].end);
      strides.push_back(ranges[axis].stride);
      whole = whole && ranges[axis].begin == 0 && ranges[axis].stride == 1 &&
              ranges[axis].end == int_shape(x)[axis];
    }
    if (whole)
      return x;
    return emit(
        "slice", {x},
        {{"starts", starts}, {"ends", Extents{ends}}, {"strides", strides}});
  }

  Tensor finish() {
    Tensor y = emitSlice(x, ranges);
    if (!squeezed.empty())
      y = squeeze(y, squeezed);
    return newAxes.empty() ? y : expand_dims(y, newAxes);
  }

  Tensor x;
  std::vector<Range> ranges;
  std::vector<int64_t> squeezed, newAxes;
};

} // namespace

Tensor getitem(const Tensor &x, const std::vector<Index> &indices) {
  CalledAs function("getitem");
  requireTensor(x, "getitem", "x");
  return Indexer(x).run(indices);
}

//===----------------------------------------------------------------------===//
// Choices
//===----------------------------------------------------------------------===//

Tensor one_hot(const Tensor &indices, int64_t num_classes, int64_t axis,
               DType dtype) {
  CalledAs function("one_hot");
  axis = normalizeAxis(axis, ndim(indices) + 1, "one_hot");
  if (num_classes < 0)
    throw Error("one_hot: num_classes is " + std::to_string(num_classes) +
                " but must be 0 or more");
  Tensor positions =
      isFloat(backend::dtype(indices)) ? cast(indices, DType::Int32) : indices;
  // Classes along `axis`, to be compared with the indices everywhere else.
  Shape shape(static_cast<size_t>(ndim(indices) + 1), 1);
  shape[axis] = num_classes;
  Tensor classes =
      reshape(arange(0, num_classes, 1, backend::dtype(positions)), shape);
  return cast(equal(expand_dims(positions, axis), classes), dtype);
}

Tensor in_top_k(const Tensor &predictions, const Tensor &targets, int64_t k) {
  CalledAs function("in_top_k");
  requireTensor(predictions, "in_top_k", "predictions");
  requireTensor(targets, "in_top_k", "targets");
  if (ndim(predictions) != 2 || ndim(targets) != 1)
    throw Error("in_top_k: predictions have shape " +
                shapeName(int_shape(predictions)) + " and targets " +
                shapeName(int_shape(targets)) +
                " but must have 2 axes and 1 axis");
  Tensor rows = cast(targets, DType::Int32);
  Tensor score = gather(predictions, rows, /*axis=*/1, /*batch_dims=*/1);
  Tensor better = greater(predictions, expand_dims(score, 1));
  Tensor count = sum(cast(better, DType::Int32), 1);
  Dim classes = extent(predictions, 1);
  Tensor limit = classes.tensor ? cast(classes.tensor, DType::Int32)
                                : Tensor(classes.extent);
  Tensor known = logical_and(greater_equal(rows, 0), less(rows, limit));
  // As in TensorFlow, a row with a number that is not finite says nothing.
  known = logical_and(known, all(isfinite(predictions), 1));
  return logical_and(less(count, k), known);
}

} // namespace keratin::backend
