//===- ExecutionTrace.cpp - a step as graphs for network simulators -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Fields by their numbers in et_def.proto of MLCommons Chakra.
//
//===----------------------------------------------------------------------===//
#include "meshwright/ExecutionTrace.h"

#include "Dist/Dist.h"
#include "Dist/Programs.h"
#include "Exec/Exec.h"
#include "meshwright/AtomicFile.h"
#include "meshwright/Communication.h"
#include "meshwright/Cost/CallWork.h"
#include "meshwright/LocationText.h"
#include "meshwright/runtime/Protobuf.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::protobuf;
using llvm::createStringError;
using llvm::Error;

/// Nodes of all ranks: about 100 bytes each.
static constexpr int64_t mostNodes = 20'000'000;

namespace {
/// As NodeType of the schema.
enum NodeType { MemLoad = 2, MemStore = 3, Compute = 4, Send = 5, Receive = 6, Collective = 7 };

/// What all ranks of a program have in common.
struct Node {
  NodeType type;
  std::string name;
  std::vector<uint64_t> after; ///< numbers of nodes, from 1 on
  double seconds = 0, flops = 0, bytes = 0;
  /// Of communication: its group, and which members of it to send to or receive from, by the own
  /// place in it; -1: nobody.
  unsigned group = 0;
  int64_t kind = 0; ///< as CollectiveCommType of the schema
  std::vector<int64_t> peers;
  int64_t tag = 0;
};

/// The nodes of a program, in the order in which they begin.
class Program {
public:
  Program(ModuleOp module, const codegen::Communication &communication,
          const cost::Device *device, int64_t ranks)
      : most(mostNodes / ranks), communication(communication), device(device) {
    if (auto step = module.lookupSymbol<exec::ProgramOp>("step"))
      add(step.getBlock());
  }
  std::vector<Node> nodes;
  /// Whether the program is too long to be written for all its ranks.
  bool isTooLong() const { return int64_t(nodes.size()) > most; }

private:
  void add(Block &block);
  void add(Operation &op);
  void addCollective(Operation &op);
  void addMessages(Operation &op, unsigned group, int64_t bytes, std::vector<int64_t> to,
                   std::vector<int64_t> from, int64_t tag);
  /// A node behind the last one of its stream, `stream`, and what has been waited for.
  Node &append(NodeType type, StringRef name, uint64_t &stream);
  /// Makes what follows on the main stream wait for the last node, unless it is awaited later.
  void finish(Operation &op);

  const int64_t most; ///< nodes of a rank
  const codegen::Communication &communication;
  const cost::Device *device;
  SymbolTableCollection symbols;
  cost::WorkReader work;
  llvm::DenseMap<Value, int64_t> iterations;
  uint64_t main = 0; ///< the last node of the stream that computes
  std::map<unsigned, uint64_t> streams; ///< the last ones of each group's communication
  std::map<int64_t, uint64_t> copies;   ///< ... and of each copy engine
  std::vector<uint64_t> awaited;        ///< what the next node waits for
  std::map<int64_t, uint64_t> started;  ///< by async token
};
} // namespace

Node &Program::append(NodeType type, StringRef name, uint64_t &stream) {
  Node node;
  node.type = type;
  node.name = name.str();
  if (main)
    node.after.push_back(main);
  if (stream && stream != main)
    node.after.push_back(stream);
  llvm::append_range(node.after, awaited);
  llvm::sort(node.after);
  node.after.erase(std::unique(node.after.begin(), node.after.end()), node.after.end());
  nodes.push_back(std::move(node));
  stream = nodes.size();
  return nodes.back();
}

void Program::finish(Operation &op) {
  if (std::optional<int64_t> token = exec::asyncTokenOf(&op)) {
    started[*token] = nodes.size();
    return;
  }
  main = nodes.size();
  awaited.clear();
}

void Program::addMessages(Operation &op, unsigned group, int64_t bytes, std::vector<int64_t> to,
                          std::vector<int64_t> from, int64_t tag) {
  StringRef name = op.getName().stripDialect();
  if (!to.empty()) {
    // Sends do not hold up what follows.
    Node &node = append(Send, name, streams[group]);
    node.bytes = double(bytes);
    node.group = group;
    node.peers = std::move(to);
    node.tag = tag;
  }
  if (from.empty())
    return;
  Node &node = append(Receive, name, streams[group]);
  node.bytes = double(bytes);
  node.group = group;
  node.peers = std::move(from);
  node.tag = tag;
  finish(op);
}

/// The number that the schema gives a collective; none for those that are messages.
static std::optional<int64_t> kindOf(StringRef name) {
  static constexpr std::pair<StringRef, int64_t> kinds[] = {
      {"all_reduce", 0}, {"reduce", 1},    {"all_gather", 2}, {"gather", 3},
      {"scatter", 4},    {"broadcast", 5}, {"all_to_all", 6}, {"reduce_scatter", 7}};
  for (auto [known, kind] : kinds)
    if (known == name)
      return kind;
  return std::nullopt;
}

void Program::addCollective(Operation &op) {
  int64_t number = *exec::collectiveOf(&op);
  const codegen::Collective &collective = communication.collectives[number];
  unsigned group = collective.group;
  int64_t members = collective.members;
  if (auto send = dyn_cast<exec::SendOp>(op))
    return addMessages(op, group, exec::bytesOf(send.getInput().getType()),
                       std::vector<int64_t>(members, int64_t(send.getTo())), {},
                       send.getMessageChannel());
  if (auto recv = dyn_cast<exec::RecvOp>(op))
    return addMessages(op, group, exec::bytesOf(recv.getOutput().getType()), {},
                       std::vector<int64_t>(members, int64_t(recv.getFrom())),
                       recv.getMessageChannel());
  // Channels of messages are the tags below.
  int64_t tag = (int64_t(1) << 16) + number;
  if (auto permute = dyn_cast<exec::PermuteOp>(op)) {
    std::vector<int64_t> from(permute.getFrom()), to(members);
    for (int64_t place = 0; place < members; ++place)
      to[from[place]] = place;
    return addMessages(op, group, exec::bytesOf(permute.getSources().front().getType()), to, from,
                       tag);
  }
  if (auto exchange = dyn_cast<exec::ExchangeOp>(op))
    return addMessages(op, group, exchange.getReceivedBytes(), exchange.getTo(),
                       exchange.getFrom(), tag);
  StringRef name = collective.getName();
  std::optional<int64_t> kind = kindOf(name);
  assert(kind && "a collective that is no message has a number");
  Node &node = append(Collective, name, streams[group]);
  node.group = group;
  node.kind = *kind;
  for (const codegen::Collective::Segment &segment : collective.segments)
    node.bytes += double(exec::bytesOf((segment.source ? segment.source : segment.target).getType()));
  finish(op);
}

void Program::add(Operation &op) {
  if (isTooLong())
    return;
  if (exec::collectiveOf(&op))
    return addCollective(op);
  if (auto wait = dyn_cast<exec::WaitOp>(op)) {
    if (auto found = started.find(wait.getAsyncToken()); found != started.end())
      awaited.push_back(found->second);
    return;
  }
  if (auto loop = dyn_cast<exec::LoopOp>(op)) {
    int64_t count = std::llround(cost::tripCount(loop));
    for (int64_t i = 0; i < count; ++i) {
      iterations[loop.getIndex()] = loop.getReverse() ? count - 1 - i : i;
      add(loop.getBlock());
    }
    return;
  }
  if (auto call = dyn_cast<exec::CallOp>(op))
    return add(symbols.lookupNearestSymbolFrom<exec::ProgramOp>(call, call.getCalleeAttr())
                   .getBlock());
  if (auto when = dyn_cast<exec::WhenOp>(op)) {
    int64_t iteration = iterations[when.getIndex()];
    if (iteration < int64_t(when.getBegin()) || iteration >= int64_t(when.getEnd()))
      return;
  }
  if (op.getNumRegions()) {
    for (Region &region : op.getRegions())
      add(region.front());
    return;
  }
  cost::CallWork its = work.of(&op);
  if (!its.any())
    return;
  auto launch = dyn_cast<exec::LaunchOp>(op);
  StringRef name = launch ? launch.getKernel() : op.getName().stripDialect();
  if (std::optional<CopyEngine> engine = exec::copyEngineOf(&op)) {
    bool stores = op.getName().stripDialect().starts_with("store");
    append(stores ? MemStore : MemLoad, name, copies[engine->number()]).bytes = its.bytes / 2;
    return finish(op);
  }
  Node &node = append(Compute, name, main);
  node.flops = its.flops;
  node.bytes = its.bytes;
  node.seconds = device ? its.seconds(*device) : 0;
  finish(op);
}

void Program::add(Block &block) {
  for (Operation &op : block)
    add(op);
}

//===--- files ----------------------------------------------------------------===//

static std::string attribute(StringRef name, int field, uint64_t value) {
  return nested(10, nested(1, name.str()) + number(field, value));
}

namespace {
/// The groups of all ranks, numbered.
class Groups {
public:
  Groups(const codegen::Communication &communication, const dist::Mesh &mesh)
      : communication(communication), mesh(mesh) {}

  SmallVector<int64_t> members(unsigned group, int64_t rank) const {
    dist::Axes axes;
    for (StringRef name : communication.groups[group])
      if (int axis = mesh.find(name); axis >= 0)
        axes.push_back(axis);
    return mesh.group(rank, axes);
  }
  int64_t numberOf(llvm::ArrayRef<int64_t> ranks) {
    return numbers.try_emplace(std::vector<int64_t>(ranks), numbers.size()).first->second;
  }
  /// {"0": [0, 1], ..}
  std::string json() const {
    llvm::json::Object groups;
    for (auto &[ranks, number] : numbers)
      groups[std::to_string(number)] = llvm::json::Array(ranks);
    return llvm::formatv("{0:2}\n", llvm::json::Value(std::move(groups))).str();
  }

private:
  const codegen::Communication &communication;
  const dist::Mesh &mesh;
  std::map<std::vector<int64_t>, int64_t> numbers;
};
} // namespace

/// The node as a message of `rank`; nothing where the rank takes no part in it.
static std::string encoded(const Node &node, uint64_t id, int64_t rank, Groups &groups) {
  constexpr int uint32Value = 11, uint64Value = 13, stringValue = 29;
  std::string after;
  for (uint64_t number : node.after)
    after += varint(number);
  std::string text = number(1, id) + nested(2, node.name) + number(3, node.type);
  if (!after.empty())
    text += nested(5, after);
  if (node.seconds > 0)
    text += number(7, std::max<uint64_t>(1, std::llround(1e6 * node.seconds)));
  switch (node.type) {
  case Compute:
    return text + attribute("num_ops", uint64Value, uint64_t(node.flops)) +
           attribute("tensor_size", uint64Value, uint64_t(node.bytes));
  case MemLoad:
  case MemStore:
    return text + attribute("tensor_size", uint64Value, uint64_t(node.bytes));
  case Collective:
    return text + attribute("comm_type", uint64Value, uint64_t(node.kind)) +
           attribute("comm_size", uint64Value, uint64_t(node.bytes)) +
           nested(10, nested(1, "pg_name") +
                          nested(stringValue,
                                 std::to_string(groups.numberOf(groups.members(node.group, rank)))));
  case Send:
  case Receive:
    break;
  }
  SmallVector<int64_t> members = groups.members(node.group, rank);
  int64_t peer = node.peers[llvm::find(members, rank) - members.begin()];
  if (peer < 0 || members[peer] == rank) // There is nothing to send, which others wait for.
    return number(1, id) + nested(2, node.name) + number(3, Compute) +
           (after.empty() ? "" : nested(5, after)) + attribute("num_ops", uint64Value, 0) +
           attribute("tensor_size", uint64Value, 0);
  bool sends = node.type == Send;
  return text + attribute("comm_src", uint32Value, uint64_t(sends ? rank : members[peer])) +
         attribute("comm_dst", uint32Value, uint64_t(sends ? members[peer] : rank)) +
         attribute("comm_tag", uint32Value, uint64_t(node.tag)) +
         attribute("comm_size", uint64Value, uint64_t(node.bytes));
}

Error meshwright::writeExecutionTraces(ModuleOp module, const cost::Cluster *cluster,
                                       StringRef folder) {
  codegen::Communication communication(module);
  dist::Mesh mesh;
  for (auto op : module.getOps<dist::MeshOp>())
    mesh = op.getMesh();
  if (std::optional<int64_t> size = cluster ? cluster->size() : std::nullopt;
      size && *size < mesh.size())
    return createStringError("--emit chakra: the mesh has " + Twine(mesh.size()) +
                             " devices, but " + cluster->name + " only " + Twine(*size));
  Groups groups(communication, mesh);
  int64_t all = 0;
  for (ModuleOp program : dist::programsOf(module)) {
    // Devices of different types take different times.
    llvm::MapVector<const cost::Device *, SmallVector<int64_t>> ranksOf;
    for (int64_t rank = 0; rank < std::max<int64_t>(1, mesh.size()); ++rank)
      if (dist::runsOn(program, mesh, rank))
        ranksOf[cluster ? &cluster->deviceAt(rank) : nullptr].push_back(rank);
    for (auto &[device, ranks] : ranksOf) {
      Program its(program, communication, device, ranks.size());
      all += int64_t(its.nodes.size()) * int64_t(ranks.size());
      if (its.isTooLong() || all > mostNodes)
        return createStringError(llvm::formatv(
            "--emit chakra: the ranks' traces have more than {0:N0} nodes together; use a smaller "
            "mesh, fewer microbatches or fewer layers",
            mostNodes));
      for (int64_t rank : ranks) {
        std::string text;
        auto write = [&](const std::string &message) { text += varint(message.size()) + message; };
        write(nested(1, "0.0.4"));
        for (auto [i, node] : llvm::enumerate(its.nodes))
          write(encoded(node, i + 1, rank, groups));
        std::string path = (folder + "/step." + Twine(rank) + ".et").str();
        if (Error error = writeFileAtomically(text, path))
          return error;
      }
    }
  }
  return writeFileAtomically(groups.json(), (folder + "/groups.json").str());
}
