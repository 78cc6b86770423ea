// SPDX-License-Identifier: Apache-2.0
//===- MemorySvg.cpp - Memory use as a picture ------------------------------===//
#include "bmodel/npu/memory_report.h"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace bmodel::npu {
namespace {

constexpr double kLeft = 70, kTop = 40, kWidth = 1200, kHeight = 480;

std::string escaped(const std::string &text) {
  std::string result;
  for (char each : text) {
    result += each == '&'   ? "&amp;"
              : each == '<' ? "&lt;"
              : each == '>' ? "&gt;"
              : each == '"' ? "&quot;"
                            : std::string(1, each);
  }
  return result;
}

/// Returns 1, 2 or 5 times a power of ten, such that at most ten steps fit into `range`.
double stepFor(double range) {
  double step = std::pow(10, std::floor(std::log10(std::max(range, 1e-9) / 10)));
  for (double factor : {1.0, 2.0, 5.0, 10.0}) {
    if (range / (step * factor) <= 10) {
      return step * factor;
    }
  }
  return step * 10;
}

void line(std::ostream &out, double x1, double y1, double x2, double y2, const char *colour) {
  out << "<line x1=\"" << x1 << "\" y1=\"" << y1 << "\" x2=\"" << x2 << "\" y2=\"" << y2 << "\" stroke=\"" << colour
      << "\"/>\n";
}

void label(std::ostream &out, double x, double y, const char *anchor, const std::string &text) {
  out << "<text x=\"" << x << "\" y=\"" << y << "\" text-anchor=\"" << anchor << "\">" << escaped(text) << "</text>\n";
}

/// Returns the number without insignificant digits.
std::string shortText(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

} // namespace

std::string memorySvg(const MemoryUse &use, const std::string &title, uint64_t bytes, uint32_t banks,
                      const Descriptor *commands, const Chip &chip, const std::vector<std::string> &names) {
  auto micro = [&](double cycles) { return chip.secondsOf(cycles) * 1e6; };
  double end = 0;
  for (const Rectangle &each : use.rectangles) {
    end = std::max(end, micro(each.to));
  }
  double across = kWidth / std::max(end, 1e-9), up = kHeight / double(std::max<uint64_t>(bytes, 1));
  auto x = [&](double time) { return kLeft + time * across; };
  auto y = [&](double byte) { return kTop + kHeight - byte * up; };
  std::ostringstream out;
  out.precision(6);
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << kLeft + kWidth + 20 << "\" height=\""
      << kTop + kHeight + 40 << "\" font-family=\"sans-serif\" font-size=\"12\">\n"
      << "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  label(out, kLeft, 24, "start",
        title + ": " + std::to_string(use.peak) + " of " + std::to_string(bytes) + " bytes in use at once");
  for (double at = 0, step = stepFor(end); at <= end; at += step) {
    line(out, x(at), kTop, x(at), kTop + kHeight + 4, "#ddd");
    label(out, x(at), kTop + kHeight + 18, "middle", shortText(at) + " us");
  }
  for (double at = 0, step = stepFor(double(bytes) / 1024); at <= double(bytes) / 1024; at += step) {
    label(out, kLeft - 6, y(at * 1024) + 4, "end", shortText(at) + " KiB");
  }
  for (uint32_t bank = 0; bank <= banks; ++bank) {
    double at = y(double(bytes) * bank / std::max(banks, 1u));
    line(out, kLeft, at, kLeft + kWidth, at, "#bbb");
  }
  for (const Rectangle &each : use.rectangles) {
    const Header &header = commands[each.command].header;
    // Give consecutive layers clearly different colours.
    out << "<rect x=\"" << x(micro(each.from)) << "\" y=\"" << y(double(each.end)) << "\" width=\""
        << micro(each.to - each.from) * across << "\" height=\"" << double(each.end - each.begin) * up
        << "\" fill=\"hsl(" << header.layer * 137 % 360 << ",60%,65%)\" stroke=\"#555\" stroke-width=\"0.3\"><title>"
        << escaped(header.layer < names.size() ? names[header.layer] : "") << " (command " << each.command << ", "
        << findCommand(header.opcode)->name << ")\n"
        << each.end - each.begin << " bytes at " << each.begin << "\n"
        << micro(each.from) << " to " << micro(each.to) << " us</title></rect>\n";
  }
  out << "</svg>\n";
  return out.str();
}

} // namespace bmodel::npu
