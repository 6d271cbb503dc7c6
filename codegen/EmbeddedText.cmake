# cmake -DOUTPUT=… -DRUNTIME=… -P EmbeddedText.cmake: writes EmbeddedText.cpp.
file(READ ${RUNTIME}/include/keratin/status.h status)
file(READ ${RUNTIME}/include/keratin/hooks.h hooks)
file(READ ${RUNTIME}/include/keratin/abi.h abi)
file(READ ${RUNTIME}/include/keratin/dtype.h dtype)
file(READ ${RUNTIME}/include/keratin/runtime.h runtime)
file(READ ${RUNTIME}/Main.c main)
file(READ ${CMAKE_CURRENT_LIST_DIR}/Emulation.ll emulation)
file(READ ${RUNTIME}/Pool.c pool)
file(READ ${RUNTIME}/Cpus.c cpus)
file(READ ${RUNTIME}/Cpus.h cpus_header)
file(READ ${RUNTIME}/Hash.c hash)
file(READ ${RUNTIME}/Pages.c pages)
file(READ ${RUNTIME}/Weights.c weights)
file(WRITE ${OUTPUT} "#include \"codegen/EmbeddedText.h\"
namespace keratin {
extern const llvm::StringRef embeddedStatusHeader = R\"~~~(${status})~~~\";
extern const llvm::StringRef embeddedHooksHeader = R\"~~~(${hooks})~~~\";
extern const llvm::StringRef embeddedAbiHeader = R\"~~~(${abi})~~~\";
extern const llvm::StringRef embeddedDtypeHeader = R\"~~~(${dtype})~~~\";
extern const llvm::StringRef embeddedRuntimeHeader = R\"~~~(${runtime})~~~\";
extern const llvm::StringRef embeddedPool = R\"~~~(${pool})~~~\";
extern const llvm::StringRef embeddedCpus = R\"~~~(${cpus})~~~\";
extern const llvm::StringRef embeddedCpusHeader = R\"~~~(${cpus_header})~~~\";
extern const llvm::StringRef embeddedHash = R\"~~~(${hash})~~~\";
extern const llvm::StringRef embeddedPages = R\"~~~(${pages})~~~\";
extern const llvm::StringRef embeddedWeights = R\"~~~(${weights})~~~\";
extern const llvm::StringRef embeddedMain = R\"~~~(${main})~~~\";
extern const llvm::StringRef embeddedEmulation = R\"~~~(${emulation})~~~\";
} // namespace keratin
")
