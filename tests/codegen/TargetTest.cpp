//===- TargetTest.cpp - names of targets ----------------------------------===//
#include "codegen/Target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace keratin;
using testing::HasSubstr;

static Target parse(llvm::StringRef name) {
  llvm::Expected<Target> target = parseTarget(name, /*optimize=*/true);
  EXPECT_TRUE(static_cast<bool>(target));
  return target ? std::move(*target)
                : (llvm::consumeError(target.takeError()), Target());
}

static std::string refuse(llvm::StringRef name) {
  llvm::Expected<Target> target = parseTarget(name, /*optimize=*/true);
  return target ? "" : llvm::toString(target.takeError());
}

TEST(ParseTarget, RunsHereWhenNative) {
  Target target = parse("native");
  EXPECT_TRUE(target.runsHere);
}

TEST(ParseTarget, KnowsTheVectorsOfEachLevel) {
  struct Row {
    const char *name;
    unsigned bits, registers;
    bool fma, rounding;
  };
  for (const Row &row :
       {Row{"x86-64", 128, 16, false, false},
        Row{"x86-64-v2", 128, 16, false, true},
        Row{"x86-64-v3", 256, 16, true, true},
        Row{"x86-64-v4", 512, 32, true, true},
        Row{"aarch64-linux-gnu", 128, 32, true, true},
        Row{"x86_64-linux-gnu,znver2", 256, 16, true, true},
        Row{"x86_64-linux-gnu,znver4,-avx512f", 256, 16, true, true}}) {
    Target target = parse(row.name);
    EXPECT_EQ(target.vectorBits, row.bits) << row.name;
    EXPECT_EQ(target.vectorRegisters, row.registers) << row.name;
    EXPECT_EQ(target.fma, row.fma) << row.name;
    EXPECT_EQ(target.rounding, row.rounding) << row.name;
  }
}

TEST(ParseTarget, KnowsTheSecondCacheOfSome) {
  EXPECT_EQ(parse("x86_64-linux-gnu,znver5").secondCacheKiB, 1024u);
  EXPECT_EQ(parse("x86-64-v4").secondCacheKiB, 0u);
}

TEST(ParseTarget, KnowsWhoseVectorsAreComputedInHalves) {
  EXPECT_TRUE(parse("x86_64-linux-gnu,znver4").halfUnits);
  EXPECT_TRUE(parse("x86_64-linux-gnu,znver1").halfUnits);
  EXPECT_FALSE(parse("x86_64-linux-gnu,znver5").halfUnits);
  EXPECT_FALSE(parse("x86_64-linux-gnu,znver4,-avx512f").halfUnits);
  EXPECT_TRUE(parse("x86_64-linux-gnu,znver4").sumsBeside);
  EXPECT_FALSE(parse("x86_64-linux-gnu,znver5").sumsBeside);
  EXPECT_FALSE(parse("x86_64-linux-gnu,znver4,-avx512f").sumsBeside);
}

TEST(ParseTarget, KnowsWhoPermutesAsSoonAsItMultiplies) {
  EXPECT_TRUE(parse("x86-64-v3").permutes);
  EXPECT_TRUE(parse("x86_64-linux-gnu,znver3").permutes);
  EXPECT_FALSE(parse("x86_64-linux-gnu,znver2").permutes);
  EXPECT_FALSE(parse("x86-64-v2").permutes);
  EXPECT_FALSE(parse("x86-64-v4").permutes);
}

TEST(ParseTarget, KnowsWhereOneRunOfWeightsIsEnough) {
  EXPECT_TRUE(parse("x86_64-linux-gnu,znver5").oneRun);
  EXPECT_FALSE(parse("x86_64-linux-gnu,znver4").oneRun);
  EXPECT_FALSE(parse("x86-64-v4").oneRun);
}

TEST(ParseTarget, KnowsWhereTilesAskForTheNextRows) {
  EXPECT_TRUE(parse("x86_64-linux-gnu,sapphirerapids").asksNextRows);
  EXPECT_FALSE(parse("x86_64-linux-gnu,znver4").asksNextRows);
  EXPECT_FALSE(parse("x86-64-v4").asksNextRows);
}

TEST(ParseTarget, KnowsWhereStoresHoldUpProducts) {
  EXPECT_EQ(parse("x86_64-linux-gnu,znver4").storesAtOnce, 12u);
  EXPECT_EQ(parse("x86_64-linux-gnu,znver4,-avx512f").storesAtOnce, 0u);
  EXPECT_EQ(parse("x86_64-linux-gnu,znver5").storesAtOnce, 0u);
  EXPECT_EQ(parse("x86-64-v4").storesAtOnce, 0u);
}

TEST(ParseTarget, DoesNotRunOtherMachinesHere) {
#ifdef __x86_64__
  EXPECT_FALSE(parse("aarch64-linux-gnu").runsHere);
#else
  EXPECT_FALSE(parse("x86-64").runsHere);
#endif
}

TEST(ParseTarget, GivesAMachineTheShapeOfAnother) {
  struct Row {
    const char *name;
    unsigned bits, registers;
    DotUnit dots;
    bool emulatesTiles;
  };
  for (const Row &row :
       {Row{"x86-64-v4@x86-64-v3", 512, 32, DotUnit::None, false},
        Row{"x86-64@x86-64-v3", 128, 16, DotUnit::None, false},
        Row{"aarch64-linux-gnu@x86-64-v3", 128, 32, DotUnit::None, false},
        Row{"x86_64-linux-gnu,cooperlake@x86-64-v3", 512, 32, DotUnit::Vectors,
            false},
        Row{"x86_64-linux-gnu,sapphirerapids@x86-64-v3", 512, 32,
            DotUnit::Tiles, true}}) {
    Target target = parse(row.name).clone();
    EXPECT_EQ(target.vectorBits, row.bits) << row.name;
    EXPECT_EQ(target.vectorRegisters, row.registers) << row.name;
    EXPECT_EQ(target.dots, row.dots) << row.name;
    EXPECT_EQ(target.emulatesTiles, row.emulatesTiles) << row.name;
    EXPECT_EQ(target.machine->getTargetCPU(), "x86-64-v3") << row.name;
    EXPECT_THAT(target.description(), HasSubstr("in the shape of"));
  }
  EXPECT_FALSE(parse("x86_64-linux-gnu,sapphirerapids").emulatesTiles);
}

TEST(ParseTarget, RefusesAShapeThatTheMachineCannotRun) {
  EXPECT_THAT(refuse("x86-64-v4@x86-64-v2"),
              HasSubstr("has no fused multiply-add"));
  EXPECT_THAT(refuse("x86-64-v2@x86-64"), HasSubstr("rounds to integers"));
  EXPECT_THAT(refuse("x86-64-v3@x86_64-linux-gnu,x86-64-v3,-f16c"),
              HasSubstr("conversions of f16"));
  EXPECT_THAT(refuse("vax@native"), HasSubstr("unknown target 'vax'"));
  EXPECT_THAT(refuse("x86-64@vax"), HasSubstr("unknown target 'vax'"));
  EXPECT_THAT(refuse("x86-64@"), HasSubstr("expected native, x86-64"));
  EXPECT_THAT(refuse("@x86-64"), HasSubstr("expected native, x86-64"));
  EXPECT_THAT(refuse("x86-64@x86-64@x86-64"),
              HasSubstr("unknown target 'x86-64@x86-64'"));
}

TEST(ParseTarget, ListsWhatIsAllowed) {
  EXPECT_THAT(refuse("vax"), HasSubstr("expected native, x86-64"));
  EXPECT_THAT(refuse(""), HasSubstr("expected native, x86-64"));
  EXPECT_THAT(refuse("x86_64-linux-gnu,"), HasSubstr("expected native"));
  EXPECT_THAT(refuse("vax-dec-vms,780"), HasSubstr("no code generator"));
  EXPECT_THAT(refuse("x86_64-linux-gnu,pdp11"), HasSubstr("expected one of"));
  EXPECT_THAT(refuse("x86_64-linux-gnu,znver4,avx2"),
              HasSubstr("unknown feature 'avx2'"));
  EXPECT_THAT(refuse("x86_64-pc-windows-msvc,znver4"),
              HasSubstr("for ELF objects of x86-64"));
}

static std::vector<std::string> parseAll(llvm::StringRef names) {
  llvm::Expected<std::vector<Target>> targets =
      parseTargets(names, /*optimize=*/true);
  if (!targets)
    return {llvm::toString(targets.takeError())};
  std::vector<std::string> cpus;
  for (const Target &target : *targets)
    cpus.push_back(target.machine->getTargetCPU().str());
  return cpus;
}

TEST(ParseTargets, TakesLevelsInAnyOrder) {
  EXPECT_THAT(parseAll("x86-64-v4,x86-64,x86-64-v3"),
              testing::ElementsAre("x86-64", "x86-64-v3", "x86-64-v4"));
}

TEST(ParseTargets, TakesOneOfAnyKind) {
  EXPECT_THAT(parseAll("x86-64-v3"), testing::ElementsAre("x86-64-v3"));
  EXPECT_THAT(parseAll("x86_64-linux-gnu,znver2,-fma"),
              testing::ElementsAre("znver2"));
}

TEST(ParseTargets, RefusesWhatIsNoListOfLevels) {
  EXPECT_THAT(parseAll("x86-64-v2,x86-64-v2"),
              testing::ElementsAre(HasSubstr("'x86-64-v2' is twice")));
  EXPECT_THAT(parseAll("x86-64-v2,native"),
              testing::ElementsAre(HasSubstr("'native' in the list")));
  EXPECT_THAT(parseAll("x86-64-v2,"),
              testing::ElementsAre(HasSubstr("'' in the list")));
}

TEST(CloneTarget, IsTheSame) {
  Target target = parse("x86-64-v3"), copy = target.clone();
  EXPECT_EQ(copy.description(), target.description());
  EXPECT_EQ(copy.vectorBits, 256u);
  EXPECT_NE(copy.machine.get(), target.machine.get());
}
