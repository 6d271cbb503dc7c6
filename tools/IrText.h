//===- IrText.h - IR text that the parser would not survive -----*- C++ -*-===//
//
// MLIR's parser and printer recurse without a limit and crash on some text.
// What no dump of ours comes near to is refused before it is parsed.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_TOOLS_IRTEXT_H
#define KERATIN_TOOLS_IRTEXT_H

#include <string>
#include <string_view>

namespace keratin {

/// "3:14: brackets are nested more than 256 deep", or nothing when `text` can
/// be given to the parser, which may find other mistakes.
std::string findUnparsable(std::string_view text);

/// The same for the file at `path`, "path:3:14: …". Nothing when it cannot be
/// read, or is bytecode.
std::string findUnparsableFile(const std::string &path);

} // namespace keratin

#endif // KERATIN_TOOLS_IRTEXT_H
