"""lit's configuration: run by `pytest tests/test_filecheck.py`, or by `lit tests/filecheck`."""

import os
import sys

import lit.formats

config.name = "pto-opt"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".pto"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = lit_config.params.get("exec_root", config.test_source_root)
config.environment["NO_COLOR"] = "1"
config.substitutions.extend(
    [
        (r"\bpto-opt\b", f"{sys.executable} -m pto.cli"),
        (r"\bfilecheck\b", f"{sys.executable} -m filecheck"),
    ]
)
