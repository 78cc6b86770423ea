//===- RandomNetworks_test.cpp - Random networks on the NPU ---------------===//
// SPDX-License-Identifier: Apache-2.0
//
// Compares random networks with the device reference, bit by bit for integers and floats. The seed determines the
// network, the chip and the precision. To run more: TESSERA_NPU_NETWORKS=FIRST:END npu_emission_test
// --gtest_filter='RandomNetworks.*'
//===----------------------------------------------------------------------===//
#include "regression/npu/NpuRunner.h"
#include "regression/npu/RandomNetwork.h"

#include "bmodel_format/test/TestChip.h"
#include "device_dialect/IR/DeviceDialect.h"
#include "device_dialect/IR/DeviceOps.h"
#include "quant/Transforms/Quantize.h"
#include "top_dialect/IR/TensorNames.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/WeightStore.h"
#include "top_dialect/Reference/Support.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace tessera;
using namespace tessera::npu;

namespace {

using bmodel::npu::Chip;
using quant::Precision;

using Kind = RandomNetwork::Kind;

constexpr StringLiteral kNumber = "number_of_op";

/// The result of a trial.
struct Outcome {
  std::string fault;                 ///< empty if the trial succeeded
  bool isTooLarge = false;           ///< its tiles do not fit the chip
  size_t rejected = 0, computed = 0; ///< ops that the chip does not and does support
  size_t stays = 0;                  ///< values resident in local memory
};

/// Chips of 4 to 64 lanes, some with so little local memory that values are resident only slice by slice. The chip with
/// 12 lanes requantises with integers.
const std::vector<Chip> &chips() {
  using namespace bmodel::npu;
  auto small = [](const char *name, uint64_t bytes) {
    Chip result = chipNamed(name);
    result.name += "-" + std::to_string(bytes), result.laneBytes = bytes;
    return result;
  };
  static const std::vector<Chip> all = {
      chipNamed("npu-edge"),
      chipNamed("npu-base"),
      chipNamed("npu-pro"),
      changedEdge({"name=narrow", "lanes=4", "local_memory.bytes_per_lane=32768"}),
      oddChip(),
      small("npu-base", 4096),
      small("npu-edge", 8192),
  };
  return all;
}

/// The chips of chips(), with lanes so small that they hold few rows of a thousand numbers, or none.
const std::vector<Chip> &chipsOfShortLanes() {
  static const std::vector<Chip> all = [] {
    std::vector<Chip> result = chips();
    for (size_t i = 0; i < result.size(); ++i) {
      uint64_t unit = uint64_t(result[i].banks) * result[i].portBytes;
      result[i].laneBytes = llvm::divideCeil(i % 2 ? 8192 : 4096, unit) * unit;
      result[i].name += "-short";
    }
    return result;
  }();
  return all;
}

/// The network of a seed, compiled for its chip.
class Trial {
public:
  Trial(uint64_t seed, unsigned steps, Kind kind = Kind::any)
      : chip((kind != Kind::longRows ? chips() : chipsOfShortLanes())[seed % chips().size()]), generator(seed + 1),
        context(MLIRContext::Threading::DISABLED) {
    constexpr Precision kPrecisions[] = {Precision::INT8, Precision::F32,   Precision::INT8, Precision::BF16,
                                         Precision::INT8, Precision::INT16, Precision::F16};
    precision = kPrecisions[seed / chips().size() % std::size(kPrecisions)];
    opt = seed % 7 == 0 ? 1 : seed % 31 == 1 ? 3 : 2;
    DialectRegistry registry;
    registerNpuModels(registry);
    context.appendDialectRegistry(registry);
    context.loadDialect<func::FuncDialect, top::TopDialect, device::DeviceDialect>();
    top::WeightStore &store = context.getLoadedDialect<top::TopDialect>()->getWeightStore();
    network.emplace(seed, steps, kind, [&](const Dims &dims, const std::vector<float> &numbers) {
      auto *bytes = reinterpret_cast<const char *>(numbers.data());
      return store.add("c", Float32Type::get(&context), dims, std::vector<char>(bytes, bytes + 4 * numbers.size()));
    });
  }

  std::string name() const {
    return llvm::formatv("{0}, {1}, --opt {2}\n{3}", chip.name, quant::toString(precision), opt, network->summary());
  }

  Outcome run() {
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { messages += diagnostic.str() + "; "; });
    Outcome outcome;
    module = parseSourceString<ModuleOp>(network->text(), &context);
    if (!module || !quantize() || !lower(outcome)) {
      outcome.fault = "is not compiled: " + messages + "\n" + network->text();
      return outcome;
    }
    func::FuncOp function = main();
    if (function.getNumResults() == 0 || outcome.computed == 0) {
      return outcome;
    }
    messages.clear();
    RunResult result = checkOnNpu(function, chip, draw(function), 1, {opt});
    outcome.isTooLarge = StringRef(messages).contains("tiles that do not fit local memory") ||
                         StringRef(messages).contains("bytes of a lane for");
    if (!result.fault.empty() && !outcome.isTooLarge) {
      outcome.fault = result.fault + " " + messages + "\n";
      llvm::raw_string_ostream(outcome.fault) << *module;
    }
    return outcome;
  }

private:
  func::FuncOp main() { return *module->getOps<func::FuncOp>().begin(); }

  /// Draws inputs of the arguments' types.
  top::TensorMap draw(func::FuncOp function) {
    top::TensorMap inputs;
    std::normal_distribution<double> normal(0, 1.5);
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      top::HostTensor tensor(cast<RankedTensorType>(function.getArgumentTypes()[i]));
      std::vector<double> values(size_t(tensor.getNumElements()));
      auto integer = dyn_cast<IntegerType>(tensor.getType().getElementType());
      for (double &value : values) {
        value = integer ? std::round(20 * normal(generator)) : normal(generator);
        value = integer && integer.getWidth() == 1 ? std::abs(std::fmod(value, 2)) : value;
        value = integer && integer.isUnsigned() ? std::abs(value) : value;
        value = integer && integer.getWidth() == 8 ? std::clamp(value, -127.0, 127.0) : value;
      }
      top::reference::write(values, tensor);
      inputs.emplace(function.getArgAttrOfType<StringAttr>(i, top::TopDialect::kNameAttr).str(), std::move(tensor));
    }
    return inputs;
  }

  /// Quantises with the ranges of one run, some of them symmetric.
  bool quantize() {
    if (precision == Precision::F32) {
      return true;
    }
    func::FuncOp function = main();
    top::nameEveryTensor(function);
    llvm::StringMap<quant::Range> ranges;
    auto note = [&](StringRef name, const top::HostTensor &tensor) {
      quant::Range range;
      for (double value : top::reference::read<double>(tensor)) {
        range.min = std::min(range.min, float(value)), range.max = std::max(range.max, float(value));
      }
      range.min = std::min(range.min, -0.01f), range.threshold = std::max(-range.min, range.max);
      range.largest = range.threshold, range.symmetric = std::uniform_int_distribution<int>(0, 1)(generator);
      range.derive();
      range.weightTerms = std::uniform_int_distribution<int>(0, 3)(generator) ? 1 : 2;
      ranges[name] = range;
    };
    top::TensorMap inputs = draw(function);
    for (const auto &[name, tensor] : inputs) {
      note(name, tensor);
    }
    if (failed(top::Evaluator(note).run(function, inputs))) {
      return false;
    }
    auto report = quant::quantizeFunction(function, quant::CalibrationTable(std::move(ranges)), {}, {precision});
    if (!report) {
      messages += llvm::toString(report.takeError());
      return false;
    }
    return true;
  }

  /// Lowers to device ops with addresses. Replaces ops that the chip does not support with arguments.
  bool lower(Outcome &outcome) {
    PassManager lowering(&context);
    buildLowering(lowering, chip.requantise, chip);
    if (failed(lowering.run(*module))) {
      return false;
    }
    for (Operation *op : numberOps()) {
      outcome.computed += !isa<device::ReshapeOp>(op);
    }
    while (true) {
      std::vector<Operation *> ops = numberOps();
      OwningOpRef<ModuleOp> placed = module->clone();
      PassManager passes(&context);
      buildAddresses(passes);
      if (failed(passes.run(*placed))) {
        return false;
      }
      std::vector<UnsupportedOp> unsupportedOps = surveyProgram(*placed->getOps<func::FuncOp>().begin(), chip);
      if (unsupportedOps.empty()) {
        module = std::move(placed);
        return true;
      }
      for (const UnsupportedOp &unsupportedOp : unsupportedOps) {
        auto number = unsupportedOp.op ? unsupportedOp.op->getAttrOfType<IntegerAttr>(kNumber) : IntegerAttr();
        if (!number) {
          messages += "refuses an op that was not there before: " + unsupportedOp.reason;
          return false;
        }
        leaveOut(ops[size_t(number.getInt())]);
        ++outcome.rejected, --outcome.computed;
      }
    }
  }

  /// Numbers the ops that results depend on, removes the others, and returns the numbered ones.
  std::vector<Operation *> numberOps() {
    std::vector<Operation *> ops, dead;
    for (Operation &op : llvm::reverse(main().getBody().front())) {
      if (op.use_empty() && op.getNumResults()) {
        dead.push_back(&op);
        op.dropAllReferences();
      }
    }
    llvm::for_each(dead, [](Operation *op) { op->erase(); });
    for (Operation &op : main().getBody().front().without_terminator()) {
      op.setAttr(kNumber, Builder(&context).getI64IntegerAttr(int64_t(ops.size())));
      ops.push_back(&op);
    }
    return ops;
  }

  void leaveOut(Operation *op) {
    func::FuncOp function = main();
    for (Value result : op->getResults()) {
      unsigned at = function.getNumArguments();
      auto name = StringAttr::get(&context, "left" + std::to_string(at));
      auto attributes = DictionaryAttr::get(&context, NamedAttribute(StringRef(top::TopDialect::kNameAttr), name));
      (void)function.insertArgument(at, result.getType(), attributes, op->getLoc());
      result.replaceAllUsesWith(function.getArgument(at));
    }
    op->erase();
  }

  std::optional<RandomNetwork> network;
  const Chip &chip;
  std::mt19937_64 generator;
  MLIRContext context;
  Precision precision;
  unsigned opt;
  OwningOpRef<ModuleOp> module;
  std::string messages;
};

/// Returns the error of the shortest failing prefix of a seed's network.
std::string shortestFault(uint64_t seed, Kind kind) {
  for (unsigned steps = 1; steps <= RandomNetwork::kMostSteps; ++steps) {
    Trial trial(seed, steps, kind);
    if (Outcome outcome = trial.run(); !outcome.fault.empty()) {
      return llvm::formatv("seed {0}, {1} steps, on {2}{3}", seed, steps, trial.name(), outcome.fault);
    }
  }
  return llvm::formatv("seed {0}: fails as a whole only", seed);
}

/// Runs the networks of |end| seeds, or of the seeds that the environment names.
void runNetworks(Kind kind, unsigned end) {
  unsigned first = 0;
  const char *wanted = std::getenv("TESSERA_NPU_NETWORKS");
  if (wanted && std::sscanf(wanted, "%u:%u", &first, &end) != 2) {
    FAIL() << "TESSERA_NPU_NETWORKS is '" << wanted << "' instead of FIRST:END";
  }
  size_t computed = 0, rejected = 0, large = 0;
  for (unsigned seed = first; seed < end; ++seed) {
    Outcome outcome = Trial(seed, RandomNetwork::kMostSteps, kind).run();
    if (!outcome.fault.empty()) {
      ADD_FAILURE() << shortestFault(seed, kind);
    }
    computed += outcome.computed, rejected += outcome.rejected, large += outcome.isTooLarge;
  }
  std::printf("%u networks: %zu ops computed, %zu left out, %zu networks too large\n", end - first, computed, rejected,
              large);
  EXPECT_GT(computed, 5 * rejected);
  EXPECT_LT(10 * large, end - first);
}

/// Regression: an element was copied past the value that it belongs to, to the same offset of another lane, and the
/// copy was treated as already in place.
TEST(RandomNetworks, CopiesFromLaneToLane) { EXPECT_EQ(Trial(31428, RandomNetwork::kMostSteps).run().fault, ""); }

/// Regression: a map was fused with the preceding norm although its result overwrites what a copy in between reads.
TEST(RandomNetworks, MapsBehindNormsOverwriteNothing) {
  EXPECT_EQ(Trial(37536, RandomNetwork::kMostSteps).run().fault, "");
}

TEST(RandomNetworks, GiveTheNumbersOfTheReference) { runNetworks(Kind::any, 150); }

/// Norms and softmax of rows larger than a lane, on every chip.
TEST(RandomNetworks, OfRowsLargerThanALane) { runNetworks(Kind::longRows, 100); }

/// Running sums, i64 masks and written slices.
TEST(RandomNetworks, OfIndices) { runNetworks(Kind::indices, 100); }

} // namespace
