//===- PlanValues.h - Which values stay in local memory ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Values that share bytes outside the chip (parts of a concatenation, slices, reshapes) form an alias set: it stays in
// local memory, from the first op that writes into it to the last that reads it there, or it does not.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_NPU_PLANVALUES_H
#define TESSERA_CODEGEN_NPU_PLANVALUES_H

#include "codegen/Npu/DirectStore.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include <set>

namespace tessera::npu {

/// How an op sees a value: sizes of n, c, h, w and strides in elements of its dense form.
struct View {
  int64_t sizes[4], strides[4];
};

enum class Access : uint8_t {
  read,
  readOutside, ///< never in local memory
  write
};

class ValuePlan {
public:
  ValuePlan(mlir::func::FuncOp function, const Chip &chip);

  /// Op number |op| wants to see a value, or the part from |offset| (in elements) on, like this. Ops count from 0 in
  /// the order of the program.
  void note(uint32_t op, mlir::Value value, const View &view, int64_t offset, Access access, bmodel::npu::Type type);
  /// The op, what it cuts into tiles (and how often), the bytes of a lane that it works with, at least and as one
  /// tile, and what tiles share.
  void noteOp(uint32_t number, mlir::Operation *op, const Shape &whole, uint32_t appends, uint64_t requirement,
              uint64_t used, uint64_t liveAcross);

  /// The value never stays: its op writes it piece by piece.
  void keepOutside(mlir::Value value);

  /// The value leaves through |directStore| too.
  void addDirectStore(mlir::Value value, const DirectStore &directStore);
  llvm::ArrayRef<DirectStore> directStoresOf(mlir::Value value) const;
  /// Whether a value has no place: it leaves through direct stores alone.
  bool onlyStoredDirectly(mlir::Value value) const;

  /// Finds what can stay, if anything may: before one of |choose|.
  void analyzeResidency(bool mayBeResident);
  /// Decides what stays whole: what spares most traffic for the room that it takes, while all takes no more than a
  /// share of local memory.
  void choose(double share);
  /// These alias sets, as far as there is room.
  void choose(llvm::ArrayRef<unsigned> aliasSets);
  /// The alias set, whatever room there is.
  void keepWhole(unsigned aliasSet) { keep(known[aliasSet], true); }

  struct AliasSet {
    int64_t memory = 0, begin = 0, end = 0; ///< outside the chip, as in device::Address, in bytes
    bmodel::npu::Type type{};
    // Once it is known that it can stay:
    bool dense = false; ///< planes one after another; else exactly |view|
    View view{};        ///< of all of it
    uint64_t bytes = 0; ///< of a lane
    uint32_t first = 0, last = 0;
    bool canBeResident = false;
    bool stored = false; ///< somebody reads it outside the chip
    bool isResident = false;
    bool neverResident = false;  ///< it never stays
    bool storedDirectly = false; ///< through direct stores
    bool isRead = false;         ///< otherwise
    uint32_t writers = 0;
    uint64_t placed = 0; ///< where it begins outside the chip
    uint64_t spared = 0; ///< bytes of traffic
  };
  const std::vector<AliasSet> &aliasSets() const { return known; }
  /// Whether what a view has as images are parts of the planes of one: heads of attention, say.
  static bool isInsidePlanes(const AliasSet &aliasSet, const View &view);

  /// Where a value that stays is within its alias set.
  struct Resident {
    unsigned aliasSet;
    int64_t channel; ///< of the alias set, the first that is seen
    int64_t inPlane; ///< bytes before the first element that is seen
  };
  /// Nothing where the value, seen like this, is not found in local memory.
  std::optional<Resident> find(mlir::Value value, const View &view, int64_t offset, Access access) const;

  /// How an op uses a value that could stay; what it writes comes first.
  struct Use {
    mlir::Value value;
    View view;
    unsigned aliasSet;
    Access access;
    bool fits; ///< it sees the local form of the alias set
    int64_t
        channel; ///< of the alias set, the first that is seen, where the alias set is dense and all of its planes are
    uint64_t bytes; ///< of the value
  };
  struct OpUses {
    mlir::Operation *op = nullptr;
    Shape whole;
    uint32_t appends = 0;
    uint64_t requirement = 0, used = 0, liveAcross = 0; ///< used: by one tile of all, with all operands
    std::vector<Use> uses;
  };
  const std::vector<OpUses> &ops() const { return byOp; }
  /// The channel of its alias set, which is dense, in which what is seen of a value begins.
  int64_t channelOf(mlir::Value value, int64_t offset) const;
  /// The alias set of a value; nothing: it has a place of its own.
  std::optional<unsigned> aliasSetOf(mlir::Value value) const;

  /// Places what is needed outside the chip. Ops in one of the ranges run at the same time.
  void placeOutside(llvm::ArrayRef<std::pair<uint32_t, uint32_t>> ranges, llvm::ArrayRef<unsigned> sliced);
  /// Where a value is there; nothing: where its address says.
  std::optional<uint64_t> outsideOf(mlir::Value value) const;
  uint64_t workspaceBytes = 0, workspaceLowerBound = 0;

  /// Bytes of a lane that values which stay take while |op| runs.
  uint64_t bytesAt(uint32_t op) const { return op < live.size() ? live[op] : 0; }
  /// Gives up the largest alias set that stays at one of the ops; false if there is none.
  bool drop(uint32_t first, uint32_t last);

  /// Ops whose tiles are not to share local memory: where there were no addresses for them.
  bool isTight(uint32_t op) const { return tight.count(op); }
  void tighten(uint32_t op) { tight.insert(op); }

private:
  struct Request {
    uint32_t op;
    mlir::Value value;
    View view;
    int64_t offset;
    Access access;
  };
  struct Member {
    unsigned aliasSet;
    int64_t offset; ///< bytes into the alias set
  };

  void join(mlir::Value a, mlir::Value b);
  bool add(mlir::Value value);
  bool onlyStoredDirectly(const AliasSet &aliasSet) const {
    return aliasSet.storedDirectly && !aliasSet.isRead && aliasSet.memory == 0;
  }
  bool analyzeResidency(unsigned aliasSet, llvm::ArrayRef<Request> requests);
  bool matches(const AliasSet &aliasSet, int64_t offset, const View &view, bool isWrite) const;
  void findUses();
  void keep(AliasSet &aliasSet, bool isResident);
  bool hasRoom(const AliasSet &aliasSet, uint64_t reserve) const;

  mlir::func::FuncOp function;
  const Chip &chip;
  bool keepsAll; ///< npu.kept: every alias set is stored, and no other one gets its place
  std::vector<AliasSet> known;
  llvm::DenseMap<mlir::Value, Member> members;
  std::vector<Request> requests;
  llvm::DenseMap<mlir::Value, std::vector<DirectStore>> directStores;
  std::vector<OpUses> byOp;
  std::vector<uint64_t> live; ///< by op
  std::set<uint32_t> tight;
};

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_PLANVALUES_H
