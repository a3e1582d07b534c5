//===- Page.cpp - the plan as a page -----------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Page.h"
#include "PageStyle.h"
#include "Palette.h"
#include "Tables.h"
#include "TextTable.h"
#include "meshwright/StepTime.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <map>
#include <optional>
#include <set>

using namespace llvm;

namespace meshwright::report {

std::string escaped(StringRef text) {
  std::string out;
  for (char c : text)
    out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : std::string(1, c);
  return out;
}

std::string number(int64_t value) { return formatv("{0:N0}", value).str(); }

Table::Table(raw_ostream &os, ArrayRef<StringRef> columns) : os(os) {
  // The style aligns columns by their number: cells have no classes of their own.
  std::string classes;
  for (auto [i, column] : enumerate(columns))
    if (column.starts_with("#"))
      classes += (classes.empty() ? "n" : " n") + std::to_string(i + 1);
  os << "<div class=wide><table class=\"" << classes << "\"><tr>";
  for (StringRef column : columns)
    os << "<th scope=col>" << column.ltrim('#');
  os << "\n";
}

// Large models have thousands of cells, so the end tags that HTML lets out are.
void Table::row(ArrayRef<std::string> cells, StringRef html) {
  os << "<tr>";
  for (const std::string &cell : cells)
    os << "<td>" << escaped(cell);
  os << html << "\n";
}

void Table::htmlRow(ArrayRef<std::string> cells) {
  os << "<tr>";
  for (const std::string &cell : cells)
    os << "<td>" << cell;
  os << "\n";
}

std::string titled(const Twine &text, const Twine &exact) { return ("<span title=\"" + exact + "\">" + text + "</span>").str(); }

std::string sized(double bytes) { return titled(sizeText(bytes), grouped(bytes) + " bytes"); }

/// What belongs to a key, by the first use of each.
template <typename T>
using InOrder = MapVector<std::string, T, std::map<std::string, unsigned>>;

/// Horizontal bars of bytes, the longest as wide as there is room.
static void drawBars(ArrayRef<std::pair<std::string, int64_t>> bars, raw_ostream &os) {
  int64_t most = 1;
  for (auto &[name, value] : bars)
    most = std::max(most, value);
  os << "<table class=bars>\n";
  for (auto &[name, value] : bars)
    os << formatv("<tr><th scope=row>{0}<td><i style=\"width:{1:F1}%\"></i><td>{2}\n", escaped(name), 100 * double(value) / double(most),
                  sized(double(value)));
  os << "</table>\n";
}

/// "parameter 1,024, gradient 512".
static std::string linesText(ArrayRef<plan::MemoryLine> lines) {
  std::string text;
  for (const plan::MemoryLine &line : lines)
    text += (text.empty() ? "" : ", ") + line.category + " " + number(line.bytes);
  return text;
}

/// Of pipeline stages and the like: what each program takes, by category.
static void writePrograms(const plan::Plan &plan, raw_ostream &os) {
  if (plan.programs.size() < 2)
    return;
  os << "<h2 id=programs>Programs, with the arena of a rank and what is live in it at the peak</h2>\n";
  std::vector<std::string> used;
  for (const plan::Program &program : plan.programs)
    for (const plan::MemoryLine &line : program.memory)
      if (!is_contained(used, line.category))
        used.push_back(line.category);
  std::vector<std::string> names = {"program", "at", "#arena", "#live"};
  for (const std::string &category : used)
    names.push_back("#" + category);
  names.push_back("#FLOPs of a step");
  Table table(os, std::vector<StringRef>(names.begin(), names.end()));
  for (const plan::Program &program : plan.programs) {
    std::vector<std::string> cells = {escaped(program.name), "<span>" + escaped(coordinatesText(program)) + "</span>", sized(double(program.arenaBytes)),
                                      sized(double(program.liveBytes))};
    for (const std::string &category : used) {
      auto line = find_if(program.memory, [&](const plan::MemoryLine &l) { return l.category == category; });
      cells.push_back(line == program.memory.end() ? "" : sized(double(line->bytes)));
    }
    cells.push_back(titled(workText(program.flops), grouped(program.flops)));
    table.htmlRow(cells);
  }
}

/// "layers.*.mlp.up_proj.weight" of "layers.12.mlp.up_proj.weight", with `layer` 12; other names are as they are.
static std::string withoutLayer(StringRef name, std::optional<int64_t> &layer) {
  SmallVector<StringRef> parts;
  name.split(parts, '.');
  for (StringRef &part : parts) {
    int64_t number;
    if (part.getAsInteger(10, number))
      continue;
    layer = number;
    part = "*";
    break;
  }
  return join(parts, ".");
}

/// Names that differ in the number of a layer, or of the first of a stack of layers.
struct SameNames {
  SmallSetVector<StringRef, 1> names;
  std::set<int64_t> layers;

  /// The name, or what all of them are called with how many there are.
  std::string text() const {
    if (names.size() == 1)
      return escaped(names.front());
    std::optional<int64_t> layer;
    return escaped(withoutLayer(names.front(), layer)) +
           formatv(" <span>({0} of these, from {1} to {2})</span>", names.size(), *layers.begin(), *layers.rbegin()).str();
  }
  void insert(StringRef name, std::optional<int64_t> layer) {
    names.insert(name);
    if (layer)
      layers.insert(*layer);
  }
};

/// A small picture of how many ranks share a tensor's last two dimensions.
static std::string dividedPicture(const plan::Plan &plan, const plan::Variable &variable) {
  constexpr int64_t most = 8; // Finer lines would be one area.
  auto parts = [&](size_t fromLast) {
    int64_t ranks = 1;
    if (fromLast <= variable.sharding.size())
      for (const std::string &name : variable.sharding[variable.sharding.size() - fromLast])
        for (const plan::MeshAxis &axis : plan.mesh)
          if (StringRef(name).split(':').first == axis.name)
            ranks *= axis.size;
    return std::min(ranks, most);
  };
  if (parts(1) * parts(2) == 1)
    return "<i class=s></i>";
  return formatv("<i class=s style=\"--r:{0};--c:{1}\"></i>", parts(2), parts(1));
}

static void writeMemory(const plan::Plan &plan, raw_ostream &os) {
  os << "<h2 id=memory>Memory of a rank at the peak</h2>\n";
  std::vector<std::pair<std::string, int64_t>> bars;
  for (const plan::MemoryLine &line : plan.memory)
    bars.push_back({line.category, line.bytes});
  drawBars(bars, os);
  os << "<h2 id=shardings>Parameters, states and their shardings</h2>\n"
        "<p class=note>The picture of a tensor is divided as its last two dimensions are, each into 8 parts at most; the filled part is one rank's.</p>\n";
  // States of a parameter that are where and what each other are share a row.
  struct Row {
    const plan::Variable *one = nullptr;
    SameNames names;
    SmallSetVector<StringRef, 4> roles;
    int64_t bytes = 0; ///< of the variables of one name
  };
  InOrder<Row> rows;
  for (const plan::Variable &variable : plan.variables) {
    StringRef name = variable.of ? *variable.of : variable.name;
    std::optional<int64_t> layer;
    std::string key = join(std::initializer_list<std::string>{
                               withoutLayer(name, layer), variable.type, shapeText(variable.shape),
                               shapeText(variable.localShape), shardingText(variable.sharding)},
                           "\n");
    Row &row = rows[key];
    row.one = row.one ? row.one : &variable;
    row.names.insert(name, layer);
    row.roles.insert(variable.role);
    if (row.names.names.front() == name && variable.program == row.one->program)
      row.bytes += bytesOf(variable);
  }
  Table table(os, {"", "name", "roles", "type", "shape", "on a rank", "sharding", "#bytes on a rank"});
  for (auto &[key, row] : rows) {
    SmallVector<StringRef> parts;
    StringRef(key).split(parts, '\n');
    const plan::Variable &one = *row.one;
    std::vector<std::string> cells = {dividedPicture(plan, one), row.names.text()};
    for (const std::string &text : {join(row.roles, ", "), parts[1].str()})
      cells.push_back(escaped(text));
    for (StringRef shape : {parts[2], parts[3]})
      cells.push_back("<span>" + escaped(shape) + "</span>");
    cells.push_back(escaped(parts[4]));
    cells.push_back(sized(double(row.bytes)));
    table.htmlRow(cells);
  }
}

static void writeCopies(const plan::Plan &plan, raw_ostream &os) {
  std::vector<Copies> rows = copiesOf(plan);
  if (rows.empty())
    return;
  os << "<h2 id=replicated>What stayed replicated, and why</h2>\n";
  struct Group {
    int64_t size = 0, bytes = 0, count = 0;
    InOrder<SameNames> names;
  };
  InOrder<Group> groups;
  for (const Copies &row : rows) {
    Group &group = groups[row.axis + "\n" + row.role + "\n" + row.reason];
    group.size = row.size;
    group.bytes += row.bytes;
    ++group.count;
    std::optional<int64_t> layer;
    std::string alike = withoutLayer(row.variable, layer);
    group.names[alike].insert(row.variable, layer);
  }
  Table table(os, {"copies along", "#of devices", "role", "#in all", "why", "variables"});
  for (auto &[key, group] : groups) {
    SmallVector<StringRef> parts;
    StringRef(key).split(parts, '\n', 2);
    std::string names;
    for (auto &[alike, same] : group.names)
      names += (names.empty() ? "" : "<br>") + same.text();
    table.htmlRow({escaped(parts[0]), number(group.size), escaped(parts[1]), sized(double(group.bytes)), escaped(parts[2]),
                   group.count == 1 ? "<span>" + names + "</span>"
                                    : "<details><summary>" + number(group.count) + "</summary>" + names + "</details>"});
  }
}

static void writeCollectives(const plan::Plan &plan, raw_ostream &os) {
  std::vector<Traffic> rows = trafficOf(plan);
  if (!rows.empty()) {
    os << "<h2 id=communication>Communication: what a rank sends in a step</h2>\n";
    std::vector<std::pair<std::string, int64_t>> bars;
    for (const Traffic &row : rows)
      if (row.program == "step" && row.bytesOfRank > 0)
        bars.push_back({row.axes + ": " + row.op, row.bytesOfRank});
    drawBars(bars, os);
    Table table(os, {"in one", "along", "by", "#calls", "#a rank sends", "#all send"});
    for (const Traffic &row : rows)
      table.htmlRow({escaped(row.program), escaped(row.axes), escaped(row.op), number(row.calls), sized(double(row.bytesOfRank)),
                     sized(row.bytes)});
  }
  // What stages and microbatches have alike is one row.
  struct Same {
    const plan::Collective *first = nullptr;
    int64_t count = 0;
    SmallSetVector<int64_t, 4> programs;
  };
  InOrder<Same> alike;
  for (const plan::Collective &op : plan.collectives) {
    Same &same = alike[join(std::initializer_list<std::string>{op.op, op.entry, timesText(op), std::to_string(op.count), op.type,
                                                               std::to_string(op.groupBytes), op.location}, "\n")];
    same.first = same.first ? same.first : &op;
    ++same.count;
    same.programs.insert(op.program);
  }
  os << "<h2 id=collectives>Collectives</h2>\n<p>Those that are alike are one row; report.json has them in their order.</p>\n";
  bool several = plan.programs.size() > 1;
  Table table(os, {"operation", "in", "of", "#ops", "#times each", "#elements", "type",
                   "#the group sends", "where in the IR"});
  for (auto &[key, same] : alike) {
    const plan::Collective &op = *same.first;
    std::string where = number(same.programs.size()) + " programs";
    if (same.programs.size() <= 2)
      where = join(map_range(same.programs, [&](int64_t i) { return plan.programs[i].name; }), ", ");
    table.htmlRow({escaped(op.op), escaped(op.entry), several ? escaped(where) : "every rank", number(same.count), timesText(op),
                   number(op.count), escaped(op.type), sized(double(op.groupBytes)), escaped(op.location)});
  }
}

/// The figures of the plan, each with what it means.
static void writeFacts(const plan::Plan &plan, raw_ostream &os) {
  os << "<details><summary>All figures of the plan</summary>\n<table class=facts>\n";
  auto fact = [&](const Twine &name, const Twine &value) {
    os << "<tr><th scope=row>" << name << "</th><td>" << escaped(value.str()) << "</td></tr>\n";
  };
  fact("Mesh", meshText(plan));
  fact("Batch", Twine(plan.batch) + " sequences of " + Twine(plan.sequence) + " tokens in " +
                    Twine(plan.microbatches) +
                    (plan.microbatches == 1 ? " microbatch" : " microbatches"));
  fact("Target", plan.target + ", " + precisionText(plan) + ", " + plan.optimizer);
  fact("Arena of a rank", bytesText(plan.arenaBytes) + ", all that a rank allocates for tensors");
  for (const plan::Allowance &line : plan.allowances)
    fact("Allowance for " + line.category, bytesText(line.bytes) + ": " + line.source);
  fact("To fit a rank's device", bytesText(plan.deviceBytes));
  for (MemorySpace space : offloadSpaces) {
    const plan::Offloaded &offloaded = plan.offloaded[space];
    if (!offloaded.memory)
      continue;
    std::string parts = linesText(*offloaded.memory), text = spaceRow(space).text;
    fact("On " + text + ", of a rank",
         bytesText(offloaded.bytes.value_or(0)) + (parts.empty() ? "" : ": ") + parts);
    int64_t fetched = 0, stored = 0;
    for (const plan::Program &program : plan.programs)
      if (program.copiedBytes)
        if (auto step = program.copiedBytes->find("step"); step != program.copiedBytes->end()) {
          fetched = std::max(fetched, step->second.in(space, /*stores=*/false));
          stored = std::max(stored, step->second.in(space, /*stores=*/true));
        }
    fact("Copied in a step, of a rank",
         bytesText(fetched) + " to the device and " + bytesText(stored) + " to " + text);
  }
  fact("Outside the arena, if ranks are processes",
       bytesText(scratchBytes(plan)) + " for assembling messages");
  fact("Tensors of a checkpoint, which --async-save copies on the host",
       bytesText(checkpointBytes(plan)) + " on rank 0, or, with --save-format sharded, each rank its part");
  fact("In memory with --buddy",
       bytesText(2 * checkpointBytes(plan)) + " on one machine, or " + bytesText(4 * checkpointBytes(plan)) + " on several together");
  fact("Floating-point operations of a step", grouped(plan.flops));
  fact("... of which recomputed", grouped(plan.recomputedFlops));
  for (const plan::Recomputed &row : plan.recomputed.value_or(std::vector<plan::Recomputed>()))
    fact("... for " + row.reason, grouped(row.flops) + ": " + recomputedText(row.reason));
  if (plan.attentionImbalance)
    fact("Attention of the most loaded rank",
         formatv("{0:f3} times the mean{1}", *plan.attentionImbalance, asOneDocument(plan)).str());
  fact("Plan hash", plan.hash);
  os << "</table></details>\n";
}

/// What a step waits for on the cluster.
static void writeTime(const CompiledPlan &plan, raw_ostream &os) {
  if (!plan.expected)
    return;
  os << "<h2 id=time>Where the time of a step goes on " << escaped(plan.expected->cluster) << "</h2>\n";
  Table table(os, {"what", "#time", "#share", ""});
  for (const ExpectedStep::Part &part : plan.expected->parts) {
    double share = part.seconds / plan.expected->seconds;
    if (share >= 5e-5)
      table.htmlRow({escaped(part.what), titled(timeText(part.seconds), formatv("{0:F6} seconds", part.seconds)), formatv("{0:P1}", share),
                     formatv("<div class=meter role=img aria-label=\"{0:P1}\" style=\"width:16em\"><i class=used style=\"width:{1:F1}%\"></i></div>",
                             share, 100 * share)});
  }
}

void writePage(const CompiledPlan &plan, ArrayRef<Section> sections, raw_ostream &os) {
  os << "<!doctype html><html lang=en><meta charset=utf-8><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>"
     << escaped(plan.model) << ", Meshwright plan</title>\n<style>" << pageStyle;
  for (int i = 1; i <= 16; ++i)
    os << (i > 1 ? "," : "") << ".n" << i << " :nth-child(" << i << ")";
  os << "{text-align:right;font-variant-numeric:tabular-nums}</style>\n<body><main>\n";
  writeSummary(plan, os);
  std::string body;
  raw_string_ostream rest(body);
  writeMesh(plan, rest);
  writeTime(plan, rest);
  for (const Section &section : sections)
    rest << "<h2 id=\"" << escaped(section.id) << "\">" << section.title << "</h2>\n<div>\n" << section.html << "</div>\n";
  writeMemory(plan, rest);
  writePrograms(plan, rest);
  writeCopies(plan, rest);
  writeCollectives(plan, rest);
  static constexpr std::pair<StringLiteral, StringLiteral> parts[] = {
      {"mesh", "Mesh"}, {"time", "Step time"}, {"timeline", "Pipeline"}, {"memory", "Memory"}, {"shardings", "Shardings"},
      {"programs", "Programs"}, {"replicated", "Replicated"}, {"communication", "Communication"}, {"collectives", "Collectives"}};
  os << "<nav aria-label=\"parts of the page\">";
  for (auto &[id, name] : parts)
    if (StringRef(body).contains(("<h2 id=" + id + ">").str()) || StringRef(body).contains(("<h2 id=\"" + id + "\">").str()))
      os << "<a href=\"#" << id << "\">" << name << "</a>";
  os << "</nav>\n";
  writeFacts(plan, os);
  os << body << "<p class=note>The file trace.json beside this page has the step for Perfetto. "
     << (plan.expected ? "Its times are those predicted on " + escaped(plan.expected->cluster) + "."
                       : std::string("Its times are relative, no forecast: the file says by which rates."))
     << "</p>\n</main>\n" << pageScript << "</html>\n";
}

} // namespace meshwright::report
