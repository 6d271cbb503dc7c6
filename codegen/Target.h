//===- Target.h - the machine that is compiled for --------------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_TARGET_H
#define KERATIN_CODEGEN_TARGET_H

#include "passes/Pipelines.h"

#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"

#include <memory>
#include <string>
#include <vector>

namespace keratin {

/// Keeps a machine for the next who asks for one like it: to make one takes
/// LLVM as long as to compile a small function.
struct KeepMachine {
  void operator()(llvm::TargetMachine *machine) const;
};
using MachinePtr = std::unique_ptr<llvm::TargetMachine, KeepMachine>;

/// What passes and emitters are told of a machine.
struct CodeShape {
  unsigned vectorBits = 128;
  unsigned vectorRegisters = 16;
  unsigned secondCacheKiB = 0; ///< 0: not known
  bool fma = true;             ///< one instruction multiplies and adds
  bool rounding = true;        ///< one instruction rounds to an integer
  bool avx512 = false;
  bool divides = false;      ///< a vector in less time than four products
  bool permutes = false;     ///< AVX2's eight f32 as soon as it multiplies
  bool fetchesAhead = false; ///< runs of memory, without being asked
  /// Those that one row meets sooner as integers of 24 bits than as f32.
  Weights24 weights24 = Weights24::None;
  /// Products gain by asking for weights that one row meets behind them.
  bool asksForLater = true;
  bool oneRun = false;       ///< of weights comes sooner than several do
  bool asksNextRows = false; ///< that the second cache has, ahead of a tile
  bool halfUnits = false;    ///< half a vector takes half the time of a vector
  bool sumsBeside = false;   ///< units for sums beside those for products
  unsigned storesAtOnce = 0; ///< that do not hold up products; 0: any number
  bool halves = false;       ///< instructions convert between f16 and f32
  DotUnit dots = DotUnit::None;
};

struct Target : CodeShape {
  MachinePtr machine;
  bool runsHere = false; ///< this process can execute the code
  std::string shape;     ///< of `SHAPE@MACHINE`; empty: that of the machine
  bool emulatesTiles = false; ///< its code has DotUnit::Tiles, the machine not

  /// "x86_64-unknown-linux-gnu, x86-64-v3".
  std::string description() const;
  /// The same once more: LLVM's machines serve one thread at a time.
  Target clone() const;
};

/// The target that a name of the command line stands for: native, an x86-64
/// level, aarch64-linux-gnu, or TRIPLE,CPU,FEATURES. Without `optimize` LLVM
/// spends little time on the code. Errors list what is allowed.
///
/// `SHAPE@MACHINE`, two of them, is the code that passes and emitters make for
/// SHAPE, with its vectors and registers, as LLVM generates it for MACHINE:
/// what tests the code of machines that are not there. Instructions that
/// MACHINE lacks are emulated.
llvm::Expected<Target> parseTarget(llvm::StringRef name, bool optimize);

/// The same for several, of which a program chooses: x86-64 levels with commas
/// between, from the least to the most capable one. Else one.
llvm::Expected<std::vector<Target>> parseTargets(llvm::StringRef names,
                                                 bool optimize);

} // namespace keratin

#endif // KERATIN_CODEGEN_TARGET_H
