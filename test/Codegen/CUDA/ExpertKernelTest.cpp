//===- ExpertKernelTest.cpp - PTX of mixtures of experts against f64 ------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "../../Runtime/Kernels/Reference.h"
#include "Codegen/CUDA/Experts.h"
#include "Codegen/CUDA/Lowering.h"
#include "PtxKernels.h"
#include "meshwright/Codegen.h"

#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::test;
using llvm::formatv;

namespace {
const char *nameOf(int32_t type) {
  return type == MW_F32 ? "f32" : type == MW_BF16 ? "bf16" : "f16";
}

/// The kernels of one call in a program, launched in their order.
class Call {
public:
  /// `inputs` and `outputs` are the program's arguments, as text.
  Call(const std::string &inputs, const std::string &outputs, const std::string &op) {
    kernels = PtxKernels::ofProgram(
        formatv("module attributes {{exec.target = #exec.target<\"cuda\">} {{\n"
                "  exec.program private @step ins({0}) outs({1}) {{\n    {2}\n  }\n}",
                inputs, outputs, op).str());
    if (kernels)
      run.emplace(*kernels);
  }

  bool isThere() const { return run.has_value(); }
  bool usesTensorCores() const { return StringRef(kernels->getText()).contains("mma.sync"); }
  template <typename T> void add(std::vector<T> &memory, bool isWritten) {
    operands.push_back(run->add(memory.data(), int64_t(memory.size() * sizeof(T)), isWritten));
  }
  /// Launches those whose names end so; what is wrong, or nothing.
  std::string launch(ArrayRef<StringRef> suffixes) {
    EXPECT_EQ(kernels->getNames().size(), suffixes.size());
    std::string first = kernels->getNames().front();
    for (StringRef suffix : suffixes)
      if (std::string wrong = run->launch((StringRef(first).split('$').first + "$0" + suffix).str(), operands);
          !wrong.empty())
        return wrong;
    return "";
  }

private:
  std::unique_ptr<PtxKernels> kernels;
  std::optional<PtxRun> run;
  SmallVector<unsigned> operands;
};
} // namespace

/// In each block the order is that of experts, then of choices, from its first slot on. With a capacity
/// experts take the first tokens of each sequence alone.
TEST(GPUExperts, RoutesByExpertThenByChoice) {
  std::mt19937 generator(1);
  for (int i = 0; i < 36; ++i) {
    int64_t blocks = 1 + int64_t(generator() % 3), ofBlock = 1 + int64_t(generator() % 40);
    int64_t batch = 1 + int64_t(generator() % 3), length = 1 + int64_t(generator() % (i % 4 ? 60 : 200));
    int64_t tokens = batch * length, experts = blocks * ofBlock;
    int64_t k = 1 + int64_t(generator() % uint32_t(std::min<int64_t>(experts, 6)));
    int64_t capacity = i % 3 ? 0 : 1 + int64_t(generator() % uint32_t(length));
    int64_t most = length * std::min(k, ofBlock);
    if (capacity > 0)
      most = std::min(most, ofBlock * capacity);
    int64_t m = most + int64_t(generator() % 3), slots = batch * m;
    int32_t type = std::vector<int32_t>{MW_F32, MW_BF16, MW_F16}[generator() % 3];
    SCOPED_TRACE(::testing::Message() << tokens << " tokens " << experts << " experts in " << blocks
                                      << " blocks k " << k << " capacity " << capacity);
    std::vector<float> mask(size_t(tokens * experts), generator() % 2 ? 0.0f : -0.0f);
    std::vector<int32_t> chosen(size_t(k * tokens), int32_t(experts));
    bool adversarial = generator() % 4 == 0; // All tokens choose the same experts.
    for (int64_t token = 0; token < tokens; ++token) {
      std::vector<int32_t> all(static_cast<size_t>(experts));
      std::iota(all.begin(), all.end(), 0);
      if (!adversarial)
        std::shuffle(all.begin(), all.end(), generator);
      // Some tokens choose fewer.
      all.resize(generator() % 5 ? size_t(k) : generator() % size_t(k + 1));
      if (i == 7) // None chooses any.
        all.clear();
      std::sort(all.begin(), all.end());
      for (auto [j, expert] : llvm::enumerate(all)) {
        mask[size_t(token * experts + expert)] = 0.5f;
        chosen[j * size_t(tokens) + size_t(token)] = expert;
      }
    }
    // An expert takes the first tokens of each sequence.
    std::vector<bool> isTaken(chosen.size());
    for (int64_t sequence = 0; sequence < batch; ++sequence) {
      std::vector<int64_t> taken(size_t(experts + 1));
      for (int64_t token = sequence * length; token < (sequence + 1) * length; ++token)
        for (size_t choice = size_t(token); choice < chosen.size(); choice += size_t(tokens))
          isTaken[choice] = ++taken[size_t(chosen[choice])] <= capacity || capacity == 0;
    }
    std::vector<int32_t> rows(chosen.size(), -1), choices(size_t(blocks * slots), -1);
    std::vector<int32_t> sorted(choices.size(), int32_t(ofBlock)), filled(size_t(blocks), 0);
    for (int32_t expert = 0; expert < experts; ++expert)
      for (size_t choice = 0; choice < chosen.size(); ++choice)
        if (chosen[choice] == expert && isTaken[choice]) {
          int64_t of = expert / ofBlock, row = of * slots + filled[size_t(of)]++;
          rows[choice] = int32_t(row);
          choices[size_t(row)] = int32_t(choice);
          sorted[size_t(row)] = int32_t(expert % ofBlock);
        }

    exec::RouteShape shape{batch, length, experts, k, blocks, slots, capacity};
    int64_t bytes = codegen::cuda::routeWorkspace(shape);
    std::string maskType = formatv("memref<{0}x{1}x{2}x{3}>", batch, length, experts, nameOf(type));
    std::string choiceType = formatv("memref<{0}x{1}x{2}xi32>", k, batch, length);
    std::string slotType = formatv("memref<{0}x{1}x{2}xi32>", blocks, batch, m);
    std::string scratchType = formatv("memref<{0}xi8>", bytes);
    Call call(formatv("%mask: {0}", maskType),
              formatv("%chosen: {0}, %rows: {0}, %choices: {1}, %experts: {1}, %scratch: {2}", choiceType,
                      slotType, scratchType),
              formatv("exec.route %mask to %chosen, %rows, %choices, %experts workspace(%scratch) "
                      "{{capacity = {4} : i64} : ({0}, {1}, {1}, {2}, {2}, {3}) -> ()",
                      maskType, choiceType, slotType, scratchType, capacity));
    ASSERT_TRUE(call.isThere());
    std::vector<char> memory = encode(type, mask), scratch(static_cast<size_t>(bytes));
    std::vector<int32_t> got[] = {std::vector<int32_t>(chosen.size(), -7), std::vector<int32_t>(rows.size(), -7),
                                  std::vector<int32_t>(choices.size(), -7), std::vector<int32_t>(sorted.size(), -7)};
    call.add(memory, true);
    for (std::vector<int32_t> &result : got)
      call.add(result, false);
    call.add(scratch, false);
    SmallVector<StringRef> kernels = {"", "$offsets", "$rows"};
    if (capacity > 0)
      kernels.insert(kernels.begin() + 1, "$kept");
    ASSERT_EQ(call.launch(kernels), "");
    EXPECT_EQ(got[0], chosen);
    EXPECT_EQ(got[1], rows);
    EXPECT_EQ(got[2], choices);
    EXPECT_EQ(got[3], sorted);
  }
}

/// All rounds together have each row once, at its place among the rows of its block.
TEST(GPUExperts, RoundsHaveAllRows) {
  std::mt19937 generator(4);
  for (int i = 0; i < 24; ++i) {
    int64_t blocks = i % 6 ? 1 + int64_t(generator() % 4) : 130 + int64_t(generator() % 140);
    int64_t batch = 1 + int64_t(generator() % 3), m = 1 + int64_t(generator() % (i % 4 ? 12 : 90));
    int64_t c = 1 + int64_t(generator() % uint32_t(m)), k = 1 + int64_t(generator() % 3);
    int32_t parts = 1 + i % 3;
    int64_t slots = batch * m, ofPart = batch * c, ofRound = parts * ofPart, most = 0;
    int64_t length = llvm::divideCeil(blocks * m, k), count = k * batch * length;
    SCOPED_TRACE(::testing::Message() << blocks << " blocks of " << slots << ", " << ofPart << " in each of " << parts);
    std::vector<int64_t> filledSlots;
    // Rows in the first slots of each block, some blocks without any and some full; choices in any order.
    std::vector<int32_t> choices(size_t(blocks * slots), -1), experts(choices.size(), 3);
    std::vector<int32_t> rows(size_t(count), -1), unused(rows.size());
    std::iota(unused.begin(), unused.end(), 0);
    std::shuffle(unused.begin(), unused.end(), generator);
    for (int64_t of = 0; of < blocks; ++of) {
      int64_t filled = i == 5 ? 0 : generator() % 4 ? int64_t(generator() % uint32_t(slots + 1)) : slots;
      most = std::max(most, filled);
      filledSlots.push_back(filled);
      for (int64_t row = of * slots; row < of * slots + filled; ++row) {
        choices[size_t(row)] = unused.back();
        experts[size_t(row)] = int32_t((row - of * slots) * 3 / filled);
        rows[size_t(unused.back())] = int32_t(row);
        unused.pop_back();
      }
    }
    int64_t wanted = llvm::divideCeil(most, ofRound);
    std::string slotType = formatv("memref<{0}x{1}x{2}xi32>", blocks, batch, m);
    std::string ownType = formatv("memref<{0}x{1}x{2}xi32>", blocks, batch, c);
    std::string rowType = formatv("memref<{0}x{1}x{2}xi32>", k, batch, length);
    {
      Call call("%choices: " + slotType, "%rounds: memref<i32>",
                formatv("exec.rounds %choices to %rounds slots {0} : ({1}, memref<i32>) -> ()", parts * c, slotType));
      ASSERT_TRUE(call.isThere());
      std::vector<int32_t> rounds(1, -7);
      call.add(choices, true), call.add(rounds, false);
      ASSERT_EQ(call.launch({""}), "");
      EXPECT_EQ(rounds[0], wanted);
    }
    // The round after the last one has none.
    for (int32_t round = 0; round <= wanted; ++round)
      for (int32_t part = 0; part < parts; ++part) {
        bool said = parts == 1 || round > 0;
        Call call(formatv("{2}%rows: {0}, %choices: {1}, %experts: {1}", rowType, slotType,
                          said ? "%round: memref<i32>, " : ""),
                  formatv("%own_rows: {0}, %own_choices: {1}, %own_experts: {1}", rowType, ownType),
                  formatv("exec.rows_of_round {5}of %rows, %choices, %experts to %own_rows, %own_choices, "
                          "%own_experts part {3} of {4} : ({6}{0}, {1}, {1}, {0}, {2}, {2}) -> ()",
                          rowType, slotType, ownType, part, parts, said ? "%round " : "",
                          said ? "memref<i32>, " : ""));
        ASSERT_TRUE(call.isThere());
        std::vector<int32_t> at(1, round), ownRows(rows.size(), -7), ownChoices(size_t(blocks * ofPart), -7);
        std::vector<int32_t> ownExperts(ownChoices);
        if (said)
          call.add(at, true);
        call.add(rows, true), call.add(choices, true), call.add(experts, true);
        call.add(ownRows, false), call.add(ownChoices, false), call.add(ownExperts, false);
        ASSERT_EQ(call.launch({""}), "");
        std::vector<int32_t> wantedRows(rows.size(), -1), wantedChoices(ownChoices.size(), -1);
        for (int64_t of = 0; of < blocks; ++of) {
          int64_t there = std::clamp<int64_t>(filledSlots[size_t(of)] - round * ofRound, 0, ofRound);
          int64_t share = llvm::divideCeil(there, parts);
          for (int64_t own = 0; own < ofPart; ++own) {
            int64_t row = part * share + own;
            size_t slot = size_t(of * ofPart + own), from = size_t(of * slots + round * ofRound + row);
            if (own >= share || row >= there) {
              EXPECT_TRUE(ownExperts[slot] < 0 || ownExperts[slot] >= 3) << ownExperts[slot];
              continue;
            }
            wantedChoices[slot] = choices[from];
            wantedRows[size_t(choices[from])] = int32_t(slot);
            EXPECT_EQ(ownExperts[slot], experts[from]);
          }
        }
        EXPECT_EQ(ownRows, wantedRows);
        EXPECT_EQ(ownChoices, wantedChoices);
      }
  }
}

namespace {
/// Sizes of a call; those of rows often fit tensor cores.
struct CallSizes {
  CallSizes(std::mt19937 &generator, int round) {
    auto size = [&](int64_t limit) { return 1 + int64_t(generator() % uint32_t(limit)); };
    int64_t limit = round % 4 == 0 ? 200 : 60;
    blocks = size(3), ofBlock = size(4), m = size(limit), n = size(limit), slots = size(limit);
    count = blocks * ofBlock, rows = blocks * slots;
    if (round % 3)
      m = llvm::alignTo(m, 8), n = llvm::alignTo(n, 8);
    type = std::vector<int32_t>{MW_F32, MW_BF16, MW_F16}[size_t(round) % 3];
    experts = someExperts(generator, rows, ofBlock);
    if (round % 9 == 7) // No expert has rows.
      std::fill(experts.begin(), experts.end(), int32_t(ofBlock));
  }
  std::string text() const {
    return formatv("type {0}, {1} slots in {2} blocks, {3} experts, sizes {4} and {5}", type, slots, blocks,
                   count, m, n);
  }
  std::string rowsOf(int64_t width, int32_t type) const {
    return formatv("memref<{0}x1x{1}x{2}x{3}>", blocks, slots, width, nameOf(type));
  }
  std::string matrices(int64_t outer, int64_t inner, int32_t type) const {
    return formatv("memref<{0}x{1}x{2}x{3}>", count, outer, inner, nameOf(type));
  }
  bool fitsTensorCores() const { return type != MW_F32 && m % 8 == 0 && n % 8 == 0; }

  int64_t blocks, ofBlock, m, n, slots, count, rows;
  int32_t type;
  std::vector<int32_t> experts;
};
} // namespace

/// Products in all types against f64, rows of no expert zeros.
TEST(GPUExperts, GroupedProducts) {
  std::mt19937 generator(2);
  for (int i = 0; i < 36; ++i) {
    CallSizes s(generator, i);
    bool transposed = generator() % 2;
    SCOPED_TRACE(s.text() + (transposed ? " transposed" : ""));
    std::vector<float> values = randomValues(generator, s.rows * s.m);
    for (int64_t row = 0; row < s.rows; ++row)
      if (expertOf(s.experts, row, s.blocks, s.ofBlock) < 0)
        std::fill_n(values.begin() + row * s.m, s.m, NAN);
    std::vector<char> x = encode(s.type, values);
    std::vector<char> w = encode(s.type, randomValues(generator, s.count * s.n * s.m));
    std::vector<float> fx = decode(s.type, x), fw = decode(s.type, w);
    std::vector<double> wanted(static_cast<size_t>(s.rows * s.n));
    for (int64_t row = 0; row < s.rows; ++row)
      if (int64_t e = expertOf(s.experts, row, s.blocks, s.ofBlock); e >= 0)
        for (int64_t column = 0; column < s.n; ++column)
          for (int64_t p = 0; p < s.m; ++p)
            wanted[size_t(row * s.n + column)] +=
                double(fx[size_t(row * s.m + p)]) *
                fw[size_t(e * s.n * s.m + (transposed ? p * s.n + column : column * s.m + p))];
    std::string xType = s.rowsOf(s.m, s.type), yType = s.rowsOf(s.n, s.type);
    std::string wType = transposed ? s.matrices(s.m, s.n, s.type) : s.matrices(s.n, s.m, s.type);
    std::string eType = formatv("memref<{0}x1x{1}xi32>", s.blocks, s.slots);
    Call call(formatv("%x: {0}, %w: {1}, %e: {2}", xType, wType, eType), formatv("%y: {0}", yType),
              formatv("exec.grouped_matmul %x, %w of %e to %y{0} : ({1}, {2}, {3}, {4}) -> ()",
                      transposed ? " transposed" : "", xType, wType, eType, yType));
    ASSERT_TRUE(call.isThere());
    EXPECT_EQ(call.usesTensorCores(), s.fitsTensorCores());
    std::vector<char> y = encode(s.type, std::vector<float>(size_t(s.rows * s.n), NAN));
    call.add(x, true), call.add(w, true), call.add(s.experts, true), call.add(y, false);
    ASSERT_EQ(call.launch({""}), "");
    EXPECT_LT(relativeError(decode(s.type, y), wanted, 1e-3),
              s.type == MW_F32 ? 1e-6 : s.type == MW_F16 ? 0x1p-11 : 0x1p-8);
  }
}

/// Rows of other experts do not reach a gradient, whatever they hold; experts without rows get zeros, or
/// keep what was there.
TEST(GPUExperts, GradientsOfGroupedProducts) {
  std::mt19937 generator(3);
  for (int i = 0; i < 36; ++i) {
    CallSizes s(generator, i);
    int32_t result = generator() % 2 ? s.type : int32_t(MW_F32);
    bool accumulates = generator() % 2;
    SCOPED_TRACE(s.text() + (accumulates ? " accumulates" : ""));
    std::vector<float> da = randomValues(generator, s.rows * s.m), db = randomValues(generator, s.rows * s.n);
    for (int64_t row = 0; row < s.rows; ++row)
      if (expertOf(s.experts, row, s.blocks, s.ofBlock) < 0) {
        std::fill_n(da.begin() + row * s.m, s.m, NAN);
        std::fill_n(db.begin() + row * s.n, s.n, INFINITY);
      }
    std::vector<char> a = encode(s.type, da), b = encode(s.type, db);
    std::vector<char> c = encode(result, accumulates ? randomValues(generator, s.count * s.m * s.n)
                                                     : std::vector<float>(size_t(s.count * s.m * s.n), NAN));
    std::vector<float> fa = decode(s.type, a), fb = decode(s.type, b), before = decode(result, c);
    std::vector<double> wanted(static_cast<size_t>(s.count * s.m * s.n));
    if (accumulates)
      wanted.assign(before.begin(), before.end());
    for (int64_t row = 0; row < s.rows; ++row)
      if (int64_t e = expertOf(s.experts, row, s.blocks, s.ofBlock); e >= 0)
        for (int64_t p = 0; p < s.m; ++p)
          for (int64_t q = 0; q < s.n; ++q)
            wanted[size_t((e * s.m + p) * s.n + q)] +=
                double(fa[size_t(row * s.m + p)]) * fb[size_t(row * s.n + q)];
    std::string aType = s.rowsOf(s.m, s.type), bType = s.rowsOf(s.n, s.type);
    std::string cType = s.matrices(s.m, s.n, result);
    std::string eType = formatv("memref<{0}x1x{1}xi32>", s.blocks, s.slots);
    int64_t bytes = codegen::cuda::groupedGradWorkspace({s.blocks, s.slots, s.count});
    std::string scratchType = formatv("memref<{0}xi8>", bytes);
    Call call(formatv("%a: {0}, %b: {1}, %e: {2}", aType, bType, eType),
              formatv("%c: {0}, %scratch: {1}", cType, scratchType),
              formatv("exec.grouped_matmul_grad %a, %b of %e to %c{0} workspace(%scratch) : ({1}, {2}, {3}, {4}, "
                      "{5}) -> ()",
                      accumulates ? " accumulates" : "", aType, bType, eType, cType, scratchType));
    ASSERT_TRUE(call.isThere());
    EXPECT_EQ(call.usesTensorCores(), s.fitsTensorCores());
    std::vector<char> scratch(static_cast<size_t>(bytes));
    call.add(a, true), call.add(b, true), call.add(s.experts, true), call.add(c, accumulates);
    call.add(scratch, false);
    ASSERT_EQ(call.launch({"$masks", "$lists", ""}), "");
    EXPECT_LT(relativeError(decode(result, c), wanted, 1e-3),
              result == MW_F32 ? 2e-6 : result == MW_F16 ? 0x1p-11 : 0x1p-8);
  }
}
