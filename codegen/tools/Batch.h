//===- Batch.h - Batches of command lines ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TOOLS_BATCH_H
#define TESSERA_CODEGEN_TOOLS_BATCH_H

namespace tessera::tool {

/// Reads command lines from stdin, one JSON array of strings (the arguments after the program's name) per line, and
/// runs each with |run| in a forked child. Many small models share one loading of LLVM, and a crash ends only its own
/// line. After the events of each line prints {"event":"exit","code":N}; N is 128 + the signal after a crash, as in a
/// shell. Returns at the end of the input. Call it before any thread is started.
int runBatch(const char *program, int (*run)(int argc, const char *const *argv));

} // namespace tessera::tool

#endif // TESSERA_CODEGEN_TOOLS_BATCH_H
