// SPDX-License-Identifier: Apache-2.0
//===- Null_test.cpp - NULL arguments of the C interface ------------------===//
#include "AbacusModel.h"

using namespace bmrt;
using namespace bmrt::cts;
using bmodel::test::AddRelu;

namespace {

constexpr uint32_t kFirst = 0;

/// Checks that |call| of a bmrt function reports a NULL argument.
#define EXPECT_NULL_REPORTED(call)                                                                                     \
  do {                                                                                                                 \
    bmrt_status_t status = {};                                                                                         \
    EXPECT_EQ(call, BMRT_INVALID_ARGUMENT) << #call;                                                                   \
    EXPECT_NE(strstr(status.message, "NULL"), nullptr) << status.message;                                              \
  } while (false)

TEST(NullArguments, Handles) {
  bmrt_tensor_info_t tensor;
  bmrt_tensor_view_t view;
  bmrt_stage_info_t stage;
  bmrt_step_info_t step = {};
  bmrt_step_time_t time;
  bmrt_context_t *context = nullptr;
  bmrt_chip_buffer_t *buffer = nullptr;
  void *data = nullptr;
  const void *output = nullptr;
  const char *node = nullptr;
  uint32_t index = 0;
  const int64_t shape[] = {1};
  const int64_t *shapes[] = {shape};
  const uint32_t ranks[] = {1};
  EXPECT_NULL_REPORTED(bmrt_model_stage_info(nullptr, kFirst, 0, &stage, &status));
  EXPECT_NULL_REPORTED(bmrt_model_input_info(nullptr, kFirst, 0, 0, &tensor, &status));
  EXPECT_NULL_REPORTED(bmrt_model_output_info(nullptr, kFirst, 0, 0, &tensor, &status));
  EXPECT_NULL_REPORTED(bmrt_context_create(nullptr, nullptr, &context, &status));
  EXPECT_NULL_REPORTED(bmrt_context_input_info(nullptr, 0, &tensor, &status));
  EXPECT_NULL_REPORTED(bmrt_context_output_info(nullptr, 0, &tensor, &status));
  EXPECT_NULL_REPORTED(bmrt_context_find_input(nullptr, "x", &index, &status));
  EXPECT_NULL_REPORTED(bmrt_context_find_output(nullptr, "y", &index, &status));
  EXPECT_NULL_REPORTED(bmrt_context_set_input_shape(nullptr, 0, shape, 1, &status));
  EXPECT_NULL_REPORTED(bmrt_context_set_input_shapes(nullptr, shapes, ranks, 1, &status));
  EXPECT_NULL_REPORTED(bmrt_context_set_stage(nullptr, 0, &status));
  EXPECT_NULL_REPORTED(bmrt_context_bind_input(nullptr, 0, shape, 4, &status));
  EXPECT_NULL_REPORTED(bmrt_context_bind_output(nullptr, 0, &tensor, 4, &status));
  EXPECT_NULL_REPORTED(bmrt_context_input_buffer(nullptr, 0, &data, &status));
  EXPECT_NULL_REPORTED(bmrt_context_output_data(nullptr, 0, &output, &status));
  EXPECT_NULL_REPORTED(bmrt_context_bind_chip_input(nullptr, 0, shape, 4, &status));
  EXPECT_NULL_REPORTED(bmrt_context_bind_chip_output(nullptr, 0, &tensor, 4, &status));
  EXPECT_NULL_REPORTED(bmrt_context_set_stream(nullptr, nullptr, &status));
  EXPECT_NULL_REPORTED(bmrt_context_allocate_chip_output(nullptr, 0, &buffer, &status));
  EXPECT_NULL_REPORTED(bmrt_context_run(nullptr, &status));
  EXPECT_NULL_REPORTED(bmrt_context_launch(nullptr, &status));
  EXPECT_NULL_REPORTED(bmrt_context_wait(nullptr, &status));
  EXPECT_NULL_REPORTED(bmrt_context_state_info(nullptr, 0, &tensor, &status));
  EXPECT_NULL_REPORTED(bmrt_context_reset_state(nullptr, &status));
  EXPECT_NULL_REPORTED(bmrt_context_save_state(nullptr, &tensor, 4, nullptr, &status));
  EXPECT_NULL_REPORTED(bmrt_context_load_state(nullptr, &tensor, 4, &status));
  EXPECT_NULL_REPORTED(bmrt_context_step_info(nullptr, 0, &step, &status));
  EXPECT_NULL_REPORTED(bmrt_context_step_write(nullptr, &step, 0, &view, &status));
  EXPECT_NULL_REPORTED(bmrt_context_step_data(nullptr, &step, 0, &data, &status));
  EXPECT_NULL_REPORTED(bmrt_context_run_steps(nullptr, 0, 0, &status));
  EXPECT_NULL_REPORTED(bmrt_context_set_profiling(nullptr, true, &status));
  EXPECT_NULL_REPORTED(bmrt_context_step_time(nullptr, 0, &time, &status));
  EXPECT_NULL_REPORTED(bmrt_context_step_part_time(nullptr, 0, 0, &node, &time, &status));
  EXPECT_NULL_REPORTED(bmrt_context_write_trace(nullptr, "trace.json", &status));
  EXPECT_NULL_REPORTED(bmrt_tensor_to_row_major(nullptr, data, 0, &status));
}

TEST(NullArguments, OutputsAndNames) {
  AddRelu test(kernelCode(), 64);
  const Model model(openWritten(test, "null.bmodel"));
  Net net(model);
  bmrt_model_t *opened = nullptr;
  uint32_t index = 0;
  bmrt_step_time_t time;
  alignas(BMRT_ALIGNMENT) const char bytes[64] = {};
  EXPECT_NULL_REPORTED(bmrt_model_open(nullptr, nullptr, &opened, &status));
  EXPECT_NULL_REPORTED(bmrt_model_open("m.bmodel", nullptr, nullptr, &status));
  EXPECT_NULL_REPORTED(bmrt_model_open_memory(nullptr, 64, nullptr, &opened, &status));
  EXPECT_NULL_REPORTED(bmrt_model_open_memory(bytes, 64, nullptr, nullptr, &status));
  EXPECT_NULL_REPORTED(bmrt_model_stage_info(model.get(), kFirst, 0, nullptr, &status));
  EXPECT_NULL_REPORTED(bmrt_context_create(model.get(), nullptr, nullptr, &status));
  EXPECT_NULL_REPORTED(bmrt_context_input_info(net.get(), 0, nullptr, &status));
  EXPECT_NULL_REPORTED(bmrt_context_find_input(net.get(), nullptr, &index, &status));
  EXPECT_NULL_REPORTED(bmrt_context_find_input(net.get(), "x", nullptr, &status));
  EXPECT_NULL_REPORTED(bmrt_context_set_input_shape(net.get(), 0, nullptr, 1, &status));
  EXPECT_NULL_REPORTED(bmrt_context_set_input_shapes(net.get(), nullptr, nullptr, 1, &status));
  EXPECT_NULL_REPORTED(bmrt_context_input_buffer(net.get(), 0, nullptr, &status));
  EXPECT_NULL_REPORTED(bmrt_context_output_data(net.get(), 0, nullptr, &status));
  EXPECT_NULL_REPORTED(bmrt_context_step_info(net.get(), 0, nullptr, &status));
  EXPECT_NULL_REPORTED(bmrt_context_step_part_time(net.get(), 0, 0, nullptr, &time, &status));
  EXPECT_NULL_REPORTED(bmrt_context_write_trace(net.get(), nullptr, &status));
  EXPECT_EQ(bmrt_context_run(nullptr, nullptr), BMRT_INVALID_ARGUMENT) << "the status may be NULL, too";
}

TEST(NullArguments, FunctionsWithoutACode) {
  EXPECT_EQ(bmrt_model_net_count(nullptr), 0u);
  EXPECT_EQ(bmrt_model_net_name(nullptr, 0), nullptr);
  EXPECT_EQ(bmrt_model_stage_count(nullptr, 0), 0u);
  EXPECT_EQ(bmrt_context_input_count(nullptr), 0u);
  EXPECT_EQ(bmrt_context_output_count(nullptr), 0u);
  EXPECT_EQ(bmrt_context_stage(nullptr), 0u);
  EXPECT_EQ(bmrt_context_step_count(nullptr), 0u);
  EXPECT_EQ(bmrt_context_step_part_count(nullptr, 0), 0u);
  EXPECT_TRUE(bmrt_context_is_done(nullptr));
  EXPECT_EQ(bmrt_chip_buffer_data(nullptr), nullptr);
  EXPECT_EQ(bmrt_step_onnx_node(nullptr, 0), nullptr);
  EXPECT_EQ(bmrt_tensor_onnx_name(nullptr, 0), nullptr);
  EXPECT_EQ(bmrt_tensor_computed_by(nullptr), nullptr);
  EXPECT_EQ(bmrt_tensor_row_major_bytes(nullptr), 0u);
  bmrt_model_retain(nullptr);
  bmrt_model_release(nullptr);
  bmrt_context_destroy(nullptr);
  bmrt_context_cancel(nullptr);
  bmrt_context_set_poll(nullptr, nullptr, nullptr);
  bmrt_context_set_step_hook(nullptr, nullptr, nullptr);
  bmrt_chip_buffer_release(nullptr);
}

/// A stream belongs to a driver; native code runs on the caller's threads.
TEST(Streams, AreRejectedWithoutAChipThatHasThem) {
  AddRelu test(kernelCode(), 64);
  Net net(openWritten(test, "stream.bmodel"));
  bmrt_status_t status = {};
  int stream = 0;
  EXPECT_EQ(bmrt_context_set_stream(net.get(), &stream, &status), BMRT_UNSUPPORTED);
  EXPECT_NE(strstr(status.message, "streams"), nullptr) << status.message;
  EXPECT_EQ(bmrt_context_set_stream(net.get(), nullptr, &status), BMRT_OK);
}

} // namespace
