//===- Signum.cpp - an optimizer as a row ------------------------------------===//
//
// Bernstein et al. 2018, "signSGD: Compressed Optimisation for Non-Convex Problems", algorithm 2:
// every element moves by the learning rate, against the sign of the average of its gradients.
//
// The formula is of one element. What follows from it needs no code: shardings and ZeRO's parts of the
// state, kernels, memory, flags of executables, checkpoints, the interpreter.
//
//===----------------------------------------------------------------------===//
#include "MyPasses.h"

#include "Train/Optimizer.h"

using namespace meshwright::train;
using namespace meshwright::train::formula;

static Updated update(const UpdateInputs &in) {
  Expr p = in.parameter, beta = in.scalar("momentum");
  Expr m = beta * in.state("momentum") + (1.0 - beta) * in.clipped();
  Expr decayed = in.decays ? p * (1.0 - in.lr * in.decay()) : p;
  return {decayed - in.lr * sign(m), {m}};
}

static constexpr OptimizerState states[] = {{"momentum", /*isAverageOfGradients=*/true}};

// Flags of executables: name, default, largest value, help, and the state whose decay rate it is.
static constexpr Hyperparameter hyperparameters[] = {
    {"momentum", 0.9, belowOne, "decay rate of the momentum (moving average of gradients)", "momentum"},
    {"weight_decay", 0.1, std::nullopt, "decoupled weight decay of parameters with two or more dimensions"}};

const Optimizer signum = {"signum", "sign of the average of gradients", states, hyperparameters, {}, update};
