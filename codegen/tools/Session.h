//===- Session.h - The compiler of one command, for all that it asks ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tessera::tool {

/// Serves a command of the Python tools until it closes stdin, a Unix socket of sequenced packets. A request is a
/// packet
/// {"arguments":[...]}, the words behind the program's name, with three descriptors: stdout, stderr and status. Each
/// runs in a forked process, several of them at once, and so crashes alone. Its status tells "pid N\n" once it is
/// started and "exit N\n" when it has ended, N being minus the signal that ended it.
///
/// What requests have in common is here before they are made: the module that --mlir names is read once, and a weight
/// file hashed once, whichever of them writes or verifies it. Call it before any thread is started.
int runSession(const char *program, int (*run)(int argc, const char *const *argv));

} // namespace tessera::tool
