#!/usr/bin/env python3
"""The order in which --shuffle visits sequences, written from docs and papers alone: order.py SIZE SEED EPOCH COUNT

A Feistel network of six rounds of Philox4x32-10 (Salmon et al. 2011) over the smallest even number of bits that holds SIZE,
applied again while the result is outside (Black and Rogaway 2002). Not needed to test: test/Runtime/DataTest.cpp has
what it prints."""
import sys

from philox import philox


def permuted(index, size, seed, epoch):
    half = 1
    while 1 << 2 * half < size:
        half += 1
    mask = (1 << half) - 1
    while True:
        left, right = index >> half, index & mask
        for turn in range(6):
            word = philox([right, turn, epoch & 0xFFFFFFFF, epoch >> 32], [seed & 0xFFFFFFFF ^ 0x5A0FF1E, seed >> 32])[0]
            left, right = right, left ^ (word & mask)
        index = left << half | right
        if index < size:
            return index


size, seed, epoch, count = map(int, sys.argv[1:])
print(*(permuted(i, size, seed, epoch) for i in range(count)), sep=", ")
