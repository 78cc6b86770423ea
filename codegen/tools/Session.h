//===- Session.h - One compiler process per command -----------------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TOOLS_SESSION_H
#define TESSERA_CODEGEN_TOOLS_SESSION_H

namespace tessera::tool {

/// Serves a command of the Python tools over stdin, a Unix socket of sequenced packets, until the command closes it. A
/// request is a packet {"arguments":[...]}, the arguments after the program's name, with three file descriptors:
/// stdout, stderr and status. Each request runs in a forked process; several may run at once, and a crash affects only
/// its own request. The status reports "pid N\n" once the process has started and "exit N\n" when it has ended, with N
/// = -signal if a signal ended it.
///
/// Work that requests share is done before the fork: the module that --mlir names is read once, and a weight file is
/// hashed once, whichever request writes or verifies it. Call it before any thread is started.
int runSession(const char *program, int (*run)(int argc, const char *const *argv));

} // namespace tessera::tool

#endif // TESSERA_CODEGEN_TOOLS_SESSION_H
