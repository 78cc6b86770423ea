//===- StorageTypes.cpp - Assigns an integer type and a range to each tensor -===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/Precision/StorageTypes.h"

#include "quant/Transforms/Precision/PrecisionAttributes.h"
#include "quant/Transforms/Weights/ResidualWeights.h"
#include "quant/Transforms/Weights/Weights.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TopOps.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace tessera::quant {
namespace {

/// Tensors whose 8 bits alone change the outputs by more than this share get 16 bits. Measured values are a few percent
/// for harmless tensors and about a third for those that ruin a network.
constexpr double kMostError = 0.2;

/// Further tensors get 16 bits while the errors of all 8-bit tensors together (sum of squares) exceed kEnough. Those
/// with the largest gain per cost come first; at most kMostWide of all multiplications may read 16 bits. Errors below
/// kNothing are ignored.
constexpr double kEnough = 0.002, kNothing = 0.0005, kMostWide = 0.1;

/// kMostWide may be exceeded if more than kLarge of error is left, and if tensors that each remove at least kPays times
/// their share of the multiplications together remove kMuch of its square. Widening stops at kSmall.
constexpr double kLarge = 0.035, kPays = 4, kMuch = 0.5, kSmall = 0.02;

/// 16-bit ranges are this much larger than the observed values; the levels suffice to leave that room.
constexpr float kHeadroom = 2.0f;

constexpr float kMagnitudeOfZeros = 1e-8f; // the value that run_calibration uses, too

/// Tensors that share an integer form because ops between them only move data.
struct Group {
  std::optional<Range> range; ///< merged range of the computed tensors; moved tensors are left out
  bool isRight = false;       ///< right operand of a product of two activations, or an operand of attention
  double error = 0;           ///< largest error among its tensors, except those whose readers all have an INT8 line
  Value worst;                ///< the tensor with that error
  int64_t macs = 0;           ///< multiplications of the ops that read it
  int64_t elements = 0;       ///< number of elements of its tensors, which 16 bits would store in twice the bytes
  std::string wide;           ///< reason for 16 bits; empty for 8 bits
  bool isAsked = false;       ///< a table requests 16 bits, so it does not count towards kMostWide
  int64_t qmax = kMaxInt16;

  /// Returns the squared error that 16 bits would remove per unit of cost. Storing and loading one element costs about
  /// as much as kElement multiplications.
  double gain() const {
    constexpr double kElement = 32;
    return error * error / (static_cast<double>(macs) + kElement * static_cast<double>(elements));
  }
};

class Assigner {
public:
  Assigner(const StorageTypeQuery &query, Decisions &decisions) : query(query), decisions(decisions) {}

  void run() {
    uniteMoved();
    forEachTensor([&](Value v) { addRange(v, groups[leader(v)]); });
    forEachTensor([&](Value v) {
      Group &group = groups[leader(v)];
      if (group.isRight) {
        group.range->symmetric = true;
        group.range->derive();
      } else {
        group.wide = group.wide.empty() ? reasonForWide(v) : group.wide;
        group.isAsked |= isWideByTable(v);
        weigh(v, group);
      }
    });
    if (query.isAssigned) {
      forEachTensor([&](Value v) { limitLevels(v, groups[leader(v)]); });
    } else if (!query.decidesTypes) {
      widenWorst();
    }
    forEachTensor([&](Value v) { decisions.tensors.insert({v, formOf(groups[leader(v)])}); });
    listWideOps();
  }

private:
  bool isMoving(Operation *op) const {
    OpKind kind = op ? query.kindOf(op) : OpKind::other;
    return kind == OpKind::move || kind == OpKind::concat;
  }

  void uniteMoved() {
    for (Operation *op : query.ops) {
      if (isMoving(op) && query.quantized.contains(op->getResult(0))) {
        bool one = query.kindOf(op) == OpKind::move;
        for (Value operand : op->getOperands().take_front(one ? 1 : op->getNumOperands())) {
          united.unionSets(operand, op->getResult(0));
        }
      }
    }
  }

  Value leader(Value v) const { return united.contains(v) ? united.getLeaderValue(v) : v; }

  void forEachTensor(llvm::function_ref<void(Value)> visit) {
    auto visitQuantized = [&](Value v) {
      if (query.quantized.contains(v)) {
        visit(v);
      }
    };
    func::FuncOp function = query.function;
    llvm::for_each(function.getArguments(), visitQuantized);
    for (Operation *op : query.ops) {
      llvm::for_each(op->getResults(), visitQuantized);
    }
  }

  void addRange(Value v, Group &group) {
    if (!isMoving(v.getDefiningOp())) {
      const Range &own = *query.rangeOf(v);
      group.range = group.range ? Range::merged(*group.range, own) : own;
    }
    // The second operand of a product of two activations is treated like a weight: symmetric and in 8 bits. The same
    // applies to all operands of attention.
    group.isRight |= llvm::any_of(v.getUses(), [&](OpOperand &use) {
      OpKind kind = decisions.integers.contains(use.getOwner()) ? query.kindOf(use.getOwner()) : OpKind::other;
      return (use.getOperandNumber() == 1 && kind == OpKind::pairwise) ||
             (use.getOperandNumber() < 3 && kind == OpKind::attention);
    });
  }

  SmallVector<Operation *> integerReaders(Value v) const {
    return llvm::filter_to_vector(v.getUsers(), [&](Operation *user) { return decisions.integers.contains(user); });
  }

  double errorOf(Value v) const {
    const Range *range = query.rangeOf(v);
    return range ? range->error.value_or(0) : 0;
  }

  bool isWideByTable(Value v) const {
    const Range *range = query.rangeOf(v);
    return range && range->isWide;
  }

  bool isNarrowByTable(ArrayRef<Operation *> readers) const {
    return !readers.empty() && llvm::all_of(readers, [&](Operation *op) {
      const Choice *choice = query.choiceOf(op);
      return choice && choice->precision == Precision::INT8;
    });
  }

  void weigh(Value v, Group &group) {
    SmallVector<Operation *> readers = integerReaders(v);
    group.elements += likelyOf(countElements(v));
    for (Operation *reader : readers) {
      group.macs += reader->getOperand(0) == v ? countMacs(reader) : 0;
    }
    if (double error = errorOf(v); error > group.error && !isNarrowByTable(readers)) {
      group.error = error, group.worst = v;
    }
  }

  void widenWorst() {
    double left = 0; // sum of squared errors of the 8-bit tensors
    int64_t all = 0, wide = 0;
    SmallVector<Group *> candidates; // in program order
    llvm::SmallPtrSet<Group *, 16> seen;
    forEachTensor([&](Value v) {
      Group *group = &groups[leader(v)];
      if (!seen.insert(group).second) {
        return;
      }
      all += group->macs;
      if (!group->wide.empty()) {
        wide += group->isAsked ? 0 : group->macs;
      } else if (group->error > kNothing) {
        left += group->error * group->error;
        candidates.push_back(group);
      }
    });
    llvm::stable_sort(candidates, [](const Group *a, const Group *b) { return a->gain() > b->gain(); });
    SmallVector<Group *> tooMany;
    for (Group *group : candidates) {
      if (left <= kEnough * kEnough) {
        break;
      }
      if (wide + group->macs > kMostWide * all) {
        tooMany.push_back(group);
        continue;
      }
      wide += group->macs;
      left -= group->error * group->error;
      widen(*group, "int16 costs little here");
    }
    widenWhatPays(tooMany, left, all);
  }

  /// Widens groups beyond the limit kMostWide if they are worth it. left: sum of squares that 8 bits still cause; all:
  /// number of multiplications of the function.
  void widenWhatPays(ArrayRef<Group *> candidates, double left, int64_t all) {
    double after = left;
    SmallVector<Group *> paying;
    for (Group *group : candidates) {
      double square = group->error * group->error, share = static_cast<double>(group->macs) / all;
      if (after > kSmall * kSmall && square >= kPays * share * after) {
        after -= square;
        paying.push_back(group);
      }
    }
    if (left < kLarge * kLarge || after > (1 - kMuch) * left) {
      return;
    }
    for (Group *group : paying) {
      widen(*group, "too much error would remain with the usual share of int16");
    }
  }

  void widen(Group &group, StringRef why) {
    group.wide = llvm::formatv("tensor '{0}' alone would change the outputs by {1:P1} in int8, and {2}",
                               query.nameOf(group.worst), group.error, why);
  }

  /// Returns why `v` needs 16 bits; empty if it does not.
  std::string reasonForWide(Value v) const {
    if (query.isAssigned) {
      return storedAs(v) == Precision::INT16 ? "it is stored in INT16" : "";
    }
    SmallVector<Operation *> readers = integerReaders(v);
    auto asksFor = [&](Operation *op, Precision precision) {
      const Choice *choice = op ? query.choiceOf(op) : nullptr;
      return choice && choice->precision == precision ? choice : nullptr;
    };
    Operation *maker = v.getDefiningOp();
    SmallVector<Operation *> asking(readers);
    if (maker && query.kindOf(maker) != OpKind::contraction) {
      asking.push_back(maker);
    }
    for (Operation *op : asking) {
      if (const Choice *choice = asksFor(op, Precision::INT16)) {
        return "the quantise table says INT16" + (choice->reason.empty() ? "" : ": " + choice->reason);
      }
    }
    if (isNarrowByTable(readers)) {
      return "";
    }
    if (isWideByTable(v)) {
      return "the calibration table says int16";
    }
    if (double error = errorOf(v); error > kMostError) {
      return llvm::formatv("tensor '{0}' alone would change the outputs by {1:P0} in int8; at most {2:P0} is allowed",
                           query.nameOf(v), error, kMostError);
    }
    return query.standard == Precision::INT16 ? "INT16 was requested" : "";
  }

  /// Limits the 16-bit levels so that no sum of an op that reads `v` can overflow.
  void limitLevels(Value v, Group &group) {
    if (group.wide.empty()) {
      return;
    }
    for (Operation *reader : integerReaders(v)) {
      int64_t most = kMaxInt16;
      if (query.kindOf(reader) == OpKind::contraction && reader->getOperand(0) == v) {
        const bool others = query.learnedWeights || hasResidualWeights(query.rangeOf(reader->getResult(0)));
        most = largestQmax(reader, magnitudeOf(group), others);
      } else if (query.kindOf(reader) == OpKind::blend || query.kindOf(reader) == OpKind::pairwise) {
        int64_t factor = query.kindOf(reader) == OpKind::pairwise ? 255 : 1;
        most = std::numeric_limits<int32_t>::max() / std::max<int64_t>(countBlended(reader) * factor, 1);
      }
      group.qmax = std::max<int64_t>(1, std::min(group.qmax, most));
    }
  }

  static float magnitudeOf(const Group &group) {
    const float magnitude = kHeadroom * group.range->magnitude();
    return magnitude > 0 ? magnitude : kMagnitudeOfZeros;
  }

  static IntegerForm formOf(const Group &group) {
    if (group.wide.empty()) {
      return {group.range->scale, group.range->zeroPoint, 0, group.range->scale};
    }
    double magnitude = magnitudeOf(group);
    return {static_cast<float>(magnitude / group.qmax), 0, group.qmax, magnitude / kMaxInt16};
  }

  void listWideOps() {
    for (Operation *op : query.ops) {
      if (!decisions.integers.contains(op)) {
        continue;
      }
      for (Value operand : op->getOperands()) {
        auto it = decisions.tensors.find(operand);
        if (it != decisions.tensors.end() && it->second.isWide()) {
          decisions.wide.insert({op, groups[leader(operand)].wide});
          break;
        }
      }
    }
  }

  const StorageTypeQuery &query;
  Decisions &decisions;
  llvm::EquivalenceClasses<Value> united;
  llvm::DenseMap<Value, Group> groups; ///< by the group's leader
};

} // namespace

void assignStorageTypes(const StorageTypeQuery &query, Decisions &decisions) { Assigner(query, decisions).run(); }

} // namespace tessera::quant
