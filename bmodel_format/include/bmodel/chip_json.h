// SPDX-License-Identifier: Apache-2.0
//===- chip_json.h - Reads descriptions of chips ---------------------------===//
//
// A chip description is a JSON object of values. Its member `sources` states for each value where the value comes from.
// Each chip family defines its own list of values (ChipField).
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

/// One value of a chip description; documentation and JSON schemas are generated from it, too.
struct ChipField {
  const char *path;    ///< "memories.ddr.gbps"
  const char *type;    ///< "integer", "number", "words" or "word"
  double low, high;    ///< inclusive bounds of numbers
  const char *allowed; ///< comma-separated list of the allowed words
  bool validity;       ///< included in the fingerprint
  const char *meaning;
};

/// Reads a chip description value by value and records the first error. |fields| lists every value that a description
/// has besides name, family, description and sources.
class ChipReader {
public:
  /// |where| is the prefix of messages: "chip.json: matrix_unit.pixels is 0, allowed are 1 to 64".
  ChipReader(std::string_view json, std::string where, const std::vector<ChipField> &fields);
  ~ChipReader();

  template <typename T>
  void number(const char *path, T &out, double low, double high) {
    double read = 0;
    if (readNumber(path, read, low, high, std::is_integral_v<T>)) {
      out = T(read);
    }
  }
  /// Reads a list of words. |allowed| is a comma-separated list; each word may occur at most once.
  void words(const char *path, std::vector<std::string> &out, const char *allowed);
  /// Reads one word. |allowed| is a comma-separated list; null allows any text.
  void word(const char *path, std::string &out, const char *allowed);
  /// Reads `sources`: pairs of a field's path and the source of its value, one for every field.
  void sources(std::vector<std::pair<std::string, std::string>> &out);

  /// Returns the first error, or an empty string. A value of the description that no call has read is an error.
  std::string finish();

private:
  bool readNumber(const char *path, double &out, double low, double high, bool isIntegral);

  struct State;
  std::unique_ptr<State> state;
};

/// Applies an assignment, e.g. "matrix_unit.pixels=8", to the description |json|, for what-if questions. Returns false
/// and sets |error| if the assignment does not name one of |fields|.
bool setChipField(std::string &json, std::string_view assignment, const std::vector<ChipField> &fields,
                  std::string &error);

} // namespace bmodel

#endif // BMODEL_CHIP_JSON_H
