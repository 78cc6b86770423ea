//===- PlanValues.h - Which values stay in local memory ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Values that share bytes in off-chip memory (parts of a concatenation, slices, reshapes) form an alias set. An alias
// set as a whole is either resident in local memory, from the first op that writes into it to the last that reads it
// there, or it is not.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_NPU_SCHEDULE_PLANVALUES_H
#define TESSERA_CODEGEN_NPU_SCHEDULE_PLANVALUES_H

#include "codegen/Npu/Decisions/DirectStore.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include <set>

namespace tessera::npu {

/// An op's view of a value: sizes of n, c, h, w, and strides in elements of the value's dense form.
struct View {
  int64_t sizes[4], strides[4];
};

/// The way in which an op accesses a value.
enum class Access : uint8_t {
  read,
  readOutside, ///< bypasses a resident copy
  write
};

/// Decides which alias sets of a function are resident in local memory, from the views that a survey records, and
/// assigns workspace addresses to the others.
class ValuePlan {
public:
  ValuePlan(mlir::func::FuncOp function, const Chip &chip);

  /// Records that op number |op| accesses a value through this view, which begins |offset| elements into it. Ops count
  /// from 0 in program order.
  void note(uint32_t op, mlir::Value value, const View &view, int64_t offset, Access access, bmodel::npu::Type type);
  /// Records the resources of an op: |whole|, the shape that it cuts into tiles; |appends|, how often it does so; and
  /// bytes per lane: |requirement| for the smallest tile, |used| for a single tile of the whole, |liveAcross| for data
  /// shared by tiles.
  void noteOp(uint32_t number, mlir::Operation *op, const Shape &whole, uint32_t appends, uint64_t requirement,
              uint64_t used, uint64_t liveAcross);

  /// Excludes a value from residency, because its op writes it region by region.
  void keepOutside(mlir::Value value);

  /// Adds a direct store of the value.
  void addDirectStore(mlir::Value value, const DirectStore &directStore);
  llvm::ArrayRef<DirectStore> directStoresOf(mlir::Value value) const;
  /// Returns true if a value has no storage because it only leaves through direct stores.
  bool onlyStoredDirectly(mlir::Value value) const;

  /// Finds the alias sets that can be resident. |mayBeResident|: if false, none can. Call before `choose`.
  void analyzeResidency(bool mayBeResident);
  /// Chooses resident alias sets: those that save most traffic for the memory that they occupy come first, as long as
  /// residents take no more than this share of local memory.
  void choose(double share);
  /// Makes these alias sets resident, as far as they fit.
  void choose(llvm::ArrayRef<unsigned> aliasSets);
  /// Makes the alias set resident without checking that it fits.
  void keepWhole(unsigned aliasSet) { keep(known[aliasSet], true); }

  /// A range of off-chip memory, as in device::Address. All sizes are in bytes.
  struct OffChipRange {
    int64_t memory = 0, begin = 0, end = 0;
    uint64_t placed = 0; ///< offset in the workspace
    int64_t bytes() const { return end - begin; }
  };
  /// The form that an alias set has in local memory.
  struct LocalForm {
    bool dense = false; ///< planes lie one after another; otherwise only exactly |view| is possible
    View view{};        ///< of the whole alias set
    uint64_t bytes = 0; ///< per lane
  };
  /// The decision about residency.
  struct Residency {
    bool isExcluded = false; ///< by keepOutside()
    bool isPossible = false;
    bool isChosen = false;
    uint64_t spared = 0; ///< bytes of traffic that residency saves
  };
  /// Values that share bytes in off-chip memory.
  struct AliasSet {
    OffChipRange offChip;
    bmodel::npu::Type type{};
    bool storedDirectly = false; ///< by direct stores
    bool isRead = false;         ///< read by other means than direct stores
    // Set by analyzeResidency, except for residency.isExcluded and isChosen:
    LocalForm local;
    uint32_t first = 0, last = 0; ///< first op that writes it, last op that can read it in local memory
    uint32_t writers = 0;
    bool stored = false; ///< also stored in off-chip memory, because it is read there
    Residency residency;
  };
  const std::vector<AliasSet> &aliasSets() const { return known; }
  /// Returns true if the images of a view are parts of the planes of a single image, e.g. heads of attention.
  static bool isInsidePlanes(const AliasSet &aliasSet, const View &view);

  /// Location of a view within its resident alias set.
  struct Resident {
    unsigned aliasSet;
    int64_t channel; ///< first channel of the alias set that is seen
    int64_t inPlane; ///< bytes within a plane before the first element that is seen
  };
  /// Returns the location of the view, or nothing if it cannot be read in local memory.
  std::optional<Resident> find(mlir::Value value, const View &view, int64_t offset, Access access) const;

  /// An op's use of a value that could be resident. Writes come first.
  struct Use {
    mlir::Value value;
    View view;
    unsigned aliasSet;
    Access access;
    bool fits;       ///< the view matches the local form of the alias set
    int64_t channel; ///< first channel that is seen, if the alias set is dense and its planes are seen whole
    uint64_t bytes;  ///< of the value
  };
  /// An op with its tiling as noteOp has recorded it, and its uses.
  struct OpUses {
    mlir::Operation *op = nullptr;
    Shape whole;
    uint32_t appends = 0;
    uint64_t requirement = 0, used = 0, liveAcross = 0; ///< used: by one tile of the whole, with all operands
    std::vector<Use> uses;
  };
  const std::vector<OpUses> &ops() const { return byOp; }
  /// Returns the channel at which a view of a value begins. Requires a dense alias set.
  int64_t channelOf(mlir::Value value, int64_t offset) const;
  /// Returns the alias set of a value, or nothing if the value does not belong to one.
  std::optional<unsigned> aliasSetOf(mlir::Value value) const;

  /// Assigns workspace addresses to the alias sets that need them. The ops of each range run at the same time.
  /// |sliced|: alias sets that stay slice by slice.
  void placeOutside(llvm::ArrayRef<std::pair<uint32_t, uint32_t>> ranges, llvm::ArrayRef<unsigned> sliced);
  /// Returns the workspace offset of a value, or nothing if its assigned address applies.
  std::optional<uint64_t> outsideOf(mlir::Value value) const;
  uint64_t workspaceBytes = 0, workspaceLowerBound = 0;

  /// Returns the bytes per lane that resident values take while |op| runs.
  uint64_t bytesAt(uint32_t op) const { return op < live.size() ? live[op] : 0; }
  /// Removes the largest resident alias set that is alive at one of the ops. Returns false if there is none.
  bool drop(uint32_t first, uint32_t last);

  /// Ops limited to one tile in local memory at a time, because two tiles did not fit.
  bool isSingleBuffered(uint32_t op) const { return singleBuffered.count(op); }
  void useSingleBuffer(uint32_t op) { singleBuffered.insert(op); }

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
    int64_t offset; ///< of its first byte within the alias set, in bytes
  };

  void join(mlir::Value a, mlir::Value b);
  bool add(mlir::Value value);
  bool onlyStoredDirectly(const AliasSet &aliasSet) const {
    return aliasSet.storedDirectly && !aliasSet.isRead && aliasSet.offChip.memory == 0;
  }
  bool analyzeResidency(unsigned aliasSet, llvm::ArrayRef<Request> requests);
  bool matches(const AliasSet &aliasSet, int64_t offset, const View &view, bool isWrite) const;
  void findUses();
  void keep(AliasSet &aliasSet, bool isResident);
  bool hasRoom(const AliasSet &aliasSet, uint64_t reserve) const;

  mlir::func::FuncOp function;
  const Chip &chip;
  bool preservesAll; ///< npu.preserved: every alias set is stored, and its address is not reused
  std::vector<AliasSet> known;
  llvm::DenseMap<mlir::Value, Member> members;
  std::vector<Request> requests;
  llvm::DenseMap<mlir::Value, std::vector<DirectStore>> directStores;
  std::vector<OpUses> byOp;
  std::vector<uint64_t> live; ///< bytes per lane of resident values, by op
  std::set<uint32_t> singleBuffered;
};

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_SCHEDULE_PLANVALUES_H
