//===- Page.cpp - the plan as a page -----------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Report.h"
#include "meshwright/Strategy.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace meshwright {

static std::string escaped(StringRef text) {
  std::string out;
  for (char c : text)
    out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

static std::string shapeText(const json::Array *shape) {
  std::string text;
  for (const json::Value &size : *shape)
    text += (text.empty() ? "" : " x ") + std::to_string(size.getAsInteger().value_or(0));
  return text.empty() ? "scalar" : text;
}

static std::string bytesText(int64_t bytes) { return formatv("{0:N0}", bytes).str(); }

static std::string shardingText(const json::Array *sharding) {
  std::string text;
  for (auto [d, axes] : enumerate(*sharding))
    for (const json::Value &axis : *axes.getAsArray())
      text += formatv("{0}dim {1} over {2}", text.empty() ? "" : ", ", d,
                      axis.getAsString().value_or("?"))
                  .str();
  return text.empty() ? "replicated" : text;
}

static std::string meshText(const json::Object &plan) {
  dist::Mesh mesh;
  for (const json::Value &axis : *plan.getArray("mesh"))
    mesh.axes.push_back({axis.getAsObject()->getString("axis").value_or("?").str(),
                         axis.getAsObject()->getInteger("size").value_or(0)});
  return mesh.axes.empty() ? "one rank" : dist::meshText(mesh);
}

/// Calls `row` with each variable: name, role, shapes, sharding, bytes.
template <typename Fn> static void forEachVariable(const json::Object &plan, Fn row) {
  for (const json::Value &value : *plan.getArray("variables")) {
    const json::Object &variable = *value.getAsObject();
    StringRef type = variable.getString("type").value_or("");
    int64_t bytes = type == "bf16" || type == "f16" ? 2 : 4;
    for (const json::Value &size : *variable.getArray("local_shape"))
      bytes *= size.getAsInteger().value_or(1);
    row(variable, bytes);
  }
}

/// "bf16, gradients in f32"; gradients of a f32 model are f32.
static std::string precisionText(const json::Object &plan) {
  StringRef precision = plan.getString("precision").value_or("?");
  if (precision == "f32")
    return precision.str();
  return (precision + ", gradients in " + plan.getString("grad_dtype").value_or("?")).str();
}

void printPlan(const json::Object &plan, raw_ostream &os) {
  auto integer = [&](StringRef key) { return plan.getInteger(key).value_or(0); };
  os << formatv("model        {0}\n", plan.getString("model").value_or("?"));
  os << formatv("target       {0}, {1}, {2}\n", plan.getString("target").value_or("?"),
                precisionText(plan), plan.getString("optimizer").value_or("?"));
  os << formatv("mesh         {0}\n", meshText(plan));
  os << formatv("batch        {0} sequences of {1} tokens in {2} microbatches\n", integer("batch"),
                integer("sequence"), integer("microbatches"));
  os << formatv("plan         {0}\n", plan.getString("hash").value_or("?"));
  os << formatv("arena        {0:N0} bytes a rank\n", integer("arena_bytes"));
  os << formatv("work         {0:N0} floating-point operations a step\n\n", integer("flops"));
  os << formatv("{0,-24}{1,18}\n", "memory at the peak", "bytes");
  for (const json::Value &entry : *plan.getArray("memory"))
    os << formatv("  {0,-22}{1,18:N0}\n", entry.getAsObject()->getString("category").value_or("?"),
                  entry.getAsObject()->getInteger("bytes").value_or(0));
  os << formatv("\n{0,-40}{1,-6}{2,-24}{3,-24}{4}\n", "parameter", "type", "shape", "on a rank",
                "sharding");
  forEachVariable(plan, [&](const json::Object &variable, int64_t) {
    if (variable.getString("role") == std::optional<StringRef>("parameter"))
      os << formatv("  {0,-38}{1,-6}{2,-24}{3,-24}{4}\n", variable.getString("name").value_or("?"),
                    variable.getString("type").value_or("?"), shapeText(variable.getArray("shape")),
                    shapeText(variable.getArray("local_shape")),
                    shardingText(variable.getArray("sharding")));
  });
  const json::Array &collectives = *plan.getArray("collectives");
  os << formatv("\n{0} collectives\n  {1,-4}{2,-16}{3,-8}{4,6}{5,16} {6,-5}{7,18}  {8}\n",
                collectives.size(), "", "operation", "in", "times", "elements", "type",
                "bytes of group", "where in the IR");
  for (auto [i, value] : enumerate(collectives)) {
    const json::Object &op = *value.getAsObject();
    os << formatv("  {0,-4}{1,-16}{2,-8}{3,6}{4,16:N0} {5,-5}{6,18:N0}  {7}\n", i,
                  op.getString("op").value_or("?"), op.getString("program").value_or("?"),
                  op.getInteger("times").value_or(1), op.getInteger("count").value_or(0),
                  op.getString("type").value_or("?"), op.getInteger("group_bytes").value_or(0),
                  op.getString("location").value_or(""));
  }
}

static void writePage(const json::Object &plan, raw_ostream &os) {
  auto integer = [&](StringRef key) { return plan.getInteger(key).value_or(0); };
  os << R"(<!doctype html><html lang="en"><meta charset="utf-8"><title>Meshwright plan</title>
<style>body{font:15px/1.5 sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#1f2328}
table{border-collapse:collapse;margin:1em 0}td,th{padding:.2em .8em;text-align:left;border-bottom:1px solid #ddd}
td.n{text-align:right;font-variant-numeric:tabular-nums}svg text{font:12px sans-serif}</style>
)";
  os << "<h1>Plan of " << escaped(plan.getString("model").value_or("?")) << "</h1>\n<table>\n";
  auto fact = [&](StringRef name, const Twine &value) {
    os << "<tr><th>" << name << "</th><td>" << escaped(value.str()) << "</td></tr>\n";
  };
  fact("Mesh", meshText(plan));
  fact("Batch", Twine(integer("batch")) + " sequences of " + Twine(integer("sequence")) +
                    " tokens in " + Twine(integer("microbatches")) + " microbatches");
  fact("Target", plan.getString("target").value_or("?") + ", " + precisionText(plan) + ", " +
                     plan.getString("optimizer").value_or("?"));
  fact("Arena of a rank",
       bytesText(integer("arena_bytes")) + " bytes, all that a rank allocates for tensors");
  fact("Floating-point operations of a step", bytesText(integer("flops")));
  fact("Plan hash", plan.getString("hash").value_or("?"));
  os << "</table>\n<h2>Memory of a rank at the peak</h2>\n";

  const json::Array &memory = *plan.getArray("memory");
  int64_t most = 1;
  for (const json::Value &entry : memory)
    most = std::max(most, entry.getAsObject()->getInteger("bytes").value_or(0));
  os << formatv("<svg viewBox=\"0 0 760 {0}\" width=\"760\" role=\"img\">\n",
                26 * memory.size() + 4);
  for (auto [i, value] : enumerate(memory)) {
    int64_t bytes = value.getAsObject()->getInteger("bytes").value_or(0);
    os << formatv("<text x=\"130\" y=\"{0}\" text-anchor=\"end\">{1}</text>"
                  "<rect x=\"140\" y=\"{2}\" width=\"{3:f1}\" height=\"18\" fill=\"#1f6feb\"/>"
                  "<text x=\"{4:f1}\" y=\"{0}\">{5:N0}</text>\n",
                  26 * i + 18, escaped(value.getAsObject()->getString("category").value_or("?")),
                  26 * i + 4, 460.0 * bytes / most, 148 + 460.0 * bytes / most, bytes);
  }
  os << "</svg>\n<h2>Variables</h2>\n<table><tr><th>name</th><th>role</th><th>type</th><th>shape</"
        "th><th>on a "
        "rank</th>"
        "<th>sharding</th><th>bytes on a rank</th></tr>\n";
  forEachVariable(plan, [&](const json::Object &variable, int64_t bytes) {
    os << formatv("<tr><td>{0}</td><td>{1}</td><td>{2}</td><td>{3}</td><td>{4}</td><td>{5}</td><td "
                  "class=n>{6:N0}</td></tr>\n",
                  escaped(variable.getString("name").value_or("?")),
                  variable.getString("role").value_or("?"),
                  variable.getString("type").value_or("?"), shapeText(variable.getArray("shape")),
                  shapeText(variable.getArray("local_shape")),
                  escaped(shardingText(variable.getArray("sharding"))), bytes);
  });
  os << "</table>\n<h2>Collectives in order</h2>\n<table><tr><th></th><th>operation</th>"
        "<th>program</th><th>times in it</th><th>elements</th><th>type</th>"
        "<th>bytes the group's members send each other</th><th>where in the IR</th></tr>\n";
  for (auto [i, value] : enumerate(*plan.getArray("collectives"))) {
    const json::Object &op = *value.getAsObject();
    os << formatv("<tr><td>{0}</td><td>{1}</td><td>{2}</td><td class=n>{3}</td>"
                  "<td class=n>{4:N0}</td><td>{5}</td><td class=n>{6:N0}</td><td>{7}</td></tr>\n",
                  i, op.getString("op").value_or("?"), op.getString("program").value_or("?"),
                  op.getInteger("times").value_or(1), op.getInteger("count").value_or(0),
                  op.getString("type").value_or("?"), op.getInteger("group_bytes").value_or(0),
                  escaped(op.getString("location").value_or("")));
  }
  os << "</table>\n</html>\n";
}

static Error writeText(const Twine &path, function_ref<void(raw_ostream &)> write) {
  std::error_code error;
  std::string name = path.str();
  raw_fd_ostream os(name, error);
  if (!error) {
    write(os);
    os.flush();
    error = os.error();
    os.clear_error();
  }
  return error ? createStringError("cannot write '" + name + "': " + error.message())
               : Error::success();
}

Error writeReport(const Plan &plan, StringRef directory) {
  if (std::error_code error = sys::fs::create_directories(directory))
    return createStringError("cannot make directory '" + directory + "': " + error.message());
  Expected<json::Value> value = json::parse(plan.json);
  if (!value)
    return value.takeError();
  if (Error error = writeText(directory + "/report.json",
                              [&](raw_ostream &os) { os << formatv("{0:2}\n", *value); }))
    return error;
  return writeText(directory + "/index.html",
                   [&](raw_ostream &os) { writePage(*value->getAsObject(), os); });
}

} // namespace meshwright
