// SPDX-License-Identifier: Apache-2.0
//===- bmodel-combine.cpp - Combines files of one network -------------------===//
//
//   bmodel-combine OUT.bmodel A.bmodel B.bmodel...
//
// Prints a JSON list with one entry per file: its bytes of constants, how many of them no earlier file contains, and
// whether an earlier file targets one of its chips. Exit codes: 0 for success, 1 with a message on stderr, 2 for wrong
// arguments, 4 for files of another version. model_tool presents the results to users.
//
//===----------------------------------------------------------------------===//
#include "MapFile.h"
#include "Program.h"

#include "bmodel/combine.h"

#include <iostream>
#include <vector>

using namespace bmodel;

namespace {

int fail(Fault fault, const std::string &message) {
  std::cerr << message << "\n";
  return fault == Fault::Unsupported ? 4 : 1;
}

} // namespace

int main(int argc, char **argv) {
  const std::vector<std::string> arguments = program::begin("bmodel-combine", argc, argv);
  if (arguments.size() < 3) {
    std::cerr << "usage: bmodel-combine OUT.bmodel A.bmodel B.bmodel...\n";
    return 2;
  }
  std::vector<NamedModel> files;
  for (size_t i = 1; i < arguments.size(); ++i) {
    NamedModel &file = files.emplace_back();
    file.name = arguments[i];
    uint64_t bytes = 0;
    const void *data = mapFile(file.name.c_str(), bytes);
    Status status;
    if (!data) {
      return fail(Fault::Io, "failed to read '" + file.name + "', or it is empty");
    }
    if (!openModel(data, bytes, file.view, status) || !checkSegments(file.view, ~0u, status)) {
      return fail(status.fault, "'" + file.name + "': " + status.message);
    }
  }
  const CombineResult result = combineModels(files, arguments[0]);
  if (!result.message.empty()) {
    return fail(result.fault, result.message);
  }
  const char *separator = "[";
  for (const CombineResult::FileResult &file : result.files) {
    std::cout << separator << "{\"constant_bytes\":" << file.constantBytes << ",\"new_bytes\":" << file.newBytes
              << ",\"known_chip\":" << (file.hasKnownChip ? "true" : "false") << "}";
    separator = ",";
  }
  std::cout << "]\n";
  return 0;
}
