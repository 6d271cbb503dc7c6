//===- Shapes.cpp - elements in other places ------------------------------===//
#include "Extents.h"

#include "../Emit.h"
#include "keratin/backend.h"

#include <algorithm>
#include <numeric>

namespace keratin::backend {

//===----------------------------------------------------------------------===//
// Shapes that are computed
//===----------------------------------------------------------------------===//

Dims::Dims(const Tensor &extents) {
  Shape shape = int_shape(extents);
  if (!extents.id() || shape.size() != 1 || shape[0] == None)
    throw Error("a shape must be a tensor of one axis of known extent but has "
                "shape " +
                shapeName(shape));
  for (int64_t axis = 0; axis < shape[0]; ++axis)
    list.push_back(squeeze(slice(extents, {axis}, {1}), 0));
}

Tensor extentsOf(const Tensor &x) { return emit("shape", {x}); }

Tensor shape(const Tensor &x) {
  CalledAs function("shape");
  requireTensor(x, "shape", "x");
  return cast(extentsOf(x.id() ? x : constant(x.number())), DType::Int32);
}

Dims resolve(const Dims &dims) {
  std::vector<Dim> result;
  for (const Dim &dim : dims.values()) {
    if (!dim.tensor) {
      result.push_back(dim);
      continue;
    }
    if (dim.tensor.isNumber()) {
      result.push_back(static_cast<int64_t>(dim.tensor.number()));
      continue;
    }
    if (isFloat(dtype(dim.tensor)))
      throw Error("an extent has dtype " +
                  std::string(dtypeName(dtype(dim.tensor))) +
                  " but must be an integer");
    std::vector<std::optional<int64_t>> known = knownElements(dim.tensor);
    result.push_back(known.size() == 1 && known[0] ? Dim(*known[0]) : dim);
  }
  return result;
}

Shape knownExtents(const Dims &dims) {
  Shape shape;
  for (const Dim &dim : dims.values())
    shape.push_back(dim.tensor.id() ? None : dim.extent);
  return shape;
}

bool hasTensors(const Dims &dims) {
  return std::any_of(dims.values().begin(), dims.values().end(),
                     [](const Dim &dim) { return dim.tensor.id(); });
}

Tensor extentsTensor(const Dims &dims,
                     const std::function<Tensor(size_t)> &fallback) {
  Tensors parts;
  for (size_t axis = 0; axis < dims.values().size(); ++axis) {
    const Dim &dim = dims.values()[axis];
    Tensor part = dim.tensor.id() ? dim.tensor
                  : dim.extent == None
                      ? fallback(axis)
                      : constant(Array::of<int64_t>({}, {dim.extent}), "");
    parts.push_back(reshape(cast(part, DType::Int64), {1}));
  }
  return concatenate(parts, 0);
}

/// The product of the known extents.
static int64_t knownProduct(const Shape &shape) {
  int64_t product = 1;
  for (int64_t extent : shape)
    product *= extent == None ? 1 : extent;
  return product;
}

/// The extent that -1 stands for when all others are known.
static void inferExtent(const Tensor &x, Shape &target) {
  Shape from = int_shape(x);
  auto open = std::find(target.begin(), target.end(), None);
  if (open == target.end() ||
      std::find(from.begin(), from.end(), None) != from.end())
    return;
  int64_t others = knownProduct(target), elements = knownProduct(from);
  if (others == 0 || elements % others != 0)
    throw Error("reshape: a tensor of shape " + shapeName(from) +
                " cannot have the shape " + shapeName(target));
  *open = elements / others;
}

Tensor reshape(const Tensor &x, const Dims &dims) {
  requireTensor(x, "reshape", "x");
  Dims shape = resolve(dims);
  Shape target = knownExtents(shape);
  for (int64_t extent : target)
    if (extent < None)
      throw Error("reshape: shape " + shapeName(target) + " has the extent " +
                  std::to_string(extent));
  if (std::count(target.begin(), target.end(), None) <= 1) {
    inferExtent(x, target);
    return emit("reshape", {x}, {{"target", Extents{target}}});
  }
  size_t open = 0;
  for (const Dim &dim : shape.values())
    open += !dim.tensor.id() && dim.extent == None;
  if (open > 1)
    throw Error("reshape: shape " + shapeName(target) + " has " +
                std::to_string(open) + " unknown extents, one can be inferred");
  Tensor extents = extentsTensor(shape, [&](size_t) {
    Tensor others = constant(Array::of<int64_t>({}, {knownProduct(target)}));
    for (const Dim &dim : shape.values())
      if (dim.tensor.id())
        others = others * cast(dim.tensor, DType::Int64);
    return floor_divide(prod(extentsOf(x)), others);
  });
  return emit("reshape", {x, extents}, {{"target", Extents{target}}});
}

Tensor broadcast_to(const Tensor &x, const Dims &dims) {
  requireTensor(x, "broadcast_to", "x");
  Dims shape = resolve(dims);
  Shape from = int_shape(x), target = knownExtents(shape);
  if (from.size() > target.size())
    throw Error("broadcast_to: a tensor of shape " + shapeName(from) +
                " has more axes than the shape " + shapeName(target));
  size_t added = target.size() - from.size();
  for (size_t axis = 0; axis < target.size(); ++axis)
    if (!shape.values()[axis].tensor.id() && target[axis] == None) {
      if (axis < added)
        throw Error("broadcast_to: axis " + std::to_string(axis) +
                    " of the shape " + shapeName(target) +
                    " is unknown and not in x");
      target[axis] = from[axis - added];
    }
  Tensor extents;
  if (hasTensors(shape))
    extents = extentsTensor(shape, [&](size_t axis) {
      Dim dim = extent(x, static_cast<int64_t>(axis - added));
      return dim.tensor ? dim.tensor
                        : constant(Array::of<int64_t>({}, {dim.extent}));
    });
  return emit("broadcast_to", {x, extents}, {{"target", Extents{target}}},
              /*required=*/1);
}

/// The extents of x, as numbers where they are known.
static std::vector<Dim> dimsOf(const Tensor &x) {
  std::vector<Dim> dims;
  for (int64_t axis = 0; axis < ndim(x); ++axis)
    dims.push_back(extent(x, axis));
  return dims;
}

static Tensor asTensor(const Dim &dim) {
  return cast(dim.tensor ? dim.tensor
                         : constant(Array::of<int64_t>({}, {dim.extent})),
              DType::Int64);
}

static Dim multiply(const Dim &dim, const Dim &factor) {
  if (!dim.tensor && !factor.tensor)
    return dim.extent * factor.extent;
  return asTensor(dim) * asTensor(factor);
}

//===----------------------------------------------------------------------===//
// Axes
//===----------------------------------------------------------------------===//

Tensor flatten(const Tensor &x) {
  CalledAs function("flatten");
  return reshape(x, {-1});
}

Tensor batch_flatten(const Tensor &x) {
  CalledAs function("batch_flatten");
  Shape shape = int_shape(x);
  if (shape.empty())
    throw Error("batch_flatten: the tensor has no batch axis");
  Shape rest(shape.begin() + 1, shape.end());
  if (std::find(rest.begin(), rest.end(), None) == rest.end())
    return reshape(x, {shape[0], knownProduct(rest)});
  return reshape(x, {extent(x, 0), -1});
}

Tensor transpose(const Tensor &x) {
  std::vector<int64_t> axes(static_cast<size_t>(ndim(x)));
  std::iota(axes.rbegin(), axes.rend(), 0);
  return permute_dimensions(x, axes);
}

Tensor swapaxes(const Tensor &x, int64_t axis1, int64_t axis2) {
  std::vector<int64_t> axes(static_cast<size_t>(ndim(x)));
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[normalizeAxis(axis1, ndim(x), "swapaxes")],
            axes[normalizeAxis(axis2, ndim(x), "swapaxes")]);
  return permute_dimensions(x, axes);
}

Tensor moveaxis(const Tensor &x, int64_t source, int64_t destination) {
  source = normalizeAxis(source, ndim(x), "moveaxis");
  destination = normalizeAxis(destination, ndim(x), "moveaxis");
  if (source == destination)
    return x;
  std::vector<int64_t> axes(static_cast<size_t>(ndim(x)));
  std::iota(axes.begin(), axes.end(), 0);
  axes.erase(axes.begin() + source);
  axes.insert(axes.begin() + destination, source);
  return permute_dimensions(x, axes);
}

//===----------------------------------------------------------------------===//
// Joining and parting
//===----------------------------------------------------------------------===//

Tensor stack(const Tensors &x, int64_t axis) {
  CalledAs function("stack");
  Tensors expanded;
  for (const Tensor &tensor : x)
    expanded.push_back(expand_dims(tensor, axis));
  if (expanded.empty())
    throw Error("stack: there are no tensors");
  return concatenate(expanded, axis);
}

/// The elements from `begin` to `end` along one axis.
static Tensor sliceAxis(const Tensor &x, int64_t axis, int64_t begin,
                        int64_t end) {
  std::vector<Index> indices(static_cast<size_t>(axis), Slice{});
  indices.push_back(Slice{begin, end});
  return getitem(x, indices);
}

static int64_t requireExtent(const Tensor &x, int64_t axis,
                             const std::string &function) {
  int64_t extent = int_shape(x)[axis];
  if (extent == None)
    throw Error(function + ": the extent of axis " + std::to_string(axis) +
                " of a tensor of shape " + shapeName(int_shape(x)) +
                " must be known");
  return extent;
}

Tensors unstack(const Tensor &x, int64_t axis) {
  axis = normalizeAxis(axis, ndim(x), "unstack");
  Tensors parts;
  for (int64_t i = 0, count = requireExtent(x, axis, "unstack"); i < count; ++i)
    parts.push_back(squeeze(sliceAxis(x, axis, i, i + 1), axis));
  return parts;
}

Tensors split(const Tensor &x, int64_t parts, int64_t axis) {
  axis = normalizeAxis(axis, ndim(x), "split");
  int64_t extent = requireExtent(x, axis, "split");
  if (parts < 1 || extent % parts != 0)
    throw Error("split: axis " + std::to_string(axis) + " has extent " +
                std::to_string(extent) + ", which is not " +
                std::to_string(parts) + " equal parts");
  std::vector<int64_t> indices;
  for (int64_t part = 1; part < parts; ++part)
    indices.push_back(part * (extent / parts));
  return split(x, indices, axis);
}

Tensors split(const Tensor &x, const std::vector<int64_t> &indices,
              int64_t axis) {
  axis = normalizeAxis(axis, ndim(x), "split");
  int64_t extent = requireExtent(x, axis, "split"), begin = 0;
  Tensors parts;
  for (int64_t end : indices) {
    if (end < begin || end > extent)
      throw Error("split: index " + std::to_string(end) + " is not in " +
                  std::to_string(begin) + ".." + std::to_string(extent));
    parts.push_back(sliceAxis(x, axis, begin, end));
    begin = end;
  }
  parts.push_back(sliceAxis(x, axis, begin, extent));
  return parts;
}

//===----------------------------------------------------------------------===//
// Repeating
//===----------------------------------------------------------------------===//

Tensor repeat(const Tensor &x, int64_t n) {
  CalledAs function("repeat");
  if (ndim(x) != 2)
    throw Error("repeat: the tensor has shape " + shapeName(int_shape(x)) +
                " but must have 2 axes");
  if (n < 0) // which would leave the extent as it is
    throw Error("repeat: n is " + std::to_string(n) + " but must be 0 or more");
  return broadcast_to(expand_dims(x, 1), {-1, n, -1});
}

Tensor repeat_elements(const Tensor &x, int64_t rep, int64_t axis) {
  CalledAs function("repeat_elements");
  axis = normalizeAxis(axis, ndim(x), "repeat_elements");
  if (rep < 1)
    throw Error(std::string(CalledAs::current("repeat_elements")) +
                ": a number of repetitions is " + std::to_string(rep) +
                " but must be 1 or more");
  if (rep == 1)
    return x;
  Shape repeated(static_cast<size_t>(ndim(x) + 1), None);
  repeated[axis + 1] = rep;
  std::vector<Dim> merged = dimsOf(x);
  merged[axis] = multiply(merged[axis], rep);
  return reshape(broadcast_to(expand_dims(x, axis + 1), repeated), merged);
}

Tensor tile(const Tensor &x, const Dims &n) {
  CalledAs function("tile");
  requireTensor(x, "tile", "x");
  std::vector<Dim> counts = resolve(n).values();
  Tensor y = x;
  while (static_cast<int64_t>(counts.size()) < ndim(x))
    counts.insert(counts.begin(), 1);
  while (ndim(y) < static_cast<int64_t>(counts.size()))
    y = expand_dims(y, 0);

  // A new axis before each repeated one, which is then merged with it.
  std::vector<Dim> merged = dimsOf(y), repeated;
  std::vector<int64_t> added;
  for (size_t axis = 0; axis < counts.size(); ++axis) {
    const Dim &count = counts[axis];
    if (!count.tensor && count.extent < 0)
      throw Error("tile: n has the element " + std::to_string(count.extent));
    if (count.tensor || count.extent != 1) {
      added.push_back(static_cast<int64_t>(repeated.size()));
      repeated.push_back(count);
      merged[axis] = multiply(merged[axis], count);
    }
    repeated.push_back(None);
  }
  if (added.empty())
    return y;
  return reshape(broadcast_to(expand_dims(y, added), repeated), merged);
}

Tensor roll(const Tensor &x, int64_t shift, int64_t axis) {
  axis = normalizeAxis(axis, ndim(x), "roll");
  int64_t extent = requireExtent(x, axis, "roll");
  int64_t cut = extent == 0 ? 0 : ((-shift % extent) + extent) % extent;
  if (cut == 0)
    return x;
  return concatenate(
      {sliceAxis(x, axis, cut, extent), sliceAxis(x, axis, 0, cut)}, axis);
}

//===----------------------------------------------------------------------===//
// Padding
//===----------------------------------------------------------------------===//

Tensor temporal_padding(const Tensor &x, PadPair padding) {
  if (ndim(x) != 3)
    throw Error("temporal_padding: the tensor has shape " +
                shapeName(int_shape(x)) + " but must have 3 axes");
  return pad(x, {{0, 0}, padding, {0, 0}});
}

static Tensor padImage(const Tensor &x, std::vector<PadPair> padding,
                       std::string_view data_format, size_t spatial) {
  std::string format = normalize_data_format(data_format);
  if (ndim(x) != static_cast<int64_t>(spatial) + 2 || padding.size() != spatial)
    throw Error(std::string(CalledAs::current("spatial padding")) +
                ": the tensor has shape " + shapeName(int_shape(x)) +
                " and there are " + std::to_string(padding.size()) +
                " pairs but there must be " + std::to_string(spatial) +
                " spatial axes");
  padding.insert(padding.begin(), {0, 0});
  padding.insert(format == "channels_first" ? padding.begin() : padding.end(),
                 {0, 0});
  return pad(x, padding);
}

Tensor spatial_2d_padding(const Tensor &x, const std::vector<PadPair> &padding,
                          std::string_view data_format) {
  return padImage(x, padding, data_format, 2);
}

Tensor spatial_3d_padding(const Tensor &x, const std::vector<PadPair> &padding,
                          std::string_view data_format) {
  return padImage(x, padding, data_format, 3);
}

} // namespace keratin::backend
