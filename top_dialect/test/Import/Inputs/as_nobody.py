# SPDX-License-Identifier: Apache-2.0
"""Run a program as a user without permission to read all files: as_nobody.py PROGRAM ARGUMENT..."""
import os
import shutil
import sys

# Opened before giving up the rights, because the user may not be allowed to enter the program's folder.
program = os.open(shutil.which(sys.argv[1]), os.O_RDONLY)
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
os.execve(program, sys.argv[1:], os.environ)
