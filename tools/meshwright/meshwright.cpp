//===- meshwright.cpp - compile, inspect, run --------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Driver.h"

int main(int argc, char **argv) { return meshwright::driverMain({argv + 1, argv + argc}); }
