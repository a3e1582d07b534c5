//===- Ptx.h - a machine for the PTX that is generated --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Runs kernels on the processor, so that executables for GPUs train where there is no
// GPU. The 32 lanes of a warp run each instruction together; lanes that part at a branch
// meet again where all ways from it do. Whatever is wrong is an error with its place:
// instructions that are not known, addresses outside of allocations or misaligned,
// shuffles and barriers that some lanes miss, shared memory that is touched before a copy
// into it has been waited for. A judge (PtxJudge.h), where there is one, adds races and reads
// of memory that nobody wrote.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TEST_RUNTIME_CUDA_PTX_H
#define MESHWRIGHT_TEST_RUNTIME_CUDA_PTX_H

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace ptx {

/// Lanes of a warp.
constexpr int width = 32;
/// Where shared memory begins, so that 0 is no address.
constexpr uint64_t sharedBase = 1 << 12;

class Judge;
struct Machine;
struct Instruction;
using Action = void (*)(Machine &, const Instruction &);

struct Instruction {
  enum Kind { plain, branch, ret, barrier } kind = plain;
  Action action = nullptr;
  /// Rows in the file of 32-bit or of 64-bit registers, as the action has it; predicates and
  /// 16-bit registers are 32 bits wide, constants have rows of their own; -1 is no register.
  std::vector<int> to, from;
  int guard = -1; ///< row of the predicate, or none
  bool negated = false;
  int target = -1;    ///< of a branch: instruction
  int join = -1;      ///< where lanes that part at a branch meet again: instruction, or the end
  int64_t offset = 0; ///< of an address
  int64_t offset2 = 0; ///< of a second one
  int line = 0;
};

struct Entry {
  std::string name;
  int parameters = 0, threads = 0;
  int64_t sharedBytes = 0; ///< its own, before those of the launch
  int rows32 = 0, rows64 = 0;
  std::vector<std::pair<int, uint32_t>> constants32;
  std::vector<std::pair<int, uint64_t>> constants64;
  std::vector<Instruction> code;
};

/// What is loaded of a text. Throws std::runtime_error with the line for what is not known.
class Module {
public:
  explicit Module(const std::string &text);
  const std::map<std::string, Entry> &entries() const { return all; }
  /// The module's constants by name, which are in memory as long as it is.
  const std::map<std::string, std::vector<char>> &constants() const { return data; }

private:
  friend class Parser;
  std::map<std::string, Entry> all;
  std::map<std::string, std::vector<char>> data;
};

/// Knows which memory an address belongs to.
struct Memories {
  virtual ~Memories() = default;
  /// First address and the one after the last, or throws std::runtime_error.
  virtual std::pair<uint64_t, uint64_t> around(uint64_t address) = 0;
};

/// Memory that a kernel has read or, `written`, has written.
struct Touched {
  uint64_t begin, end;
  bool written;
};

/// Runs a kernel to its end; what it touched of global memory, in parts that hang together. Throws
/// std::runtime_error with the entry's name, the block and the line of the text.
std::vector<Touched> run(const Entry &entry, int blocks, int threads, int64_t sharedBytes,
                         const std::vector<uint64_t> &parameters, Memories &memories,
                         Judge *judge = nullptr);

//===--- between parser and machine ---------------------------------------===//

/// What there is to know of an instruction's text without its operands. Letters: p predicate,
/// h 16 bits, w 32 bits, d 64 bits, a an [address]; an upper-case letter stands for a {list} or
/// for one.
struct Form {
  Action action;
  std::string to, from;
};
/// The form of "add.f32", or null.
const Form *formOf(const std::string &opcode);
/// ... of what tensor cores and copies beside the threads take.
const Form *tensorFormOf(const std::string &opcode);
/// Loads and stores of `count` elements of `bytes` in "global" or "shared".
Action loadOf(const std::string &space, int bytes, int count);
/// Of one element, as "s32", into a register that is wider.
Action widerLoadOf(const std::string &space, const std::string &type, bool isWide);
/// Of one element of 2 or 4 bytes from a 64-bit register.
Action lowStoreOf(const std::string &space, int bytes);
Action storeOf(const std::string &space, int bytes, int count);
/// "%tid.x" and the like, or null.
Action specialOf(const std::string &name);
/// Loads of parameters, whose addresses begin at 0.
Action parameterOf(int bytes);

} // namespace ptx

#endif // MESHWRIGHT_TEST_RUNTIME_CUDA_PTX_H
