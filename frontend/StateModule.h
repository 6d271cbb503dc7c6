//===- StateModule.h - functions that share variables -----------*- C++ -*-===//
#ifndef KERATIN_FRONTEND_STATEMODULE_H
#define KERATIN_FRONTEND_STATEMODULE_H

#include "Extraction.h"

namespace keratin::backend {

/// One module of the functions of `parts`, each under its symbol. The state of
/// all is variables of the module with the present values: functions read and
/// assign them where they had arguments and results.
mlir::OwningOpRef<mlir::ModuleOp> joinWithState(Graph &graph,
                                                std::vector<Extraction> parts);

} // namespace keratin::backend

#endif // KERATIN_FRONTEND_STATEMODULE_H
