#include "ir/Ktn.h"

#include "ir/Inference.h"
#include "ir/Permutation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace keratin::ktn;

#include "ir/Dialect.cpp.inc"
#include "ir/Enums.cpp.inc"
#include "ir/Interfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/Attrs.cpp.inc"

void KtnDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "ir/Ops.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/Attrs.cpp.inc"
      >();
}

Operation *KtnDialect::materializeConstant(OpBuilder &b, Attribute value,
                                           Type type, Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type)
    return nullptr;
  return ConstantOp::create(b, loc, type, elements);
}

Value keratin::ktn::createConstant(OpBuilder &b, Location loc,
                                   RankedTensorType type, double value) {
  Type element = type.getElementType();
  if (auto floatType = dyn_cast<FloatType>(element))
    return ConstantOp::create(
        b, loc, DenseElementsAttr::get(type, FloatAttr::get(floatType, value)));
  APInt bits(element.getIntOrFloatBitWidth(), static_cast<int64_t>(value),
             /*isSigned=*/true, /*implicitTrunc=*/true);
  return ConstantOp::create(b, loc, DenseElementsAttr::get(type, bits));
}

int64_t keratin::ktn::channelAxis(int64_t rank, DataFormat format) {
  return format == DataFormat::ChannelsFirst ? 1 : rank - 1;
}

SmallVector<int64_t> keratin::ktn::spatialAxes(int64_t rank,
                                               DataFormat format) {
  int64_t first = format == DataFormat::ChannelsFirst ? 2 : 1;
  return llvm::to_vector(llvm::seq(first, first + rank - 2));
}

//===----------------------------------------------------------------------===//
// Parts of the assembly format
//===----------------------------------------------------------------------===//

static ParseResult parseExtent(OpAsmParser &parser, int64_t &extent) {
  if (succeeded(parser.parseOptionalQuestion())) {
    extent = ShapedType::kDynamic;
    return success();
  }
  return parser.parseInteger(extent);
}

static void printExtent(OpAsmPrinter &p, int64_t extent) {
  if (ShapedType::isDynamic(extent))
    p << '?';
  else
    p << extent;
}

/// `[2, ?, 4]`
static ParseResult parseExtents(OpAsmParser &parser,
                                DenseI64ArrayAttr &extents) {
  SmallVector<int64_t> values;
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square, [&] {
        return parseExtent(parser, values.emplace_back());
      }))
    return failure();
  extents = parser.getBuilder().getDenseI64ArrayAttr(values);
  return success();
}

static void printExtents(OpAsmPrinter &p, Operation *,
                         DenseI64ArrayAttr extents) {
  p << '[';
  llvm::interleaveComma(extents.asArrayRef(), p,
                        [&](int64_t extent) { printExtent(p, extent); });
  p << ']';
}

/// `[start:end:stride, ..]`, one range an axis.
static ParseResult parseRanges(OpAsmParser &parser, DenseI64ArrayAttr &starts,
                               DenseI64ArrayAttr &ends,
                               DenseI64ArrayAttr &strides) {
  SmallVector<int64_t> first, last, step;
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square, [&] {
        return failure(
            parser.parseInteger(first.emplace_back()) || parser.parseColon() ||
            parseExtent(parser, last.emplace_back()) || parser.parseColon() ||
            parser.parseInteger(step.emplace_back()));
      }))
    return failure();
  Builder &b = parser.getBuilder();
  starts = b.getDenseI64ArrayAttr(first);
  ends = b.getDenseI64ArrayAttr(last);
  strides = b.getDenseI64ArrayAttr(step);
  return success();
}

static void printRanges(OpAsmPrinter &p, Operation *, DenseI64ArrayAttr starts,
                        DenseI64ArrayAttr ends, DenseI64ArrayAttr strides) {
  p << '[';
  llvm::interleaveComma(llvm::zip_equal(starts.asArrayRef(), ends.asArrayRef(),
                                        strides.asArrayRef()),
                        p, [&](auto range) {
                          auto [start, end, stride] = range;
                          p << start << ':';
                          printExtent(p, end);
                          p << ':' << stride;
                        });
  p << ']';
}

/// `T` when operands and result have the type T, else `A, B -> Y`.
static ParseResult parseBroadcastTypes(OpAsmParser &parser, Type &a, Type &b,
                                       Type &y) {
  if (parser.parseType(a))
    return failure();
  b = y = a;
  if (failed(parser.parseOptionalComma()))
    return success();
  return failure(parser.parseType(b) || parser.parseArrow() ||
                 parser.parseType(y));
}

static void printBroadcastTypes(OpAsmPrinter &p, Operation *, Type a, Type b,
                                Type y) {
  p << a;
  if (a != b || a != y)
    p << ", " << b << " -> " << y;
}

#define GET_OP_CLASSES
#include "ir/Ops.cpp.inc"
