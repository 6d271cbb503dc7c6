//===- CacheKey.cpp - what makes two compilations the same ----------------===//
#include "codegen/Compile.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/BLAKE3.h"

using namespace mlir;

namespace keratin {

namespace {

/// Writes a module as bytes that say all that counts, each part with its length
/// or a mark before it: two modules with the same bytes are the same. What has
/// been written before is a number.
class ModuleWriter {
public:
  explicit ModuleWriter(llvm::BLAKE3 &hash) : hash(hash) {}

  void write(ModuleOp module) {
    writeOp(*module);
    flush();
  }

private:
  void flush() {
    hash.update(pending.str());
    pending.clear();
  }
  void writeNumber(uint64_t value) {
    pending.append(
        llvm::StringRef(reinterpret_cast<const char *>(&value), sizeof value));
  }
  void writeBytes(llvm::StringRef bytes) {
    writeNumber(bytes.size());
    if (pending.size() + bytes.size() <= pending.capacity()) {
      pending.append(bytes);
      return;
    }
    flush();
    hash.update(bytes);
  }

  /// Whether `pointer`, of something unique, comes for the first time. Writes
  /// its number.
  bool isNew(const void *pointer) {
    auto [entry, inserted] = numbers.try_emplace(pointer, numbers.size());
    writeNumber(entry->second);
    return inserted;
  }

  void writeType(Type type) {
    if (!isNew(type.getAsOpaquePointer()))
      return;
    std::string text;
    llvm::raw_string_ostream os(text);
    type.print(os);
    writeBytes(text);
  }
  void writeTypes(TypeRange types) {
    writeNumber(types.size());
    for (Type type : types)
      writeType(type);
  }

  void writeAttribute(Attribute attribute) {
    // Containers are written each time: they may differ in what is left out.
    if (auto array = dyn_cast<ArrayAttr>(attribute)) {
      writeBytes("array");
      writeNumber(array.size());
      for (Attribute element : array)
        writeAttribute(element);
      return;
    }
    if (auto dictionary = dyn_cast<DictionaryAttr>(attribute)) {
      writeBytes("dictionary");
      return writeEntries(dictionary.getValue());
    }
    writeBytes("leaf");
    if (!isNew(attribute.getAsOpaquePointer()))
      return;
    if (auto resource = dyn_cast<DenseResourceElementsAttr>(attribute))
      return writeResource(resource);
    if (auto elements = dyn_cast<DenseIntOrFPElementsAttr>(attribute)) {
      writeBytes("dense");
      writeType(elements.getType());
      writeNumber(elements.isSplat());
      ArrayRef<char> data = elements.getRawData();
      return writeBytes(llvm::StringRef(data.data(), data.size()));
    }
    writeBytes("text");
    std::string text;
    llvm::raw_string_ostream os(text);
    attribute.print(os);
    writeBytes(text);
  }

  void writeResource(DenseResourceElementsAttr resource) {
    writeBytes("resource");
    writeType(resource.getType());
    // Its key is a name; printed, it would be all that is seen of it.
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    ArrayRef<char> data = blob ? blob->getData() : ArrayRef<char>();
    writeNumber(blob != nullptr);
    writeBytes(llvm::StringRef(data.data(), data.size()));
  }

  void writeEntries(ArrayRef<NamedAttribute> entries, StringRef skipped = "") {
    auto counts = [&](const NamedAttribute &entry) {
      return entry.getName() != "ktn.name" && entry.getName() != skipped;
    };
    writeNumber(llvm::count_if(entries, counts));
    for (const NamedAttribute &entry :
         llvm::make_filter_range(entries, counts)) {
      writeBytes(entry.getName());
      writeAttribute(entry.getValue());
    }
  }

  void writeValue(Value value) { isNew(value.getAsOpaquePointer()); }

  void writeOp(Operation &op) {
    writeBytes(op.getName().getStringRef());
    writeNumber(op.getNumOperands());
    for (Value operand : op.getOperands())
      writeValue(operand);
    auto symbol = dyn_cast<SymbolOpInterface>(op);
    writeEntries(op.getAttrDictionary().getValue(),
                 symbol && symbol.isPublic() ? SymbolTable::getSymbolAttrName()
                                             : StringRef());
    writeTypes(op.getResultTypes());
    for (Value result : op.getResults())
      writeValue(result);
    writeNumber(op.getNumSuccessors());
    for (Block *successor : op.getSuccessors())
      isNew(successor);
    writeNumber(op.getNumRegions());
    for (Region &region : op.getRegions())
      writeRegion(region);
  }

  void writeRegion(Region &region) {
    writeNumber(region.getBlocks().size());
    for (Block &block : region) {
      isNew(&block);
      writeTypes(block.getArgumentTypes());
      for (Value argument : block.getArguments())
        writeValue(argument);
      writeNumber(block.getOperations().size());
      for (Operation &op : block)
        writeOp(op);
    }
  }

  llvm::BLAKE3 &hash;
  llvm::SmallString<4096> pending; ///< hashed together: most parts are small
  /// Attributes, types, values and blocks in the order of their appearance.
  llvm::DenseMap<const void *, uint64_t> numbers;
};

} // namespace

CacheKey cacheKey(ModuleOp module, llvm::StringRef fingerprint) {
  llvm::BLAKE3 hash;
  hash.update(fingerprint);
  hash.update(StringRef("\0", 1));
  ModuleWriter(hash).write(module);
  return hash.final();
}

} // namespace keratin
