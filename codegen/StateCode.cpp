//===- StateCode.cpp - the state of a model as bytes ----------------------===//
#include "codegen/StateCode.h"

#include "codegen/EntryPoint.h"

#include <cstddef>

using namespace llvm;

namespace keratin {

static constexpr uint64_t stateVersion = 1;

/// The eight bytes of the magic word, read as a number.
static uint64_t magicNumber() {
  const char magic[8] = {'K', 'T', 'N', 'S', 'T', 'A', 'T', 'E'};
  uint64_t number = 0;
  for (unsigned index = 8; index-- > 0;)
    number = number << 8 | static_cast<unsigned char>(magic[index]);
  return number;
}

namespace {
/// `NAME_state_export` or `NAME_state_import`, up to where they differ:
/// (model, bytes, size), none null, of a model with state.
class StateEntry : public EntryPoint {
public:
  StateEntry(Module &module, const Twine &name, const ModelSignature &model)
      : EntryPoint(module, name,
                   {PointerType::getUnqual(module.getContext()),
                    PointerType::getUnqual(module.getContext()),
                    Type::getInt64Ty(module.getContext())}),
        model(model) {
    returnIfNull(argument(0));
    bytes = argument(1);
    returnIfNull(bytes);
    size = argument(2);
    // Set by init, like the state.
    returnIfNull(load(b.getPtrTy(), argument(0), ModelFields::arena));
    state = load(b.getPtrTy(), argument(0), ModelFields::state);
  }

  /// The word at `offset` of the bytes, which are aligned anyhow.
  Value *word(uint64_t offset) {
    return b.CreateAlignedLoad(b.getInt64Ty(), at(bytes, offset), Align(1));
  }
  void setWord(uint64_t offset, Value *value) {
    b.CreateAlignedStore(value, at(bytes, offset), Align(1));
  }
  /// The words that are the same for all states of this model.
  SmallVector<std::pair<uint64_t, uint64_t>> fixedWords() const {
    return {{offsetof(StateHeader, magic), magicNumber()},
            {offsetof(StateHeader, version), stateVersion},
            {offsetof(StateHeader, signatureHash), model.stateHash},
            {offsetof(StateHeader, stateBytes),
             static_cast<uint64_t>(model.stateBytes)},
            {offsetof(StateHeader, reserved), 0},
            {offsetof(StateHeader, reserved) + 8, 0},
            {offsetof(StateHeader, reserved) + 16, 0}};
  }
  uint64_t exportBytes() const {
    return sizeof(StateHeader) + model.stateBytes;
  }

  const ModelSignature &model;
  Value *bytes, *size, *state;
};
} // namespace

static void buildExport(Module &module, const ModelSignature &model,
                        StringRef name, Function *hash) {
  StateEntry entry(module, name + "_state_export", model);
  IRBuilder<> &b = entry.b;
  entry.returnIf(b.CreateICmpULT(entry.size, b.getInt64(entry.exportBytes())),
                 KTN_STATE_TOO_SMALL);
  for (auto [offset, value] : entry.fixedWords())
    entry.setWord(offset, b.getInt64(value));
  entry.setWord(offsetof(StateHeader, contentHash),
                b.CreateCall(hash, {entry.state}));
  b.CreateMemCpy(entry.at(entry.bytes, sizeof(StateHeader)), Align(1),
                 entry.state, Align(KTN_ALIGNMENT), model.stateBytes);
  entry.finish();
}

static void buildImport(Module &module, const ModelSignature &model,
                        StringRef name, Function *hash) {
  StateEntry entry(module, name + "_state_import", model);
  IRBuilder<> &b = entry.b;
  entry.returnIf(b.CreateICmpNE(entry.size, b.getInt64(entry.exportBytes())),
                 KTN_STATE_MISMATCH);
  for (auto [offset, value] : entry.fixedWords())
    entry.returnIf(b.CreateICmpNE(entry.word(offset), b.getInt64(value)),
                   KTN_STATE_MISMATCH);
  Value *content = entry.at(entry.bytes, sizeof(StateHeader));
  entry.returnIf(b.CreateICmpNE(b.CreateCall(hash, {content}),
                                entry.word(offsetof(StateHeader, contentHash))),
                 KTN_STATE_MISMATCH);
  b.CreateMemCpy(entry.state, Align(KTN_ALIGNMENT), content, Align(1),
                 model.stateBytes);
  entry.finish();
}

void addStateFunctions(Module &module, const ModelSignature &model,
                       StringRef name) {
  Function *hash = buildHash(module, name + "_state_hash", model.stateBytes);
  buildExport(module, model, name, hash);
  buildImport(module, model, name, hash);
}

} // namespace keratin
