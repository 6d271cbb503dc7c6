"""Counts test cases in JUnit reports: the last line is `N passed, N failed`.

    count.py RESULTS

RESULTS holds ctest.xml, which names the programs that ctest ran, and a report
NAME.xml of each. A program that failed without saying so in its report (it
crashed) is one failure. Exits 1 when anything failed or nothing ran.
"""

import os
import sys
import xml.etree.ElementTree as ElementTree


def count(report):
    """(passed, failed) of one report; skipped cases are neither."""
    passed = failed = 0
    for case in ElementTree.parse(report).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif case.find("skipped") is None and case.get("status") != "notrun":
            passed += 1
    return passed, failed


def main():
    results = sys.argv[1]
    passed = failed = 0
    programs = []
    ctest = os.path.join(results, "ctest.xml")
    if os.path.exists(ctest):
        programs = list(ElementTree.parse(ctest).iter("testcase"))
    for program in programs:
        report = os.path.join(results, program.get("name") + ".xml")
        counts = count(report) if os.path.exists(report) else (0, 0)
        if program.get("status") != "run" and counts[1] == 0:
            counts = (counts[0], 1)
        passed += counts[0]
        failed += counts[1]
    print(f"{passed} passed, {failed} failed")
    return 0 if passed and not failed else 1


sys.exit(main())
