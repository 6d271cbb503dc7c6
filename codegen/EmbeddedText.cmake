# cmake -DOUTPUT=… -DRUNTIME=… -P EmbeddedText.cmake: writes EmbeddedText.cpp.
file(READ ${RUNTIME}/include/keratin/status.h status)
file(READ ${RUNTIME}/include/keratin/hooks.h hooks)
file(READ ${RUNTIME}/include/keratin/abi.h abi)
file(READ ${RUNTIME}/Main.c main)
file(WRITE ${OUTPUT} "#include \"codegen/EmbeddedText.h\"
namespace keratin {
extern const llvm::StringRef embeddedStatusHeader = R\"~~~(${status})~~~\";
extern const llvm::StringRef embeddedHooksHeader = R\"~~~(${hooks})~~~\";
extern const llvm::StringRef embeddedAbiHeader = R\"~~~(${abi})~~~\";
extern const llvm::StringRef embeddedMain = R\"~~~(${main})~~~\";
} // namespace keratin
")
