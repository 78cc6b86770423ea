# SPDX-License-Identifier: Apache-2.0
"""The commands; each module has a `main()` that a console script calls."""
# Not the module signal, which creates enumerations first; until the lines below have run, Ctrl-C ends in a traceback.
import _signal  # type: ignore[import]
import os
import sys

COMMANDS = (
    "model_transform",
    "model_deploy",
    "model_runner",
    "model_tool",
    "npz_tool",
    "run_calibration",
    "tessera",
    "bmrt_bench",
    "tessera-compile",
)

if (
    os.path.basename(sys.argv[0]) in ("-m", *COMMANDS)
    and _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler
):
    # While a command is still importing its modules, Ctrl-C ends it at once and silently; numpy would turn the
    # exception into pages about a broken installation. run_command takes over.
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, [_signal.SIGINT])  # the launcher blocked it until here
