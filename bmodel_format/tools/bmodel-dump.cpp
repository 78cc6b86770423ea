// SPDX-License-Identifier: Apache-2.0
//===- bmodel-dump.cpp - Prints a verified .bmodel as JSON -----------------===//
//
//   bmodel-dump FILE                  prints the flatbuffer as JSON after verifying the structure
//   bmodel-dump --check FILE          also checks every hash and digest of the segments; prints {}
//   bmodel-dump --segment N FILE OUT  writes the bytes of segment N to OUT
//   bmodel-dump --cpu-features MASK   prints the names of the bits of SubnetDef.cpu_features; reads no file
//
// Exit code 0, or 1 with a message on stderr. model_tool presents the results to users.
//
//===----------------------------------------------------------------------===//
#include "MapFile.h"
#include "Program.h"

#include "bmodel/cpu_features.h"
#include "bmodel/reader.h"
#include "bmodel_schema_text.h"

#include "flatbuffers/idl.h"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

int fail(const std::string &message) {
  fprintf(stderr, "%s\n", message.c_str());
  return 1;
}

int printJson(const bmodel::ModelView &view) {
  flatbuffers::IDLOptions options;
  options.strict_json = true;
  options.output_default_scalars_in_json = true;
  options.indent_step = -1;
  flatbuffers::Parser parser(options);
  std::string text;
  if (!parser.Parse(kBmodelSchemaText) ||
      !flatbuffers::GenerateText(parser, view.data + view.header->tableOffset, &text)) {
    return fail("failed to print the model: " + parser.error_);
  }
  fwrite(text.data(), 1, text.size(), stdout);
  fputc('\n', stdout);
  return 0;
}

int writeSegment(const bmodel::ModelView &view, const char *number, const char *path) {
  char *end = nullptr;
  const unsigned long index = strtoul(number, &end, 10);
  const auto *segments = view.model->segments();
  const size_t count = segments ? segments->size() : 0;
  if (*number == '\0' || *end != '\0' || index >= count) {
    return fail("no segment '" + std::string(number) + "': the file has " + std::to_string(count));
  }
  bmodel::Status status;
  for (uint64_t chunk = 0; chunk < bmodel::chunkCount(*segments->Get(index)); ++chunk) {
    if (!bmodel::checkChunk(view, index, chunk, status)) {
      return fail(status.message);
    }
  }
  FILE *out = fopen(path, "wb");
  const uint64_t bytes = segments->Get(index)->bytes();
  if (!out) {
    return fail("failed to write " + std::string(path));
  }
  const bool complete = fwrite(view.segment(index), 1, bytes, out) == bytes;
  const bool closed = fclose(out) == 0;
  return complete && closed ? 0 : fail("failed to write " + std::string(path));
}

int checkAll(const bmodel::ModelView &view) {
  bmodel::Status status;
  if (!bmodel::checkSegments(view, ~0u, status) || !bmodel::checkDigests(view, status)) {
    return fail(status.message);
  }
  puts("{}");
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  bmodel::program::begin("bmodel-dump", argc, argv);
  const std::string mode = argc > 1 ? argv[1] : "";
  const bool check = mode == "--check" && argc == 3;
  const bool segment = mode == "--segment" && argc == 5;
  if (mode == "--cpu-features" && argc == 3) {
    char names[1024];
    puts(bmodel::cpuFeatureNames(strtoull(argv[2], nullptr, 10), names, sizeof names));
    return 0;
  }
  if (!check && !segment && (argc != 2 || mode.rfind("--", 0) == 0)) {
    fputs("usage: bmodel-dump FILE | --check FILE | --segment N FILE OUT | --cpu-features MASK\n", stderr);
    return 2;
  }
  const char *path = check ? argv[2] : segment ? argv[3] : argv[1];
  uint64_t bytes = 0;
  const void *data = mapFile(path, bytes);
  bmodel::ModelView view;
  bmodel::Status status;
  if (!data) {
    return fail("failed to read the file, or it is empty");
  }
  if (!bmodel::openModel(data, bytes, view, status)) {
    return fail(status.message);
  }
  if (check) {
    return checkAll(view);
  }
  return segment ? writeSegment(view, argv[2], argv[4]) : printJson(view);
}
