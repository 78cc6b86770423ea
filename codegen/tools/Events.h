//===- Events.h - Events of tessera-compile, one JSON object per line of stdout ---===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TOOLS_EVENTS_H
#define TESSERA_CODEGEN_TOOLS_EVENTS_H

#include "llvm/Support/JSON.h"

namespace tessera::tool {

/// Prints {"event":"warning","message":...}.
void reportWarning(llvm::StringRef message);
/// Prints {"event":"error","code":...,"message":...}.
void reportError(int code, llvm::StringRef message);
/// Prints an error event for a process that cannot continue, most likely for lack of memory. Callable from any thread;
/// does not allocate.
void reportLastError(int code, const char *message);
/// Prints {"event":"progress","phase":...,"done":...,"total":...} for the current phase, with "part" and "parts" if the
/// phase takes several rounds. Callable from any thread; calls in quick succession are not all reported.
void reportProgress(size_t done, size_t total, size_t part = 1, size_t parts = 1);
/// Prints {"event":"result",...}.
void reportResult(llvm::json::Object fields);

/// Prints {"event":"phase","name":...}: the phase that begins now.
void reportPhase(llvm::StringRef name);

} // namespace tessera::tool

#endif // TESSERA_CODEGEN_TOOLS_EVENTS_H
