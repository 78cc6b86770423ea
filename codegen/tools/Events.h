//===- Events.h - What tessera-compile reports, one JSON object a line on stdout ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "llvm/Support/JSON.h"

#include <chrono>
#include <string>

namespace tessera::tool {

/// {"event":"warning","message":...}
void reportWarning(llvm::StringRef message);
/// {"event":"error","code":...,"message":...}
void reportError(int code, llvm::StringRef message);
/// {"event":"result",...}
void reportResult(llvm::json::Object fields);

/// Times one numbered step; reports {"event":"step","name":...,"index":...,"seconds":...} at its end.
class Step {
public:
  Step(llvm::StringRef name, int index);
  ~Step();
  Step(const Step &) = delete;
  Step &operator=(const Step &) = delete;

private:
  std::string name;
  int index;
  std::chrono::steady_clock::time_point start;
};

} // namespace tessera::tool
