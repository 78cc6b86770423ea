// SPDX-License-Identifier: Apache-2.0
//===- MakeCorpus.cpp - Converts a model to an input of LoaderFuzzer ------===//
//
// Usage: bmrt_make_corpus MODEL OUTPUT
//
//===----------------------------------------------------------------------===//
#include "bmodel/file_header.h"
#include "bmodel_format/test/TestModel.h"

#include <cstdio>
#include <cstring>

int main(int argc, char **argv) {
  const std::vector<char> bytes = argc == 3 ? bmodel::test::readBytes(argv[1]) : std::vector<char>();
  bmodel::FileHeader header;
  if (bytes.size() < sizeof(header)) {
    fprintf(stderr, "usage: bmrt_make_corpus MODEL OUTPUT\n");
    return 2;
  }
  memcpy(&header, bytes.data(), sizeof(header));
  const uint32_t tableBytes = uint32_t(header.tableBytes);
  std::ofstream out(argv[2], std::ios::binary);
  out.write(reinterpret_cast<const char *>(&tableBytes), sizeof(tableBytes));
  out.write(bytes.data() + sizeof(header), std::streamsize(bytes.size() - sizeof(header)));
  return out.good() ? 0 : 1;
}
