//===- RecurrentCells.h - the steps of recurrent layers ---------*- C++ -*-===//
#ifndef KERATIN_FRONTEND_MODEL_RECURRENTCELLS_H
#define KERATIN_FRONTEND_MODEL_RECURRENTCELLS_H

#include "Layer.h"

namespace keratin::model {

/// One step of a recurrent layer, with its weights. Shapes are without the
/// samples.
struct Cell {
  std::vector<K::Shape> states;
  K::Shape output;
  K::StepFunction step;
};

/// The spatial axes of the steps of a layer: two for ConvLSTM2D, none for LSTM.
size_t spatialAxesOfSteps(const std::string &className);

/// The cell of the class `className`, which may be a layer of one, for steps of
/// the shape `input`; without spatial axes its one extent is known. Takes its
/// weights from `layer`; fails where the class has none.
Cell makeCell(LayerContext &layer, const Config &config,
              const std::string &className, const K::Shape &input);

} // namespace keratin::model

#endif
