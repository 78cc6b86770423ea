// SPDX-License-Identifier: Apache-2.0
//===- npu-describe.cpp - Generates the NPU's documentation tables ----------===//
//
// npu-describe isa | chips CHIP.json... | schema prints the commands and instructions; the fields of chip descriptions
// with their values in the given chips; or the JSON schema of a description.
//
//===----------------------------------------------------------------------===//
#include "Program.h"

#include "bmodel/npu/chip.h"
#include "bmodel/npu/isa.h"
#include "bmodel/npu/program.h"

#include <fstream>
#include <iostream>
#include <sstream>

using namespace bmodel::npu;

namespace {

/// Returns a table cell with escaped bars.
std::string cell(std::string_view text) {
  std::string result;
  for (char each : text) {
    result += each == '|' ? std::string("\\|") : std::string(1, each);
  }
  return result;
}

void printCommand(const CommandText &command) {
  std::cout << "### " << command.name << "\n\nOpcode " << int(command.opcode) << ", "
            << (command.queue == Queue::dma ? "dma" : "compute") << " queue. `" << command.meaning
            << "`\n\n| byte | field | type | meaning |\n|---|---|---|---|\n";
  for (const FieldText &field : command.fields) {
    std::cout << "| " << sizeof(Header) + field.offset << " | `" << field.name << "` | " << field.type << " | "
              << cell(field.meaning) << " |\n";
  }
  std::cout << "\n";
}

void printIsa() {
  std::cout << "## Commands\n\nBytes are counted from the start of the descriptor; bytes outside the fields are 0.\n\n";
  for (const CommandText &command : commandTexts()) {
    printCommand(command);
  }
  std::cout << "## Instructions of the vector unit\n\n| opcode | name | operands | cycles | result |\n"
            << "|---|---|---|---|---|\n";
  for (int opcode = 0; opcode < 256; ++opcode) {
    if (const InstructionText *text = findInstruction(Op(opcode))) {
      const char *cycles = text->op == Op::constant ? "0" : text->slow ? "`vector_unit.function_cycles`" : "1";
      std::cout << "| " << opcode << " | `" << text->name << "` | " << text->operands << " | " << cycles << " | "
                << cell(text->meaning) << " |\n";
    }
  }
}

std::string allowedIn(const FieldInfo &field) {
  std::ostringstream text;
  text.precision(15);
  *field.allowed ? text << field.allowed : text << field.low << " to " << field.high;
  return text.str();
}

void printChips(const std::vector<Chip> &chips) {
  std::cout << "## Fields\n\n| field | allowed | decides whether a program fits | meaning |\n|---|---|---|---|\n";
  for (const FieldInfo &field : chipFields()) {
    std::cout << "| `" << field.path << "` | " << allowedIn(field) << " | " << (field.validity ? "yes" : "no") << " | "
              << cell(field.meaning) << " |\n";
  }
  for (const Chip &chip : chips) {
    std::cout << "\n## " << chip.name << "\n\n"
              << chip.description << "\n\n| field | value | where it comes from |\n|---|---|---|\n";
    std::vector<std::string> values = valuesOf(chip);
    for (size_t i = 0; i < values.size(); ++i) {
      std::cout << "| `" << chipFields()[i].path << "` | " << cell(values[i]) << " | " << cell(chip.sources[i].second)
                << " |\n";
    }
  }
}

bool readChip(const char *path, std::vector<Chip> &chips) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  std::string error;
  if (!file || !parseChip(text.str(), path, chips.emplace_back(), error)) {
    std::cerr << (file ? error : std::string(path) + " cannot be read") << "\n";
    return false;
  }
  return true;
}

} // namespace

int main(int argc, char **argv) {
  bmodel::program::begin("npu-describe", argc, argv);
  std::string what = argc > 1 ? argv[1] : "";
  if (what == "isa" && argc == 2) {
    printIsa();
    return 0;
  }
  if (what == "schema" && argc == 2) {
    std::cout << chipSchema();
    return 0;
  }
  if (what == "chips" && argc > 2) {
    std::vector<Chip> chips;
    for (int i = 2; i < argc; ++i) {
      if (!readChip(argv[i], chips)) {
        return 1;
      }
    }
    printChips(chips);
    return 0;
  }
  std::cerr << "usage: npu-describe isa | chips CHIP.json... | schema\n";
  return 2;
}
