//===- PendingFile.cpp - Files that appear together or not at all ---------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/PendingFile.h"

#include "llvm/ADT/Twine.h"
#include <csignal>

using namespace tessera::top;

static llvm::Error fail(llvm::StringRef path, const llvm::Twine &why) {
  return llvm::createStringError("cannot write '" + path + "': " + why);
}

namespace {
/// Blocks signals that would end the process.
class SignalsHeld {
public:
  SignalsHeld() {
    sigset_t held;
    sigemptyset(&held);
    for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
      sigaddset(&held, signal);
    }
    pthread_sigmask(SIG_BLOCK, &held, &before);
  }
  ~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }

private:
  sigset_t before;
};
} // namespace

static llvm::Expected<llvm::sys::fs::TempFile> createTemporary(llvm::StringRef path) {
  SignalsHeld held; // so that no signal arrives before LLVM has registered the file for removal
  return llvm::sys::fs::TempFile::create(path + ".%%%%%%.tmp");
}

PendingFile::PendingFile(llvm::StringRef path, llvm::sys::fs::TempFile temporary)
    : path(path), temporary(std::move(temporary)),
      os(std::make_unique<llvm::raw_fd_ostream>(this->temporary.FD, /*shouldClose=*/false)) {}

llvm::Expected<PendingFile> PendingFile::create(llvm::StringRef path) {
  llvm::sys::fs::file_status status;
  bool exists = !llvm::sys::fs::status(path, status) && llvm::sys::fs::exists(status);
  if (exists && !llvm::sys::fs::is_regular_file(status)) {
    return fail(path, "it exists and is not a regular file"); // a rename would replace, say, a device
  }
  auto temporary = createTemporary(path);
  if (!temporary) {
    return fail(path, llvm::toString(temporary.takeError()));
  }
  return PendingFile(path, std::move(*temporary));
}

llvm::Expected<PendingFile> PendingFile::write(llvm::StringRef path,
                                               llvm::function_ref<void(llvm::raw_ostream &)> write) {
  llvm::Expected<PendingFile> file = create(path);
  if (!file) {
    return file.takeError();
  }
  write(*file->os);
  if (llvm::Error error = file->flush()) {
    return std::move(error);
  }
  return file;
}

llvm::Error PendingFile::flush() {
  os->flush();
  if (!os->has_error()) {
    return llvm::Error::success();
  }
  std::string message = os->error().message();
  os->clear_error();
  return fail(path, message);
}

PendingFile::~PendingFile() {
  if (os) {
    os->flush();
    os->clear_error();
  }
  llvm::consumeError(temporary.discard());
}

llvm::Error PendingFile::keep(llvm::MutableArrayRef<PendingFile> files) {
  for (PendingFile &file : files) {
    if (llvm::Error error = file.flush()) {
      return error;
    }
  }
  SignalsHeld held;
  for (PendingFile &file : files) {
    if (llvm::Error error = file.temporary.keep(file.path)) {
      return fail(file.path, llvm::toString(std::move(error)));
    }
  }
  return llvm::Error::success();
}
