//===- JoinObjectsTest.cpp - several objects become one -------------------===//
#include "codegen/JoinObjects.h"
#include "codegen/Object.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/SourceMgr.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace keratin;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

using Bytes = llvm::SmallVector<char, 0>;

Bytes compile(llvm::StringRef text, llvm::StringRef machine = "x86-64") {
  Target target =
      llvm::cantFail(parseTarget(machine, /*optimize=*/true), "a target");
  llvm::LLVMContext context;
  llvm::SMDiagnostic problem;
  std::unique_ptr<llvm::Module> module =
      llvm::parseAssemblyString(text, problem, context);
  EXPECT_TRUE(module) << problem.getMessage().str();
  module->setTargetTriple(target.machine->getTargetTriple());
  module->setDataLayout(target.machine->createDataLayout());
  Bytes object;
  llvm::raw_svector_ostream stream(object);
  llvm::cantFail(
      emitCode(*module, target, llvm::CodeGenFileType::ObjectFile, stream));
  return object;
}

llvm::MemoryBufferRef refer(const Bytes &bytes) {
  return {llvm::StringRef(bytes.data(), bytes.size()), "object"};
}

struct Joined {
  Bytes bytes;
  std::string problem;
};

Joined join(llvm::ArrayRef<ObjectPart> objects,
            llvm::ArrayRef<DataSection> data = {}) {
  Joined joined;
  llvm::raw_svector_ostream stream(joined.bytes);
  if (llvm::Error error = joinObjects(objects, data, stream))
    joined.problem = llvm::toString(std::move(error));
  return joined;
}

/// "name" of visible symbols that are defined, in order.
std::vector<std::string> visibleNames(const Bytes &bytes) {
  auto file =
      llvm::cantFail(llvm::object::ObjectFile::createObjectFile(refer(bytes)));
  std::vector<std::string> names;
  for (const llvm::object::SymbolRef &symbol : file->symbols()) {
    uint32_t flags = llvm::cantFail(symbol.getFlags());
    if ((flags & llvm::object::SymbolRef::SF_Global) &&
        !(flags & llvm::object::SymbolRef::SF_Undefined))
      names.push_back(llvm::cantFail(symbol.getName()).str());
  }
  return names;
}

constexpr llvm::StringLiteral caller = R"(
declare hidden i32 @shared(i32)
define i32 @entry(i32 %x) {
  %y = tail call i32 @shared(i32 %x)
  ret i32 %y
})";
constexpr llvm::StringLiteral callee = R"(
@table = external hidden global [4 x i32]
define hidden i32 @shared(i32 %x) {
  %place = getelementptr [4 x i32], ptr @table, i32 0, i32 %x
  %y = load i32, ptr %place
  ret i32 %y
})";

TEST(JoinObjects, HidesWhatPartsShare) {
  Bytes first = compile(caller), second = compile(callee);
  std::vector<char> table(16, 'x');
  DataSection data{"table", table, 64, /*isLarge=*/false};
  for (bool swapped : {false, true}) {
    Joined joined = swapped ? join({refer(second), refer(first)}, data)
                            : join({refer(first), refer(second)}, data);
    EXPECT_EQ(joined.problem, "");
    EXPECT_THAT(visibleNames(joined.bytes), ElementsAre("entry"));
    // Nothing is left to be found elsewhere.
    EXPECT_FALSE(checkUndefinedSymbols(refer(joined.bytes)));
  }
}

TEST(JoinObjects, JoinsWhatIsJoined) {
  Bytes first = compile(caller), second = compile(callee);
  std::vector<char> table(16, 'x');
  Joined once = join({refer(first), refer(second)},
                     DataSection{"table", table, 64, /*isLarge=*/false});
  Bytes other = compile("define i32 @other() { ret i32 1 }");
  Joined twice = join({refer(once.bytes), refer(other)});
  EXPECT_EQ(twice.problem, "");
  EXPECT_THAT(visibleNames(twice.bytes), ElementsAre("entry", "other"));
}

TEST(JoinObjects, RenamesSymbolsOfOnePart) {
  Bytes first = compile(caller), second = compile(callee);
  std::vector<char> table(16, 'x');
  auto rename = [](llvm::StringRef name) {
    return (name == "entry" ? "start" : name).str();
  };
  Joined joined = join({{refer(first), rename}, refer(second)},
                       DataSection{"table", table, 64, /*isLarge=*/false});
  EXPECT_EQ(joined.problem, "");
  EXPECT_THAT(visibleNames(joined.bytes), ElementsAre("start"));
  EXPECT_FALSE(checkUndefinedSymbols(refer(joined.bytes)));
}

// What may be further away than an instruction reaches is addressed from a
// symbol that every linker has.
TEST(JoinObjects, LeavesTheTableOfLargeDataToTheLinker) {
  std::string text = callee.str();
  llvm::StringRef size = "[4 x i32]\n";
  text.replace(text.find(size), size.size(),
               "[4 x i32], code_model \"large\"\n");
  Bytes first = compile(caller), second = compile(text);
  std::vector<char> table(16, 'x');
  Joined joined = join({refer(first), refer(second)},
                       DataSection{"table", table, 64, /*isLarge=*/true});
  EXPECT_EQ(joined.problem, "");
  EXPECT_THAT(llvm::StringRef(joined.bytes.data(), joined.bytes.size()).str(),
              HasSubstr("_GLOBAL_OFFSET_TABLE_"));
  EXPECT_EQ(llvm::toString(checkUndefinedSymbols(refer(joined.bytes))), "");
  EXPECT_THAT(llvm::toString(checkUndefinedSymbols(refer(first))),
              HasSubstr("calls 'shared'"));
}

TEST(JoinObjects, RefusesTwoDefinitions) {
  Bytes object = compile(callee);
  EXPECT_THAT(join({refer(object), refer(object)}).problem,
              HasSubstr("define 'shared'"));
}

TEST(JoinObjects, RefusesOtherMachinesAndOtherFiles) {
  Bytes object = compile(caller), other = compile(callee, "aarch64-linux-gnu");
  EXPECT_THAT(join({refer(object), refer(other)}).problem,
              HasSubstr("different machines"));
  Bytes text = {'n', 'o', ' ', 'E', 'L', 'F'};
  EXPECT_NE(join({refer(text)}).problem, "");
  Bytes half(object.begin(), object.begin() + object.size() / 2);
  EXPECT_NE(join({refer(half)}).problem, "");
}

} // namespace
