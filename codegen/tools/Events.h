//===- Events.h - What tessera-compile reports, one JSON object a line on stdout ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "llvm/Support/JSON.h"

namespace tessera::tool {

/// {"event":"warning","message":...}
void reportWarning(llvm::StringRef message);
/// {"event":"error","code":...,"message":...}
void reportError(int code, llvm::StringRef message);
/// The same for a process that cannot go on, most likely without memory: from any thread, allocates nothing.
void reportLastError(int code, const char *message);
/// {"event":"progress","phase":...,"done":...,"total":...}, and "part" and "parts" where the phase is gone through
/// several times: of the step that runs. From any thread; only some of many calls are reported.
void reportProgress(size_t done, size_t total, size_t part = 1, size_t parts = 1);
/// {"event":"result",...}
void reportResult(llvm::json::Object fields);

/// {"event":"phase","name":...}: what runs from now on.
void reportPhase(llvm::StringRef name);

} // namespace tessera::tool
