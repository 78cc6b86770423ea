// SPDX-License-Identifier: Apache-2.0
//===- bmrt.hpp - C++ interface of the Tessera runtime --------------------===//
//
// A header-only RAII wrapper of bmrt.h; its rules of ownership and threading apply here as well. Errors are thrown as
// exceptions of type bmrt::Error.
//
//   bmrt::Model model("m.bmodel");
//   bmrt::Net net(model, {.threads = 2});
//   net.setInput("x", x.data(), x.size() * sizeof(float));
//   net.run();
//   const float *y = net.output<float>("y");
//
//===----------------------------------------------------------------------===//
#ifndef BMRT_BMRT_HPP
#define BMRT_BMRT_HPP

#include "bmrt/bmrt.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace bmrt {

class Error : public std::runtime_error {
public:
  explicit Error(const bmrt_status_t &status) : std::runtime_error(status.message), status(status) {}
  bmrt_code_t code() const { return status.code; }

private:
  bmrt_status_t status;
};

/// Calls a function of the C interface, appending a status to the arguments; throws its error.
template <typename Function, typename... Args>
void check(Function function, Args... args) {
  bmrt_status_t status = {};
  if (function(args..., &status) != BMRT_OK) {
    throw Error(status);
  }
}

/// Registers a custom operator; see bmrt_register_custom_op.
inline void registerCustomOp(const tessera_custom_op_t &op) { check(bmrt_register_custom_op, &op); }

/// Loads a library of custom operators; see bmrt_load_custom_ops.
inline void loadCustomOps(const std::string &path) { check(bmrt_load_custom_ops, path.c_str()); }

/// An opened file; copies of the object share it.
class Model {
public:
  /// |device|: see bmrt_open_options_t; empty: the back ends choose.
  explicit Model(const std::string &path, bool trustConstants = false, const std::string &device = {}) {
    bmrt_open_options_t options = {};
    options.struct_size = sizeof(options);
    options.trust_constants = trustConstants;
    options.device = device.empty() ? nullptr : device.c_str();
    bmrt_model_t *opened = nullptr;
    check(bmrt_model_open, path.c_str(), &options, &opened);
    handle.reset(opened, bmrt_model_release);
  }

  bmrt_model_t *get() const { return handle.get(); }
  uint32_t netCount() const { return bmrt_model_net_count(get()); }
  std::string netName(uint32_t net) const {
    const char *name = bmrt_model_net_name(get(), net);
    return name ? name : "";
  }
  uint32_t stageCount(uint32_t net) const { return bmrt_model_stage_count(get(), net); }
  bmrt_stage_info_t stageInfo(uint32_t net, uint32_t stage) const {
    bmrt_stage_info_t info;
    check(bmrt_model_stage_info, get(), net, stage, &info);
    return info;
  }
  bmrt_tensor_info_t inputInfo(uint32_t net, uint32_t stage, uint32_t input) const {
    bmrt_tensor_info_t info;
    check(bmrt_model_input_info, get(), net, stage, input, &info);
    return info;
  }
  bmrt_tensor_info_t outputInfo(uint32_t net, uint32_t stage, uint32_t output) const {
    bmrt_tensor_info_t info;
    check(bmrt_model_output_info, get(), net, stage, output, &info);
    return info;
  }

private:
  std::shared_ptr<bmrt_model_t> handle;
};

struct NetOptions {
  std::string net = {}; ///< empty: the first net
  uint32_t stage = BMRT_FIRST_RUNNABLE_STAGE;
  uint32_t threads = 1;  ///< including the caller's
  std::string chip = {}; ///< empty: any; else the name or family of a chip
};

/// An execution context of a net.
class Net {
public:
  explicit Net(const Model &model, const NetOptions &options = {}) {
    bmrt_context_options_t c = {};
    c.struct_size = sizeof(c);
    c.net = options.net.empty() ? nullptr : options.net.c_str();
    c.stage = options.stage;
    c.threads = options.threads;
    c.chip = options.chip.empty() ? nullptr : options.chip.c_str();
    bmrt_context_t *created = nullptr;
    check(bmrt_context_create, model.get(), &c, &created);
    handle.reset(created);
  }

  bmrt_context_t *get() const { return handle.get(); }

  std::vector<bmrt_tensor_info_t> inputs() const {
    std::vector<bmrt_tensor_info_t> infos(bmrt_context_input_count(get()));
    for (uint32_t i = 0; i < infos.size(); ++i) {
      check(bmrt_context_input_info, get(), i, &infos[i]);
    }
    return infos;
  }
  std::vector<bmrt_tensor_info_t> outputs() const {
    std::vector<bmrt_tensor_info_t> infos(bmrt_context_output_count(get()));
    for (uint32_t i = 0; i < infos.size(); ++i) {
      check(bmrt_context_output_info, get(), i, &infos[i]);
    }
    return infos;
  }
  uint32_t findInput(const std::string &name) const {
    uint32_t index = 0;
    check(bmrt_context_find_input, get(), name.c_str(), &index);
    return index;
  }
  uint32_t findOutput(const std::string &name) const {
    uint32_t index = 0;
    check(bmrt_context_find_output, get(), name.c_str(), &index);
    return index;
  }

  /// Sets the shape of an input. If the net has several stages, this selects the stage and invalidates earlier infos.
  void setShape(const std::string &name, const std::vector<int64_t> &shape) {
    check(bmrt_context_set_input_shape, get(), findInput(name), shape.data(), uint32_t(shape.size()));
  }
  /// Sets the shapes of all inputs at once, in their order; see bmrt_context_set_input_shapes.
  void setShapes(const std::vector<std::vector<int64_t>> &shapes) {
    std::vector<const int64_t *> pointers;
    std::vector<uint32_t> ranks;
    for (const std::vector<int64_t> &shape : shapes) {
      pointers.push_back(shape.data());
      ranks.push_back(uint32_t(shape.size()));
    }
    check(bmrt_context_set_input_shapes, get(), pointers.data(), ranks.data(), uint32_t(shapes.size()));
  }
  /// Returns the number of the current stage.
  uint32_t stage() const { return bmrt_context_stage(get()); }

  /// Later runs read |data|, which remains owned by the caller.
  void setInput(const std::string &name, const void *data, uint64_t bytes) {
    check(bmrt_context_bind_input, get(), findInput(name), data, bytes);
  }
  /// Later runs write to |data|, which remains owned by the caller.
  void setOutput(const std::string &name, void *data, uint64_t bytes) {
    check(bmrt_context_bind_output, get(), findOutput(name), data, bytes);
  }
  /// Returns the data that the last run wrote; valid until the next run or bind.
  template <typename T = void>
  const T *output(const std::string &name) const {
    const void *data = nullptr;
    check(bmrt_context_output_data, get(), findOutput(name), &data);
    return static_cast<const T *>(data);
  }

  /// Binds a buffer in the memory of the chip; see bmrt_context_bind_chip_input.
  void bindChipInput(const std::string &name, const void *data, uint64_t bytes) {
    check(bmrt_context_bind_chip_input, get(), findInput(name), data, bytes);
  }
  void bindChipOutput(const std::string &name, void *data, uint64_t bytes) {
    check(bmrt_context_bind_chip_output, get(), findOutput(name), data, bytes);
  }
  /// Sets the stream for chip work; null: the context's own streams. See bmrt_context_set_stream.
  void setStream(void *stream) { check(bmrt_context_set_stream, get(), stream); }

  std::vector<bmrt_tensor_info_t> states() const {
    std::vector<bmrt_tensor_info_t> infos(bmrt_context_state_count(get()));
    for (uint32_t i = 0; i < infos.size(); ++i) {
      check(bmrt_context_state_info, get(), i, &infos[i]);
    }
    return infos;
  }
  bmrt_state_growth_t stateGrowth(uint32_t state) const {
    bmrt_state_growth_t growth;
    check(bmrt_context_state_growth, get(), state, &growth);
    return growth;
  }
  /// See bmrt_context_set_state_length.
  void setStateLength(uint32_t state, int64_t length) { check(bmrt_context_set_state_length, get(), state, length); }
  void resetState() { check(bmrt_context_reset_state, get()); }
  /// Returns the states for loadState() of any net of the same file.
  std::vector<char> saveState() {
    uint64_t bytes = 0;
    check(bmrt_context_save_state, get(), nullptr, uint64_t(0), &bytes);
    std::vector<char> saved(bytes);
    check(bmrt_context_save_state, get(), saved.data(), bytes, &bytes);
    return saved;
  }
  void loadState(const std::vector<char> &saved) {
    check(bmrt_context_load_state, get(), saved.data(), uint64_t(saved.size()));
  }

  void run() { check(bmrt_context_run, get()); }
  void launch() { check(bmrt_context_launch, get()); }
  /// Returns true if wait() returns at once.
  bool isDone() { return bmrt_context_is_done(get()); }
  void wait() { check(bmrt_context_wait, get()); }
  /// May be called from any thread or signal handler; the run in flight throws an Error with code() BMRT_CANCELLED.
  void cancel() { bmrt_context_cancel(get()); }

private:
  struct Destroy {
    void operator()(bmrt_context_t *context) const { bmrt_context_destroy(context); }
  };
  std::unique_ptr<bmrt_context_t, Destroy> handle;
};

} // namespace bmrt

#endif // BMRT_BMRT_HPP
