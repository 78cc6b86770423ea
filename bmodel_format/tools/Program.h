//===- Program.h - What every C++ program of Tessera does the same way -----===//
// SPDX-License-Identifier: Apache-2.0
//
// --version, flags in either spelling, an end together with the process that started it, and an end of its own where
// memory runs out. docs/exit-codes.md is the user's page.
#pragma once

#include <string>
#include <vector>

namespace bmodel::program {

/// Exit code of a process that got no more memory; errors.py has the same.
inline constexpr int kOutOfMemory = 71;

/// Tells the user of an error; |code|: the process's. It must not rely on more memory than a few KiB.
using Reporter = void (*)(int code, const char *message);

/// To be called first in main(). Ends the process after `--version`, which prints "NAME VERSION". From here on
/// - the kernel ends the process where its parent ends, if the environment names the parent in TESSERA_PARENT;
/// - memory that cannot be had by operator new ends it with kOutOfMemory and a message by |report|, by default on
/// stderr. Returns the arguments without the program's name, flags as |spelling| has them: '-' or '_' between their
/// words.
std::vector<std::string> begin(const char *name, int argc, char **argv, char spelling = '-', Reporter report = nullptr);

/// The same parent, for a process that fork() has made of this one.
void endWithParent(int parent);

/// What a message about memory says the process was doing; copied, at most some hundred characters of it.
void setDoing(const char *what);

/// Ends the process with kOutOfMemory and the message; of several threads the first one tells it. |wanted|: what could
/// not be had, "" if it is not known.
[[noreturn]] void endOutOfMemory(const char *wanted = "");

/// "512 MiB of address space, 300 MiB of them in memory; the limit is 600 MiB (ulimit -v)", for people.
std::string describeMemory();

} // namespace bmodel::program
