#!/usr/bin/env python3
"""The comparisons themselves notice what they must: compare_test.py WORK"""
import array
import json
import math
import struct
import sys

sys.path.append(sys.path[0] + "/..")
from compare import largest, momentum_error
from harness import check, fresh

fresh(sys.argv[1])


def write(path, names, tensors):
    data = array.array("f", sum(tensors, [])).tobytes()
    header, begin = {}, 0
    for name, values in zip(names, tensors):
        header[name] = {"dtype": "F32", "shape": [len(values)], "data_offsets": [begin, begin + 4 * len(values)]}
        begin += 4 * len(values)
    header = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(header)) + header + data)
    return path


def error(have, golden):
    """Of gradients `have`, one list for each tensor."""
    names = [str(i) for i in range(len(golden))]
    states = write("states", [f"{name}.momentum" for name in names], [[value / 2 for value in values] for values in have])
    return momentum_error(states, write("golden", names, golden), 0.5)[0]


check(error([[1, 2]], [[1, 2]]) == 0, "an exact gradient has an error")
check(abs(error([[1, 2]], [[1, 1]]) - 1 / math.sqrt(2)) < 1e-6, "the error is not relative to the norm")
check(error([[0, 0]], [[0, 0]]) == 0, "a gradient that vanishes has an error")
check(error([[0, 1]], [[0, 0]]) == 1, "a gradient that must vanish and does not is not noticed")
check(math.isnan(error([[0, math.nan]], [[1, 1]])), "a gradient that is not a number is not noticed")
check(error([], [[1, 1]]) == 1, "a gradient that is missing is not noticed")
check(error([], [[0, 0]]) == 0, "what is not trained has an error")
check(error([[4], [2**-24]], [[4], [1e-16]]) < 1e-7, "a rounding error of a gradient that vanishes is an error")
check(abs(error([[4], [1]], [[4], [1e-16]]) - 0.25) < 1e-6, "a gradient that must vanish beside others is not noticed")
check(error([[4], [1]], [[4], [1e-10]]) > 1e9, "a small gradient is not measured by itself")
check(math.isnan(largest([math.nan, 1.0])), "an error that is not a number gets lost")
