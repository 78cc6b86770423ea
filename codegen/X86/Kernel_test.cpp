//===- Kernel_test.cpp - Every device op on every x86 variant -------------===//
// SPDX-License-Identifier: Apache-2.0
//
// A case is a family and a function that returns the text of one op. Shapes are odd on purpose, to cover channel tails,
// remainders of vectors, and broadcasts.
//===----------------------------------------------------------------------===//
#include "codegen/X86/KernelText.h"

#include "llvm/Support/FormatVariadic.h"
#include <gtest/gtest.h>
#include <random>

using namespace tessera::x86;
using llvm::formatv;

namespace {

/// Returns the text of a map y = body(operands), where body reads the elements %e0, %e1, ...
std::string map(const std::vector<std::string> &operands, const std::vector<std::string> &elements,
                const std::string &result, const std::string &body) {
  std::string arguments, names, types, block;
  for (size_t i = 0; i < operands.size(); ++i) {
    std::string comma = i ? ", " : "";
    arguments += comma + formatv("%a{0}: {1}", i, operands[i]).str();
    names += comma + formatv("%a{0}", i).str();
    types += comma + operands[i];
    block += comma + formatv("%e{0}: {1}", i, elements[i]).str();
  }
  return formatv("({0}) -> {1} {{ %y = device.map ({2}) {{ ^bb0({3}): {4} } : ({5}) -> {1} return %y : {1} }",
                 arguments, result, names, block, body, types)
      .str();
}

std::string unary(const std::string &type, const std::string &body, const char *element = "f32") {
  return map({type}, {element}, type, body);
}

const char *const kRelu = "%z = arith.constant 0.0 : f32 %m = arith.maximumf %e0, %z : f32 device.yield %m : f32";
const char *const kAdd = "%m = arith.addf %e0, %e1 : f32 device.yield %m : f32";
const char *const kAddOne = "%z = arith.constant 1.0 : f32 %m = arith.addf %e0, %z : f32 device.yield %m : f32";

TEST(Variants, AllForEveryCase) {
  if (!takesAllVariants()) {
    GTEST_SKIP() << "from its fifth case on, a test runs each case on one or two x86 variants; TESSERA_KERNELS=all "
                    "runs it on all";
  }
}

TEST(Variants, FewForLaterCases) {
  if (takesAllVariants()) {
    GTEST_SKIP() << "TESSERA_KERNELS=all runs every case on all variants";
  }
  for (int64_t earlier = 0; earlier < 4; ++earlier) {
    targetsFor("");
  }
  EXPECT_LE(targetsFor("").size(), 2u) << "at most one that runs here and one that is emulated";
}

TEST(Map, RowMajor) {
  for (int64_t size : {1, 3, 15, 16, 17, 63, 64, 65, 1000}) {
    check(unary(tensor({size}), kRelu));
    check(unary(tensor({3, size}), kAddOne));
  }
  check(unary(tensor({}), kRelu));
  check(unary(tensor({50000}), kAddOne));
}

TEST(Map, Broadcast) {
  for (int64_t size : {1, 5, 16, 33, 70}) {
    check(map({tensor({2, size, 3, 5}), tensor({size, 1, 1})}, {"f32", "f32"}, tensor({2, size, 3, 5}), kAdd));
    check(map({tensor({2, 1, 3}), tensor({size, 1})}, {"f32", "f32"}, tensor({2, size, 3}), kAdd));
    check(map({tensor({7, size}), tensor({})}, {"f32", "f32"}, tensor({7, size}), kAdd));
  }
}

TEST(Map, Blocked) {
  for (int64_t c : {1, 3, 15, 16, 17, 32, 40, 67}) {
    std::string x = tensor({2, c, 3, 5}, "f32", true);
    check(unary(x, kRelu));
    check(unary(x, kAddOne));
    check(map({x, tensor({1, c, 1, 1}, "f32", true)}, {"f32", "f32"}, x, kAdd));
    check(map({x, tensor({c, 1, 1})}, {"f32", "f32"}, x, kAdd));
    check(map({x, tensor({2, c, 3, 5})}, {"f32", "f32"}, x, kAdd));
    check(map({x, tensor({1, 1, 3, 5}, "f32", true)}, {"f32", "f32"}, x, kAdd));
    check(map({x, tensor({2, c, 3, 5}, "f32", true)}, {"f32", "f32"}, tensor({2, c, 3, 5}), kAdd));
  }
}

TEST(Map, Math) {
  CheckOptions wide;
  wide.low = -20, wide.high = 20;
  for (const char *name : {"exp", "tanh", "erf", "sin", "cos", "atan", "floor", "ceil", "round", "roundeven", "absf",
                           "sinh", "cosh", "asinh", "expm1", "cbrt", "exp2", "tan"}) {
    check(unary(tensor({517}), formatv("%m = math.{0} %e0 : f32 device.yield %m : f32", name)), wide);
    check(unary(tensor({37}, "f64"), formatv("%m = math.{0} %e0 : f64 device.yield %m : f64", name), "f64"), wide);
  }
  const char *sigmoid =
      "%one = arith.constant 1.0 : {0} %n = arith.negf %e0 : {0} %p = math.exp %n : {0} %s = arith.addf %one, %p : {0} "
      "%m = arith.divf %one, %s : {0} device.yield %m : {0}";
  for (double reach : {5.0, 1e4}) {
    wide.low = -reach, wide.high = reach;
    check(unary(tensor({517}), formatv(sigmoid, "f32")), wide);
    check(unary(tensor({37}, "f64"), formatv(sigmoid, "f64"), "f64"), wide);
  }
  // A result of bf16 uses the fast erf: 1 + erf(x) must still become 0, whatever it is multiplied by.
  const char *gelu = "%m = math.erf %e0 : f32 %one = arith.constant 1.0 : f32 %s = arith.addf %m, %one : f32 %p = "
                     "arith.mulf %s, %e0 : f32 %t = arith.truncf %p : f32 to bf16 device.yield %t : bf16";
  for (double reach : {0.5, 4.0, 1e4}) {
    wide.low = -reach, wide.high = reach;
    check(map({tensor({517})}, {"f32"}, tensor({517}, "bf16"), gelu), wide);
  }
  // 1 + erf(x) of f32 has its own approximation.
  const char *sum = "%m = math.erf %e0 : f32 %one = arith.constant 1.0 : f32 %s = arith.addf %one, %m : f32 "
                    "device.yield %s : f32";
  for (double reach : {0.5, 4.0, 5.0, 1e4}) {
    CheckOptions near;
    near.low = -reach, near.high = reach, near.relative = 3e-7;
    check(unary(tensor({517}), sum), near);
  }
  CheckOptions positive;
  positive.low = 1e-6, positive.high = 50;
  for (const char *name : {"log", "log2", "log10", "log1p", "sqrt", "rsqrt"}) {
    check(unary(tensor({517}), formatv("%m = math.{0} %e0 : f32 device.yield %m : f32", name)), positive);
  }
  CheckOptions unit;
  unit.low = -1, unit.high = 1;
  for (const char *name : {"asin", "acos", "atanh"}) {
    check(unary(tensor({517}), formatv("%m = math.{0} %e0 : f32 device.yield %m : f32", name)), unit);
  }
  auto two = [](const char *op) {
    return map({tensor({333}), tensor({333})}, {"f32", "f32"}, tensor({333}),
               formatv("%m = {0} %e0, %e1 : f32 device.yield %m : f32", op));
  };
  for (const char *name : {"math.powf", "math.atan2", "arith.remf", "arith.divf", "arith.maximumf", "arith.minimumf"}) {
    check(two(name));
  }
}

/// Powers of whole numbers often lie halfway between two floats and must be rounded to even.
TEST(Map, WholePowers) {
  CheckOptions exact;
  exact.relative = 0, exact.low = -120, exact.high = 120;
  const char *power = "%x = math.roundeven %e0 : f32 {0} %y = math.powf %x, %n : f32 device.yield %y : f32";
  for (const char *exponent : {"4.0", "5.0", "-2.0", "0.0"}) {
    check(unary(tensor({517}), formatv(power, formatv("%n = arith.constant {0} : f32", exponent))), exact);
  }
  std::string few =
      "%few = arith.constant 0.05 : f32 %part = arith.mulf %e1, %few : f32 %n = math.roundeven %part : f32";
  check(map({tensor({517}), tensor({517})}, {"f32", "f32"}, tensor({517}), formatv(power, few)), exact);
}

TEST(Map, Integers) {
  for (const char *type : {"i8", "i16", "i32", "i64"}) {
    for (const char *op : {"addi", "muli", "divsi", "remsi", "minsi", "maxsi", "andi", "xori"}) {
      check(map({tensor({131}, type), tensor({131}, type)}, {type, type}, tensor({131}, type),
                formatv("%m = arith.{0} %e0, %e1 : {1} device.yield %m : {1}", op, type)));
    }
  }
  check(map({tensor({67}), tensor({67})}, {"f32", "f32"}, tensor({67}, "i1"),
            "%m = arith.cmpf ogt, %e0, %e1 : f32 device.yield %m : i1"));
  check(map({tensor({67}, "i1"), tensor({67}), tensor({1})}, {"i1", "f32", "f32"}, tensor({67}),
            "%m = arith.select %e0, %e1, %e2 : f32 device.yield %m : f32"));
}

TEST(Map, Bytes) {
  CheckOptions options;
  options.allBytes = true, options.relative = 0, options.low = -300, options.high = 300;
  const char *quantise =
      "%r = math.roundeven %e0 : f32 %z = arith.constant 5.0 : f32 %s = arith.addf %r, %z : f32 %lo = arith.constant "
      "{0}.0 : f32 "
      "%a = arith.maximumf %s, %lo : f32 %hi = arith.constant {1}.0 : f32 %b = arith.minimumf %a, %hi : f32 "
      "%i = arith.fptosi %b : f32 to i32 %q = arith.trunci %i : i32 to i8 device.yield %q : i8";
  for (bool blocked : {false, true}) {
    for (int64_t c : {1, 3, 16, 20, 40}) {
      auto type = [&](const char *element) { return tensor({2, c, 5, 7}, element, blocked); };
      check(map({type("f32")}, {"f32"}, type("i8"), formatv(quantise, -128, 127)), options);
      check(map({type("f32")}, {"f32"}, type("ui8"), formatv(quantise, 5, 255)), options);
      check(map({type("i8")}, {"i8"}, type("f32"), "%f = arith.sitofp %e0 : i8 to f32 device.yield %f : f32"), options);
      check(map({type("ui8"), type("i8")}, {"i8", "i8"}, type("f32"),
                "%f = arith.uitofp %e0 : i8 to f32 %g = arith.sitofp %e1 : i8 to f32 %h = arith.addf %f, %g : f32 "
                "device.yield %h : f32"),
            options);
    }
  }
}

TEST(Map, NarrowTails) {
  CheckOptions options;
  options.low = -100, options.high = 100;
  for (int64_t size : {1, 3, 16, 17, 33, 65}) {
    for (const char *to : {"i8", "i16"}) {
      check(map({tensor({5, size}), tensor({5, 1})}, {"f32", "f32"}, tensor({5, size}, to),
                formatv("%m = arith.addf %e0, %e1 : f32 %i = arith.fptosi %m : f32 to i32 %t = arith.trunci %i : i32 "
                        "to {0} device.yield %t : {0}",
                        to)),
            options);
    }
  }
}

TEST(Lut, Bytes) {
  CheckOptions bytes;
  bytes.low = -255, bytes.high = 256;
  auto text = [](const std::string &x, const std::string &y, const std::string &element, const char *tables = "") {
    return formatv("(%x: {0}, %t: tensor<{3}256x{1}>) -> {2} {{ %y = device.lut %x, %t : ({0}, tensor<{3}256x{1}>) -> "
                   "{2} return %y : {2} }",
                   x, element, y, tables)
        .str();
  };
  for (int64_t size : {1, 15, 16, 17, 1000, 70000}) {
    check(text(tensor({size}, "i8"), tensor({size}, "ui8"), "ui8"), bytes);
    check(text(tensor({size}, "ui8"), tensor({size}, "i8"), "i8"), bytes);
  }
  for (int64_t c : {1, 16, 19, 67}) {
    for (bool blocked : {false, true}) {
      std::string x = tensor({2, c, 3, 5}, "i8", blocked);
      check(text(x, x, "i8"), bytes);
      check(text(x, x, "i8", formatv("{0}x", c).str().c_str()), bytes);
    }
  }
}

TEST(Map, Casts) {
  struct Cast {
    const char *from, *to, *op;
  };
  for (Cast c : {Cast{"f32", "f16", "arith.truncf"},
                 {"f32", "bf16", "arith.truncf"},
                 {"f16", "f32", "arith.extf"},
                 {"bf16", "f32", "arith.extf"},
                 {"f32", "f64", "arith.extf"},
                 {"f64", "f32", "arith.truncf"},
                 {"f32", "i32", "arith.fptosi"},
                 {"f32", "i64", "arith.fptosi"},
                 {"i64", "f32", "arith.sitofp"},
                 {"i32", "f32", "arith.sitofp"},
                 {"i8", "f32", "arith.sitofp"},
                 {"i32", "i64", "arith.extsi"},
                 {"i64", "i32", "arith.trunci"},
                 {"i1", "f32", "arith.uitofp"},
                 {"f16", "f64", "arith.extf"}}) {
    CheckOptions options;
    options.low = -100, options.high = 100;
    check(map({tensor({101}, c.from)}, {c.from}, tensor({101}, c.to),
              formatv("%m = {0} %e0 : {1} to {2} device.yield %m : {2}", c.op, c.from, c.to)),
          options);
  }
  for (const char *half : {"f16", "bf16"}) {
    check(map({tensor({101}, half), tensor({101}, half)}, {half, half}, tensor({101}, half),
              formatv("%m = arith.mulf %e0, %e1 : {0} device.yield %m : {0}", half)));
  }
}

struct Shape4 {
  int64_t n, c, h, w;
};

TEST(Pool, Windows) {
  for (bool blocked : {false, true}) {
    for (const char *kind : {"max", "avg"}) {
      for (Shape4 s : {Shape4{1, 16, 8, 8}, {2, 5, 7, 9}, {1, 35, 6, 21}, {1, 1, 5, 40}}) {
        for (auto [kernel, stride, pad] : {std::tuple(2, 2, 0), {3, 2, 1}, {3, 1, 1}, {1, 1, 0}}) {
          for (bool include : {false, true}) {
            int64_t oh = (s.h + 2 * pad - kernel) / stride + 1, ow = (s.w + 2 * pad - kernel) / stride + 1;
            std::string x = tensor({s.n, s.c, s.h, s.w}, "f32", blocked),
                        y = tensor({s.n, s.c, oh, ow}, "f32", blocked);
            check(formatv("(%x: {0}) -> {1} {{ %y = device.pool {2} %x {{kernel = array<i64: {3}, {3}>, strides = "
                          "array<i64: {4}, {4}>, "
                          "pads = array<i64: {5}, {5}, {5}, {5}>, dilations = array<i64: 1, 1>, countIncludePad = {6}} "
                          ": ({0}) -> {1} "
                          "return %y : {1} }",
                          x, y, kind, kernel, stride, pad, include ? "true" : "false"));
          }
        }
      }
    }
  }
}

/// Maxima and means along rows of any length, of planes and volumes, with windows that reach over every border.
TEST(Pool, Random) {
  std::mt19937 random(5);
  auto draw = [&](int64_t least, int64_t most) { return least + int64_t(random() % (most - least + 1)); };
  for (int i = 0; i < 40; ++i) {
    int64_t dims = i % 3 ? 3 : 2;
    bool isMean = i >= 24;
    const char *element = i % 4 == 3 ? "i8" : i % 8 == 2 ? "f16" : "f32";
    std::string x = formatv("{0}x{1}x", draw(1, 2), draw(1, 5)), y = x;
    std::string kernel, strides, dilations, begins, ends;
    for (int64_t d = 0; d < dims; ++d) {
      bool isRow = d + 1 == dims;
      int64_t size = draw(1, 3), dilation = draw(1, 2), stride = draw(1, 3), reach = (size - 1) * dilation + 1;
      int64_t input = draw(reach, isRow ? 90 : 7), begin = draw(0, (size - 1) / 2), end = draw(0, (size - 1) / 2);
      std::string comma = d ? ", " : "";
      kernel += comma + std::to_string(size), strides += comma + std::to_string(stride);
      dilations += comma + std::to_string(dilation);
      begins += comma + std::to_string(begin), ends += comma + std::to_string(end);
      x += std::to_string(input) + "x", y += std::to_string((input + begin + end - reach) / stride + 1) + "x";
    }
    // Means are stored as they are summed.
    const char *result = !isMean || element[0] == 'f' ? (isMean ? "f32" : element) : "i32";
    x = "tensor<" + x + element + ">", y = "tensor<" + y + result + ">";
    check(formatv("(%x: {0}) -> {1} {{ %y = device.pool {7} %x {{ kernel = array<i64: {2}>, strides = array<i64: {3}>, "
                  "pads = array<i64: {4}, {5}>, dilations = array<i64: {6}>, countIncludePad = {8} } : ({0}) -> {1} "
                  "return %y : {1} }",
                  x, y, kernel, strides, begins, ends, dilations, isMean ? "avg" : "max",
                  isMean && i % 2 ? "true" : "false"));
  }
}

std::string convText(Shape4 s, int64_t oc, int64_t kernel, int64_t stride, int64_t pad, int64_t groups, bool blocked,
                     const char *type) {
  int64_t oh = (s.h + 2 * pad - kernel) / stride + 1, ow = (s.w + 2 * pad - kernel) / stride + 1;
  return formatv("(%x: {0}, %w: {1}, %b: {2}, %r: {3}) -> {3} {{ %y = device.conv %x, %w bias %b extras(%r) epilogue "
                 "{{ ^bb0(%s: {8}, %e: {8}): "
                 "%m = arith.addf %s, %e : {8} device.yield %m : {8} } {{strides = array<i64: {4}, {4}>, pads = "
                 "array<i64: {5}, {5}, {5}, {5}>, "
                 "dilations = array<i64: 1, 1>, groups = {6}} : ({0}, {1}, {2}, {3}) -> {3} return %y : {3} }",
                 tensor({s.n, s.c, s.h, s.w}, type, blocked), tensor({oc, s.c / groups, kernel, kernel}, type),
                 tensor({oc}, type), tensor({s.n, oc, oh, ow}, type, blocked), stride, pad, groups, 0, type);
}

TEST(Conv, Generic) {
  for (bool blocked : {false, true}) {
    check(convText({1, 3, 9, 9}, 5, 3, 1, 1, 1, blocked, "f32"));
    check(convText({2, 6, 8, 40}, 18, 3, 2, 1, 3, blocked, "f32"));
    check(convText({1, 17, 5, 5}, 16, 1, 1, 0, 1, blocked, "f32"));
    check(convText({1, 4, 6, 7}, 4, 5, 1, 2, 4, blocked, "f64"));
  }
}

TEST(Conv, Integers) {
  CheckOptions bytes;
  bytes.low = -255, bytes.high = 256;
  for (auto [x, padValue] : {std::pair("i8", -7), {"i8", 0}, {"ui8", 200}}) {
    for (auto [c, oc, groups, stride] : {std::tuple(3, 5, 1, 1), {6, 9, 3, 2}, {16, 16, 16, 1}}) {
      int64_t oh = (7 + 3 - 3) / stride + 1, ow = (37 + 2 - 3) / stride + 1;
      std::string xType = tensor({2, c, 7, 37}, x), w = tensor({oc, c / groups, 3, 3}, "i8"),
                  bias = tensor({oc}, "i32");
      std::string y = tensor({2, oc, oh, ow}, "i8"), m = tensor({oc, 1, 1}, "i32");
      check(formatv("(%x: {0}, %w: {1}, %b: {2}, %m: {3}) -> {4} {{ %y = device.conv %x, %w bias %b extras(%m) "
                    "epilogue {{ ^bb0(%s: i32, %e: i32): "
                    "%f = arith.sitofp %s : i32 to f32 %scale = arith.constant 0.00131 : f32 %p = arith.mulf %f, "
                    "%scale : f32 "
                    "%r = math.roundeven %p : f32 %zero = arith.sitofp %e : i32 to f32 %z = arith.addf %r, %zero : f32 "
                    "%low = arith.constant -128.0 : f32 %high = arith.constant 127.0 : f32 %l = arith.maximumf %z, "
                    "%low : f32 "
                    "%h = arith.minimumf %l, %high : f32 %i = arith.fptosi %h : f32 to i32 %q = arith.trunci %i : i32 "
                    "to i8 device.yield %q : i8 } "
                    "{{strides = array<i64: {5}, {5}>, pads = array<i64: 1, 1, 2, 1>, dilations = array<i64: 1, 1>, "
                    "groups = {6} : i64, "
                    "padValue = {7} : i64} : ({0}, {1}, {2}, {3}) -> {4} return %y : {4} }",
                    xType, w, bias, m, y, stride, groups, padValue),
            bytes);
    }
  }
}

TEST(MatMul, Integers) {
  CheckOptions bytes;
  bytes.low = -255, bytes.high = 256;
  for (const char *type : {"i8", "ui8"}) {
    std::string a = tensor({2, 5, 77}, type), b = tensor({77, 35}, "i8"), bias = tensor({35}, "i32"),
                y = tensor({2, 5, 35}, "i32");
    check(formatv("(%a: {0}, %b: {1}, %c: {2}) -> {3} {{ %y = device.matmul %a, %b bias %c : ({0}, {1}, {2}) -> {3} "
                  "return %y : {3} }",
                  a, b, bias, y),
          bytes);
  }
}

/// Tests matmuls of few rows with an activation B, whose whole blocks of columns are read in place.
TEST(MatMul, FewRows) {
  std::mt19937 random(7);
  auto draw = [&](int64_t least, int64_t most) { return least + int64_t(random() % (most - least + 1)); };
  for (int i = 0; i < 18; ++i) {
    int64_t batch = draw(1, 3), rows = draw(1, i % 3 ? 6 : 16), depth = draw(1, 70);
    int64_t columns = i % 2 ? 16 * draw(1, 20) : draw(1, 300);
    bool isOne = random() % 2, isTransposed = random() % 4 == 0, isNarrow = random() % 4 == 0 && !isTransposed;
    const char *element = isNarrow ? "bf16" : "f32";
    std::string a = isTransposed ? tensor({batch, depth, rows}, element) : tensor({batch, rows, depth}, element),
                b = tensor({isOne ? 1 : batch, depth, columns}), e = tensor({columns}),
                y = tensor({batch, rows, columns});
    check(
        formatv("(%a: {0}, %b: {1}, %c: {2}, %e: {2}, %f: {3}) -> {3} {{ %y = device.matmul %a, %b bias %c extras(%e, "
                "%f) epilogue {{ ^bb0(%s: f32, %g: f32, %h: f32): %m = arith.addf %s, %g : f32 %o = arith.addf %m, %h "
                ": f32 device.yield %o : f32 } {{transA = {4}} : ({0}, {1}, {2}, {2}, {3}) -> {3} return %y : {3} }",
                a, b, e, y, isTransposed ? "true" : "false"));
  }
}

/// Tests batches of different ranks, and one matrix for several, on the kernel that packs B and on the row kernel.
TEST(MatMul, Broadcast) {
  for (auto [a, b, y] : {std::tuple(tensor({2, 3, 5, 70}), tensor({3, 9, 70}), tensor({2, 3, 5, 9})),
                         {tensor({3, 5, 70}), tensor({2, 3, 9, 70}), tensor({2, 3, 5, 9})},
                         {tensor({2, 1, 5, 70}), tensor({3, 9, 70}), tensor({2, 3, 5, 9})},
                         {tensor({2, 3, 20, 7}), tensor({3, 9, 7}), tensor({2, 3, 20, 9})}}) {
    check(
        formatv("(%a: {0}, %b: {1}) -> {2} {{ %y = device.matmul %a, %b {{transB = true} : ({0}, {1}) -> {2} return %y "
                ": {2} }",
                a, b, y));
  }
}

/// Tests the specified order of sums, which the row kernel does not follow.
TEST(MatMul, OrderedRows) {
  CheckOptions exact;
  exact.relative = 0;
  for (auto [rows, columns, depth] : {std::tuple(1, 33, 200), {5, 20, 70}, {40, 1, 130}}) {
    std::string a = tensor({2, rows, depth}), b = tensor({2, columns, depth}), y = tensor({2, rows, columns});
    check(
        formatv("(%a: {0}, %b: {1}) -> {2} attributes {{device.exact} {{ %y = device.matmul %a, %b {{transB = true} : "
                "({0}, {1}) -> {2} return %y : {2} }",
                a, b, y),
        exact);
  }
}

/// Tests operands whose rows of K are contiguous: few rows times a transposed matrix, or a matrix times a vector. With
/// more rows the kernel packs the transposed matrix, transposing it in registers.
TEST(MatMul, RowsByRows) {
  CheckOptions small; // with larger numbers, long sums would exceed the tolerance when the epilogue cancels them
  small.low = -1, small.high = 1;
  std::mt19937 random(11);
  auto draw = [&](int64_t least, int64_t most) { return least + int64_t(random() % (most - least + 1)); };
  for (int i = 0; i < 24; ++i) {
    bool byVector = i % 3 == 0, isOne = random() % 2, isVectorTurned = random() % 2;
    int64_t batch = draw(1, 3), depth = draw(1, 200), rows = byVector ? draw(1, 70) : draw(1, i % 2 ? 6 : 40);
    int64_t columns = byVector ? 1 : draw(1, 90);
    bool transB = byVector ? isVectorTurned : true;
    const char *element = random() % 4 == 0 ? "f16" : "f32";
    std::string a = tensor({batch, rows, depth}, element),
                b = transB ? tensor({isOne ? 1 : batch, columns, depth}, element)
                           : tensor({isOne ? 1 : batch, depth, columns}, element),
                bias = tensor({columns}), row = tensor({rows, 1}), y = tensor({batch, rows, columns});
    check(
        formatv(
            "(%a: {0}, %b: {1}, %c: {2}, %e: {3}, %f: {4}) -> {4} {{ %y = device.matmul %a, %b bias %c extras(%e, %f) "
            "epilogue {{ ^bb0(%s: f32, %g: f32, %h: f32): %m = arith.mulf %s, %g : f32 %o = arith.addf %m, %h : f32 "
            "device.yield %o : f32 } {{transB = {5}} : ({0}, {1}, {2}, {3}, {4}) -> {4} return %y : {4} }",
            a, b, bias, row, y, transB ? "true" : "false"),
        small);
  }
}

TEST(MatMul, Generic) {
  struct Case {
    int64_t m, k, n;
    bool ta, tb;
  };
  for (Case c : {Case{1, 1, 1, false, false},
                 {5, 7, 33, false, false},
                 {4, 64, 64, false, true},
                 {9, 3, 17, true, false},
                 {6, 5, 4, true, true}}) {
    for (const char *type : {"f32", "i32", "f64"}) {
      std::string a = c.ta ? tensor({2, c.k, c.m}, type) : tensor({2, c.m, c.k}, type),
                  b = c.tb ? tensor({c.n, c.k}, type) : tensor({c.k, c.n}, type);
      check(formatv("(%a: {0}, %b: {1}) -> {2} {{ %y = device.matmul %a, %b {{transA = {3}, transB = {4}} : ({0}, {1}) "
                    "-> {2} return %y : {2} }",
                    a, b, tensor({2, c.m, c.n}, type), c.ta ? "true" : "false", c.tb ? "true" : "false"));
    }
  }
}

std::string oneToOne(const char *op, const std::string &x, const std::string &y, const std::string &attributes) {
  return formatv("(%x: {0}) -> {1} {{ %y = device.{2} %x {3} : ({0}) -> {1} return %y : {1} }", x, y, op, attributes);
}

TEST(Softmax, Axes) {
  for (int64_t size : {1, 5, 16, 100, 1000}) {
    for (const char *log : {"", ", log = true"}) {
      check(oneToOne("softmax", tensor({3, size}), tensor({3, size}), formatv("{{axis = 1 : i64{0}}", log)));
      check(oneToOne("softmax", tensor({2, 7, size}), tensor({2, 7, size}), formatv("{{axis = 1 : i64{0}}", log)));
    }
  }
}

TEST(Reduce, Axes) {
  struct Case {
    std::vector<int64_t> axes;
  };
  for (bool blocked : {false, true}) {
    for (int64_t c : {3, 16, 37}) {
      for (const Case &r : {Case{{2, 3}}, {{1}}, {{3}}, {{0, 1, 2, 3}}, {{0, 2}}, {{1, 2, 3}}}) {
        for (const char *kind : {"sum", "max", "min", "prod"}) {
          std::vector<int64_t> shape = {2, c, 4, 7};
          std::string axes;
          for (int64_t axis : r.axes) {
            shape[axis] = 1;
            axes += (axes.empty() ? "" : ", ") + std::to_string(axis);
          }
          CheckOptions options;
          options.low = 0.9, options.high = 1.1, options.relative = 2e-5;
          std::string y = tensor({shape[0], shape[1], shape[2], shape[3]}, "f32", blocked);
          check(formatv("(%x: {0}) -> {1} {{ %y = device.reduce {2} %x epilogue {{ ^bb0(%s: f32): %h = arith.constant "
                        "0.5 : f32 %m = arith.mulf %s, %h : "
                        "f32 device.yield %m : f32 } {{axes = array<i64: {3}>} : ({0}) -> {1} return %y : {1} }",
                        tensor({2, c, 4, 7}, "f32", blocked), y, kind, axes),
                options);
        }
      }
    }
  }
}

TEST(Norm, Rows) {
  for (int64_t size : {1, 7, 64, 100, 768}) {
    for (bool rms : {false, true}) {
      check(formatv("(%x: {0}, %s: {1}, %b: {1}) -> {0} {{ %y = device.norm %x scale %s bias %b {{axis = 1 : i64, "
                    "epsilon = 1.0e-5 : f64, rms = {2}} : "
                    "({0}, {1}, {1}) -> {0} return %y : {0} }",
                    tensor({5, size}), tensor({size}), rms ? "true" : "false"));
    }
  }
}

std::string piece(const std::string &source, const std::string &sizes, const std::string &dst,
                  const std::string &dstSteps, const std::string &dims, const std::string &src,
                  const std::string &srcSteps) {
  return formatv("#device.piece<source = {0}, sizes = [{1}], dst_offsets = [{2}], dst_steps = [{3}], src_dims = [{4}], "
                 "src_offsets = [{5}], "
                 "src_steps = [{6}]>",
                 source, sizes, dst, dstSteps, dims, src, srcSteps);
}

std::string copyText(const std::vector<std::string> &sources, const std::string &y, const std::string &pieces,
                     const char *fill = "") {
  std::string arguments, names, types;
  for (size_t i = 0; i < sources.size(); ++i) {
    std::string comma = i ? ", " : "";
    arguments += comma + formatv("%a{0}: {1}", i, sources[i]).str();
    names += comma + formatv("%a{0}", i).str();
    types += comma + sources[i];
  }
  return formatv("({0}) -> {1} {{ %y = device.copy {2} {{pieces = [{3}]{4}} : ({5}) -> {1} return %y : {1} }",
                 arguments, y, names, pieces, fill, types);
}

TEST(Copy, LayoutChanges) {
  for (int64_t c : {1, 3, 16, 20, 64}) {
    for (auto [from, to] : {std::pair(false, true), {true, false}, {true, true}, {false, false}}) {
      for (int64_t w : {1, 5, 16, 33}) {
        check(copyText({tensor({2, c, 3, w}, "f32", from)}, tensor({2, c, 3, w}, "f32", to),
                       piece("0", formatv("2, {0}, 3, {1}", c, w), "0, 0, 0, 0", "1, 1, 1, 1", "0, 1, 2, 3",
                             "0, 0, 0, 0", "1, 1, 1, 1")));
      }
    }
  }
}

TEST(Copy, Permutations) {
  for (const char *type : {"f32", "i8", "i64", "f16", "i1"}) {
    check(copyText({tensor({2, 5, 19, 7}, type)}, tensor({2, 19, 7, 5}, type),
                   piece("0", "2, 19, 7, 5", "0, 0, 0, 0", "1, 1, 1, 1", "0, 2, 3, 1", "0, 0, 0, 0", "1, 1, 1, 1")));
    check(copyText({tensor({40, 35}, type)}, tensor({35, 40}, type),
                   piece("0", "35, 40", "0, 0", "1, 1", "1, 0", "0, 0", "1, 1")));
  }
  // Slices with steps, reversal, broadcast.
  check(copyText({tensor({4, 30})}, tensor({4, 10}), piece("0", "4, 10", "0, 0", "1, 1", "0, 1", "0, 2", "1, 2")));
  check(copyText({tensor({4, 30})}, tensor({4, 30}), piece("0", "4, 30", "0, 0", "1, 1", "0, 1", "3, 29", "-1, -1")));
  check(copyText({tensor({1, 30})}, tensor({4, 30}), piece("0", "4, 30", "0, 0", "1, 1", "-1, 1", "0, 0", "1, 1")));
}

TEST(Copy, ConcatAndPad) {
  for (bool blocked : {false, true}) {
    for (int64_t c : {16, 5}) {
      std::string whole = formatv("1, {0}, 3, 4", c), x = tensor({1, c, 3, 4}, "f32", blocked), zero = "0, 0, 0, 0",
                  one = "1, 1, 1, 1", id = "0, 1, 2, 3";
      check(copyText({x, x}, tensor({1, 2 * c, 3, 4}, "f32", blocked),
                     piece("0", whole, zero, one, id, zero, one) + ", " +
                         piece("1", whole, formatv("0, {0}, 0, 0", c), one, id, zero, one)));
      for (const char *fill : {", fill = 0.0 : f64", ", fill = 1.5 : f64"}) {
        check(copyText({x}, tensor({1, c, 6, 7}, "f32", blocked), piece("0", whole, "0, 0, 1, 2", one, id, zero, one),
                       fill));
        check(copyText({x}, tensor({1, c + 3, 3, 4}, "f32", blocked),
                       piece("0", whole, "0, 1, 0, 0", one, id, zero, one), fill));
        check(copyText({x}, tensor({1, c, 6, 8}, "f32", blocked), piece("0", whole, zero, "1, 1, 2, 2", id, zero, one),
                       fill));
      }
    }
  }
}

// Channel ranges that begin or end inside blocks, or are shifted relative to them.
TEST(Copy, CutBlocks) {
  std::string zero = "0, 0, 0, 0", one = "1, 1, 1, 1", id = "0, 1, 2, 3";
  for (auto [a, b, c] : {std::tuple(24, 24, 24), {5, 40, 19}, {33, 1, 6}}) {
    for (auto [from, to] : {std::pair(true, true), {true, false}, {false, true}}) {
      auto part = [&](const char *index, int64_t size, int64_t at) {
        return piece(index, formatv("2, {0}, 3, 5", size), formatv("0, {0}, 0, 0", at), one, id, zero, one);
      };
      auto image = [&](int64_t channels, bool blocked) { return tensor({2, channels, 3, 5}, "f32", blocked); };
      check(copyText({image(a, from), image(b, from), image(c, from)}, image(a + b + c, to),
                     part("0", a, 0) + ", " + part("1", b, a) + ", " + part("2", c, a + b)));
      check(copyText({image(a + b + c, from)}, image(b, to),
                     piece("0", formatv("2, {0}, 3, 5", b), zero, one, id, formatv("0, {0}, 0, 0", a), one)));
      check(copyText({image(a, from)}, image(a + b + c, to), part("0", a, b), ", fill = 1.5 : f64"));
    }
  }
}

TEST(Map, Requantise) {
  CheckOptions options;
  for (double divisor : {0.21, 0.00787401571, 3.0, 1.0, 1e-12, 1e25}) {
    for (double range : {300.0, 3.0, 1e9, 3e38 / divisor}) {
      options.low = -range * divisor, options.high = range * divisor;
      for (bool blocked : {false, true}) {
        check(
            map({tensor({1, 35, 9, 7}, "f32", blocked)}, {"f32"}, tensor({1, 35, 9, 7}, "i8", blocked),
                formatv(
                    "%c = arith.constant {0:e9} : f32 %d = arith.divf %e0, %c : f32 %r = math.roundeven %d : f32 %z = "
                    "arith.constant -5.0 : f32 "
                    "%s = arith.addf %r, %z : f32 %lo = arith.constant -128.0 : f32 %a = arith.maximumf %s, %lo : f32 "
                    "%hi = arith.constant 127.0 : f32 %b = arith.minimumf %a, %hi : f32 %i = arith.fptosi %b : f32 to "
                    "i32 "
                    "%q = arith.trunci %i : i32 to i8 device.yield %q : i8",
                    divisor)),
            options);
      }
    }
  }
}

/// Tests maps from a byte and a float to a byte, with ReLU, for all kinds of zero points, bounds and signs.
TEST(Map, ZeroPoints) {
  CheckOptions options;
  options.allBytes = true;
  std::string type = tensor({1, 35, 9, 7}, "i8"), real = tensor({1, 35, 9, 7});
  for (int shift : {128, -128, 64, 1, 3, 127, 0}) {
    for (double zero : {-128.0, -64.0, 0.0}) {
      for (double low : {-128.0, -100.0, 3.0}) {
        double scale = shift == 64 ? 1e-30 : shift == 1 ? -0.017 : 0.017;
        options.low = -300 * std::fabs(scale), options.high = 300 * std::fabs(scale);
        check(map({type, real}, {"i8", "f32"}, type,
                  formatv("%w = arith.extsi %e0 : i8 to i32 %k = arith.constant {0} : i32 %m = arith.{1} %w, %k : i32 "
                          "%f = arith.sitofp %m : i32 to f32 %c = arith.constant {2:e9} : f32 %p = arith.mulf %f, %c : "
                          "f32 %t = arith.addf %p, %e1 : f32 %o = arith.constant 0.0 : f32 %x = arith.maximumf %t, %o "
                          ": f32 %g = arith.constant {3:e9} : f32 %d = arith.divf %x, %g : f32 %r = math.roundeven %d "
                          ": f32 %z = arith.constant {4:e9} : f32 %s = arith.addf %r, %z : f32 %lo = arith.constant "
                          "{5:e9} : f32 %a = arith.maximumf %s, %lo : f32 %hi = arith.constant 127.0 : f32 %b = "
                          "arith.minimumf %a, %hi : f32 %i = arith.fptosi %b : f32 to i32 %q = arith.trunci %i : i32 "
                          "to i8 device.yield %q : i8",
                          std::abs(shift), shift < 0 ? "subi" : "addi", scale, std::fabs(scale) * 1.3, zero, low)),
              options);
      }
    }
  }
}

/// Tests that the ops between 8-bit convolutions preserve every byte of blocked and row-major tensors.
TEST(Bytes, Moves) {
  CheckOptions options;
  options.allBytes = true;
  std::string zero = "0, 0, 0, 0", one = "1, 1, 1, 1", id = "0, 1, 2, 3";
  for (std::string element : {"i8", "ui8"}) {
    for (int64_t c : {1, 16, 24, 37}) {
      for (bool blocked : {false, true}) {
        auto type = [&](int64_t channels, int64_t h, int64_t w) {
          return tensor({2, channels, h, w}, element.c_str(), blocked);
        };
        std::string x = type(c, 9, 11), whole = formatv("2, {0}, 9, 11", c);
        check(formatv("(%x: {0}) -> {1} {{ %y = device.pool max %x {{ kernel = array<i64: 3, 3>, strides = array<i64: "
                      "2, 2>, pads = array<i64: 1, 1, 1, 1>, "
                      "dilations = array<i64: 1, 1> } : ({0}) -> {1} return %y : {1} }",
                      x, type(c, 5, 6)),
              options);
        check(copyText({x}, tensor({2, c, 9, 11}, element.c_str(), !blocked),
                       piece("0", whole, zero, one, id, zero, one)),
              options);
        check(copyText({x, x}, type(2 * c, 9, 11),
                       piece("0", whole, zero, one, id, zero, one) + ", " +
                           piece("1", whole, formatv("0, {0}, 0, 0", c), one, id, zero, one)),
              options);
        for (const char *fill : {", fill = 0.0 : f64", ", fill = 9.0 : f64"}) {
          check(copyText({x}, type(c, 12, 14), piece("0", whole, "0, 0, 1, 2", one, id, zero, one), fill), options);
          check(copyText({x}, type(c + 3, 9, 11), piece("0", whole, "0, 1, 0, 0", one, id, zero, one), fill), options);
        }
        bool isUnsigned = element[0] == 'u';
        check(formatv("(%x: {0}) -> {1} {{ %y = device.reduce sum %x prologue {{ ^bb0(%e: i8): %w = arith.{2} %e : i8 "
                      "to i32 device.yield %w : i32 } "
                      "{{axes = array<i64: 2, 3>} : ({0}) -> {1} return %y : {1} }",
                      x, tensor({2, c, 1, 1}, "i32", blocked), isUnsigned ? "extui" : "extsi"),
              options);
      }
    }
  }
}

TEST(Resize, Layouts) {
  CheckOptions inside;
  // x has 3 rows and 4 columns. Negative weights would make padding lanes -0.
  inside.indexRange = 3, inside.negativeIndices = false, inside.low = 0;
  for (bool blocked : {false, true}) {
    for (int64_t taps : {2, 4}) {
      for (auto [h, w] : {std::pair(2, 3), {31, 70}, {3, 300}}) {
        std::string x = tensor({2, 20, 3, 4}, "f32", blocked), y = tensor({2, 20, h, w}, "f32", blocked);
        std::string ih = tensor({h, taps}, "i32"), wh = tensor({h, taps}), iw = tensor({w, taps}, "i32"),
                    ww = tensor({w, taps});
        check(formatv("(%x: {0}, %a: {1}, %b: {2}, %c: {3}, %d: {4}) -> {5} {{ %y = device.resize %x, %a, %b, %c, %d "
                      "{{axes = array<i64: 2, 3>} : "
                      "({0}, {1}, {2}, {3}, {4}) -> {5} return %y : {5} }",
                      x, ih, wh, iw, ww, y),
              inside);
      }
    }
  }
}

TEST(Gather, Kinds) {
  for (const char *index : {"i64", "i32"}) {
    for (int64_t inner : {1, 3, 50}) {
      check(formatv("(%x: {0}, %i: {1}) -> {2} {{ %y = device.gather %x, %i {{axis = 1 : i64} : ({0}, {1}) -> {2} "
                    "return %y : {2} }",
                    tensor({2, 9, inner}), tensor({3, 4}, index), tensor({2, 3, 4, inner})));
    }
    check(formatv("(%x: {0}, %i: {1}) -> {2} {{ %y = device.gather_elements %x, %i {{axis = 1 : i64} : ({0}, {1}) -> "
                  "{2} return %y : {2} }",
                  tensor({4, 9}), tensor({3, 6}, index), tensor({3, 6})));
    check(formatv("(%x: {0}, %i: {1}) -> {2} {{ %y = device.gather_nd %x, %i {{batchDims = 1 : i64} : ({0}, {1}) -> "
                  "{2} return %y : {2} }",
                  tensor({2, 8, 8, 5}), tensor({2, 6, 2}, index), tensor({2, 6, 5})));
  }
}

TEST(Scatter, Kinds) {
  for (const char *reduction : {"none", "add", "mul", "min", "max"}) {
    check(formatv("(%x: {0}, %i: {1}, %u: {2}) -> {0} {{ %y = device.scatter %x, %i, %u {{axis = 1 : i64, reduction = "
                  "\"{3}\"} : ({0}, {1}, {2}) -> {0} "
                  "return %y : {0} }",
                  tensor({3, 8}), tensor({3, 5}, "i64"), tensor({3, 5}), reduction));
    check(formatv("(%x: {0}, %i: {1}, %u: {2}) -> {0} {{ %y = device.scatter %x, %i, %u {{nd = true, reduction = "
                  "\"{3}\"} : ({0}, {1}, {2}) -> {0} "
                  "return %y : {0} }",
                  tensor({8, 8, 20}), tensor({6, 2}, "i64"), tensor({6, 20}), reduction));
  }
}

/// Tests that exact functions order +0 above -0 wherever the difference is observable.
TEST(Zeros, HaveSigns) {
  CheckOptions options;
  options.signedZeros = true, options.negativeIndices = false, options.indexRange = 5;
  for (const char *kind : {"maximumf", "minimumf"}) {
    check(map({tensor({333}), tensor({333})}, {"f32", "f32"}, tensor({333}),
              formatv("%m = arith.{0} %e0, %e1 : f32 device.yield %m : f32", kind)),
          options);
    for (const char *bound : {"0.0", "-0.0"}) {
      std::string clamp = formatv("%c = arith.constant {0} : f32 %m = arith.{1} %e0, %c : f32 ", bound, kind);
      check(unary(tensor({333}), clamp + "device.yield %m : f32"), options);
      check(unary(tensor({333}), clamp + "%n = arith.divf %e0, %m : f32 device.yield %n : f32"), options);
    }
  }
  for (bool blocked : {false, true}) {
    check(
        formatv("(%x: {0}) -> {1} {{ %y = device.pool max %x {{ kernel = array<i64: 2, 3>, strides = array<i64: 2, 1>, "
                "pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1> } : ({0}) -> {1} return %y : {1} }",
                tensor({2, 20, 9, 11}, "f32", blocked), tensor({2, 20, 5, 11}, "f32", blocked)),
        options);
    for (const char *kind : {"max", "min"}) {
      const std::pair<const char *, std::string> reductions[] = {{"1", tensor({2, 1, 3, 5}, "f32", blocked)},
                                                                 {"2, 3", tensor({2, 3, 1, 1}, "f32", blocked)},
                                                                 {"3", tensor({2, 3, 3, 1}, "f32", blocked)}};
      for (const auto &[axes, y] : reductions) {
        check(
            formatv("(%x: {0}) -> {1} {{ %y = device.reduce {2} %x {{axes = array<i64: {3}>} : ({0}) -> {1} return %y "
                    ": {1} }",
                    tensor({2, 3, 3, 5}, "f32", blocked), y, kind, axes),
            options);
      }
    }
  }
  for (const char *reduction : {"min", "max"}) {
    check(formatv("(%x: {0}, %i: {1}, %u: {2}) -> {0} {{ %y = device.scatter %x, %i, %u {{axis = 1 : i64, reduction = "
                  "\"{3}\"} : ({0}, {1}, {2}) -> {0} return %y : {0} }",
                  tensor({30, 8}), tensor({30, 5}, "i64"), tensor({30, 5}), reduction),
          options);
  }
}

TEST(Suppression, Kinds) {
  CheckOptions options;
  options.low = 0;
  options.high = 1;
  for (auto [batch, classes, count, k] : {std::tuple(1, 1, 40, 40), {2, 3, 40, 6}, {1, 5, 1, 1}, {3, 2, 500, 8}}) {
    for (const char *center : {"false", "true"}) {
      check(formatv("(%b: {0}, %s: {1}, %m: tensor<i64>, %t: tensor<f32>, %l: tensor<1xf32>) -> {2} {{ %y = "
                    "device.non_max_suppression %b, %s, %m, %t, %l {{k = {3} : i64, center = {4}} : ({0}, {1}, "
                    "tensor<i64>, tensor<f32>, tensor<1xf32>) -> {2} return %y : {2} }",
                    tensor({batch, count, 4}), tensor({batch, classes, count}), tensor({batch, classes, k}, "i64"), k,
                    center),
            options);
    }
  }
}

/// Tests reductions over strided columns: fewer columns than lanes, whole vectors of them, and vectors with a
/// remainder.
TEST(Order, Columns) {
  for (auto [outer, axis, inner] : {std::tuple(2, 9, 3), {1, 6, 8}, {2, 17, 16}, {1, 7, 37}, {1, 300, 64}}) {
    for (const char *element : {"f32", "i32", "ui8", "f16", "i64"}) {
      std::string x = tensor({outer, axis, inner}, element);
      for (const char *flags : {"", ", min = true", ", selectLast = true"}) {
        check(oneToOne("arg_reduce", x, tensor({outer, 1, inner}, "i64"), formatv("{{axis = 1 : i64{0}}", flags)));
      }
    }
    CheckOptions options;
    options.relative = 0; // sums have a specified order
    for (const char *element : {"f32", "i32", "i64"}) {
      std::string x = tensor({outer, axis, inner}, element);
      for (const char *flags : {"", ", exclusive = true, reverse = true"}) {
        check(oneToOne("cumsum", x, x, formatv("{{axis = 1 : i64{0}}", flags)), options);
      }
    }
  }
}

/// Tests top k of long lists: neighbours that are skipped together, ties, and a remainder.
TEST(Order, LongLists) {
  for (auto [rows, axis, k] : {std::tuple(3, 200, 5), {1, 77, 60}, {2, 48, 16}, {1, 33, 17}, {1, 1000, 1}}) {
    for (const char *type : {"f32", "i32", "f16", "ui8", "i64"}) {
      for (const char *largest : {"true", "false"}) {
        check(formatv("(%x: {0}) -> ({1}, {2}) {{ %v, %i = device.topk %x {{k = {3} : i64, axis = 1 : i64, largest = "
                      "{4}} : ({0}) -> ({1}, {2}) return %v, %i : {1}, {2} }",
                      tensor({rows, axis}, type), tensor({rows, k}, type), tensor({rows, k}, "i64"), k, largest));
      }
    }
  }
}

TEST(Order, Kinds) {
  for (auto [outer, axis, inner] : {std::tuple(3, 10, 1), {1, 1000, 1}, {2, 17, 5}}) {
    for (const char *flags : {"", ", min = true", ", selectLast = true"}) {
      check(oneToOne("arg_reduce", tensor({outer, axis, inner}), tensor({outer, 1, inner}, "i64"),
                     formatv("{{axis = 1 : i64{0}}", flags)));
      check(oneToOne("arg_reduce", tensor({outer, axis, inner}, "i32"), tensor({outer, 1, inner}, "i64"),
                     formatv("{{axis = 1 : i64{0}}", flags)));
    }
    for (const char *flags : {"", ", exclusive = true", ", reverse = true"}) {
      CheckOptions options;
      options.relative = 0; // its sums have an order
      check(oneToOne("cumsum", tensor({outer, axis, inner}), tensor({outer, axis, inner}),
                     formatv("{{axis = 1 : i64{0}}", flags)),
            options);
    }
    for (int64_t k : {1, 5, 10}) {
      for (const char *type : {"f32", "i32"}) {
        for (const char *largest : {"true", "false"}) {
          check(formatv("(%x: {0}) -> ({1}, {2}) {{ %v, %i = device.topk %x {{k = {3} : i64, axis = 1 : i64, largest = "
                        "{4}} : ({0}) -> ({1}, {2}) return %v, %i : "
                        "{1}, {2} }",
                        tensor({outer, axis, inner}, type), tensor({outer, k, inner}, type),
                        tensor({outer, k, inner}, "i64"), k, largest));
        }
      }
    }
  }
}

} // namespace
