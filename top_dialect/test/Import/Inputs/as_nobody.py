# SPDX-License-Identifier: Apache-2.0
"""Runs a program as a user who may not read everything: as_nobody.py PROGRAM ARGUMENT..."""
import os
import shutil
import sys

# Opened before the rights are given up: the program's own folder may be closed to others.
program = os.open(shutil.which(sys.argv[1]), os.O_RDONLY)
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
os.execve(program, sys.argv[1:], os.environ)
