// SPDX-License-Identifier: Apache-2.0
//===- Backend.cpp - Finds back ends by the name of their family ----------===//
#include "Backend.h"

#include "Status.h"

#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <pthread.h>

using namespace bmrt;
using namespace bmrt::core;

namespace {

constexpr size_t kMostBackends = 32, kMostLetters = 32;

/// Size of the first version of bmrt_backend_t; members added later may be missing.
constexpr size_t kFirstSize = offsetof(bmrt_backend_t, wait) + sizeof(bmrt_backend_t::wait);

/// Back ends added at run time; they are never removed.
bmrt_backend_t added[kMostBackends];
size_t addedCount = 0;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

class Lock {
public:
  Lock() { pthread_mutex_lock(&mutex); }
  ~Lock() { pthread_mutex_unlock(&mutex); }
};

/// Returns true for a valid family name, which must be safe as part of a file name.
bool isFamily(const char *text) {
  const size_t length = strlen(text);
  return length > 0 && length <= kMostLetters && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_") == length;
}

const bmrt_backend_t *findKnown(const char *family) {
  for (const bmrt_backend_t *const *each = builtInBackends; *each; ++each) {
    if (strcmp((*each)->family, family) == 0) {
      return *each;
    }
  }
  for (size_t i = 0; i < addedCount; ++i) {
    if (strcmp(added[i].family, family) == 0) {
      return &added[i];
    }
  }
  return nullptr;
}

/// Returns the first function that the back end needs according to its other members but lacks; null if none.
const char *missingFunction(const bmrt_backend_t &b) {
  const bool onHost = worksOnHostMemory(b), hasQueues = b.verify || (b.find_kernel && !hasHostKernels(b)) || !onHost;
  const struct {
    bool isMissing;
    const char *name;
  } functions[] = {{!b.load, "load"},
                   {!b.unload, "unload"},
                   {b.open && !b.close, "close"},
                   {!onHost && !b.allocate, "allocate"},
                   {!onHost && !b.release, "release"},
                   {!onHost && !b.copy, "copy"},
                   {hasQueues && !b.make_queue, "make_queue"},
                   {hasQueues && !b.destroy_queue, "destroy_queue"},
                   {b.verify && !b.run, "run"},
                   {b.find_kernel && !hasHostKernels(b) && !b.launch, "launch"},
                   {hasHostKernels(b) && !b.find_kernel, "find_kernel"},
                   {hasHostKernels(b) && !onHost, "BMRT_BACKEND_HOST_MEMORY (which kernels of the host work on)"}};
  for (const auto &function : functions) {
    if (function.isMissing) {
      return function.name;
    }
  }
  return nullptr;
}

/// Checks the interface version of |backend| and that it has all functions; |name| is for the message.
bmrt_code_t checkBackend(const bmrt_backend_t *backend, const char *name, bmrt_status_t *status) {
  if (backend->abi != BMRT_BACKEND_ABI) { // in this case, other members cannot be relied upon
    return BMRT_FAIL(status, UNSUPPORTED,
                     "the back end %.80s has version %" PRIu32 " of the interface, this library has %d: install both "
                     "from one release",
                     name, backend->abi, BMRT_BACKEND_ABI);
  }
  if (backend->struct_size < kFirstSize || !backend->family || !isFamily(backend->family)) {
    return BMRT_FAIL(
        status, UNSUPPORTED,
        "the back end %.80s has a descriptor of %zu bytes, required are %zu, or its family name is invalid", name,
        backend->struct_size, kFirstSize);
  }
  const char *missing = missingFunction(*backend);
  return missing ? BMRT_FAIL(status, UNSUPPORTED, "the back end %.80s lacks %s", name, missing) : BMRT_OK;
}

/// Appends the back end to the list; the caller holds |mutex|.
bmrt_code_t add(const bmrt_backend_t *backend, bmrt_status_t *status) {
  if (addedCount == kMostBackends) {
    return BMRT_FAIL(status, NO_MEMORY, "%zu back ends are registered already, which is the maximum", kMostBackends);
  }
  const size_t known = backend->struct_size;
  memcpy(&added[addedCount++], backend, known < sizeof(bmrt_backend_t) ? known : sizeof(bmrt_backend_t));
  return BMRT_OK;
}

/// Loads |file| from this library's folder, |own|. $ORIGIN makes that independent of the current folder, but it means
/// another folder if a library that replaces dlopen() calls the original one, as compute-sanitizer's does.
void *openBeside(const char *own, const char *file) {
  char path[4096];
  snprintf(path, sizeof(path), "$ORIGIN/%s", file);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const char *name = own ? strrchr(own, '/') : nullptr;
  if (library || !name) {
    return library;
  }
  snprintf(path, sizeof(path), "%.*s/%s", int(name - own), own, file);
  return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

bmrt_code_t loadLibrary(const char *family, const bmrt_backend_t **out, bmrt_status_t *status) {
  char file[64];
  snprintf(file, sizeof(file), "libbmrt_%s.so", family);
  Dl_info own{};
  dladdr(reinterpret_cast<const void *>(&core::findBackend), &own);
  void *library = openBeside(own.dli_fname, file);
  if (!library) {
    const char *cause = dlerror();
    return BMRT_FAIL(status, UNSUPPORTED, "chips of family '%s' need the back end %s beside %.150s: %.200s", family,
                     file, own.dli_fname ? own.dli_fname : "this library", cause ? cause : "it cannot be loaded");
  }
  const auto *backend = static_cast<const bmrt_backend_t *>(dlsym(library, "bmrt_backend"));
  if (!backend) {
    return BMRT_FAIL(
        status, UNSUPPORTED,
        "%s is not a back end of this release, it does not export 'bmrt_backend': install both from one release", file);
  }
  BMRT_RETURN_IF_ERROR(checkBackend(backend, file, status));
  if (strcmp(backend->family, family) != 0) {
    return BMRT_FAIL(status, UNSUPPORTED, "%s is the back end of family '%s': give it that name", file,
                     backend->family);
  }
  BMRT_RETURN_IF_ERROR(add(backend, status));
  *out = findKnown(family);
  return BMRT_OK;
}

} // namespace

bmrt_code_t core::findBackend(const char *family, const bmrt_backend_t **out, bmrt_status_t *status) {
  if (!isFamily(family)) {
    return BMRT_FAIL(status, UNSUPPORTED, "'%.40s' is not the name of a chip family", family);
  }
  const Lock lock;
  *out = findKnown(family);
  return *out ? BMRT_OK : loadLibrary(family, out, status);
}

extern "C" bmrt_code_t bmrt_register_backend(const bmrt_backend_t *backend, bmrt_status_t *out_status) {
  BMRT_REQUIRE(backend);
  const char *name = backend->abi == BMRT_BACKEND_ABI && backend->family ? backend->family : "that was registered";
  BMRT_RETURN_IF_ERROR(checkBackend(backend, name, out_status));
  const Lock lock;
  if (findKnown(backend->family)) {
    return BMRT_FAIL(out_status, FAILED_PRECONDITION, "family '%s' already has a back end", backend->family);
  }
  BMRT_RETURN_IF_ERROR(add(backend, out_status));
  return succeed(out_status);
}
