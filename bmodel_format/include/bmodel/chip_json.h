// SPDX-License-Identifier: Apache-2.0
//===- chip_json.h - Reads descriptions of chips ---------------------------===//
//
// A description is a JSON object of values, and of `sources`: for each value a text that says where it comes from. Each
// family has its own list of values.
//
//===----------------------------------------------------------------------===//
#ifndef BMODEL_CHIP_JSON_H
#define BMODEL_CHIP_JSON_H

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace bmodel {

/// One value of a description, for documentation and schemas too.
struct ChipField {
  const char *path;    ///< "memories.ddr.gbps"
  const char *type;    ///< "integer", "number", "words" or "word"
  double low, high;    ///< of numbers, both allowed
  const char *allowed; ///< of words, with commas
  bool validity;       ///< part of the fingerprint
  const char *meaning;
};

/// Reads a description value by value; the first one that is not as it should be is the error. |fields| are all that it
/// has beside name, family, description and sources.
class ChipReader {
public:
  /// |where| begins messages: "chip.json: matrix_unit.pixels is 0, allowed are 1 to 64".
  ChipReader(std::string_view json, std::string where, const std::vector<ChipField> &fields);
  ~ChipReader();

  template <typename T>
  void number(const char *path, T &out, double low, double high) {
    double read = 0;
    if (readNumber(path, read, low, high, std::is_integral_v<T>)) {
      out = T(read);
    }
  }
  /// |allowed|: with commas; each at most once.
  void words(const char *path, std::vector<std::string> &out, const char *allowed);
  /// |allowed|: null for any text.
  void word(const char *path, std::string &out, const char *allowed);
  /// Field path -> where its value comes from, of every field.
  void sources(std::vector<std::pair<std::string, std::string>> &out);

  /// What is wrong; empty: nothing, and nothing is left that was not asked for.
  std::string finish();

private:
  bool readNumber(const char *path, double &out, double low, double high, bool isIntegral);

  struct State;
  std::unique_ptr<State> state;
};

/// Applies "matrix_unit.pixels=8" to a description, for what-if questions: |json| becomes the changed one. False and a
/// message where that is none of |fields|.
bool setChipField(std::string &json, std::string_view assignment, const std::vector<ChipField> &fields,
                  std::string &error);

} // namespace bmodel

#endif // BMODEL_CHIP_JSON_H
