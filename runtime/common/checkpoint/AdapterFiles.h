//===- AdapterFiles.h - adapters in PEFT's format ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A folder of an adapter holds adapter_model.safetensors and adapter_config.json, as PEFT has them.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_ADAPTERFILES_H
#define MESHWRIGHT_RUNTIME_COMMON_ADAPTERFILES_H

#include "common/plan/Plan.h"

#include <string>

struct MwContext;

namespace meshwright {

inline constexpr char adapterFile[] = "adapter_model.safetensors",
                      adapterConfigFile[] = "adapter_config.json";

/// An Error if the adapter in `directory`, which `flag` named, computes anything else than `plan`
/// does with the same tensors.
void checkAdapterConfig(const Plan &plan, const std::string &directory, const std::string &flag);

/// Bytes of the file that `saveMerged` writes.
int64_t mergedBytes(const Plan &plan);

/// Writes the model's weights with the adapters' products added to them, W + scale B A, and its
/// config into `directory`, which rank 0 has. Collective; tensors pass through rank 0 part by part.
void saveMerged(MwContext &context, const VariableAddresses &addresses,
                const std::string &directory);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_ADAPTERFILES_H
