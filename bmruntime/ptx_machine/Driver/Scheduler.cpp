//===- Scheduler.cpp - Executes work in dependency order ------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmruntime/ptx_machine/Driver/Scheduler.h"

#include <algorithm>
#include <chrono>

namespace ptx {

Scheduler::~Scheduler() {
  {
    std::lock_guard lock(mutex);
    isEnding = true;
  }
  changed.notify_all();
  if (thread.joinable()) {
    thread.join();
  }
}

void Scheduler::setSeed(uint64_t seed) {
  std::lock_guard lock(mutex);
  isOrdered = seed == 0;
  state = seed * 2 + 1;
}

WorkRef Scheduler::submit(const void *owner, const std::vector<WorkRef> &dependencies, std::function<void()> run) {
  std::lock_guard lock(mutex);
  auto work = std::make_shared<Work>();
  work->run = std::move(run);
  work->owner = owner;
  work->number = ++numbers;
  unfinished.push_back(owner);
  for (const WorkRef &each : dependencies) {
    if (each && !each->isDone) {
      each->followers.push_back(work);
      ++work->missing;
    }
  }
  if (work->missing == 0) {
    ready.push_back(work);
  }
  changed.notify_all();
  return work;
}

WorkRef Scheduler::take() {
  size_t which = 0;
  if (isOrdered) {
    for (size_t i = 1; i < ready.size(); ++i) {
      which = ready[i]->number < ready[which]->number ? i : which;
    }
  } else {
    state = state * 6364136223846793005u + 1442695040888963407u;
    which = size_t((state >> 33) % ready.size());
  }
  WorkRef work = ready[which];
  ready.erase(ready.begin() + ptrdiff_t(which));
  return work;
}

void Scheduler::execute(std::unique_lock<std::mutex> &lock, const WorkRef &work) {
  lock.unlock();
  work->run();
  lock.lock();
  work->isDone = true;
  work->run = nullptr;
  for (const WorkRef &each : work->followers) {
    if (--each->missing == 0) {
      ready.push_back(each);
    }
  }
  work->followers.clear();
  unfinished.erase(std::find(unfinished.begin(), unfinished.end(), work->owner));
  ++finished;
  changed.notify_all();
}

void Scheduler::wait(const WorkRef &work) {
  std::unique_lock lock(mutex);
  while (work && !work->isDone) {
    if (ready.empty()) { // another thread executes the work that is needed
      changed.wait(lock);
    } else {
      execute(lock, take());
    }
  }
}

void Scheduler::waitForAll(const void *owner) {
  std::unique_lock lock(mutex);
  while (std::find(unfinished.begin(), unfinished.end(), owner) != unfinished.end()) {
    if (ready.empty()) {
      changed.wait(lock);
    } else {
      execute(lock, take());
    }
  }
}

void Scheduler::advance() {
  std::unique_lock lock(mutex);
  if (!ready.empty()) {
    execute(lock, take());
  }
}

bool Scheduler::isDone(const WorkRef &work) {
  std::lock_guard lock(mutex);
  return !work || work->isDone;
}

bool Scheduler::hasWork(const void *owner) {
  std::lock_guard lock(mutex);
  return std::find(unfinished.begin(), unfinished.end(), owner) != unfinished.end();
}

void Scheduler::startBackground() {
  std::lock_guard lock(mutex);
  if (!thread.joinable()) {
    thread = std::thread([this] { background(); });
  }
}

void Scheduler::background() {
  std::unique_lock lock(mutex);
  while (!isEnding) {
    uint64_t before = finished;
    changed.wait_for(lock, std::chrono::milliseconds(20), [&] { return isEnding; });
    if (!isEnding && finished == before && !ready.empty()) {
      execute(lock, take());
    }
  }
}

} // namespace ptx
