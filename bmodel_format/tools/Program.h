//===- Program.h - Common behaviour of Tessera's C++ programs --------------===//
// SPDX-License-Identifier: Apache-2.0
//
// Provides --version, both spellings of flags, termination together with the parent process, and an exit code and
// message for lack of memory. docs/exit-codes.md is the user's page.
#ifndef TESSERA_BMODEL_FORMAT_TOOLS_PROGRAM_H
#define TESSERA_BMODEL_FORMAT_TOOLS_PROGRAM_H

#include <string>
#include <vector>

namespace bmodel::program {

/// Exit code of a process that ran out of memory; must match errors.py.
inline constexpr int kOutOfMemory = 71;

/// Reports an error to the user; |code| is the exit code. May allocate at most a few KiB.
using Reporter = void (*)(int code, const char *message);

/// Must be called first in main(). Handles `--version`, which prints "NAME VERSION" and exits. From then on:
/// - if the environment variable TESSERA_PARENT contains a process id, the kernel ends this process when that parent
///   ends;
/// - if operator new, malloc, calloc or realloc fails, the process ends with kOutOfMemory and a message through
///   |report| (default and before this call: stderr).
/// Returns the arguments without the program's name. The words of flags are joined by |spelling|, '-' or '_'.
std::vector<std::string> begin(const char *name, int argc, char **argv, char spelling = '-', Reporter report = nullptr);

/// Ends this process when |parent| ends; for child processes created with fork().
void endWithParent(int parent);

/// Sets the current activity, which messages about memory mention. The text is copied and truncated to about 250
/// characters.
void setDoing(const char *what);

/// Reports lack of memory and ends the process with kOutOfMemory. If several threads call it, the first one reports.
/// |wanted| names what could not be allocated, "" if unknown.
[[noreturn]] void endOutOfMemory(const char *wanted = "");

/// Returns a description such as "512 MiB of address space, 300 MiB of them in memory; the limit is 600 MiB (ulimit
/// -v)".
std::string describeMemory();

} // namespace bmodel::program

#endif // TESSERA_BMODEL_FORMAT_TOOLS_PROGRAM_H
