//===- FoldConstants.cpp - what is known is computed on the host ----------===//
#include "passes/Passes.h"

#include "ir/Ktn.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_FOLDCONSTANTS
#include "passes/Passes.h.inc"

namespace {

constexpr int64_t alwaysFoldedBytes = int64_t(64) * 1024;
constexpr int64_t largestGrowth = 2;

int64_t byteSize(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.getNumElements() *
         llvm::divideCeil(tensor.getElementTypeBitWidth(), 8);
}

/// Bytes that a constant takes: those of one element when all are the same.
int64_t storedBytes(Operation *constant) {
  DenseElementsAttr dense;
  if (matchPattern(constant, m_Constant(&dense)) && dense.isSplat())
    return llvm::divideCeil(dense.getElementType().getIntOrFloatBitWidth(), 8);
  return byteSize(constant->getResult(0).getType());
}

/// All values that `op` reads, in its regions too.
SmallVector<Value> inputsOf(Operation *op) {
  llvm::SetVector<Value> inputs(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), inputs);
  return inputs.takeVector();
}

bool isConstant(Operation *op) {
  return op && op->hasTrait<OpTrait::ConstantLike>();
}

/// The constant expressions of one function.
class ConstantExpressions {
public:
  explicit ConstantExpressions(func::FuncOp function) {
    for (Operation &op : function.getBody().front())
      if (dependsOnConstantsOnly(op))
        computable.insert(&op);
    chooseRoots();
  }

  /// Values to be replaced by constants.
  ArrayRef<Value> getRoots() const { return roots; }

  /// Ops that compute them, constants included, operands first.
  SmallVector<Operation *> getOps() const {
    llvm::SetVector<Operation *> needed;
    for (Value root : roots)
      collect(root.getDefiningOp(), needed);
    return needed.takeVector();
  }

private:
  bool dependsOnConstantsOnly(Operation &op) const {
    auto isStatic = [](Type type) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      return tensor && tensor.hasStaticShape();
    };
    if (isConstant(&op) || op.getNumResults() == 0 ||
        !isa<ktn::KtnDialect>(op.getDialect()) || !isMemoryEffectFree(&op) ||
        !llvm::all_of(op.getResultTypes(), isStatic))
      return false;
    return llvm::all_of(inputsOf(&op), [&](Value input) {
      Operation *source = input.getDefiningOp();
      return isConstant(source) || computable.contains(source);
    });
  }

  /// From the last to the first: an expression that is used by what is not
  /// folded is a root, or, when its value is too large, stays for run time.
  void chooseRoots() {
    llvm::DenseSet<Operation *> folded;
    for (Operation *op : llvm::reverse(computable)) {
      auto isUsedAtRunTime = [&](Value result) {
        return llvm::any_of(result.getUsers(), [&](Operation *user) {
          return !folded.contains(op->getBlock()->findAncestorOpInBlock(*user));
        });
      };
      SmallVector<Value> used;
      llvm::copy_if(op->getResults(), std::back_inserter(used),
                    isUsedAtRunTime);
      if (!used.empty() && !isWorthStoring(op))
        continue;
      folded.insert(op);
      llvm::append_range(roots, used);
    }
  }

  bool isWorthStoring(Operation *op) const {
    if (op->hasAttr(storedAttr))
      return true;
    int64_t result = 0, inputs = 0;
    for (Type type : op->getResultTypes())
      result += byteSize(type);
    if (result <= alwaysFoldedBytes)
      return true;
    llvm::SetVector<Operation *> needed;
    collect(op, needed);
    for (Operation *source : needed)
      if (isConstant(source))
        inputs += storedBytes(source);
    return result <= largestGrowth * inputs;
  }

  void collect(Operation *op, llvm::SetVector<Operation *> &needed) const {
    // Iterative: a long chain of ops must not exhaust the stack.
    SmallVector<std::pair<Operation *, bool>> pending = {{op, false}};
    while (!pending.empty()) {
      auto [next, inputsDone] = pending.pop_back_val();
      if (needed.contains(next))
        continue;
      if (inputsDone) {
        needed.insert(next);
        continue;
      }
      pending.push_back({next, true});
      for (Value input : inputsOf(next))
        pending.push_back({input.getDefiningOp(), false});
    }
  }

  llvm::SetVector<Operation *> computable;
  SmallVector<Value> roots;
};

/// A module with a function @evaluate that returns the roots.
OwningOpRef<ModuleOp> buildEvaluation(const ConstantExpressions &expressions,
                                      Location loc) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  OpBuilder b = OpBuilder::atBlockBegin(module->getBody());
  auto type =
      b.getFunctionType({}, ValueRange(expressions.getRoots()).getTypes());
  auto function = func::FuncOp::create(b, loc, "evaluate", type);
  b.setInsertionPointToStart(function.addEntryBlock());
  IRMapping mapping;
  for (Operation *op : expressions.getOps())
    b.clone(*op, mapping);
  SmallVector<Value> results;
  for (Value root : expressions.getRoots())
    results.push_back(mapping.lookup(root));
  func::ReturnOp::create(b, loc, results);
  return module;
}

struct FoldConstants : impl::FoldConstantsBase<FoldConstants> {
  FoldConstants() = default;
  explicit FoldConstants(ConstantEvaluator evaluator)
      : evaluate(std::move(evaluator)) {}

  void runOnOperation() override {
    foldUnassignedVariables();
    if (!evaluate)
      return;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() && failed(fold(function)))
        return signalPassFailure();
  }

private:
  /// A variable that nobody assigns always has its initial value.
  void foldUnassignedVariables() {
    llvm::DenseSet<StringAttr> assigned;
    getOperation().walk([&](ktn::AssignOp op) {
      assigned.insert(op.getVariableAttr().getAttr());
    });
    SymbolTable symbols(getOperation());
    getOperation().walk([&](ktn::ReadOp op) {
      StringAttr name = op.getVariableAttr().getAttr();
      auto variable = symbols.lookup<ktn::VariableOp>(name);
      if (!variable || assigned.contains(name))
        return;
      OpBuilder b(op);
      op.replaceAllUsesWith(
          ktn::ConstantOp::create(b, op.getLoc(), variable.getInitialValue())
              .getResult());
      op.erase();
    });
    for (auto variable :
         llvm::make_early_inc_range(getOperation().getOps<ktn::VariableOp>()))
      if (SymbolTable::symbolKnownUseEmpty(variable, getOperation()))
        variable.erase();
  }

  LogicalResult fold(func::FuncOp function) {
    ConstantExpressions expressions(function);
    if (expressions.getRoots().empty())
      return success();
    OwningOpRef<ModuleOp> module =
        buildEvaluation(expressions, function.getLoc());
    FailureOr<SmallVector<ElementsAttr>> values = evaluate(*module);
    if (failed(values))
      return failure();
    for (auto [constRoot, value] :
         llvm::zip_equal(expressions.getRoots(), *values)) {
      Value root = constRoot;
      OpBuilder b(root.getDefiningOp());
      Value constant = ktn::ConstantOp::create(b, root.getLoc(), value);
      root.replaceAllUsesWith(constant);
    }
    SmallVector<Operation *> ops = expressions.getOps();
    for (Operation *op : llvm::reverse(ops))
      if (op->use_empty())
        op->erase();
    return success();
  }

  ConstantEvaluator evaluate;
};

} // namespace

std::unique_ptr<Pass> createFoldConstants(ConstantEvaluator evaluate) {
  return std::make_unique<FoldConstants>(std::move(evaluate));
}

} // namespace keratin
