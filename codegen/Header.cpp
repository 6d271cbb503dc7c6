//===- Header.cpp - the typed C header of a model -------------------------===//
#include "codegen/Header.h"

#include "codegen/Artefact.h"
#include "codegen/EmbeddedText.h"
#include "codegen/StateCode.h"
#include "keratin/dtype.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace keratin {

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// Keywords of C23 and C++20, macros that C implementations define in lower
/// case, and the names that every header uses for its own parameters.
static const StringSet<> &takenNames() {
  static const StringRef words =
      "alignas alignof and and_eq asm assert auto bitand bitor bool break "
      "case catch char char8_t char16_t char32_t class compl concept const "
      "consteval constexpr constinit const_cast continue co_await co_return "
      "co_yield decltype default delete do double dynamic_cast else enum "
      "errno explicit export extern false float for friend goto i386 if "
      "inline int linux long mutable namespace new noexcept not not_eq "
      "nullptr operator or or_eq private protected public register "
      "reinterpret_cast requires restrict return short signed sizeof static "
      "static_assert static_cast stderr stdin stdout struct switch template "
      "this thread_local throw true try typedef typeid typename typeof "
      "typeof_unqual union unix unsigned using virtual void volatile wchar_t "
      "while xor xor_eq model batch";
  static const StringSet<> names = [] {
    StringSet<> set;
    for (StringRef word : split(words, ' '))
      set.insert(word);
    return set;
  }();
  return names;
}

/// Only letters, digits and '_'. Leading '_' are reserved, upper case is for
/// macros, `_t` is for types: none of them survives.
static std::string sanitize(StringRef name) {
  std::string result;
  for (char c : name)
    result.push_back(isAlnum(c) ? c : '_');
  result = StringRef(result).ltrim('_').str();
  if (result.empty() || isDigit(result[0]))
    result = "x" + result;
  if (none_of(result, [](char c) { return c >= 'a' && c <= 'z'; }))
    result = StringRef(result).lower();
  if (StringRef(result).ends_with("_t"))
    result += '_';
  return result;
}

std::vector<std::string> parameterNames(ArrayRef<std::string> names) {
  StringSet<> used;
  std::vector<std::string> result;
  for (const std::string &name : names) {
    std::string base = sanitize(name), unique = base;
    for (unsigned number = 2;
         takenNames().contains(unique) || !used.insert(unique).second; ++number)
      unique = base + "_" + std::to_string(number);
    result.push_back(std::move(unique));
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static StringRef cType(ktn_dtype_t dtype) {
  return ktn_dtype_row(dtype)->c_type;
}

static std::string describe(ktn_dtype_t dtype) {
  std::string name = ktn_dtype_row(dtype)->name;
  if (dtype == KTN_BOOL)
    return name + ", each 0 or 1";
  if (dtype == KTN_F16)
    return name + ", the bits of IEEE binary16";
  if (dtype == KTN_BF16)
    return name + ", the upper 16 bits of a float";
  return name;
}

/// `[batch][28][28]`.
static std::string shapeText(const TensorSignature &tensor) {
  std::string text;
  for (int64_t extent : tensor.shape)
    text += "[" + (extent < 0 ? "batch" : std::to_string(extent)) + "]";
  return text.empty() ? "one value" : text;
}

/// Text of a file's that must not end a comment.
static std::string commentSafe(StringRef text) {
  std::string result;
  for (char c : text)
    result.push_back(isPrint(c) && c != '*' && c != '$' ? c : '?');
  return result;
}

namespace {
class HeaderWriter {
public:
  HeaderWriter(const ModelSignature &model, const HeaderOptions &options)
      : model(model), name(options.name),
        upper(StringRef(options.name).upper()), target(options.target),
        external(options.externalWeights && model.weightsBytes > 0), os(text) {}

  std::string write() {
    writeOpening();
    writeConstants();
    writeModel();
    writeInit();
    for (const Signature &function : model.functions)
      writeEntry(function);
    if (model.hasState())
      writeState();
    writeCreate();
    writeClosing();
    return std::move(text);
  }

private:
  void writeOpening();
  void writeConstants();
  void writeModel();
  void writeInit();
  void writeEntry(const Signature &function);
  void writeState();
  void writeCreate();
  void writeClosing();
  void comment(StringRef text);
  bool isFirst(const Signature &function) const {
    return &function == &model.functions[0];
  }
  /// Of the names that say how to run one function by its descriptor.
  std::string prefixOf(const Signature &function) const {
    return isFirst(function) ? name : name + "_" + function.entry;
  }
  std::string withNames(StringRef text) const;

  /// The only batch of all functions, or -1.
  int64_t pinnedBatch() const {
    int64_t batch = model.functions[0].batch;
    for (const Signature &function : model.functions)
      if (function.batch != batch)
        return -1;
    return batch;
  }
  int64_t maxBatch() const {
    int64_t largest = INT64_MAX;
    for (const Signature &function : model.functions)
      largest = std::min(largest, function.maxBatch());
    return largest;
  }

  const ModelSignature &model;
  std::string name, upper, target;
  bool external;
  std::string text;
  raw_string_ostream os;
};
} // namespace

void HeaderWriter::writeOpening() {
  os << "/* " << name << ".h - generated by " << compilerVersion() << " for "
     << commentSafe(target) << ". C11 and C++. */\n"
     << "#ifndef KERATIN_MODEL_" << upper << "_H\n"
     << "#define KERATIN_MODEL_" << upper << "_H\n\n"
     << "#include <stddef.h>\n#include <stdint.h>\n\n"
     << embeddedStatusHeader << "\n"
     << embeddedHooksHeader << "\n"
     << "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
}

/// Breaks a line at spaces where it would be longer than `width`; what follows
/// is indented like the line.
static std::vector<std::string> wrap(StringRef line, size_t width) {
  StringRef words = line.ltrim(' ');
  std::string indent(line.size() - words.size(), ' ');
  std::vector<std::string> lines = {indent};
  for (StringRef word : split(words, ' ')) {
    if (lines.back().size() > indent.size() &&
        lines.back().size() + 1 + word.size() > width)
      lines.push_back(indent);
    if (lines.back().size() > indent.size())
      lines.back() += ' ';
    lines.back() += word;
  }
  return lines;
}

/// A doc comment of `text`, wrapped; its lines end where it says, too. `$name`
/// and `$NAME` stand for the model.
void HeaderWriter::comment(StringRef text) {
  std::string words = withNames(text);
  std::vector<std::string> lines;
  for (StringRef line : split(words, '\n'))
    llvm::append_range(lines, wrap(line, 77));
  if (lines.size() == 1 && lines[0].size() <= 73) {
    os << "/** " << lines[0] << " */\n";
    return;
  }
  os << "/**\n";
  for (const std::string &line : lines)
    os << (line.empty() ? " *" : " * ") << line << "\n";
  os << " */\n";
}

std::string HeaderWriter::withNames(StringRef text) const {
  std::string result;
  while (!text.empty()) {
    size_t dollar = std::min(text.find('$'), text.size());
    result += text.take_front(dollar);
    text = text.drop_front(dollar);
    if (text.consume_front("$name"))
      result += name;
    else if (text.consume_front("$NAME"))
      result += upper;
  }
  return result;
}

void HeaderWriter::writeConstants() {
  comment(external ? "Alignment in bytes of the arena and of the weights."
                   : "Alignment in bytes of the arena.");
  os << "#define " << upper << "_ARENA_ALIGN " << KTN_ALIGNMENT << "\n";
  int64_t fixed = 0, perBatch = 0, least = 0;
  for (const Signature &function : model.functions) {
    fixed = std::max(fixed, function.arenaBytes[0] + function.updateBytes);
    perBatch = std::max(perBatch, function.arenaBytes[1]);
    int64_t batch = std::max<int64_t>(1, function.batch);
    least = std::max(least, function.arenaLeast[0] +
                                batch * function.arenaLeast[1] +
                                function.updateBytes);
  }
  std::string text = "Bytes of arena that a run with `batch` needs.";
  if (least > 0)
    text += " Of the batch " +
            std::to_string(std::max<int64_t>(1, model.functions[0].batch)) +
            ", " + std::to_string(least) + " are in use at the same time.";
  comment(text);
  os << "#define " << upper << "_ARENA_BYTES(batch) \\\n  ((size_t)" << fixed
     << " + (size_t)" << perBatch << " * (size_t)(batch))\n";
  if (model.hasState()) {
    comment(
        "Bytes of the state of one model, aligned like the arena, and of the "
        "same for files.");
    os << "#define " << upper << "_STATE_BYTES ((size_t)" << model.stateBytes
       << ")\n"
       << "#define " << upper << "_STATE_EXPORT_BYTES ((size_t)"
       << model.stateBytes + sizeof(StateHeader) << ")\n";
  }
  if (external) {
    comment("Bytes of the weights, a file of its own.");
    os << "#define " << upper << "_WEIGHTS_BYTES ((size_t)"
       << model.weightsBytes << ")\n";
  }
  if (pinnedBatch() >= 0) {
    comment("The only batch that this model takes.");
    os << "#define " << upper << "_BATCH " << pinnedBatch() << "\n";
  } else {
    for (const Signature &function : model.functions)
      if (function.batch >= 0) {
        comment("The only batch that $name_" + function.entry + " takes.");
        os << "#define " << upper << '_' << StringRef(function.entry).upper()
           << "_BATCH " << function.batch << "\n";
      }
  }
  os << "\n";
}

void HeaderWriter::writeModel() {
  comment(
      model.hasState()
          ? "A model ready to run, with a state of its own. Its fields are not "
            "for use. One thread at a time may use it."
          : "A model ready to run. Its fields are not for use. It holds no "
            "state but the arena: threads need one each.");
  os << "typedef struct " << name << "_t {\n"
     << "  const void *weights;\n  void *arena;\n  uint64_t arena_bytes;\n"
     << (model.hasState() ? "  void *state;\n" : "") << "} " << name
     << "_t;\n\n";
  comment("Names, shapes, kernels and versions: keratin/abi.h has the fields.");
  for (const Signature &function : model.functions)
    os << "extern const struct ktn_model_info_t " << prefixOf(function)
       << (isFirst(function) ? "_model_info;\n" : "_info;\n");
  os << "\n";
}

void HeaderWriter::writeInit() {
  std::string text =
      "Makes `model` ready to run in `arena`, memory of the caller's that must "
      "outlive the use of the model: $NAME_ARENA_BYTES(batch) bytes aligned to "
      "$NAME_ARENA_ALIGN, for the largest batch that will be run.";
  if (external)
    text += " `weights` are the bytes of the file $name.weights, aligned "
            "likewise, unchanged while the model is used.";
  if (model.hasState())
    text += " `state` is as much the caller's: $NAME_STATE_BYTES bytes aligned "
            "likewise. It begins with the values that the model was compiled "
            "with.";
  text += "\n\nReturns KTN_OK, KTN_INVALID_ARGUMENT for a null pointer, "
          "KTN_ARENA_MISALIGNED, KTN_ARENA_TOO_SMALL";
  if (model.hasState())
    text += ", KTN_STATE_TOO_SMALL";
  if (external)
    text += ", or KTN_WEIGHTS_MISMATCH when size or content are not those of "
            "the compiled model";
  comment(text + ". Running a model whose init failed is refused. Allocates "
                 "nothing.");
  os << "ktn_status_t " << name << "_init(" << name << "_t *model,"
     << (external ? " const void *weights, size_t weights_bytes," : "")
     << (model.hasState() ? "\n    void *state, size_t state_bytes," : "")
     << "\n    void *arena, size_t arena_bytes);\n\n";
}

/// One line a tensor: `  x: input [batch][4], float32`.
static std::string tensorDocs(ArrayRef<TensorSignature> tensors, StringRef kind,
                              ArrayRef<std::string> names) {
  std::string text;
  raw_string_ostream os(text);
  for (auto [tensor, parameter] : zip_equal(tensors, names)) {
    os << "\n  " << parameter << ": " << kind << " " << shapeText(tensor)
       << ", " << describe(tensor.dtype);
    if (parameter != tensor.name)
      os << ", called \"" << commentSafe(tensor.name) << "\"";
  }
  return text;
}

void HeaderWriter::writeEntry(const Signature &function) {
  std::vector<TensorSignature> inputTensors = function.callerInputs(),
                               outputTensors = function.callerOutputs();
  std::vector<std::string> given;
  for (const TensorSignature &tensor :
       concat<const TensorSignature>(inputTensors, outputTensors))
    given.push_back(tensor.name);
  std::vector<std::string> names = parameterNames(given);
  auto inputs = ArrayRef(names).take_front(inputTensors.size());
  auto outputs = ArrayRef(names).drop_front(inputTensors.size());
  std::string batchText =
      function.batch >= 0 ? std::to_string(function.batch) : "1 or more";

  comment(
      std::string(outputTensors.empty()
                      ? "Takes the inputs, dense and row-major."
                      : "Computes the outputs from the inputs, all dense and "
                        "row-major; they must not overlap.") +
      " `batch` is " + batchText + "." +
      (function.updatesState()
           ? " The call replaces the state by the one after it."
           : "") +
      "\n" + tensorDocs(inputTensors, "input", inputs) +
      tensorDocs(outputTensors, "output", outputs) +
      "\n\nReturns KTN_OK; or KTN_INVALID_ARGUMENT for a null pointer or a "
      "model without init, KTN_BATCH_OUT_OF_RANGE, KTN_ARENA_TOO_SMALL, "
      "and writes nothing then. Allocates nothing.");
  os << "ktn_status_t " << name << '_' << function.entry << '('
     << (function.updatesState() ? "" : "const ") << name
     << "_t *model, int64_t batch";
  for (auto [tensor, parameter] : zip_equal(inputTensors, inputs))
    os << ",\n    const " << cType(tensor.dtype) << " *" << parameter;
  for (auto [tensor, parameter] : zip_equal(outputTensors, outputs))
    os << ",\n    " << cType(tensor.dtype) << " *" << parameter;
  os << ");\n\n";
  std::string prefix = prefixOf(function);
  comment("The same for programs that pick the model at run time: inputs and "
          "outputs in the order of " +
          prefix + (isFirst(function) ? "_model_info" : "_info") +
          (model.hasState() ? ", state and its new values among them" : "") +
          ", `arena` large enough for `batch`, `weights` " +
          (external ? "checked by the caller." : "those of the descriptor."));
  os << "ktn_status_t " << prefix
     << "_run(const void *weights, void *arena, int64_t batch,\n"
     << "    const void *const *inputs, void *const *outputs);\n\n";
}

void HeaderWriter::writeState() {
  std::string variables;
  for (const StateVariable &variable : model.state)
    variables += "\n  " + commentSafe(variable.tensor.name) + ": " +
                 shapeText(variable.tensor) + ", " +
                 describe(variable.tensor.dtype);
  comment("Writes the state to `bytes`, memory or a file of the caller's, at "
          "least $NAME_STATE_EXPORT_BYTES bytes, with what tells it from other "
          "bytes. The state is\n" +
          variables +
          "\n\nReturns KTN_OK; or KTN_INVALID_ARGUMENT for a null pointer or a "
          "model without init, KTN_STATE_TOO_SMALL, and writes nothing then.");
  os << "ktn_status_t " << name << "_state_export(const " << name
     << "_t *model, void *bytes, size_t size);\n\n";
  comment(
      "Takes the state from exactly the bytes that $name_state_export wrote, "
      "of this model or of another compiled one with the same variables: "
      "names, shapes and types in their order.\n\nReturns KTN_OK; or "
      "KTN_INVALID_ARGUMENT for a null pointer or a model without init, "
      "KTN_STATE_MISMATCH for other bytes, and leaves the state as it was "
      "then.");
  os << "ktn_status_t " << name << "_state_import(" << name
     << "_t *model, const void *bytes, size_t size);\n\n";
}

void HeaderWriter::writeCreate() {
  os << "#ifdef __cplusplus\n} // extern \"C\"\n#endif\n\n"
     << "#ifndef KERATIN_NO_STDLIB\n#include <stdlib.h>\n\n";
  bool state = model.hasState();
  comment(std::string("$name_init with ") + (state ? "a state and " : "") +
          "an arena from ktn_allocate, for batches up to `batch`; "
          "$name_destroy gives it back. Returns KTN_OUT_OF_MEMORY, "
          "KTN_BATCH_OUT_OF_RANGE, or what $name_init returns.");
  std::string refused =
      pinnedBatch() >= 0
          ? "batch != " + std::to_string(pinnedBatch())
          : "batch < 1 || batch > INT64_C(" + std::to_string(maxBatch()) + ")";
  StringRef parameters =
      external ? " const void *weights,\n    size_t weights_bytes," : "";
  StringRef arguments = external ? " weights, weights_bytes," : "";
  os << "static inline ktn_status_t " << name << "_create(" << name
     << "_t *model," << parameters << " int64_t batch) {\n"
     << withNames(R"(  void *memory = NULL;
  size_t bytes = 0;
  ktn_status_t status = KTN_OK;
  if (!model)
    status = KTN_INVALID_ARGUMENT;
)") << "  else if ("
     << refused << ")\n"
     << withNames(R"(    status = KTN_BATCH_OUT_OF_RANGE;
  if (model)
    model->arena = NULL;
  if (status == KTN_OK) {
    /* aligned_alloc wants a multiple of the alignment. */
    bytes = $NAME_ARENA_BYTES(batch) + $NAME_ARENA_ALIGN - 1;
    bytes -= bytes % $NAME_ARENA_ALIGN;
)") << "    memory = ktn_allocate("
     << upper << "_ARENA_ALIGN, "
     << (state ? upper + "_STATE_BYTES + bytes,\n                          "
               : "bytes, ")
     << "aligned_alloc);\n"
     << withNames(R"(    if (!memory)
      status = KTN_OUT_OF_MEMORY;
  }
  if (status != KTN_OK) {
    ktn_error("$name_create", status);
    return status;
  }
)")
     << "  status = " << name << "_init(model," << arguments
     << (state
             ? " memory, " + upper + "_STATE_BYTES,\n      (char *)memory + " +
                   upper + "_STATE_BYTES, bytes);\n"
             : " memory, bytes);\n")
     << "  if (status != KTN_OK)\n    ktn_release(memory, free);\n"
     << "  return status;\n}\n\n";
  comment("Gives back what $name_create took.");
  os << withNames(R"(static inline void $name_destroy($name_t *model) {
  if (!model || !model->arena)
    return;
)") << "  ktn_release(model->"
     << (state ? "state" : "arena") << withNames(R"(, free);
  model->arena = NULL;
}
#endif /* KERATIN_NO_STDLIB */

)");
}

void HeaderWriter::writeClosing() {
  os << "#endif /* KERATIN_MODEL_" << upper << "_H */\n";
}

std::string makeHeader(const ModelSignature &model,
                       const HeaderOptions &options) {
  return HeaderWriter(model, options).write();
}

} // namespace keratin
