#!/usr/bin/env python3
"""The comparisons themselves notice what they must: compare_test.py WORK"""
import array
import json
import math
import struct
import sys

sys.path.append(sys.path[0] + "/..")
from compare import gradient_error, largest
from harness import check, fresh

fresh(sys.argv[1])


def write(path, values):
    data = array.array("f", values).tobytes()
    header = json.dumps({"w": {"dtype": "F32", "shape": [len(values)], "data_offsets": [0, len(data)]}}).encode()
    open(path, "wb").write(struct.pack("<Q", len(header)) + header + data)
    return path


def error(before, after, golden):
    return gradient_error(write("before", before), write("after", after), write("golden", golden), 0.5)[0]


check(error([1, 2], [0.5, 1], [1, 2]) == 0, "an exact gradient has an error")
check(abs(error([1, 2], [0.5, 1], [1, 1]) - 1 / math.sqrt(2)) < 1e-6, "the error is not relative to the norm")
check(error([1, 2], [1, 2], [0, 0]) == 0, "a gradient that vanishes has an error")
check(error([1, 2], [1, 1.5], [0, 0]) == 1, "a gradient that must vanish and does not is not noticed")
check(math.isnan(error([1, 2], [1, math.nan], [1, 1])), "a gradient that is not a number is not noticed")
check(math.isnan(largest([math.nan, 1.0])), "an error that is not a number gets lost")
