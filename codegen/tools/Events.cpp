//===- Events.cpp - What tessera-compile reports ---===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/tools/Events.h"

#include "llvm/Support/raw_ostream.h"

using namespace tessera::tool;

static void print(llvm::json::Object event) {
  llvm::outs() << llvm::json::Value(std::move(event)) << "\n";
  llvm::outs().flush();
}

// Names come from files: they need not be UTF-8, JSON must be.
void tessera::tool::reportWarning(llvm::StringRef message) {
  print(llvm::json::Object{{"event", "warning"}, {"message", llvm::json::fixUTF8(message)}});
}

void tessera::tool::reportError(int code, llvm::StringRef message) {
  print(llvm::json::Object{{"event", "error"}, {"code", code}, {"message", llvm::json::fixUTF8(message)}});
}

void tessera::tool::reportResult(llvm::json::Object fields) {
  fields["event"] = "result";
  print(std::move(fields));
}

Step::Step(llvm::StringRef name, int index) : name(name), index(index), start(std::chrono::steady_clock::now()) {}

Step::~Step() {
  std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  print(llvm::json::Object{{"event", "step"}, {"name", name}, {"index", index}, {"seconds", elapsed.count()}});
}
