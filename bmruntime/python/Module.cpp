// SPDX-License-Identifier: Apache-2.0
//===- Module.cpp - Python module tessera._runtime ------------------------===//
//
// Wraps the C++ interface for Python: infos are dicts, arrays are passed by position. tessera/runtime.py checks names,
// shapes and types with messages for users; the library itself checks sizes again. Arrays are passed through the buffer
// protocol and created by a Python callable, so the module does not depend on numpy's binary interface and works with
// numpy 1 and 2.
//
//===----------------------------------------------------------------------===//
#include "ArrayCall.h"
#include "DlPack.h"
#include "bmrt/bmrt.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace py = pybind11;

namespace {

py::dict describe(const bmrt_tensor_info_t &info) {
  py::list shape, maxShape, scales, zeroPoints;
  for (uint32_t i = 0; i < info.rank; ++i) {
    shape.append(info.shape[i]);
    maxShape.append(info.max_shape[i]);
  }
  for (uint32_t i = 0; i < info.scale_count; ++i) {
    scales.append(info.scales[i]);
    zeroPoints.append(info.zero_points[i]);
  }
  py::dict result;
  result["name"] = info.name;
  result["dtype"] = numpyName(info.dtype);
  result["type"] = bmrt_dtype_name(info.dtype);
  result["shape"] = shape;
  result["max_shape"] = maxShape;
  result["bytes"] = info.bytes;
  result["scales"] = scales;
  result["zero_points"] = zeroPoints;
  result["axis"] = info.quant_axis;
  result["preprocess"] = info.preprocess ? py::object(py::str(info.preprocess)) : py::none();
  const char *origin = bmrt_tensor_computed_by(&info);
  result["computed_by"] = origin ? py::object(py::str(origin)) : py::none();
  return result;
}

py::list shapeOf(const bmrt_tensor_info_t &info, const int64_t *shape) {
  py::list result;
  for (uint32_t i = 0; i < info.rank; ++i) {
    result.append(shape[i]);
  }
  return result;
}

/// Contiguous memory of a Python object, which is kept alive and in place for the lifetime of this object.
struct Buffer {
  explicit Buffer(const py::buffer &owner, bool writable = false) : info(owner.request(writable)) {}

  uint64_t bytes() const { return uint64_t(info.size) * uint64_t(info.itemsize); }

  py::buffer_info info;
};

/// Returns true on the main thread, the only one on which Python runs signal handlers. Every run asks, so the answer is
/// kept per thread instead of making system calls; after a fork, the thread that forked is the main thread.
bool isMainThread() {
  enum Answer : char { kUnknown, kMain, kOther };
  static thread_local Answer known = kUnknown;
  static const int registered = pthread_atfork(nullptr, nullptr, [] { known = kUnknown; });
  (void)registered;
  if (known == kUnknown) {
    known = syscall(SYS_gettid) == getpid() ? kMain : kOther;
  }
  return known == kMain;
}

class Context {
public:
  /// |chip|: use only stages for this chip; empty: any.
  Context(const bmrt::Model &model, uint32_t net, const std::string &chip, uint32_t threads)
      : model(model), number(net), net(model, {.net = model.netName(net), .threads = threads, .chip = chip}) {}

  uint32_t stage() const { return net.stage(); }

  /// Selects the stage for inputs of these shapes and returns its number.
  uint32_t choose(const std::vector<std::vector<int64_t>> &shapes) {
    const Hold hold(*this);
    net.setShapes(shapes);
    return net.stage();
  }

  /// Makes runs execute their chips' work in that stream; 0: in the context's own streams.
  void setStream(uintptr_t stream) {
    const Hold hold(*this);
    bmrt::check(bmrt_context_set_stream, net.get(), reinterpret_cast<void *>(stream));
  }

  py::list states() {
    py::list result;
    const std::vector<bmrt_tensor_info_t> infos = net.states();
    for (uint32_t i = 0; i < infos.size(); ++i) {
      const bmrt_tensor_info_t &info = infos[i];
      py::dict state = describe(info);
      const bmrt_state_growth_t growth = net.stateGrowth(i);
      state["growth_axis"] = growth.axis, state["length"] = growth.length, state["capacity"] = growth.capacity;
      state["output"] = info.onnx_name_count ? bmrt_tensor_onnx_name(&info, 0) : "";
      result.append(state);
    }
    return result;
  }

  void resetState() {
    const Hold hold(*this);
    net.resetState();
  }

  void setStateLength(uint32_t state, int64_t length) {
    const Hold hold(*this);
    net.setStateLength(state, length);
  }

  py::bytes saveState() {
    const Hold hold(*this);
    const std::vector<char> saved = net.saveState();
    return {saved.data(), saved.size()};
  }

  void loadState(const py::buffer &saved) {
    const Hold hold(*this);
    const Buffer buffer(saved);
    bmrt::check(bmrt_context_load_state, net.get(), buffer.info.ptr, buffer.bytes());
  }

  /// Runs |stage| with |inputs| (contiguous, in order: arrays, or DLPack capsules of memory of GPU |gpu|); returns
  /// [(output, shape)]. |allocate|(dtype, shape) creates an array. An output whose shape is known only after the run is
  /// allocated with its largest size, and the result has |shape| and is at its front. |dump|, unless it is None,
  /// receives every tensor of the ONNX graph that a step wrote, right after the step: dump[name] = array, or (array,
  /// info) for quantised tensors. With |onGpu|, outputs are GpuTensor objects, and |allocate| is not called.
  py::list run(uint32_t stage, const std::vector<py::object> &inputs, const py::object &allocate,
               const py::object &dump, int32_t gpu, bool onGpu) {
    const Hold hold(*this);
    bmrt::check(bmrt_context_set_stage, net.get(), stage);
    allocator = allocate;
    dumped = dump;
    std::deque<Buffer> bound, targets;
    std::deque<dlpack::Borrowed> borrowed;
    bindInputs(inputs, gpu, bound, borrowed);
    const py::list arrays = onGpu ? bindGpuOutputs(gpu) : bindOutputs(targets);
    bmrt_context_set_step_hook(net.get(), dump.is_none() ? nullptr : dumpStep, this);
    runUnbinding(bmrt_context_run);
    dumped = py::none();
    return resultsOf(arrays, onGpu);
  }

  /// Runs the current stage and returns a dict of arrays if |inputs| is a dict of arrays that need no conversion.
  /// Otherwise does nothing and returns None.
  py::object runArrays(const py::object &inputs) {
    const Hold hold(*this);
    if (!arrayCall || arrayCall->stage() != net.stage()) {
      arrayCall = std::make_unique<ArrayCall>(model, number, net.stage());
    }
    struct Release {
      ArrayCall &call;
      ~Release() { call.release(); }
    } release{*arrayCall};
    py::object arrays = arrayCall->bind(net.get(), inputs);
    if (!arrays.is_none()) {
      bmrt_context_set_step_hook(net.get(), nullptr, nullptr);
      runUnbinding(bmrt_context_run);
    }
    return arrays;
  }

  /// Like |run|, but returns at once; |wait| returns the result. Keeps all bound objects alive until then.
  void launch(uint32_t stage, const std::vector<py::object> &inputs, const py::object &allocate, int32_t gpu,
              bool onGpu) {
    const Hold hold(*this);
    bmrt::check(bmrt_context_set_stage, net.get(), stage);
    auto made = std::make_unique<Launched>();
    allocator = allocate;
    bindInputs(inputs, gpu, made->bound, made->borrowed);
    made->arrays = onGpu ? bindGpuOutputs(gpu) : bindOutputs(made->targets);
    made->inputs = inputs, made->onGpu = onGpu;
    bmrt_context_set_step_hook(net.get(), nullptr, nullptr);
    bmrt_context_set_poll(net.get(), nullptr, nullptr);
    bmrt::check(bmrt_context_launch, net.get());
    launched = std::move(made);
  }

  py::list wait() {
    const Hold hold(*this);
    const std::unique_ptr<Launched> ended = std::move(launched);
    runUnbinding(bmrt_context_wait);
    return ended ? resultsOf(ended->arrays, ended->onGpu) : py::list();
  }

  bool isDone() { return bmrt_context_is_done(net.get()); }

  /// Waits for a launched run, because the chip may still use Python objects.
  ~Context() {
    if (launched) {
      (void)bmrt_context_wait(net.get(), nullptr);
    }
  }

  /// Runs on the context's own buffers, so that every tensor can be inspected afterwards. |allocate|, |dump|: as for
  /// |run|.
  void runKeeping(const std::vector<py::buffer> &inputs, const py::object &allocate, const py::object &dump) {
    const Hold hold(*this);
    allocator = allocate;
    dumped = dump;
    std::deque<Buffer> given;
    std::vector<std::vector<int64_t>> shapes;
    for (const py::buffer &input : inputs) {
      const Buffer &each = given.emplace_back(input);
      shapes.emplace_back(each.info.shape.begin(), each.info.shape.end());
    }
    setShapes(shapes);
    const std::vector<bmrt_tensor_info_t> infos = net.inputs();
    for (uint32_t i = 0; i < infos.size(); ++i) {
      if (given[i].bytes() != infos[i].bytes) {
        throw py::value_error("wrong size of an input");
      }
      std::memcpy(inputBuffer(i), given[i].info.ptr, infos[i].bytes);
    }
    bmrt_context_set_step_hook(net.get(), dump.is_none() ? nullptr : dumpStep, this);
    bmrt_status_t status = {};
    const bmrt_code_t code = withSignals(bmrt_context_run, status);
    bmrt_context_set_step_hook(net.get(), nullptr, nullptr); // runSteps() does not dump
    dumped = py::none();
    checkRun(code, status);
  }

  void runSteps(uint32_t begin, uint32_t end) {
    const Hold hold(*this);
    runInterruptibly([&](bmrt_context_t *context, bmrt_status_t *status) {
      return bmrt_context_run_steps(context, begin, end, status);
    });
  }

  /// Cancels a run. May be called from any thread.
  void cancel() { bmrt_context_cancel(net.get()); }

  /// Returns the context's own buffer of an input.
  py::memoryview inputBytes(uint32_t input) {
    bmrt_tensor_info_t info;
    bmrt::check(bmrt_context_input_info, net.get(), input, &info);
    return py::memoryview::from_memory(inputBuffer(input), py::ssize_t(info.bytes));
  }

  /// Lists the tensors that a step wrote, in order, as dicts with the keys of `describe` and: onnx_names; data, the
  /// stored bytes (writable); padded, whether more elements are stored than the tensor has.
  py::list writes(uint32_t index) {
    bmrt_step_info_t step;
    bmrt::check(bmrt_context_step_info, net.get(), index, &step);
    py::list result;
    for (uint32_t i = 0; i < step.write_count; ++i) {
      bmrt_tensor_view_t view;
      bmrt::check(bmrt_context_step_write, net.get(), &step, i, &view);
      void *data = nullptr;
      bmrt::check(bmrt_context_step_data, net.get(), &step, i, &data);
      py::dict tensor = describe(view.info);
      py::list names;
      for (uint32_t n = 0; n < view.info.onnx_name_count; ++n) {
        names.append(bmrt_tensor_onnx_name(&view.info, n));
      }
      tensor["onnx_names"] = names;
      tensor["data"] = py::memoryview::from_memory(data, py::ssize_t(view.info.bytes));
      tensor["padded"] = view.info.bytes != bmrt_tensor_row_major_bytes(&view.info);
      result.append(tensor);
    }
    return result;
  }

  /// Copies the |write|-th tensor that step |index| wrote to |array|, in row-major order.
  void rowMajor(uint32_t index, uint32_t write, const py::buffer &array) {
    bmrt_step_info_t step;
    bmrt::check(bmrt_context_step_info, net.get(), index, &step);
    bmrt_tensor_view_t view;
    bmrt::check(bmrt_context_step_write, net.get(), &step, write, &view);
    const Buffer target(array, /*writable=*/true);
    bmrt::check(bmrt_tensor_to_row_major, &view, target.info.ptr, target.bytes());
  }

  /// Returns output |index| of the last run, read-only and valid until the next run, and its shape.
  py::tuple outputBytes(uint32_t index) {
    bmrt_tensor_info_t info;
    bmrt::check(bmrt_context_output_info, net.get(), index, &info);
    const void *data = nullptr;
    bmrt::check(bmrt_context_output_data, net.get(), index, &data);
    return py::make_tuple(py::memoryview::from_memory(data, py::ssize_t(info.bytes)), shapeOf(info, info.shape));
  }

  void setProfiling(bool on) { bmrt::check(bmrt_context_set_profiling, net.get(), on); }

  void writeTrace(const std::string &path) { bmrt::check(bmrt_context_write_trace, net.get(), path.c_str()); }

  py::list steps(bool times) const {
    py::list result;
    for (uint32_t i = 0; i < bmrt_context_step_count(net.get()); ++i) {
      result.append(step(i, times));
    }
    return result;
  }

private:
  /// A run in flight, and the objects that it uses.
  struct Launched {
    std::vector<py::object> inputs;
    std::deque<Buffer> bound, targets;
    std::deque<dlpack::Borrowed> borrowed;
    py::list arrays;
    bool onGpu = false;
  };

  /// Returns [(output, shape)] of the bound outputs after a run.
  py::list resultsOf(const py::list &arrays, bool onGpu) {
    py::list results;
    for (uint32_t i = 0; i < arrays.size(); ++i) {
      bmrt_tensor_info_t info;
      bmrt::check(bmrt_context_output_info, net.get(), i, &info);
      if (onGpu) {
        arrays[i].cast<dlpack::Output &>().setShape(std::vector<int64_t>(info.shape, info.shape + info.rank));
      }
      results.append(py::make_tuple(arrays[i], shapeOf(info, info.shape)));
    }
    return results;
  }

  /// Locks the context for one call. Throws if this thread already holds the lock: a dump or a signal handler that uses
  /// the running net would wait for itself.
  class Hold {
  public:
    explicit Hold(Context &context) : context(context), lock(context.mutex, std::try_to_lock) {
      if (!lock && context.owner == std::this_thread::get_id()) {
        throw std::runtime_error("this net is running on this thread: what it calls while it runs must not use it");
      }
      while (!lock) {
        {
          // Another Python thread may hold the lock while it waits for the interpreter.
          py::gil_scoped_release release;
          (void)lock.try_lock_for(std::chrono::milliseconds(50));
        }
        if (!lock && PyErr_CheckSignals() != 0) {
          throw py::error_already_set();
        }
      }
      context.owner = std::this_thread::get_id();
    }
    ~Hold() { context.owner = std::thread::id(); }

  private:
    Context &context;
    std::unique_lock<std::timed_mutex> lock;
  };

  /// Handles the signals of Python's main thread, e.g. Ctrl-C; an exception ends the run.
  static bool pollSignals(void *user) {
    Context &self = *static_cast<Context *>(user);
    py::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() == 0) {
      return false;
    }
    try {
      throw py::error_already_set();
    } catch (...) { // the library between here and the caller does not support exceptions
      self.pythonFailure = std::current_exception();
    }
    return true;
  }

  template <typename Run>
  void runInterruptibly(Run run) {
    bmrt_status_t status = {};
    const bmrt_code_t code = withSignals(run, status);
    rethrow();
    if (code != BMRT_OK) {
      throw bmrt::Error(status);
    }
  }

  template <typename Run>
  bmrt_code_t withSignals(Run run, bmrt_status_t &status) {
    py::gil_scoped_release release;
    bmrt_context_set_poll(net.get(), isMainThread() ? pollSignals : nullptr, this);
    return run(net.get(), &status);
  }

  void rethrow() {
    if (pythonFailure) {
      std::rethrow_exception(std::exchange(pythonFailure, nullptr));
    }
  }

  /// Sets the shapes of all inputs. A stage that already has these shapes stays, even if an earlier one fits.
  void setShapes(const std::vector<std::vector<int64_t>> &shapes) {
    if (shapes.size() != bmrt_context_input_count(net.get())) {
      throw py::value_error("wrong number of inputs");
    }
    bool isSame = true;
    for (uint32_t i = 0; isSame && i < shapes.size(); ++i) {
      bmrt_tensor_info_t info;
      bmrt::check(bmrt_context_input_info, net.get(), i, &info);
      isSame = std::equal(shapes[i].begin(), shapes[i].end(), info.shape, info.shape + info.rank);
    }
    if (!isSame) {
      net.setShapes(shapes);
    }
  }

  void *inputBuffer(uint32_t input) {
    void *data = nullptr;
    bmrt::check(bmrt_context_input_buffer, net.get(), input, &data);
    return data;
  }

  void bindInputs(const std::vector<py::object> &inputs, int32_t gpu, std::deque<Buffer> &bound,
                  std::deque<dlpack::Borrowed> &borrowed) {
    const std::vector<bmrt_tensor_info_t> infos = net.inputs();
    if (inputs.size() != infos.size()) {
      throw py::value_error("wrong number of inputs");
    }
    std::vector<std::pair<const void *, uint64_t>> places;
    std::vector<std::vector<int64_t>> shapes(inputs.size());
    for (uint32_t i = 0; i < inputs.size(); ++i) {
      std::vector<int64_t> &shape = shapes[i];
      if (PyCapsule_CheckExact(inputs[i].ptr())) {
        const dlpack::Borrowed &each = borrowed.emplace_back(inputs[i], infos[i], gpu);
        shape = each.shape();
        places.emplace_back(each.data(), each.bytes());
      } else {
        const Buffer &each = bound.emplace_back(inputs[i].cast<py::buffer>());
        shape.assign(each.info.shape.begin(), each.info.shape.end());
        places.emplace_back(each.info.ptr, each.bytes());
      }
    }
    setShapes(shapes);
    for (uint32_t i = 0; i < inputs.size(); ++i) {
      const bool isOnGpu = PyCapsule_CheckExact(inputs[i].ptr());
      bmrt::check(isOnGpu ? bmrt_context_bind_chip_input : bmrt_context_bind_input, net.get(), i, places[i].first,
                  places[i].second);
    }
  }

  py::list bindGpuOutputs(int32_t gpu) {
    py::list outputs;
    for (const bmrt_tensor_info_t &info : net.outputs()) {
      bmrt_chip_buffer_t *buffer = nullptr;
      const uint32_t index = uint32_t(outputs.size());
      bmrt::check(bmrt_context_allocate_chip_output, net.get(), index, &buffer);
      dlpack::Output output(buffer, info, gpu);
      bmrt::check(bmrt_context_bind_chip_output, net.get(), index, output.data(), info.bytes);
      outputs.append(py::cast(std::move(output)));
    }
    return outputs;
  }

  py::list bindOutputs(std::deque<Buffer> &targets) {
    py::list arrays;
    for (const bmrt_tensor_info_t &info : net.outputs()) {
      const uint32_t index = uint32_t(arrays.size());
      const auto allocate = [&](const int64_t *shape) {
        const py::buffer array = allocator(numpyName(info.dtype), shapeOf(info, shape));
        targets.emplace_back(array, /*writable=*/true);
        return array;
      };
      const auto data = [&] { return targets.back().info.ptr; };
      const bool isKnown = std::all_of(info.shape, info.shape + info.rank, [](int64_t size) { return size >= 0; });
      py::buffer array = allocate(isKnown ? info.shape : info.max_shape);
      // The shape of an output whose size a run computes is that of the last run; the next one needs the largest.
      if (bmrt_context_bind_output(net.get(), index, data(), targets.back().bytes(), nullptr) != BMRT_OK) {
        targets.pop_back();
        array = allocate(info.max_shape);
        bmrt::check(bmrt_context_bind_output, net.get(), index, data(), targets.back().bytes());
      }
      arrays.append(array);
    }
    return arrays;
  }

  /// |run| is bmrt_context_run, or the wait for a launched run.
  void runUnbinding(bmrt_code_t (*run)(bmrt_context_t *, bmrt_status_t *)) {
    bmrt_status_t status = {};
    const bmrt_code_t code = withSignals(run, status);
    // Unbind the arrays, which belong to Python again.
    for (uint32_t i = 0; i < bmrt_context_input_count(net.get()); ++i) {
      bmrt_context_bind_input(net.get(), i, nullptr, 0, nullptr);
    }
    for (uint32_t i = 0; i < bmrt_context_output_count(net.get()); ++i) {
      bmrt_context_bind_output(net.get(), i, nullptr, 0, nullptr);
    }
    checkRun(code, status);
  }

  /// Throws the error of a run or of its dump.
  void checkRun(bmrt_code_t code, const bmrt_status_t &status) {
    rethrow();
    if (dumpFailure.code != BMRT_OK) {
      throw bmrt::Error(std::exchange(dumpFailure, {}));
    }
    if (code != BMRT_OK) {
      throw bmrt::Error(status);
    }
  }

  static void dumpStep(void *user, const bmrt_context_t *context, const bmrt_step_info_t *step) {
    Context &self = *static_cast<Context *>(user);
    py::gil_scoped_acquire acquire;
    try {
      self.dumpWrites(context, step);
    } catch (...) { // the library between here and run() does not support exceptions
      self.pythonFailure = std::current_exception();
    }
  }

  void dumpWrites(const bmrt_context_t *context, const bmrt_step_info_t *step) {
    for (uint32_t i = 0; i < step->write_count && dumpFailure.code == BMRT_OK && !pythonFailure; ++i) {
      bmrt_tensor_view_t view;
      if (bmrt_context_step_write(context, step, i, &view, &dumpFailure) != BMRT_OK || view.info.onnx_name_count == 0) {
        continue;
      }
      const py::buffer array = allocator(numpyName(view.info.dtype), shapeOf(view.info, view.info.shape));
      const Buffer target(array, /*writable=*/true);
      bmrt_tensor_to_row_major(&view, target.info.ptr, target.bytes(), &dumpFailure);
      const py::object entry = view.info.scale_count || view.info.dtype == BMRT_BF16
                                   ? py::object(py::make_tuple(array, describe(view.info)))
                                   : py::object(array);
      for (uint32_t n = 0; n < view.info.onnx_name_count; ++n) {
        dumped[py::str(bmrt_tensor_onnx_name(&view.info, n))] = entry;
      }
    }
  }

  py::list parts(uint32_t index) const {
    py::list result;
    for (uint32_t i = 0; i < bmrt_context_step_part_count(net.get(), index); ++i) {
      const char *node = nullptr;
      bmrt_step_time_t time;
      bmrt::check(bmrt_context_step_part_time, net.get(), index, i, &node, &time);
      py::dict part;
      part["onnx_nodes"] = node;
      part["runs"] = time.runs;
      part["min_ns"] = time.min_ns;
      part["total_ns"] = time.total_ns;
      part["last_ns"] = time.last_ns;
      result.append(part);
    }
    return result;
  }

  py::dict step(uint32_t index, bool times) const {
    bmrt_step_info_t info;
    bmrt::check(bmrt_context_step_info, net.get(), index, &info);
    py::list nodes;
    for (uint32_t n = 0; n < info.onnx_node_count; ++n) {
      nodes.append(bmrt_step_onnx_node(&info, n));
    }
    py::dict result;
    result["index"] = index;
    result["kind"] = info.kind;
    result["symbol"] = info.symbol;
    result["onnx_nodes"] = nodes;
    result["top_op"] = info.top_op;
    result["device_op"] = info.device_op;
    result["bound"] = info.bound;
    result["tiles"] = info.tile_count;
    result["flops"] = info.flops;
    result["bytes"] = info.bytes;
    result["estimated_ns"] = info.estimated_ns;
    if (times) {
      bmrt_step_time_t time;
      bmrt::check(bmrt_context_step_time, net.get(), index, &time);
      result["runs"] = time.runs;
      result["min_ns"] = time.min_ns;
      result["total_ns"] = time.total_ns;
      result["last_ns"] = time.last_ns;
      result["parts"] = parts(index);
    }
    return result;
  }

  bmrt::Model model;
  uint32_t number; ///< of the net in the model
  bmrt::Net net;
  std::unique_ptr<ArrayCall> arrayCall; ///< of the stage that ran last
  std::unique_ptr<Launched> launched;
  std::timed_mutex mutex;
  std::atomic<std::thread::id> owner; ///< the thread that holds |mutex|
  py::object allocator;
  py::object dumped;
  std::exception_ptr pythonFailure;
  bmrt_status_t dumpFailure = {};
};

py::dict describeStage(const bmrt::Model &model, uint32_t net, uint32_t stage) {
  const bmrt_stage_info_t info = model.stageInfo(net, stage);
  py::list inputs, outputs;
  for (uint32_t i = 0; i < info.input_count; ++i) {
    inputs.append(describe(model.inputInfo(net, stage, i)));
  }
  for (uint32_t i = 0; i < info.output_count; ++i) {
    outputs.append(describe(model.outputInfo(net, stage, i)));
  }
  py::dict result;
  result["name"] = info.name;
  result["chip"] = info.chip;
  result["runnable"] = info.runnable;
  result["inputs"] = inputs;
  result["outputs"] = outputs;
  result["constant_bytes"] = info.constant_bytes;
  result["workspace_bytes"] = info.workspace_bytes;
  result["workspace_lower_bound"] = info.workspace_lower_bound;
  result["state_bytes"] = info.state_bytes;
  return result;
}

} // namespace

static void registerError(py::module_ &module) {
  static py::exception<bmrt::Error> error(module, "Error", PyExc_ValueError);
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      std::rethrow_exception(pointer);
    } catch (const bmrt::Error &e) {
      // py::exception has its own call operator, which raises at once.
      py::object instance = py::reinterpret_borrow<py::object>(error)(e.what());
      instance.attr("code") = bmrt_code_name(e.code());
      PyErr_SetObject(error.ptr(), instance.ptr());
    }
  });
}

PYBIND11_MODULE(_runtime, module) {
  module.doc() = "libbmrt for tessera.runtime; not meant to be used directly.";
  registerError(module);
  py::class_<bmrt::Model>(module, "Model")
      .def(py::init<const std::string &, bool, const std::string &>(), py::arg("path"), py::arg("trust"),
           py::arg("device"), py::call_guard<py::gil_scoped_release>())
      .def_property_readonly("net_names",
                             [](const bmrt::Model &model) {
                               std::vector<std::string> names;
                               for (uint32_t i = 0; i < model.netCount(); ++i) {
                                 names.push_back(model.netName(i));
                               }
                               return names;
                             })
      .def("stage_count", &bmrt::Model::stageCount)
      .def("stage", describeStage);
  py::class_<dlpack::Output>(module, "GpuTensor", "An output in a GPU's memory: torch.from_dlpack(tensor), cupy ..")
      .def_property_readonly("shape",
                             [](const dlpack::Output &output) { return py::tuple(py::cast(output.getShape())); })
      .def_property_readonly("data_ptr",
                             [](const dlpack::Output &output) { return reinterpret_cast<uintptr_t>(output.data()); })
      .def("__dlpack_device__",
           [](const dlpack::Output &output) { return py::make_tuple(output.device().type, output.device().id); })
      // A run has ended when its outputs are available, so no stream has to be waited for.
      .def("__dlpack__", [](const dlpack::Output &output, const py::kwargs &) { return output.lend(); });
  py::class_<Context>(module, "Context")
      .def(py::init<const bmrt::Model &, uint32_t, const std::string &, uint32_t>())
      .def("stage", &Context::stage)
      .def("choose", &Context::choose)
      .def("set_stream", &Context::setStream)
      .def("states", &Context::states)
      .def("set_state_length", &Context::setStateLength)
      .def("reset_state", &Context::resetState)
      .def("save_state", &Context::saveState)
      .def("load_state", &Context::loadState)
      .def("run", &Context::run)
      .def("run_arrays", &Context::runArrays)
      .def("launch", &Context::launch)
      .def("wait", &Context::wait)
      .def("is_done", &Context::isDone)
      .def("run_keeping", &Context::runKeeping)
      .def("run_steps", &Context::runSteps)
      .def("cancel", &Context::cancel)
      .def("input_bytes", &Context::inputBytes)
      .def("writes", &Context::writes)
      .def("row_major", &Context::rowMajor)
      .def("output_bytes", &Context::outputBytes)
      .def("set_profiling", &Context::setProfiling)
      .def("write_trace", &Context::writeTrace)
      .def("steps", &Context::steps);
  module.attr("ALIGNMENT") = BMRT_ALIGNMENT;
  module.def("load_custom_ops", &bmrt::loadCustomOps, py::call_guard<py::gil_scoped_release>());
  module.def("version", [] { return std::string(bmrt_version()); });
}
