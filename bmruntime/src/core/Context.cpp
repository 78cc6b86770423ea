// SPDX-License-Identifier: Apache-2.0
//===- Context.cpp - The stages of a context ------------------------------===//
#include "Context.h"

#include "Count.h"
#include "TensorInfo.h"

#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstring>

using namespace bmrt::core;
using namespace bmodel;

namespace {

constexpr uint32_t kMaxThreads = 1024;

/// Text of limited size; silently truncates text that does not fit.
class Text {
public:
  [[gnu::format(printf, 2, 3)]] void add(const char *format, ...) {
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(buffer + used, sizeof(buffer) - used, format, args);
    va_end(args);
    used = n < 0 ? used : used + size_t(n) < sizeof(buffer) ? used + size_t(n) : sizeof(buffer) - 1;
  }
  bool isFull() const { return used > sizeof(buffer) - 48; }
  const char *get() const { return buffer; }

private:
  char buffer[200] = "";
  size_t used = 0;
};

/// Appends "x="; nothing if there is only one input.
void addName(Text &text, const StageDef &stage, uint32_t input) {
  if (count(stage.inputs()) > 1) {
    text.add("%.40s=", stage.tensors()->Get(stage.inputs()->Get(input))->name()->c_str());
  }
}

/// Appends "x=1x3x224x224", or "1x3x224x224" if there is only one input.
void addShape(Text &text, const StageDef &stage, uint32_t input, const int64_t *shape, uint32_t rank) {
  char buffer[128];
  addName(text, stage, input);
  text.add("%s", formatShape(shape, rank, buffer, sizeof(buffer)));
}

/// Appends the shapes that the stage takes, e.g. "x=2..4x3x224x224,y=1x8".
void addShapes(Text &text, const StageDef &stage) {
  for (uint32_t i = 0; i < count(stage.inputs()) && !text.isFull(); ++i) {
    const TensorDef &tensor = *stage.tensors()->Get(stage.inputs()->Get(i));
    text.add("%s", i ? "," : "");
    addName(text, stage, i);
    for (uint32_t k = 0; k < count(tensor.shape()); ++k) {
      const Dim &dim = *tensor.shape()->Get(k);
      text.add("%s", k ? "x" : "");
      if (dim.slot() >= 0) {
        text.add("%" PRId64 "..", stage.dims()->Get(uint32_t(dim.slot()))->min());
      }
      text.add("%" PRId64, dim.value());
    }
  }
}

} // namespace

bmrt_context_t::~bmrt_context_t() {
  if (isLaunched) {
    (void)current->finish(nullptr);
  }
  async.stop();
  for (StageContext *stage : stages) {
    destroyObject(stage);
  }
}

bmrt_code_t bmrt_context_t::create(bmrt_model_t *newModel, const bmrt_context_options_t &options,
                                   bmrt_status_t *status) {
  const uint32_t threads = options.threads == 0 ? 1 : options.threads;
  if (threads > kMaxThreads) {
    return BMRT_FAIL(status, INVALID_ARGUMENT, "%" PRIu32 " threads exceed %" PRIu32, threads, kMaxThreads);
  }
  if (options.workspace && reinterpret_cast<uintptr_t>(options.workspace) % BMRT_ALIGNMENT != 0) {
    return BMRT_FAIL(status, INVALID_ARGUMENT, "the workspace %p is not aligned to %d bytes", options.workspace,
                     BMRT_ALIGNMENT);
  }
  const StageProgram *first = nullptr;
  BMRT_RETURN_IF_ERROR(newModel->findStage(options.net, options.stage, options.chip, &first, status));
  BMRT_RETURN_IF_ERROR(resources.create(*newModel, options, threads, status));
  model = newModel;
  net = first->net;
  followsShapes = options.stage == BMRT_FIRST_RUNNABLE_STAGE;
  const size_t chipBytes = options.chip ? strlen(options.chip) + 1 : 0;
  if (!stages.allocate(model->getStages().size()) || !chipName.allocate(chipBytes)) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for a context");
  }
  if (options.chip) {
    memcpy(chipName.data(), options.chip, chipBytes);
    chip = chipName.data();
  }
  return enter(*first, status);
}

bmrt_code_t bmrt_context_t::prepare(const StageProgram &program, StageContext *&stage, bmrt_status_t *status) {
  if (!stage) {
    StageContext *result = createObject<StageContext>(resources);
    if (!result) {
      return BMRT_FAIL(status, NO_MEMORY, "no memory for a stage");
    }
    if (bmrt_code_t code = result->create(program, status); code != BMRT_OK) {
      destroyObject(result);
      return code;
    }
    stage = result;
  }
  return stage->profile.isEnabled() == isProfiling ? BMRT_OK : stage->enableProfile(isProfiling, status);
}

bmrt_code_t bmrt_context_t::enter(const StageProgram &program, bmrt_status_t *status) {
  StageContext *&wanted = stages[size_t(&program - model->getStages().data())];
  if (wanted && wanted == current) {
    return BMRT_OK;
  }
  if (bmrt_code_t code = prepare(program, wanted, status); code != BMRT_OK) {
    if (current) {
      current->enter(); // workspaces may have moved
    }
    return code;
  }
  wanted->enter();
  current = wanted;
  return BMRT_OK;
}

bmrt_code_t bmrt_context_t::setStage(uint32_t index, bmrt_status_t *status) {
  const StageProgram *program = nullptr;
  BMRT_RETURN_IF_ERROR(model->findStage(net->name()->c_str(), index, chip, &program, status));
  return enter(*program, status);
}

bool bmrt_context_t::mayEnter(const StageProgram &program) const {
  return program.net == net && (!chip || model->isFor(program, chip));
}

bmrt_code_t bmrt_context_t::setInputShape(uint32_t input, const int64_t *shape, uint32_t rank, bmrt_status_t *status) {
  Array<const int64_t *> shapes;
  Array<uint32_t> ranks;
  Array<int64_t> present;
  const size_t inputs = current->inputs.size();
  if (!shapes.allocate(inputs) || !ranks.allocate(inputs)) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for the shapes of %zu inputs", inputs);
  }
  shapes[input] = shape, ranks[input] = rank;
  const InputShapes one = {shapes.data(), ranks.data()};
  const TensorDef &def = *current->inputs[input].def;
  // An earlier stage may be the better one for this shape if the current one takes a range.
  const bool mayStay = count(current->program->def->dims()) == 0 || model->getStages().size() == 1;
  if (!followsShapes || (mayStay && checkInputShape(*current->program->def, def, shape, rank, nullptr) == BMRT_OK)) {
    return current->setInputShapes(one, status);
  }
  // Prefer a stage that keeps the shapes of the other inputs; if there is none, they take the shapes of the new stage.
  if (!present.allocate(inputs * BMRT_MAX_RANK)) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for the shapes of %zu inputs", inputs);
  }
  for (size_t i = 0; i < inputs; ++i) {
    bmrt_tensor_info_t info;
    describeTensor(*current->inputs[i].def, current->sizes.dims(), info);
    memcpy(&present[i * BMRT_MAX_RANK], info.shape, sizeof(info.shape));
    shapes[i] = i == input ? shape : &present[i * BMRT_MAX_RANK];
    ranks[i] = i == input ? rank : info.rank;
  }
  if (enterFitting(one, nullptr) == BMRT_OK) {
    return BMRT_OK;
  }
  for (size_t i = 0; i < inputs; ++i) {
    shapes[i] = i == input ? shape : nullptr;
  }
  return enterFitting(one, status);
}

bmrt_code_t bmrt_context_t::setInputShapes(const int64_t *const *shapes, const uint32_t *ranks, bmrt_status_t *status) {
  const InputShapes all = {shapes, ranks};
  return followsShapes ? enterFitting(all, status) : current->setInputShapes(all, status);
}

/// Enters the first stage that can run here and whose inputs accept the given shapes.
bmrt_code_t bmrt_context_t::enterFitting(const InputShapes &shapes, bmrt_status_t *status) {
  const StageProgram *rejected = nullptr;
  for (const StageProgram &program : model->getStages()) {
    if (!mayEnter(program) || count(program.def->inputs()) != current->inputs.size() ||
        checkInputShapes(*program.def, shapes, nullptr) != BMRT_OK) {
      continue;
    }
    if (program.rejection.code != BMRT_OK) {
      rejected = rejected ? rejected : &program;
      continue;
    }
    BMRT_RETURN_IF_ERROR(enter(program, status));
    return current->setInputShapes(shapes, status);
  }
  if (rejected) {
    return fail(status, rejected->rejection.code, rejected->rejection.file, rejected->rejection.line,
                "the stage of these shapes cannot run here: %.400s", rejected->rejection.message);
  }
  return failFitting(shapes, status);
}

/// Returns the largest size of a dim of an input in all stages that the context may enter.
int64_t bmrt_context_t::largestSize(uint32_t input, uint32_t dim) const {
  int64_t most = 0;
  for (const StageProgram &program : model->getStages()) {
    const auto *inputs = mayEnter(program) ? program.def->inputs() : nullptr;
    const auto *shape = input < count(inputs) ? program.def->tensors()->Get(inputs->Get(input))->shape() : nullptr;
    most = dim < count(shape) && shape->Get(dim)->value() > most ? shape->Get(dim)->value() : most;
  }
  return most;
}

/// Reports the possible shapes; if there is only one stage, reports what is wrong with the given shapes instead.
bmrt_code_t bmrt_context_t::failFitting(const InputShapes &shapes, bmrt_status_t *status) const {
  const StageDef &present = *current->program->def;
  Text given, known;
  uint32_t others = 0, left = 0;
  for (uint32_t i = 0; i < current->inputs.size() && !given.isFull(); ++i) {
    if (shapes.dims[i]) {
      given.add("%s", given.get()[0] ? "," : "");
      addShape(given, present, i, shapes.dims[i], shapes.ranks[i]);
    }
  }
  for (const StageProgram &program : model->getStages()) {
    if (!mayEnter(program) || program.rejection.code != BMRT_OK) {
      continue;
    }
    others += &program != current->program;
    if (known.isFull()) {
      ++left;
      continue;
    }
    known.add("%s", known.get()[0] ? "; " : "");
    addShapes(known, *program.def);
    known.add(" (%.30s)", model->view.model->chips()->Get(program.def->chip())->name()->c_str());
  }
  if (left) {
    known.add("; and %" PRIu32 " more", left);
  }
  if (others == 0) {
    BMRT_RETURN_IF_ERROR(checkInputShapes(present, shapes, status));
  }
  Text excess;
  for (uint32_t i = 0; i < current->inputs.size(); ++i) {
    for (uint32_t k = 0; shapes.dims[i] && k < shapes.ranks[i] && !excess.get()[0]; ++k) {
      if (const int64_t most = largestSize(i, k); shapes.dims[i][k] > most) {
        excess.add(": dimension %" PRIu32 " of input '%.60s' is %" PRId64 ", at most %" PRId64 " is possible", k,
                   current->inputs[i].def->name()->c_str(), shapes.dims[i][k], most);
      }
    }
  }
  return BMRT_FAIL(status, INVALID_ARGUMENT, "no stage of the net takes inputs of %s%s; there are %s", given.get(),
                   excess.get(), known.get());
}

bmrt_code_t bmrt_context_t::launch(bmrt_status_t *status) {
  if (!current->isEnqueued()) {
    auto run = [](void *stage, bmrt_status_t *result) { return static_cast<StageContext *>(stage)->run(result); };
    return async.launch(run, current, status);
  }
  BMRT_RETURN_IF_ERROR(current->enqueue(status));
  isLaunched = true;
  return BMRT_OK;
}

bmrt_code_t bmrt_context_t::wait(bmrt_status_t *status) {
  if (!isLaunched) {
    return async.wait(status);
  }
  isLaunched = false;
  BMRT_RETURN_IF_ERROR(current->finish(status));
  return succeed(status);
}

bmrt_code_t bmrt_context_t::setProfiling(bool enabled, bmrt_status_t *status) {
  BMRT_RETURN_IF_ERROR(current->enableProfile(enabled, status));
  isProfiling = enabled;
  return BMRT_OK;
}
