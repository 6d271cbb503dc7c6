//===- Descriptor.cpp - what an artefact says of itself -------------------===//
#include "codegen/Descriptor.h"

#include "llvm/IR/IRBuilder.h"

#include <cstddef>

using namespace llvm;

namespace keratin {

namespace {
class DescriptorBuilder {
public:
  explicit DescriptorBuilder(Module &module)
      : module(module), b(module.getContext()) {}

  GlobalVariable *build(const ModelSignature &model, const Signature &signature,
                        const ArtefactOptions &options, const Twine &prefix,
                        const Twine &name, const DescriptorLinks &links);

private:
  Constant *text(StringRef value);
  Constant *pair(const int64_t (&values)[2]);
  Constant *table(ArrayRef<Constant *> rows, const Twine &name);
  Constant *tensorTable(ArrayRef<TensorSignature> tensors, const Twine &name);
  Constant *kernelTable(const Signature &signature, const Twine &name);
  Constant *inPlaceTable(const Signature &signature, const Twine &name);

  Module &module;
  IRBuilder<> b; // for types and constants
};
} // namespace

Constant *DescriptorBuilder::text(StringRef value) {
  Constant *bytes = ConstantDataArray::getString(module.getContext(), value);
  auto *global =
      new GlobalVariable(module, bytes->getType(), /*isConstant=*/true,
                         GlobalValue::PrivateLinkage, bytes, "text");
  global->setUnnamedAddr(GlobalValue::UnnamedAddr::Global);
  return global;
}

Constant *DescriptorBuilder::pair(const int64_t (&values)[2]) {
  return ConstantDataArray::get(module.getContext(), ArrayRef<int64_t>(values));
}

Constant *DescriptorBuilder::table(ArrayRef<Constant *> rows,
                                   const Twine &name) {
  if (rows.empty())
    return Constant::getNullValue(b.getPtrTy());
  auto *type = ArrayType::get(rows[0]->getType(), rows.size());
  return new GlobalVariable(module, type, /*isConstant=*/true,
                            GlobalValue::InternalLinkage,
                            ConstantArray::get(type, rows), name);
}

Constant *DescriptorBuilder::tensorTable(ArrayRef<TensorSignature> tensors,
                                         const Twine &name) {
  SmallVector<Constant *> rows;
  for (const TensorSignature &tensor : tensors) {
    std::vector<int64_t> shape = tensor.shape;
    shape.resize(KTN_MAX_RANK);
    rows.push_back(ConstantStruct::getAnon(
        {text(tensor.name), b.getInt32(tensor.dtype),
         b.getInt32(tensor.shape.size()),
         ConstantDataArray::get(module.getContext(),
                                ArrayRef<int64_t>(shape))}));
  }
  return table(rows, name);
}

Constant *DescriptorBuilder::kernelTable(const Signature &signature,
                                         const Twine &name) {
  SmallVector<Constant *> rows;
  for (const KernelRow &kernel : signature.kernels)
    rows.push_back(
        ConstantStruct::getAnon({text(kernel.name), text(kernel.op),
                                 pair(kernel.flops), pair(kernel.bytes)}));
  return table(rows, name);
}

Constant *DescriptorBuilder::inPlaceTable(const Signature &signature,
                                          const Twine &name) {
  if (llvm::all_of(signature.inPlace, [](int64_t input) { return input < 0; }))
    return Constant::getNullValue(b.getPtrTy());
  SmallVector<Constant *> inputs;
  for (int64_t input : signature.inPlace)
    inputs.push_back(b.getInt32(static_cast<int32_t>(input)));
  return table(inputs, name);
}

/// The fields of ktn_model_info_t, one by one. On a 64-bit target they lie as
/// they do here; the assertions notice a field that was added to only one.
GlobalVariable *DescriptorBuilder::build(const ModelSignature &model,
                                         const Signature &signature,
                                         const ArtefactOptions &options,
                                         const Twine &prefix, const Twine &name,
                                         const DescriptorLinks &links) {
  static_assert(sizeof(ktn_model_info_t) == 152 &&
                offsetof(ktn_model_info_t, num_inputs) == 40 &&
                offsetof(ktn_model_info_t, batch) == 80 &&
                offsetof(ktn_model_info_t, in_place) == 144);
  static_assert(sizeof(ktn_tensor_info_t) == 16 + 8 * KTN_MAX_RANK &&
                sizeof(ktn_kernel_info_t) == 48);
  Constant *null = Constant::getNullValue(b.getPtrTy());
  Constant *info = ConstantStruct::getAnon(
      {b.getInt32(KTN_ABI_VERSION),
       b.getInt32(sizeof(ktn_model_info_t)),
       text(options.name),
       text(compilerVersion()),
       text(options.target),
       text(options.options),
       b.getInt32(signature.inputs.size()),
       b.getInt32(signature.outputs.size()),
       b.getInt32(signature.kernels.size()),
       b.getInt32(0),
       tensorTable(signature.inputs, prefix + "_inputs"),
       tensorTable(signature.outputs, prefix + "_outputs"),
       kernelTable(signature, prefix + "_kernels"),
       b.getInt64(signature.batch),
       pair(signature.arenaBytes),
       b.getInt64(model.weightsBytes),
       b.getInt64(model.weightsHash),
       links.weights,
       links.run,
       links.setProfile ? static_cast<Constant *>(links.setProfile) : null,
       inPlaceTable(signature, prefix + "_in_place")});
  return new GlobalVariable(module, info->getType(), /*isConstant=*/true,
                            GlobalValue::ExternalLinkage, info, name);
}

GlobalVariable *buildDescriptor(Module &module, const ModelSignature &model,
                                const Signature &signature,
                                const ArtefactOptions &options,
                                const Twine &prefix, const Twine &name,
                                const DescriptorLinks &links) {
  return DescriptorBuilder(module).build(model, signature, options, prefix,
                                         name, links);
}

} // namespace keratin
