//===- Batch.h - Many command lines in one process tree ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tessera::tool {

/// Reads command lines from stdin, one JSON array of strings a line (the arguments behind the program's name), and runs
/// each with |run| in a forked child: a thousand small models share one loading of LLVM, and a crash ends its own line
/// only. Behind the events of each line stands {"event":"exit","code":N}; N is 128 + the signal after a crash, as in a
/// shell. Ends with the input; call it before any thread is started.
int runBatch(const char *program, int (*run)(int argc, const char *const *argv));

} // namespace tessera::tool
