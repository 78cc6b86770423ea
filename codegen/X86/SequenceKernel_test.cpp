//===- SequenceKernel_test.cpp - Attention and recurrent cells ------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/KernelText.h"

#include "llvm/Support/FormatVariadic.h"
#include <random>

using namespace tessera::x86;
using llvm::formatv;

namespace {

TEST(Attention, Shapes) {
  // Few and many rows; keys, depths and features below, at and beyond whole blocks and panels.
  for (auto [s, t, e, f] :
       {std::tuple(1, 1, 1, 1), {5, 7, 9, 3}, {33, 40, 64, 64}, {4, 100, 32, 16}, {150, 33, 8, 24}, {29, 64, 17, 48}}) {
    std::string q = tensor({2, 3, s, e}), k = tensor({2, 3, t, e}), v = tensor({2, 3, t, f}), m = tensor({2, 1, s, t}),
                y = tensor({2, 3, s, f});
    check(formatv("(%q: {0}, %k: {1}, %v: {2}, %m: {3}) -> {4} {{ %y = device.attention %q, %k, %v, %m {{scale = 0.3 : "
                  "f64} : ({0}, {1}, {2}, {3}) -> {4} "
                  "return %y : {4} }",
                  q, k, v, m, y));
    check(formatv("(%q: {0}, %k: {1}, %v: {2}) -> {3} {{ %y = device.attention %q, %k, %v {{scale = 0.3 : f64} : ({0}, "
                  "{1}, {2}) -> {3} return %y : {3} }",
                  q, k, v, y));
  }
}

/// Tests few rows over an open number of keys, which read k and v without packing them, at sizes around vectors.
TEST(Attention, FewRowsOfOpenKeys) {
  for (auto [rows, keys, e, f] : {std::tuple(1, 1, 64, 64), {1, 15, 16, 32}, {4, 16, 32, 16}, {3, 33, 64, 128}}) {
    std::string q = tensor({2, rows, e}), k = tensor({2, keys, e}), v = tensor({2, keys, f}), y = tensor({2, rows, f}),
                m = tensor({1, rows, keys}),
                text = formatv("(%q: {0}, %k: {1}, %v: {2}, %m: {3}) -> {4} {{ %y = device.attention %q, %k, %v, %m "
                               "{{scale = 0.3 : f64} : ({0}, {1}, {2}, {3}) -> {4} return %y : {4} }",
                               q, k, v, m, y);
    for (const X86Target &target : targetsFor(text)) {
      EXPECT_EQ(checkOpenKernel(text, target), "") << target.name().str() << "\n" << text;
    }
  }
}

/// Tests groups of heads that share k and v of f32 or bf16, with sizes around vectors and blocks of keys, in place and
/// not.
TEST(Attention, SharedCaches) {
  std::mt19937 random(7);
  auto pick = [&](std::initializer_list<int64_t> from) { return from.begin()[random() % from.size()]; };
  for (int i = 0; i < 16; ++i) {
    const char *element = i % 2 ? "bf16" : "f32";
    int64_t heads = pick({1, 2, 3}), group = 1 + int64_t(random() % 8), rows = pick({1, 1, 2, 3, 4, 5, 9}),
            keys = pick({1, 2, 7, 8, 13, 31, 64, 67, 131}), e = pick({16, 32, 64, 80, 128, 20}),
            f = pick({16, 48, 64, 128, 256, 8});
    bool isMasked = random() % 2;
    std::string q = tensor({heads, group, rows, e}), k = tensor({heads, 1, keys, e}, element),
                v = tensor({heads, 1, keys, f}, element), y = tensor({heads, group, rows, f}),
                m = isMasked ? ", " + tensor({heads, random() % 2 ? 1 : group, rows, keys}) : "",
                text = formatv("(%q: {0}, %k: {1}, %v: {2}{3}) -> {4} {{ %y = device.attention %q, %k, %v{5} "
                               "{{scale = 0.1 : f64} : ({0}, {1}, {2}{6}) -> {4} return %y : {4} }",
                               q, k, v, isMasked ? ", %m: " + m.substr(2) : "", y, isMasked ? ", %m" : "", m);
    for (const X86Target &target : targetsFor(text)) {
      EXPECT_EQ(checkOpenKernel(text, target), "") << target.name().str() << "\n" << text;
      EXPECT_EQ(checkKernel(text, target), "") << target.name().str() << "\n" << text;
    }
  }
}

/// Hides keys of |mask|, [..., rows, keys], from each row: those behind one, those before another one, or any. Rows see
/// at least one key.
void hideKeys(tessera::top::HostTensor &mask, std::mt19937 &random) {
  const int64_t keys = mask.getShape().back();
  llvm::MutableArrayRef<float> values(reinterpret_cast<float *>(mask.getBytes().data()), size_t(mask.getNumElements()));
  const bool isCausal = random() % 2, isWindow = random() % 2, hasHoles = random() % 4 == 0;
  int64_t last = int64_t(random() % uint64_t(keys));
  for (; !values.empty(); values = values.drop_front(size_t(keys))) {
    last = isCausal ? std::min(last + 1, keys - 1) : int64_t(random() % uint64_t(keys));
    const int64_t first = isWindow ? int64_t(random() % uint64_t(last + 1)) : 0;
    for (int64_t key = 0; key < keys; ++key) {
      if (key > last || key < first || (key != last && hasHoles && random() % 8 != 0)) {
        values[size_t(key)] = -std::numeric_limits<float>::infinity();
      }
    }
  }
}

/// Tests rows whose mask hides keys, which kernels for an open number of keys skip, with more rows than a launch tile.
TEST(Attention, HiddenKeys) {
  std::mt19937 random(5);
  auto pick = [&](std::initializer_list<int64_t> from) { return from.begin()[random() % from.size()]; };
  for (int i = 0; i < 8; ++i) {
    const char *element = i % 3 ? "f32" : "bf16", *query = i % 6 ? "f32" : "bf16";
    int64_t heads = pick({1, 2}), group = pick({1, 3}), rows = pick({5, 6, 7, 13, 150, 270}),
            keys = pick({1, 2, 15, 16, 17, 31, 33, 64, 131, 200}), e = pick({16, 20, 64}), f = pick({16, 24, 64});
    std::string q = tensor({heads, group, rows, e}, query), k = tensor({heads, 1, keys, e}, element),
                v = tensor({heads, 1, keys, f}, element), y = tensor({heads, group, rows, f}),
                m = tensor({heads, random() % 2 ? 1 : group, random() % 4 ? rows : 1, keys}),
                text = formatv("(%q: {0}, %k: {1}, %v: {2}, %m: {3}) -> {4} {{ %y = device.attention %q, %k, %v, %m "
                               "{{scale = 0.3 : f64} : ({0}, {1}, {2}, {3}) -> {4} return %y : {4} }",
                               q, k, v, m, y);
    CheckOptions options;
    options.overwrite = [&](auto inputs) { hideKeys(inputs[3], random); };
    options.relative = i % 6 ? 1e-5 : 1e-2;
    for (const X86Target &target : targetsFor(text)) {
      EXPECT_EQ(checkOpenKernel(text, target, options), "") << target.name().str() << "\n" << text;
    }
  }
}

/// Tests scores so far apart that powers vanish, and that rows whose mask is the lowest float, or -inf for all keys but
/// one, do not become NaN.
TEST(Attention, WideScores) {
  std::string q = tensor({3, 21, 16}), k = tensor({3, 37, 16}), y = q;
  CheckOptions wide;
  wide.low = -6, wide.high = 6, wide.relative = 1e-3; // the power amplifies the rounding of long sums
  check(formatv("(%q: {0}, %k: {1}, %v: {1}) -> {0} {{ %y = device.attention %q, %k, %v {{scale = 1.0 : f64} : ({0}, "
                "{1}, {1}) -> {0} return %y : {0} }",
                q, k),
        wide);
  for (const char *low : {"0xFF7FFFFF", "0xFF800000"}) {
    std::string mask = low == std::string("0xFF7FFFFF") ? low : "0.0";
    for (int key = 1; key < 37; ++key) {
      mask += std::string(", ") + low;
    }
    check(formatv("(%q: {0}, %k: {1}, %v: {1}) -> {0} {{ %m = top.constant dense<[[[{2}]]]> : tensor<1x1x37xf32> : "
                  "tensor<1x1x37xf32> %y = device.attention %q, %k, %v, %m {{scale = 0.3 : f64} : ({0}, {1}, {1}, "
                  "tensor<1x1x37xf32>) -> {0} return %y : {0} }",
                  q, k, mask));
  }
}

/// Tests sizes around those of vectors and tiles, with different lengths per sequence, or with sequences of full
/// length, which advance together.
TEST(Recurrent, Sizes) {
  std::mt19937 random(11);
  for (int i = 0; i < 28; ++i) {
    auto draw = [&](int64_t least, int64_t most) { return least + int64_t(random() % (most - least + 1)); };
    bool isGru = i % 2, isReverse = random() % 2;
    int64_t steps = draw(1, 9), batch = draw(1, i < 14 ? 3 : 11), input = draw(1, 50), hidden = draw(1, 40),
            gates = isGru ? 3 : 4;
    int64_t length = draw(0, steps);
    const char *element = i % 5 == 4 ? "f16" : "f32";
    std::string lengths;
    for (int64_t b = 0; b < batch; ++b) {
      lengths += (b ? ", " : "") + std::to_string(b ? steps : length);
    }
    std::string lens = i < 14 ? "lens %l " : "", lensType = i < 14 ? formatv(", tensor<{0}xi32>", batch).str() : "";
    CheckOptions options;
    options.relative = 5e-5; // steps amplify the rounding of long sums
    check(formatv("(%x: {0}, %w: {1}, %r: {2}, %b: {3}) -> ({4}, {5}, {5}) {{ "
                  "%l = top.constant dense<[{6}]> : tensor<{7}xi32> : tensor<{7}xi32> "
                  "%y, %yh, %yc = device.recurrent %x, %r w %w bias %b {13}{{kind = \"{8}\", direction = "
                  "\"{9}\", hiddenSize = {10} : i64, activations = [\"Sigmoid\", \"Tanh\"{11}], "
                  "linearBeforeReset = {12}} : ({0}, {2}, {1}, {3}{14}) -> ({4}, {5}, {5}) "
                  "return %y, %yh, %yc : {4}, {5}, {5} }",
                  tensor({steps, batch, input}, element), tensor({1, gates * hidden, input}, element),
                  tensor({1, gates * hidden, hidden}, element), tensor({1, 2 * gates * hidden}, element),
                  tensor({steps, 1, batch, hidden}, element), tensor({1, batch, hidden}, element), lengths, batch,
                  isGru ? "gru" : "lstm", isReverse ? "reverse" : "forward", hidden, isGru ? "" : ", \"Tanh\"",
                  i % 4 > 1, lens, lensType),
          options);
  }
}

/// Tests integer attention bit by bit: the integer matmuls and the float operations between them.
TEST(Attention, OfBytes) {
  CheckOptions options;
  options.allBytes = true, options.relative = 0;
  for (auto [s, t, e, f, levels] : {std::tuple(18, 64, 40, 20, 255),
                                    {1, 1, 1, 1, 255},
                                    {5, 7, 9, 3, 255},
                                    {33, 40, 64, 64, 255},
                                    {4, 100, 32, 16, 7},
                                    {70, 33, 8, 24, 255},
                                    {45, 130, 96, 33, 255},
                                    {3, 600, 1030, 5, 255}}) {
    std::string q = tensor({2, 3, s, e}, "i8"), k = tensor({2, 3, t, e}, "i8"), v = tensor({1, 3, t, f}, "i8"),
                m = tensor({2, 1, s, t}), y = tensor({2, 3, s, f});
    std::string attributes =
        formatv("{{scale = {0:e6} : f64, levels = {1} : i64, valueScale = 0.03 : f64}", 1.0 / (4096.0 * e), levels);
    check(formatv(
              "(%q: {0}, %k: {1}, %v: {2}, %m: {3}) -> {4} attributes {{device.exact} {{ %y = device.attention %q, %k, "
              "%v, %m {5} : ({0}, {1}, {2}, {3}) -> {4} return %y : {4} }",
              q, k, v, m, y, attributes),
          options);
    check(
        formatv("(%q: {0}, %k: {1}, %v: {2}) -> {3} attributes {{device.exact} {{ %y = device.attention %q, %k, %v {4} "
                ": ({0}, {1}, {2}) -> {3} return %y : {3} }",
                q, k, v, y, attributes),
        options);
  }
}

/// Tests masks that remove every key, or make a row's largest score infinite or NaN.
TEST(Attention, OfBytesWithoutFiniteScores) {
  CheckOptions options;
  options.allBytes = true, options.relative = 0;
  const std::string lowest = "0xFF800000", highest = "0x7F800000", none = "0x7FC00000";
  std::string q = tensor({2, 5, 16}, "i8"), k = tensor({2, 35, 16}, "i8"), y = tensor({2, 5, 16});
  for (auto [first, others] :
       {std::pair(lowest, lowest), {highest, std::string("0.0")}, {highest, highest}, {none, std::string("0.0")}}) {
    std::string mask = first;
    for (int key = 1; key < 35; ++key) {
      mask += ", " + others;
    }
    check(formatv(
              "(%q: {0}, %k: {1}, %v: {1}) -> {2} attributes {{device.exact} {{ %m = top.constant dense<[[[{3}]]]> "
              ": tensor<1x1x35xf32> : tensor<1x1x35xf32> %y = device.attention %q, %k, %v, %m {{scale = 1.0e-3 : f64, "
              "levels = 255 : i64, valueScale = 0.03 : f64} : ({0}, {1}, {1}, tensor<1x1x35xf32>) -> {2} return %y "
              ": {2} }",
              q, k, y, mask),
          options);
  }
}

TEST(Recurrent, Kinds) {
  struct Kind {
    const char *name;
    int64_t gates;
    const char *activations;
  };
  for (Kind kind : {Kind{"rnn", 1, "\"Tanh\""},
                    {"gru", 3, "\"Sigmoid\", \"Tanh\""},
                    {"lstm", 4, "\"Sigmoid\", \"Tanh\", \"Tanh\""}}) {
    for (const char *direction : {"forward", "reverse", "bidirectional"}) {
      int64_t d = direction[0] == 'b' ? 2 : 1, steps = 3, batch = 2, input = 5, hidden = 19;
      std::string activations = kind.activations;
      if (d == 2) {
        activations += ", " + activations;
      }
      for (const char *linear : {"false", "true"}) {
        check(formatv("(%x: {0}, %w: {1}, %r: {2}, %b: {3}, %h: {4}) -> ({5}, {4}, {4}) {{ %y, %yh, %yc = "
                      "device.recurrent %x, %r w %w bias %b h %h {{kind = \"{6}\", "
                      "direction = \"{7}\", hiddenSize = {8} : i64, activations = [{9}], linearBeforeReset = {10}} : "
                      "({0}, {2}, {1}, {3}, {4}) -> ({5}, {4}, {4}) "
                      "return %y, %yh, %yc : {5}, {4}, {4} }",
                      tensor({steps, batch, input}), tensor({d, kind.gates * hidden, input}),
                      tensor({d, kind.gates * hidden, hidden}), tensor({d, 2 * kind.gates * hidden}),
                      tensor({d, batch, hidden}), tensor({steps, d, batch, hidden}), kind.name, direction, hidden,
                      activations, linear));
      }
    }
  }
}

} // namespace
