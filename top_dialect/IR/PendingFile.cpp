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
/// Signals that would end the process wait.
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
  SignalsHeld held; // between the file's appearance and the note that a signal removes it
  return llvm::sys::fs::TempFile::create(path + ".%%%%%%.tmp");
}

llvm::Expected<PendingFile> PendingFile::write(llvm::StringRef path,
                                               llvm::function_ref<void(llvm::raw_ostream &)> write) {
  auto temporary = createTemporary(path);
  if (!temporary) {
    return fail(path, llvm::toString(temporary.takeError()));
  }
  PendingFile file(path, std::move(*temporary));
  llvm::raw_fd_ostream os(file.temporary.FD, /*shouldClose=*/false);
  write(os);
  os.flush();
  if (os.has_error()) {
    std::string message = os.error().message();
    os.clear_error();
    return fail(path, message);
  }
  return file;
}

PendingFile::~PendingFile() { llvm::consumeError(temporary.discard()); }

llvm::Error PendingFile::keep(llvm::MutableArrayRef<PendingFile> files) {
  SignalsHeld held;
  for (PendingFile &file : files) {
    if (llvm::Error error = file.temporary.keep(file.path)) {
      return fail(file.path, llvm::toString(std::move(error)));
    }
  }
  return llvm::Error::success();
}
