//===- Loop.cpp - rows of ops that step through time ----------------------===//
#include "OpTable.h"

#include <cmath>

namespace keratin::optest {

using S = const K::Shape &;
using X = const K::Tensors &;
using Inputs = const std::vector<Values> &;
using Vector = std::vector<double>;
/// The states of one sample after a step; the first one is the output.
using States = std::vector<Vector>;

//===----------------------------------------------------------------------===//
// Cells
//===----------------------------------------------------------------------===//

namespace {
/// A step of a recurrent layer, in the API and as a formula for one sample. The
/// inputs of its rows are x (samples, time, features), one start for each state
/// (samples, units), the weights, and the mask.
struct Cell {
  std::string name;
  size_t states;
  std::vector<K::Shape> weights;
  std::function<K::Tensors(const K::Tensor &input, const K::Tensors &states,
                           const K::Tensors &weights)>
      step;
  std::function<States(const Vector &input, const States &states,
                       const std::vector<Values> &weights)>
      formula;
};

struct Mode {
  bool backwards = false, masked = false, zeros = false, unroll = false;
  std::optional<int64_t> checkpointEvery = std::nullopt;
};
} // namespace

static constexpr int64_t steps = 4, features = 5, units = 2;

/// y[j] = sum over i of x[i] w[i, column + j]
static Vector times(const Vector &x, const Values &w, int64_t column = 0,
                    int64_t columns = units) {
  Vector y(columns);
  for (int64_t j = 0; j < columns; ++j)
    for (size_t i = 0; i < x.size(); ++i)
      y[j] += x[i] * w[{static_cast<int64_t>(i), column + j}];
  return y;
}

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// Columns of a matrix, or elements of a bias: part `index` of one `units`
/// wide.
static K::Tensor part(const K::Tensor &x, int64_t index) {
  K::Slice columns{index * units, (index + 1) * units};
  if (K::ndim(x) == 1)
    return K::getitem(x, {columns});
  return K::getitem(x, {K::Slice(), columns});
}

/// h' = tanh(x w + h u)
static Cell simpleCell() {
  return {"simple",
          1,
          {{features, units}, {units, units}},
          [](const K::Tensor &x, X states, X w) {
            return K::Tensors{
                K::tanh(K::dot(x, w[0]) + K::dot(states[0], w[1]))};
          },
          [](const Vector &x, const States &states, Inputs w) {
            Vector h = times(x, w[0]), fromState = times(states[0], w[1]);
            for (int64_t j = 0; j < units; ++j)
              h[j] = std::tanh(h[j] + fromState[j]);
            return States{h};
          }};
}

/// z = x w + h u + b in parts i, f, g, o; c' = f c + i g, h' = o tanh(c')
static Cell lstmCell() {
  return {"lstm",
          2,
          {{features, 4 * units}, {units, 4 * units}, {4 * units}},
          [](const K::Tensor &x, X states, X w) {
            K::Tensor z =
                K::bias_add(K::dot(x, w[0]) + K::dot(states[0], w[1]), w[2]);
            K::Tensor c = K::sigmoid(part(z, 1)) * states[1] +
                          K::sigmoid(part(z, 0)) * K::tanh(part(z, 2));
            return K::Tensors{K::sigmoid(part(z, 3)) * K::tanh(c), c};
          },
          [](const Vector &x, const States &states, Inputs w) {
            Vector z = times(x, w[0], 0, 4 * units);
            Vector fromState = times(states[0], w[1], 0, 4 * units);
            for (int64_t j = 0; j < 4 * units; ++j)
              z[j] += fromState[j] + w[2][{j}];
            Vector h(units), c(units);
            for (int64_t j = 0; j < units; ++j) {
              c[j] = sigmoid(z[units + j]) * states[1][j] +
                     sigmoid(z[j]) * std::tanh(z[2 * units + j]);
              h[j] = sigmoid(z[3 * units + j]) * std::tanh(c[j]);
            }
            return States{h, c};
          }};
}

/// r = sigmoid(x w0 + h u0), z = sigmoid(x w1 + h u1),
/// h' = z h + (1 - z) tanh(x w2 + (r h) u2); the step slices its weights.
static Cell gruCell() {
  return {"gru",
          1,
          {{features, 3 * units}, {units, 3 * units}},
          [](const K::Tensor &x, X states, X w) {
            K::Tensor h = states[0];
            auto gate = [&](const K::Tensor &from, int64_t index) {
              return K::dot(x, part(w[0], index)) +
                     K::dot(from, part(w[1], index));
            };
            K::Tensor r = K::sigmoid(gate(h, 0)), z = K::sigmoid(gate(h, 1));
            K::Tensor next = K::tanh(gate(r * h, 2));
            return K::Tensors{z * h + (1 - z) * next};
          },
          [](const Vector &x, const States &states, Inputs w) {
            Vector h = states[0];
            auto gate = [&](const Vector &from, int64_t index) {
              Vector y = times(x, w[0], index * units);
              Vector more = times(from, w[1], index * units);
              for (int64_t j = 0; j < units; ++j)
                y[j] += more[j];
              return y;
            };
            Vector r = gate(h, 0), z = gate(h, 1), reset = h;
            for (int64_t j = 0; j < units; ++j)
              reset[j] *= sigmoid(r[j]);
            Vector next = gate(reset, 2);
            for (int64_t j = 0; j < units; ++j) {
              double keep = sigmoid(z[j]);
              next[j] = keep * h[j] + (1 - keep) * std::tanh(next[j]);
            }
            return States{next};
          }};
}

//===----------------------------------------------------------------------===//
// rnn
//===----------------------------------------------------------------------===//

/// The outputs and then the last first state, side by side: (samples, time + 1,
/// units).
static Values runCell(const Cell &cell, const Mode &mode, Inputs x) {
  int64_t batch = x[0].shape[0];
  std::vector<Values> weights(x.begin() + 1 + cell.states,
                              x.begin() + 1 + cell.states +
                                  cell.weights.size());
  Values y({batch, steps + 1, units});
  for (int64_t b = 0; b < batch; ++b) {
    auto row = [&](const Values &from, K::Shape at, int64_t count) {
      Vector result;
      for (at.push_back(0); at.back() < count; ++at.back())
        result.push_back(from[at]);
      return result;
    };
    States states;
    for (size_t s = 0; s < cell.states; ++s)
      states.push_back(row(x[1 + s], {b}, units));
    Vector output(units);
    for (int64_t step = 0; step < steps; ++step) {
      int64_t t = mode.backwards ? steps - 1 - step : step;
      if (!mode.masked || x.back()[{b, t}] != 0) {
        states = cell.formula(row(x[0], {b, t}, features), states, weights);
        output = states[0];
      } else if (mode.zeros) {
        output.assign(units, 0);
      }
      for (int64_t j = 0; j < units; ++j)
        y[{b, step, j}] = output[j];
    }
    for (int64_t j = 0; j < units; ++j)
      y[{b, steps, j}] = states[0][j];
  }
  return y;
}

static K::Tensor applyCell(const Cell &cell, const Mode &mode, X x) {
  K::Tensors weights(x.begin() + 1 + cell.states,
                     x.begin() + 1 + cell.states + cell.weights.size());
  auto step = [&](const K::Tensor &input, const K::Tensors &states) {
    K::Tensors next = cell.step(input, states, weights);
    return std::pair(next[0], next);
  };
  K::RnnOptions options;
  options.go_backwards = mode.backwards;
  options.zero_output_for_mask = mode.zeros;
  options.unroll = mode.unroll;
  options.checkpoint_every = mode.checkpointEvery;
  if (mode.masked)
    options.mask = x.back();
  K::RnnResult result =
      K::rnn(step, x[0], {x.begin() + 1, x.begin() + 1 + cell.states}, options);
  return K::concatenate({result.outputs, K::expand_dims(result.states[0], 1)},
                        1);
}

static Row rnn(const Cell &cell, const Mode &mode = {}) {
  Row row = {.name = "rnn_" + cell.name,
             .shapes = {{tableBatch, steps, features}},
             .op = [=](X x) { return applyCell(cell, mode, x); },
             .formula = [=](Inputs x) { return runCell(cell, mode, x); },
             .low = -1,
             .high = 1,
             .tolerance = 4e-6};
  row.name += mode.backwards ? "_backwards" : "";
  row.name += mode.masked ? "_masked" : "";
  row.name += mode.zeros ? "_with_zeros" : "";
  row.name += mode.unroll ? "_unrolled" : "";
  row.name += mode.checkpointEvery
                  ? "_kept_every_" + std::to_string(*mode.checkpointEvery)
                  : "";
  row.shapes.insert(row.shapes.end(), cell.states, {tableBatch, units});
  row.shapes.insert(row.shapes.end(), cell.weights.begin(), cell.weights.end());
  row.weights = static_cast<int64_t>(cell.weights.size());
  if (mode.masked) {
    row.dtypes.assign(row.shapes.size(), DType::Float32);
    row.dtypes.push_back(DType::Int32);
    row.shapes.push_back({tableBatch, steps});
    row.classes = 2;
    row.weights = 0;
  }
  return row;
}

//===----------------------------------------------------------------------===//
// Loops over elements
//===----------------------------------------------------------------------===//

/// The first axis, which is any batch, is the one that the loop goes along.
static Row map() {
  return {.name = "map_fn",
          .shapes = {{tableBatch, 4}, {4, 5}},
          .op =
              [](X x) {
                auto fn = [&](const K::Tensor &row) {
                  return K::tanh(K::dot(K::expand_dims(row, 0), x[1]));
                };
                return K::squeeze(K::map_fn(fn, x[0]), 1);
              },
          .formula =
              [](Inputs x) {
                return generate({x[0].shape[0], 5}, [&](S i) {
                  double sum = 0;
                  for (int64_t k = 0; k < 4; ++k)
                    sum += x[0][{i[0], k}] * x[1][{k, i[1]}];
                  return std::tanh(sum);
                });
              },
          .tolerance = 4e-6,
          .weights = 1};
}

/// a * sin(x) + x of the accumulator a and each element; over pairs also of a
/// second sequence, which is added.
static Row fold(std::string name, bool fromRight, bool startsWithFirst,
                bool pairs) {
  auto op = [=](X x) {
    auto one = [](const K::Tensor &a, const K::Tensor &element) {
      return a * K::sin(element) + element;
    };
    K::Tensor start = startsWithFirst ? K::Tensor() : K::Tensor(0.5);
    if (!pairs)
      return fromRight ? K::foldr(one, x[0], start)
                       : K::foldl(one, x[0], start);
    auto two = [&](const K::Tensors &a, const K::Tensors &elements) {
      return K::Tensors{one(a[0], elements[0]) + elements[1], a[1] * a[0]};
    };
    K::Tensors all = K::foldl(two, {x[0], x[1]}, {start, 1.0});
    return all[0] * all[1];
  };
  auto formula = [=](Inputs x) {
    return generate({4}, [&](S i) {
      int64_t count = x[0].shape[0], begin = startsWithFirst ? 1 : 0;
      auto at = [&](const Values &from, int64_t t) {
        return from[{fromRight ? count - 1 - t : t, i[0]}];
      };
      double a = startsWithFirst ? at(x[0], 0) : 0.5, product = 1;
      for (int64_t t = begin; t < count; ++t) {
        double before = a;
        a = a * std::sin(at(x[0], t)) + at(x[0], t);
        if (pairs) {
          a += at(x[1], t);
          product *= before;
        }
      }
      return a * product;
    });
  };
  Row row = {.name = std::move(name),
             .shapes = {{tableBatch, 4}},
             .op = op,
             .formula = formula,
             .tolerance = 4e-6};
  if (pairs)
    row.shapes.push_back({tableBatch, 4});
  return row;
}

std::vector<Row> loopRows() {
  std::vector<Row> rows = {
      map(),
      fold("foldl", /*fromRight=*/false, /*startsWithFirst=*/true,
           /*pairs=*/false),
      fold("foldr", /*fromRight=*/true, /*startsWithFirst=*/true,
           /*pairs=*/false),
      fold("foldr_from_number", /*fromRight=*/true, /*startsWithFirst=*/false,
           /*pairs=*/false),
      fold("foldl_of_pairs", /*fromRight=*/false, /*startsWithFirst=*/false,
           /*pairs=*/true)};
  for (const Cell &cell : {simpleCell(), lstmCell(), gruCell()})
    for (const Mode &mode :
         {Mode{}, Mode{.backwards = true}, Mode{.masked = true},
          Mode{.backwards = true, .masked = true}, Mode{.checkpointEvery = 2}})
      rows.push_back(rnn(cell, mode));
  rows.push_back(rnn(lstmCell(), {.masked = true, .zeros = true}));
  rows.push_back(rnn(lstmCell(), {.unroll = true}));
  rows.push_back(rnn(gruCell(), {.masked = true, .unroll = true}));
  // One step is left over, in front or behind.
  rows.push_back(rnn(gruCell(), {.checkpointEvery = 3}));
  rows.push_back(rnn(gruCell(), {.backwards = true, .checkpointEvery = 3}));
  return rows;
}

} // namespace keratin::optest
