#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds up the tests of one ctest run and prints 'N passed, N failed, N skipped' as its last line.

Every suite (lit, gtest, pytest) writes a JUnit file NAME.xml to the results folder; its single tests are counted. A
ctest entry without such a file counts as one test. A suite that failed according to ctest although its file shows no
failure (it crashed) counts as one more failure. Exit code 0: at least one test passed and none failed; 1 otherwise.
"""
from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Count:
    """Numbers of single tests, and the names of failed and skipped ones."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list[str] = field(default_factory=list)
    skips: list[str] = field(default_factory=list)

    def add(self, other: "Count") -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.failures += other.failures
        self.skips += other.skips


def count_suite(path: Path) -> Count:
    """Counts the <testcase> elements of one JUnit file."""
    count = Count()
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = f"{path.stem}: {case.get('classname', '')}.{case.get('name', '')}"
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            count.failed += 1
            count.failures.append(name)
        elif skipped is not None or case.get("status") == "notrun":
            count.skipped += 1
            reason = "" if skipped is None else skipped.get("message", "")
            count.skips.append(f"{name}: {reason}" if reason else name)
        else:
            count.passed += 1
    return count


def summarise(results: Path) -> Count:
    """Counts all tests of the run whose JUnit file ctest left in `results`."""
    total = Count()
    for entry in ElementTree.parse(results / "ctest.junit").getroot().iter("testcase"):
        name, status = entry.get("name", ""), entry.get("status", "")
        count = Count()
        suite = results / f"{name}.xml"
        if suite.is_file():
            try:
                count = count_suite(suite)
            except ElementTree.ParseError:
                count.failed, count.failures = 1, [f"{name}: unreadable {suite.name}"]
            if status == "fail" and count.failed == 0:
                count.failed, count.failures = 1, [f"{name}: ended abnormally"]
            if status == "run" and count.passed + count.skipped == 0:
                count.failed, count.failures = 1, [f"{name}: ran no test"]
        elif status == "run":
            count.passed = 1
        elif status == "fail":
            count.failed, count.failures = 1, [name]
        else:
            count.skipped, count.skips = 1, [f"{name}: {status}"]
        total.add(count)
    return total


def main(argv: list[str]) -> int:
    try:
        total = summarise(Path(argv[1]))
    except (OSError, ElementTree.ParseError) as error:
        print(f"summarise_tests: cannot read the result of the test run: {error}")
        total = Count(failed=1)
    for title, names in (("Skipped", total.skips), ("Failed", total.failures)):
        if names:
            print(f"{title}:")
            for name in names:
                print(f"  {name}")
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped")
    return 0 if total.passed > 0 and total.failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
