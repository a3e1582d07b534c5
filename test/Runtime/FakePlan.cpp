//===- FakePlan.cpp - the plan of a hand-written program ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Makes, when the process starts, the plan that a compiler would have put into the
// executable, for the mesh data=FAKE_DATA, tensor=FAKE_TENSOR (environment, 1 if
// absent). One executable thus serves every mesh the tests want; FAKE_MODEL,
// FAKE_HEADS and FAKE_OPTIMIZER make it claim to be another, FAKE_PROCESSOR to be for
// a processor with these extensions, FAKE_TARGETS=0 leaves out the input "targets", and
// FAKE_CHANGED=1 changes a digit of the plan after it got its hash.
// The ABI header is not included, because the plan is not constant here.
//
//===----------------------------------------------------------------------===//
#include "FakeProgram.h"
#include "PlanText.h"
#include "common/plan/PlanHash.h"
#include "meshwright/runtime/PlanHash.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>

using Json = nlohmann::json;
using namespace fake;

extern "C" {
char meshwright_plan[1 << 16];
uint64_t meshwright_plan_size;
char meshwright_processor[1 << 8];
}

Sizes &fake::sizes() {
  static Sizes instance;
  return instance;
}

int64_t fake::setting(const char *name, int64_t otherwise) {
  const char *value = getenv(name);
  return value ? atoll(value) : otherwise;
}

/// Reserves a place in the arena.
static int64_t place(int64_t bytes) {
  int64_t offset = sizes().arenaBytes;
  sizes().arenaBytes += (bytes + 63) / 64 * 64;
  return offset;
}

static Json port(const char *name, const char *type, std::vector<int64_t> shape, int64_t &offset) {
  int64_t bytes = 4;
  for (int64_t size : shape)
    bytes *= size;
  offset = place(bytes);
  return {{"name", name}, {"type", type}, {"shape", shape}, {"offset", offset}, {"in", 0}};
}

/// Adds a parameter and its two optimizer states.
static void addParameter(Json &variables, const char *name, std::vector<int64_t> shape,
                         std::vector<int64_t> local, Json sharding, bool stacked, double deviation,
                         Json storage, Parameter &parameter) {
  parameter.elements = 1;
  for (int64_t size : local)
    parameter.elements *= size;
  for (int state = 0; state < 3; ++state) {
    static const char *roles[] = {"parameter", "momentum", "variance"};
    parameter.offset[state] = place(parameter.elements * 4);
    Json entry = {{"name", state ? std::string(name) + "." + roles[state] : name},
                  {"role", roles[state]},
                  {"type", "f32"},
                  {"shape", shape},
                  {"local_shape", local},
                  {"sharding", sharding},
                  {"stacked", stacked},
                  {"offset", parameter.offset[state]},
                  {"in", 0}};
    if (state) {
      entry["of"] = name;
    } else {
      entry["init"] = {{"kind", "normal"}, {"std", deviation}};
      entry["storage"] = storage;
    }
    variables.push_back(entry);
  }
}

static Json slice(int64_t begin, int64_t size, int64_t full) {
  return {{"dim", 1}, {"begin", begin}, {"size", size}, {"full", full}};
}

__attribute__((constructor)) static void makePlan() {
  Sizes &s = sizes();
  s.data = setting("FAKE_DATA", 1);
  s.tensor = setting("FAKE_TENSOR", 1);
  s.microbatches = setting("FAKE_MICROBATCHES", 1);
  int64_t v = vocabulary, e = width;
  int64_t rows = (v + s.tensor - 1) / s.tensor, columns = (e + s.tensor - 1) / s.tensor;

  Json variables = Json::array();
  addParameter(variables, "table", {v, e}, {rows, e}, {{"tensor"}, Json::array()}, false, 0.5,
               {{"tensor", "transformer.wte.weight"}}, s.table);
  // Two halves of one transposed tensor per layer, as the query and key of GPT-2.
  Json none = Json::array();
  addParameter(variables, "query", {layers, e, e}, {layers, columns, e}, {none, {"tensor"}, none},
               true, 0.02,
               {{"tensor", "transformer.h.{layer}.attn.c_attn.weight"},
                {"transpose", true},
                {"slice", slice(0, e, 2 * e)}},
               s.query);
  addParameter(variables, "key", {layers, e, e}, {layers, e, columns}, {none, none, {"tensor"}},
               true, 0.02,
               {{"tensor", "transformer.h.{layer}.attn.c_attn.weight"},
                {"transpose", true},
                {"slice", slice(e, e, 2 * e)}},
               s.key);
  addParameter(variables, "bias", {e}, {e}, {none}, false, 0.1,
               {{"tensor", "transformer.ln_f.bias"}}, s.bias);

  std::vector<int64_t> shape = {s.microbatches, batch / s.data / s.microbatches, sequence};
  Json inputs = {port("tokens", "i32", shape, s.tokens), port("targets", "i32", shape, s.targets)};
  if (!setting("FAKE_TARGETS", 1))
    inputs.erase(1);
  const char *names[] = {"lr",
                         "beta1",
                         "beta2",
                         "eps",
                         "weight_decay",
                         "grad_clip",
                         "bias_correction1",
                         "bias_correction2"};
  for (int i = 0; i < 8; ++i)
    inputs.push_back(port(names[i], "f32", {}, s.scalars[i]));
  Json outputs = {port("loss", "f32", {}, s.loss), port("grad_norm", "f32", {}, s.gradNorm)};
  for (Parameter *parameter : {&s.table, &s.query, &s.key, &s.bias})
    parameter->gradient = place(parameter->elements * 4);
  s.scratch = place(64);

  const char *rank = getenv("OMPI_COMM_WORLD_RANK");
  const char *odd = getenv("FAKE_ODD_HASH_RANK");
  bool differs = odd && rank && !strcmp(odd, rank);
  Json collective = meshwright::plan::whole<meshwright::plan::Collective>({{"op", "all_reduce"},
                     {"group", 0},
                     {"type", "f32"},
                     {"count", s.table.elements},
                     {"in", 0},
                     {"location", "fake.mlir:12:3"}});
  Json everywhere = collective;
  everywhere["group"] = 1;
  everywhere["count"] = 4;
  everywhere["location"] = "fake.mlir:20:7";
  Json config = {{"model_type", "fake"}};
  if (int64_t heads = setting("FAKE_HEADS", 0))
    config["n_head"] = heads;
  const char *model = getenv("FAKE_MODEL"), *optimizer = getenv("FAKE_OPTIMIZER");
  Json plan = meshwright::plan::whole<meshwright::plan::Plan>({
      {"version", 1},
      {"hash", std::string(meshwright::plan::hashDigits, '0')},
      {"model", model ? model : "fake"},
      {"config", config.dump() + "\n"},
      {"target", "cpu"},
      {"precision", "f32"},
      {"optimizer", optimizer ? optimizer : "adamw"},
      {"optimizer_states", {"momentum", "variance"}},
      {"hyperparameters",
       {{{"name", "beta1"},
         {"help", "decay rate of the first moment (moving average of gradients)"},
         {"default", 0.9},
         {"most", 1.0 - 0x1p-24}},
        {{"name", "beta2"},
         {"help", "decay rate of the second moment (moving average of squared gradients)"},
         {"default", 0.95},
         {"most", 1.0 - 0x1p-24},
         {"decay_of", "variance"}},
        {{"name", "eps"}, {"help", "added to the square root of the second moment"}, {"default", 1e-8}},
        {{"name", "weight_decay"},
         {"help", "decoupled weight decay of parameters with two or more dimensions"},
         {"default", 0.1}}}},
      {"bias_corrections",
       {{{"name", "bias_correction1"}, {"of", "beta1"}}, {{"name", "bias_correction2"}, {"of", "beta2"}}}},
      {"mesh", {{{"axis", "data"}, {"size", s.data}}, {{"axis", "tensor"}, {"size", s.tensor}}}},
      {"batch", batch},
      {"sequence", sequence},
      {"microbatches", s.microbatches},
      {"vocabulary", v},
      {"max_positions", sequence},
      {"data_axes", {"data"}},
      {"programs",
       {meshwright::plan::whole<meshwright::plan::Program>(
           {{"name", "main"},
            {"arena_bytes", setting("FAKE_ARENA", s.arenaBytes)},
            {"memory", {{{"category", "parameter"}, {"bytes", s.arenaBytes}}}}})}},
      {"variables", variables},
      {"inputs", inputs},
      {"outputs", outputs},
      {"groups", {{"data"}, {"data", "tensor"}}},
      {"scratch_bytes", {setting("FAKE_SCRATCH", 1 << 20), 1 << 20}},
      {"collectives", {collective, everywhere}},
      {"flops", differs ? 1001 : 1000}});
  std::string text = plan.dump();
  text.replace(meshwright::plan::hashPosition(text), meshwright::plan::hashDigits,
               meshwright::hashOfPlan(text));
  if (setting("FAKE_CHANGED", 0))
    text.replace(text.find("\"flops\":1000"), 12, "\"flops\":1002");
  meshwright_plan_size = text.size();
  memcpy(meshwright_plan, text.data(), text.size());
  if (const char *needed = getenv("FAKE_PROCESSOR"))
    strncpy(meshwright_processor, needed, sizeof(meshwright_processor) - 1);
}
