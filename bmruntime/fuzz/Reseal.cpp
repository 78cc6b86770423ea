// SPDX-License-Identifier: Apache-2.0
//===- Reseal.cpp - Runs models with altered tables and valid hashes ------===//
//
// bmrt_reseal MODEL... [--count N] [--seed S] [--only I] [--verbose]
// bmrt_reseal MODEL --segment N --flip OFFSET --bits BITS --output FILE
//
// The second form changes bits of a byte of a segment (code or constants) and writes a file with valid hashes: a
// deliberately broken model.
//
// In the first form, each mutation alters up to three arbitrary fields of the flatbuffer of a valid model and
// recomputes all hashes, as an attacker could. The code is not altered. The file must be rejected, or it must run: no
// byte outside the buffers may be accessed (they end at inaccessible pages), and a run that does not end within a while
// must answer a cancel within a second of CPU time. Between runs, altered copies of the saved states are loaded. Exit
// code 1 if a run does not answer. A crash reports the number of the mutation, which --only repeats. Use it with the
// asan and ubsan presets, too.
//
//===----------------------------------------------------------------------===//
#include "TableFields.h"
#include "bmodel/bmodel_generated.h"
#include "bmodel/file_header.h"
#include "bmodel/hash.h"
#include "bmrt/backend.h"
#include "bmruntime/cts/CustomOp.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <random>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <utility>

extern "C" const bmrt_backend_t bmrt_backend; // the Abacus

using namespace bmodel;
using bmrt::fuzz::Spot;
using bmrt::fuzz::TableFields;

namespace {

/// The CPU time of this program, which does not depend on how busy the machine is.
struct Clock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<Clock, duration>;
  static time_point now() {
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return time_point(std::chrono::seconds(t.tv_sec) + duration(t.tv_nsec));
  }
};

constexpr auto kRunFor = std::chrono::milliseconds(100), kAnswerWithin = std::chrono::milliseconds(1000),
               kGiveUpAfter = std::chrono::milliseconds(20000);
constexpr uint64_t kMostCallerBytes = uint64_t(1) << 28;

std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

uint64_t alignUp(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

/// A valid model with every field written explicitly, including defaults, so that each can be altered in place.
struct Seed {
  std::string path;
  std::vector<uint8_t> table;
  std::vector<std::string> segments;
  std::vector<uint64_t> offsets;
  uint64_t fileBytes = 0;
};

Seed readSeed(const std::string &path) {
  const std::string file = readFile(path);
  FileHeader header;
  if (file.size() < sizeof header) {
    fprintf(stderr, "error: '%s' is not a model\n", path.c_str());
    exit(2);
  }
  memcpy(&header, file.data(), sizeof header);
  // The object API requires that the table is aligned as in a file.
  std::vector<uint64_t> aligned(header.tableBytes / 8 + 1);
  memcpy(aligned.data(), file.data() + header.tableOffset, header.tableBytes);
  std::unique_ptr<ModelDefT> model(GetModelDef(aligned.data())->UnPack());
  Seed seed;
  seed.path = path;
  for (auto &segment : model->segments) {
    seed.segments.push_back(file.substr(segment->offset, segment->bytes));
  }
  // Pack twice: the offsets of segments follow from the size of the table, which they do not change.
  for (int round = 0; round < 2; ++round) {
    flatbuffers::FlatBufferBuilder builder;
    builder.ForceDefaults(true);
    FinishModelDefBuffer(builder, ModelDef::Pack(builder, model.get()));
    seed.table.assign(builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize());
    uint64_t end = sizeof(FileHeader) + seed.table.size();
    seed.offsets.clear();
    for (size_t i = 0; i < seed.segments.size(); ++i) {
      model->segments[i]->offset = alignUp(end, kSegmentAlignment);
      seed.offsets.push_back(model->segments[i]->offset);
      end = model->segments[i]->offset + seed.segments[i].size();
    }
    seed.fileBytes = alignUp(end, kSegmentAlignment);
  }
  return seed;
}

/// Memory with an inaccessible page before its first and after its last byte (up to alignment).
class Guarded {
public:
  explicit Guarded(uint64_t bytes) {
    const uint64_t page = uint64_t(sysconf(_SC_PAGESIZE)), used = alignUp(std::max<uint64_t>(bytes, 1), 64);
    mapped = alignUp(used, page) + 2 * page;
    base = static_cast<char *>(
        mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (base == MAP_FAILED) {
      base = nullptr;
      return;
    }
    mprotect(base, page, PROT_NONE);
    mprotect(base + mapped - page, page, PROT_NONE);
    start = base + mapped - page - used;
  }
  Guarded(Guarded &&other) noexcept
      : base(std::exchange(other.base, nullptr)), start(other.start), mapped(other.mapped) {}
  ~Guarded() {
    if (base) {
      munmap(base, mapped);
    }
  }
  char *data() { return base ? start : nullptr; }

private:
  char *base = nullptr, *start = nullptr;
  uint64_t mapped = 0;
};

using Random = std::mt19937_64;

uint64_t loadNumber(const uint8_t *from, size_t bytes) {
  uint64_t value = 0;
  memcpy(&value, from, bytes);
  return value;
}

/// Returns a new value that is likely to be significant.
uint64_t alterNumber(uint64_t old, size_t bytes, const std::vector<uint8_t> &table, Random &random) {
  const uint64_t bits = bytes * 8;
  switch (random() % 10) {
  case 0:
    return old + 1;
  case 1:
    return old - 1;
  case 2:
    return old ^ (uint64_t(1) << random() % bits);
  case 3:
    return 0;
  case 4:
    return ~uint64_t(0) >> random() % 2;
  case 5:
    return random() % 12;
  case 6:
    return old * 2;
  case 7:
    return old / 2;
  case 8:
    return random() >> random() % 64;
  default: // what stands elsewhere in the table
    return loadNumber(&table[random() % (table.size() - 8)], bytes);
  }
}

void alterSpot(const std::vector<Spot> &all, std::vector<uint8_t> &table, Random &random) {
  const Spot &spot = all[random() % all.size()];
  uint64_t value = loadNumber(&table[spot.offset], spot.bytes);
  if (spot.kind == Spot::Scalar) {
    value = alterNumber(value, spot.bytes, table, random);
  } else if (spot.kind == Spot::Length) {
    value = random() % 4 ? random() % (value + 1) : value + 1;
  } else { // refers to another object of the same kind; offsets are forward
    const Spot &other = all[random() % all.size()];
    const uint64_t target = other.offset + loadNumber(&table[other.offset], 4);
    value = target > spot.offset ? target - spot.offset : value;
  }
  memcpy(&table[spot.offset], &value, spot.bytes);
}

/// Returns the bytes of a file with valid hashes, aligned, in guarded memory.
Guarded seal(const Seed &seed, std::vector<uint8_t> &table, const TableFields &fields, bool segmentsAltered) {
  Guarded file(seed.fileBytes);
  char *bytes = file.data();
  for (size_t i = 0; i < seed.segments.size(); ++i) {
    memcpy(bytes + seed.offsets[i], seed.segments[i].data(), seed.segments[i].size());
  }
  if (segmentsAltered) {
    // Recompute the chunk hashes for the ranges that the altered table describes, where these exist.
    const auto found = fields.spots.find("bmodel.SegmentDef.chunk_xxh3[]");
    flatbuffers::Verifier verifier(table.data(), table.size());
    if (found != fields.spots.end() && VerifyModelDefBuffer(verifier)) {
      const ModelDef *model = GetModelDef(table.data());
      for (uint32_t i = 0; model->segments() && i < model->segments()->size(); ++i) {
        const SegmentDef &segment = *model->segments()->Get(i);
        for (uint32_t k = 0; segment.chunk_xxh3() && k < segment.chunk_xxh3()->size(); ++k) {
          const uint64_t begin = segment.offset() + k * segment.chunk_bytes();
          const uint64_t size = std::min(segment.chunk_bytes(), segment.bytes() - k * segment.chunk_bytes());
          if (begin <= seed.fileBytes && size <= seed.fileBytes - begin) {
            const uint64_t hash = hashBytes(bytes + begin, size);
            memcpy(const_cast<uint8_t *>(segment.chunk_xxh3()->Data()) + 8 * k, &hash, 8);
          }
        }
      }
    }
  }
  FileHeader header = {};
  memcpy(header.magic, kMagic, sizeof(kMagic));
  header.formatVersion = kFormatVersion, header.headerBytes = sizeof header;
  header.fileBytes = seed.fileBytes, header.tableOffset = sizeof header, header.tableBytes = table.size();
  header.hash = hashBytes(table.data(), table.size(), hashBytes(&header, sizeof header));
  memcpy(bytes, &header, sizeof header);
  memcpy(bytes + sizeof header, table.data(), table.size());
  return file;
}

/// Cancels a run that takes too long, and ends the program if the run does not answer.
class Watch {
public:
  Watch() : thread([this] { watch(); }) {}
  ~Watch() {
    stopping = true;
    thread.join();
  }
  void arm(bmrt_context_t *context) {
    const std::lock_guard<std::mutex> lock(mutex);
    running = context;
    began = Clock::now();
  }
  /// Returns the time that a run took to answer a cancel; zero if it was not cancelled.
  Clock::duration disarm() {
    const std::lock_guard<std::mutex> lock(mutex);
    running = nullptr;
    const auto took = Clock::now() - began;
    return took > kRunFor ? took - kRunFor : Clock::duration::zero();
  }

private:
  void watch() {
    while (!stopping) {
      {
        const std::lock_guard<std::mutex> lock(mutex);
        const auto took = Clock::now() - began;
        if (running && took > kRunFor) {
          bmrt_context_cancel(running);
        }
        if (running && took > kGiveUpAfter) {
          fprintf(stderr, "error: a run does not answer a cancel\n");
          abort();
        }
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  std::mutex mutex;
  bmrt_context_t *running = nullptr;
  Clock::time_point began;
  std::atomic<bool> stopping = false;
  std::thread thread;
};

struct Counts {
  uint64_t rejected = 0, ran = 0, failed = 0, cancelled = 0;
  Clock::duration longest{};
};

/// Sets the shapes of inputs with symbolic dims to random small or largest sizes that the model accepts. Returns true
/// if there are such inputs.
bool setSizes(bmrt_context_t *context, const bmrt_model_t *model, Random &random) {
  bool isSymbolic = false;
  bmrt_tensor_info_t info;
  for (uint32_t i = 0; i < bmrt_context_input_count(context); ++i) {
    if (bmrt_model_input_info(model, 0, bmrt_context_stage(context), i, &info, nullptr) != BMRT_OK) {
      continue;
    }
    bool isSet = false, hasSymbol = false;
    for (int attempt = 0; attempt < 10 && !isSet; ++attempt) {
      int64_t shape[BMRT_MAX_RANK];
      for (uint32_t d = 0; d < info.rank; ++d) {
        hasSymbol |= info.shape[d] < 0;
        const int64_t size = random() % 4 ? int64_t(random() % 64) : info.max_shape[d];
        const int64_t most = random() % 4 ? info.max_shape[d] : INT64_MAX; // another stage may accept more
        shape[d] = info.shape[d] >= 0 ? info.shape[d] : std::min(most, size);
      }
      isSet = bmrt_context_set_input_shape(context, i, shape, info.rank, nullptr) == BMRT_OK || !hasSymbol;
    }
    isSymbolic |= hasSymbol;
  }
  return isSymbolic;
}

/// Binds guarded buffers of exactly the current sizes to inputs and outputs.
void bindPorts(bmrt_context_t *context, Random &random, std::vector<Guarded> &buffers) {
  bmrt_tensor_info_t info;
  for (uint32_t i = 0; i < bmrt_context_input_count(context); ++i) {
    bmrt_context_input_info(context, i, &info, nullptr);
    if (info.bytes < kMostCallerBytes) {
      char *data = buffers.emplace_back(info.bytes).data();
      for (uint64_t b = 0; data && b < info.bytes && b < 65536; b += 8) {
        // Steps read sizes from inputs of this type.
        const bool isSize = info.dtype == BMRT_I64 && random() % 4;
        const uint64_t value = isSize ? random() % 24 : random() & 0x3f3f3f3f3f3f3f3f;
        memcpy(data + b, &value, std::min<uint64_t>(8, info.bytes - b));
      }
      (void)bmrt_context_bind_input(context, i, data, info.bytes, nullptr);
    }
  }
  for (uint32_t i = 0; i < bmrt_context_output_count(context); ++i) {
    bmrt_context_output_info(context, i, &info, nullptr);
    if (info.bytes < kMostCallerBytes) {
      (void)bmrt_context_bind_output(context, i, buffers.emplace_back(info.bytes).data(), info.bytes, nullptr);
    }
  }
}

/// Loads saved states of which some bytes differ, and sets the length of a state. Returns true if the states changed.
bool alterStates(bmrt_context_t *context, Random &random) {
  uint64_t bytes = 0;
  const uint32_t count = bmrt_context_state_count(context);
  if (count == 0 || bmrt_context_save_state(context, nullptr, 0, &bytes, nullptr) != BMRT_OK ||
      bytes >= kMostCallerBytes) {
    return false;
  }
  std::vector<uint8_t> saved(bytes);
  if (bmrt_context_save_state(context, saved.data(), bytes, nullptr, nullptr) != BMRT_OK) {
    return false;
  }
  for (uint64_t k = random() % 4; k > 0; --k) {
    const uint64_t at = random() % std::min<uint64_t>(bytes, random() % 2 ? 64 : bytes); // lengths precede the data
    saved[at] = uint8_t(alterNumber(saved[at], 1, saved, random));
  }
  const uint64_t given = random() % 4 ? bytes : random() % (bytes + 1);
  bool isAltered = bmrt_context_load_state(context, saved.data(), given, nullptr) == BMRT_OK;
  const int64_t length = int64_t(alterNumber(random() % 16, 8, saved, random));
  isAltered |= bmrt_context_set_state_length(context, uint32_t(random() % count), length, nullptr) == BMRT_OK;
  return isAltered;
}

/// Runs the model at several sizes, or with several contents of its states.
void runAtSizes(bmrt_context_t *context, const bmrt_model_t *model, Random &random, std::vector<Guarded> &buffers,
                Watch &watch, Counts &counts) {
  constexpr int kRuns = 4;
  for (int i = 0; i < kRuns; ++i) {
    const bool isAltered = i > 0 && alterStates(context, random);
    if (!setSizes(context, model, random) && i > 0 && !isAltered) {
      return;
    }
    bindPorts(context, random, buffers);
    watch.arm(context);
    const bmrt_code_t code = bmrt_context_run(context, nullptr);
    counts.longest = std::max(counts.longest, watch.disarm());
    ++(code == BMRT_OK ? counts.ran : code == BMRT_CANCELLED ? counts.cancelled : counts.failed);
  }
}

/// Returns the bytes of a workspace that fits all stages.
uint64_t workspaceBytes(const bmrt_model_t *model) {
  uint64_t bytes = 0;
  bmrt_stage_info_t stage;
  for (uint32_t i = 0; i < bmrt_model_stage_count(model, 0); ++i) {
    if (bmrt_model_stage_info(model, 0, i, &stage, nullptr) == BMRT_OK) {
      bytes = std::max(bytes, stage.workspace_bytes);
    }
  }
  return bytes;
}

/// Runs one stage, or lets the runtime select stages by their shapes.
void runModel(bmrt_model_t *model, Random &random, Watch &watch, Counts &counts) {
  std::vector<Guarded> buffers;
  bmrt_context_options_t options = {};
  options.struct_size = sizeof options, options.threads = 1 + random() % 2;
  const uint32_t stages = bmrt_model_stage_count(model, 0);
  options.stage = stages > 1 && random() % 2 ? uint32_t(random() % stages) : BMRT_FIRST_RUNNABLE_STAGE;
  const uint64_t workspace = workspaceBytes(model);
  if (workspace < kMostCallerBytes) {
    options.workspace = buffers.emplace_back(workspace).data();
    options.workspace_bytes = workspace;
  }
  bmrt_context_t *context = nullptr;
  if (bmrt_context_create(model, &options, &context, nullptr) != BMRT_OK) {
    ++counts.rejected;
    return;
  }
  runAtSizes(context, model, random, buffers, watch, counts);
  (void)bmrt_context_reset_state(context, nullptr);
  bmrt_context_destroy(context);
}

uint64_t currentMutation = 0;
const char *currentModel = "";

void sayWhere() {
  char text[400];
  const int n = snprintf(text, sizeof text, "mutation %llu of '%.300s'\n",
                         static_cast<unsigned long long>(currentMutation), currentModel);
  (void)!write(2, text, size_t(n));
}

[[maybe_unused]] void onCrash(int number) {
  sayWhere();
  signal(number, SIG_DFL);
  raise(number);
}

} // namespace

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RESEAL_ASAN
extern "C" void __sanitizer_set_death_callback(void (*callback)());
#endif
#endif

/// Writes the model with |bits| flipped in the byte at |offset| of a segment; returns false if there is no such byte.
bool writeFlipped(Seed seed, const TableFields &fields, uint64_t segment, uint64_t offset, uint64_t bits,
                  const std::string &output) {
  if (segment >= seed.segments.size() || offset >= seed.segments[segment].size()) {
    return false;
  }
  char &byte = seed.segments[segment][offset];
  byte = char(uint8_t(byte) ^ uint8_t(bits));
  std::vector<uint8_t> table = seed.table;
  Guarded file = seal(seed, table, fields, /*segmentsAltered=*/true);
  std::ofstream out(output, std::ios::binary);
  out.write(file.data(), std::streamsize(seed.fileBytes));
  out.close();
  return bool(out);
}

namespace {
struct Arguments {
  std::vector<std::string> paths;
  std::string output;
  uint64_t segment = 0, flip = 0, bits = 0;
  uint64_t count = 1000, seed = 1;
  int64_t only = -1; ///< the only mutation to run; -1: all
  bool verbose = false;
};

Arguments readArguments(int argc, char **argv) {
  Arguments result;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    auto number = [&] { return i + 1 < argc ? strtoull(argv[++i], nullptr, 10) : 0; };
    argument == "--count"     ? void(result.count = number())
    : argument == "--seed"    ? void(result.seed = number())
    : argument == "--only"    ? void(result.only = int64_t(number()))
    : argument == "--segment" ? void(result.segment = number())
    : argument == "--flip"    ? void(result.flip = number())
    : argument == "--bits"    ? void(result.bits = number())
    : argument == "--output"  ? void(result.output = i + 1 < argc ? argv[++i] : "")
    : argument == "--verbose" ? void(result.verbose = true)
                              : result.paths.push_back(argument);
  }
  return result;
}

void reportCrashes() {
#ifdef RESEAL_ASAN
  __sanitizer_set_death_callback(sayWhere);
#else
  for (int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) {
    signal(number, onCrash);
  }
#endif
}

/// Opens and runs the model with mutation |index|; mutation 0 is the unaltered model. Returns false if the unaltered
/// model is rejected.
bool tryMutation(const Arguments &arguments, const Seed &seed, const TableFields &fields, uint64_t index, Watch &watch,
                 Counts &counts) {
  std::vector<const std::pair<const std::string, std::vector<Spot>> *> byField;
  for (const auto &entry : fields.spots) {
    byField.push_back(&entry);
  }
  currentMutation = index;
  Random random(arguments.seed * 1000003 + index);
  std::vector<uint8_t> table = seed.table;
  bool segmentsAltered = false;
  for (uint64_t k = index == 0 ? 0 : 1 + random() % 3; k > 0; --k) {
    const auto &[name, spots] = *byField[random() % byField.size()];
    alterSpot(spots, table, random);
    segmentsAltered |= name.find("SegmentDef") != std::string::npos;
    if (arguments.verbose) {
      printf("%llu: %s\n", static_cast<unsigned long long>(index), name.c_str());
    }
  }
  Guarded file = seal(seed, table, fields, segmentsAltered);
  const bmrt_open_options_t options = {sizeof options, /*trust_constants=*/random() % 8 != 0, /*device=*/nullptr};
  bmrt_model_t *model = nullptr;
  bmrt_status_t status;
  if (bmrt_model_open_memory(file.data(), seed.fileBytes, &options, &model, &status) != BMRT_OK) {
    ++counts.rejected;
    if (index == 0) {
      fprintf(stderr, "error: '%s' is refused even unaltered: %s\n", currentModel, status.message);
    }
    return index != 0;
  }
  runModel(model, random, watch, counts);
  bmrt_model_release(model);
  return true;
}

/// Runs all mutations of one model. Returns false if the unaltered model is rejected, no mutation ran, or a run was too
/// slow.
bool tryModel(const Arguments &arguments, const std::string &path, const std::string &schema, Watch &watch) {
  const Seed seed = readSeed(path);
  const TableFields fields(schema, seed.table);
  currentModel = path.c_str();
  Counts counts;
  const bool all = arguments.only < 0;
  const uint64_t begin = all ? 0 : uint64_t(arguments.only), end = all ? arguments.count : begin + 1;
  for (uint64_t i = begin; i < end; ++i) {
    if (!tryMutation(arguments, seed, fields, i, watch, counts)) {
      return false;
    }
  }
  const double longest = std::chrono::duration<double>(counts.longest).count();
  printf("%s: %zu fields; %llu refused, %llu ran, %llu ended in an error, %llu were cancelled, the slowest within "
         "%.3f s\n",
         path.c_str(), fields.spots.size(), static_cast<unsigned long long>(counts.rejected),
         static_cast<unsigned long long>(counts.ran), static_cast<unsigned long long>(counts.failed),
         static_cast<unsigned long long>(counts.cancelled), longest);
  return counts.longest < kAnswerWithin && (!all || counts.ran > 0);
}
} // namespace

int main(int argc, char **argv) {
  const Arguments arguments = readArguments(argc, argv);
  if (arguments.paths.empty()) {
    fprintf(stderr, "usage: bmrt_reseal MODEL... [--count N] [--seed S] [--only I] [--verbose]\n");
    return 2;
  }
  reportCrashes();
  (void)bmrt_register_backend(&bmrt_backend, nullptr);
  const tessera_custom_op_t blend = bmrt::cts::blendOp();
  (void)bmrt_register_custom_op(&blend, nullptr);
  const std::string schema = readFile(BMODEL_BINARY_SCHEMA);
  if (!arguments.output.empty()) {
    const Seed seed = readSeed(arguments.paths.front());
    const bool isFlipped = writeFlipped(seed, TableFields(schema, seed.table), arguments.segment, arguments.flip,
                                        arguments.bits, arguments.output);
    fprintf(stderr, "%s", isFlipped ? "" : "error: no segment has that byte, or the file cannot be written\n");
    return isFlipped ? 0 : 1;
  }
  Watch watch;
  bool good = true;
  for (const std::string &path : arguments.paths) {
    good = tryModel(arguments, path, schema, watch) && good;
  }
  return good ? 0 : 1;
}
