//===- Session.cpp - One compiler process per command ---------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/tools/Session.h"

#include "codegen/tools/OpenModule.h"
#include "codegen/tools/Subcommand.h"
#include "top_dialect/IR/Json.h"
#include "top_dialect/IR/KnownHashes.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <optional>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace tessera::tool;

namespace {

constexpr size_t kMostBytes = 1 << 20; ///< per request

/// File descriptors that came with a request; they are closed with it.
struct Channels {
  Channels() = default;
  Channels(const Channels &) = delete;
  Channels &operator=(const Channels &) = delete;
  ~Channels() {
    for (int channel : {out, error, status}) {
      if (channel >= 0) {
        close(channel);
      }
    }
  }

  int out = -1, error = -1, status = -1;
};

struct Request {
  std::vector<std::string> arguments;
  Channels channels;
};

void sendStatus(int status, const std::string &text) {
  [[maybe_unused]] ssize_t written = write(status, text.data(), text.size());
}

std::optional<std::vector<std::string>> parseArguments(llvm::StringRef text) {
  auto json = tessera::top::parseJson(text);
  if (!json) {
    llvm::consumeError(json.takeError());
    return std::nullopt;
  }
  const llvm::json::Object *object = json->getAsObject();
  const llvm::json::Value *given = object ? object->get("arguments") : nullptr;
  std::vector<std::string> arguments;
  llvm::json::Path::Root root;
  return given && fromJSON(*given, arguments, root) ? std::optional(arguments) : std::nullopt;
}

/// Receives the next request; returns false at the end. An invalid request has no arguments.
bool receive(Request &request) {
  static std::vector<char> buffer(kMostBytes);
  std::array<int, 3> descriptors;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(descriptors))];
  iovec place{buffer.data(), buffer.size()};
  msghdr message{};
  message.msg_iov = &place, message.msg_iovlen = 1;
  message.msg_control = control, message.msg_controllen = sizeof(control);
  const ssize_t bytes = recvmsg(STDIN_FILENO, &message, MSG_CMSG_CLOEXEC);
  const cmsghdr *header = bytes > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (!header || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof(descriptors))) {
    return false;
  }
  std::memcpy(descriptors.data(), CMSG_DATA(header), sizeof(descriptors));
  request.channels.out = descriptors[0], request.channels.error = descriptors[1];
  request.channels.status = descriptors[2];
  request.arguments = parseArguments({buffer.data(), size_t(bytes)}).value_or(std::vector<std::string>());
  return true;
}

/// Returns the value of --mlir, or "" if it is missing.
std::string moduleOf(const std::vector<std::string> &arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    llvm::StringRef word = arguments[i];
    if (word == "--mlir" && i + 1 < arguments.size()) {
      return arguments[i + 1];
    }
    if (word.consume_front("--mlir=")) {
      return word.str();
    }
  }
  return "";
}

class Session {
public:
  Session(const char *program, int (*run)(int argc, const char *const *argv)) : program(program), run(run) {}

  int serve() {
    sigset_t childEnds;
    sigemptyset(&childEnds);
    sigaddset(&childEnds, SIGCHLD);
    sigprocmask(SIG_BLOCK, &childEnds, &maskBefore); // SIGCHLD arrives only in ppoll(), while the session is idle
    signal(SIGCHLD, [](int) {});
    pollfd input{STDIN_FILENO, POLLIN, 0};
    while (true) {
      const int ready = ppoll(&input, 1, nullptr, &maskBefore);
      const bool isInterrupted = ready < 0 && errno == EINTR;
      reap();
      if (ready < 0 && !isInterrupted) {
        return kInternal;
      }
      Request request;
      if (ready > 0 && !receive(request)) {
        return kOk; // running children end with their parent
      }
      if (ready > 0) {
        start(request);
      }
    }
  }

private:
  /// Redirects stdout and stderr to the request, including the last message if memory runs out.
  static void speakTo(const Channels &channels) {
    dup2(channels.out, STDOUT_FILENO);
    dup2(channels.error, STDERR_FILENO);
  }

  static void speakToNobody() {
    const int nobody = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(nobody, STDOUT_FILENO);
    dup2(nobody, STDERR_FILENO);
    close(nobody);
  }

  void start(Request &request) {
    speakTo(request.channels);
    if (std::string module = moduleOf(request.arguments); !module.empty()) {
      preloadModule(module);
    }
    const pid_t self = getpid(), child = fork();
    if (child == 0) {
      bmodel::program::endWithParent(self);
      _exit(runRequest(request)); // skip destructors of globals, which belong to the session
    }
    speakToNobody();
    if (child < 0) {
      sendStatus(request.channels.status, "exit " + std::to_string(kOutOfMemory) + "\n");
      return;
    }
    sendStatus(request.channels.status, "pid " + std::to_string(child) + "\n");
    running[child] = request.channels.status;
    request.channels.status = -1;
  }

  int runRequest(const Request &request) const {
    if (!request.arguments.empty()) { // visible in process lists
      prctl(PR_SET_NAME, request.arguments.front().c_str());
    }
    signal(SIGCHLD, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &maskBefore, nullptr);
    close(request.channels.status); // only the session writes the status
    for (const auto &[other, status] : running) {
      close(status);
    }
    dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    std::vector<const char *> argv = {program};
    for (const std::string &argument : request.arguments) {
      argv.push_back(argument.c_str());
    }
    const int code = run(static_cast<int>(argv.size()), argv.data());
    llvm::outs().flush();
    return code;
  }

  void reap() {
    int status = 0;
    for (pid_t child = 0; (child = waitpid(-1, &status, WNOHANG)) > 0;) {
      auto it = running.find(child);
      if (it == running.end()) {
        continue;
      }
      const int code = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
      sendStatus(it->second, "exit " + std::to_string(code) + "\n");
      close(it->second);
      running.erase(it);
    }
  }

  const char *program;
  int (*run)(int argc, const char *const *argv);
  sigset_t maskBefore;
  std::map<pid_t, int> running; ///< child processes and the descriptors of their status
};

} // namespace

int tessera::tool::runSession(const char *program, int (*run)(int argc, const char *const *argv)) {
  top::shareKnownHashes();
  signal(SIGPIPE, SIG_IGN); // a requester may close its end early
  return Session(program, run).serve();
}
