//===- PtxInstructions.cpp - what each instruction does --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Templates run the function of one lane (PtxLanes.h) for all lanes of a row and keep
// those that do not take part as they are.
//
//===----------------------------------------------------------------------===//
#include "PtxLanes.h"

#include <stdexcept>
#include <unordered_map>

namespace ptx {

//===----------------------------------------------------------------------===//
// All lanes of a row
//===----------------------------------------------------------------------===//

template <typename T> static auto rowOf(Machine &m, int row) {
  if constexpr (Register<T>::isWide)
    return m.r64[row];
  else
    return m.r32[row];
}
template <typename T> static void write(Machine &m, int row, int lane, T value) {
  if constexpr (Register<T>::isWide) {
    uint64_t &to = m.r64[row][lane];
    to = (Register<T>::put(value) & m.on64[lane]) | (to & ~m.on64[lane]);
  } else {
    uint32_t &to = m.r32[row][lane];
    to = (Register<T>::put(value) & m.on[lane]) | (to & ~m.on[lane]);
  }
}

// `F` is a type with a static `of`, so that each instruction is a function of its own.
template <typename F, typename To, typename A> static void one(Machine &m, const Instruction &i) {
  auto a = rowOf<A>(m, i.from[0]);
  for (int l = 0; l < width; ++l)
    write<To>(m, i.to[0], l, F::of(Register<A>::get(a[l])));
}
template <typename F, typename To, typename A, typename B>
static void two(Machine &m, const Instruction &i) {
  auto a = rowOf<A>(m, i.from[0]);
  auto b = rowOf<B>(m, i.from[1]);
  for (int l = 0; l < width; ++l)
    write<To>(m, i.to[0], l, F::of(Register<A>::get(a[l]), Register<B>::get(b[l])));
}
template <typename F, typename To, typename A, typename B, typename C>
static void three(Machine &m, const Instruction &i) {
  auto a = rowOf<A>(m, i.from[0]);
  auto b = rowOf<B>(m, i.from[1]);
  auto c = rowOf<C>(m, i.from[2]);
  for (int l = 0; l < width; ++l)
    write<To>(m, i.to[0], l,
              F::of(Register<A>::get(a[l]), Register<B>::get(b[l]), Register<C>::get(c[l])));
}

template <typename T> static constexpr char letterOf() {
  return std::is_same_v<T, Truth> ? 'p' : sizeof(T) == 8 ? 'd' : sizeof(T) == 4 ? 'w' : 'h';
}

//===----------------------------------------------------------------------===//
// Between lanes
//===----------------------------------------------------------------------===//

/// shfl.sync: `partner(lane, operand)` names the lane whose value comes.
template <typename Partner> static void shuffle(Machine &m, const Instruction &i) {
  auto value = m.r32[i.from[0]], by = m.r32[i.from[1]], clamp = m.r32[i.from[2]];
  auto members = m.r32[i.from[3]];
  uint32_t values[width];
  for (int l = 0; l < width; ++l)
    values[l] = value[l];
  for (int l = 0; l < width; ++l) {
    if (!(m.mask >> l & 1))
      continue;
    // Threads that are not there, in the last warp of a block, cannot come.
    if ((members[l] & m.alive) != m.mask || !(members[l] >> l & 1))
      throw std::runtime_error("some lanes miss a shuffle");
    if (clamp[l] != Partner::clamp)
      throw std::runtime_error("a shuffle of parts of a warp is not known");
    int from = Partner::of(l, int(by[l]));
    bool isInside = from >= 0 && from < width;
    if (isInside && !(m.mask >> from & 1))
      throw std::runtime_error("a shuffle reads a lane that ended");
    m.r32[i.to[0]][l] = isInside ? values[from] : values[l];
  }
}
struct Butterfly {
  static constexpr uint32_t clamp = 31;
  static int of(int lane, int by) { return lane ^ by; }
};
struct Down {
  static constexpr uint32_t clamp = 31;
  static int of(int lane, int by) { return lane + by; }
};
struct Up {
  static constexpr uint32_t clamp = 0;
  static int of(int lane, int by) { return lane - by; }
};
struct Index {
  static constexpr uint32_t clamp = 31;
  static int of(int, int by) { return by; }
};

static void ballot(Machine &m, const Instruction &i) {
  auto isTrue = m.r32[i.from[0]], members = m.r32[i.from[1]];
  uint32_t votes = 0;
  for (int l = 0; l < width; ++l) {
    if (!(m.mask >> l & 1))
      continue;
    if ((members[l] & m.alive) != m.mask)
      throw std::runtime_error("some lanes miss a ballot");
    votes |= uint32_t(isTrue[l] != 0) << l;
  }
  for (int l = 0; l < width; ++l)
    write<uint32_t>(m, i.to[0], l, votes);
}

static void warpBarrier(Machine &m, const Instruction &) {
  if (m.mask != m.alive)
    throw std::runtime_error("some lanes miss a barrier of the warp");
  if (m.judge)
    m.judge->passWarpBarrier(m.firstThread);
}

//===----------------------------------------------------------------------===//
// Registers in parts
//===----------------------------------------------------------------------===//

template <typename Whole, typename Part> static void pack(Machine &m, const Instruction &i) {
  constexpr int count = sizeof(Whole) / sizeof(Part);
  for (int l = 0; l < width; ++l) {
    Part parts[count];
    for (int p = 0; p < count; ++p)
      parts[p] = Part(m.r32[i.from[size_t(p)]][l]);
    Whole whole;
    memcpy(&whole, parts, sizeof(whole));
    write<Whole>(m, i.to[0], l, whole);
  }
}
template <typename Whole, typename Part> static void unpack(Machine &m, const Instruction &i) {
  constexpr int count = sizeof(Whole) / sizeof(Part);
  for (int l = 0; l < width; ++l) {
    Whole whole = Register<Whole>::get(rowOf<Whole>(m, i.from[0])[l]);
    Part parts[count];
    memcpy(parts, &whole, sizeof(whole));
    for (int p = 0; p < count; ++p)
      if (i.to[size_t(p)] >= 0)
        write<Part>(m, i.to[size_t(p)], l, parts[p]);
  }
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

template <bool isShared, bool writes>
char *place(Machine &m, int lane, uint64_t address, int total) {
  if (address % uint64_t(total))
    throw std::runtime_error("an access of " + std::to_string(total) + " bytes at " +
                             std::to_string(address) + " is misaligned");
  if (isShared) {
    uint64_t at = address - sharedBase;
    if (at + uint64_t(total) > m.sharedBytes || address < sharedBase)
      throw std::runtime_error("byte " + std::to_string(int64_t(at)) + " is outside of the " +
                               std::to_string(m.sharedBytes) + " of shared memory");
    if (!m.arriving.empty() && m.arriving.count(at / 16))
      throw std::runtime_error("byte " + std::to_string(at) +
                               " of shared memory has a copy on its way that was not waited for");
    if (m.judge)
      m.judge->touch(isShared, writes, at, total, m.firstThread + lane);
    return m.shared + at;
  }
  if (!m.region || address < m.region->begin || address + uint64_t(total) > m.region->end) {
    auto [begin, end] = m.memories.around(address);
    if (address + uint64_t(total) > end)
      throw std::runtime_error("an access reaches beyond its allocation");
    std::unique_ptr<Region> &known = m.regions[begin];
    if (!known)
      known = std::make_unique<Region>(begin, end);
    m.region = known.get();
  }
  m.region->note(writes ? m.region->written : m.region->read, address, total);
  if (m.judge)
    m.judge->touch(isShared, writes, address, total, m.firstThread + lane);
  return reinterpret_cast<char *>(address);
}

template char *place<true, false>(Machine &, int, uint64_t, int);
template char *place<true, true>(Machine &, int, uint64_t, int);
template char *place<false, false>(Machine &, int, uint64_t, int);

template <bool isShared, int bytes, int count> static void load(Machine &m, const Instruction &i) {
  for (int l = 0; l < width; ++l) {
    if (!(m.mask >> l & 1))
      continue;
    char *from = place<isShared, false>(m, l, m.r64[i.from[0]][l] + uint64_t(i.offset), bytes * count);
    for (int e = 0; e < count; ++e) {
      int row = i.to[size_t(e)];
      if (row < 0)
        continue;
      uint64_t value = 0;
      memcpy(&value, from + e * bytes, bytes);
      if (bytes == 8)
        m.r64[row][l] = value;
      else
        m.r32[row][l] = uint32_t(value);
    }
  }
}
template <bool isShared, int bytes, int count> static void store(Machine &m, const Instruction &i) {
  for (int l = 0; l < width; ++l) {
    if (!(m.mask >> l & 1))
      continue;
    char *to = place<isShared, true>(m, l, m.r64[i.from[0]][l] + uint64_t(i.offset), bytes * count);
    for (int e = 0; e < count; ++e) {
      int row = i.from[size_t(e) + 1];
      uint64_t value = bytes == 8 ? m.r64[row][l] : m.r32[row][l];
      memcpy(to + e * bytes, &value, bytes);
    }
  }
}

/// Into a register that is wider than the element.
template <bool isShared, typename Element, typename To>
static void loadWider(Machine &m, const Instruction &i) {
  for (int l = 0; l < width; ++l) {
    if (!(m.mask >> l & 1))
      continue;
    Element value;
    memcpy(&value, place<isShared, false>(m, l, m.r64[i.from[0]][l] + uint64_t(i.offset), sizeof(value)),
           sizeof(value));
    write<To>(m, i.to[0], l, To(value));
  }
}
template <typename Element, typename To> static Action wider(bool isShared) {
  return isShared ? loadWider<true, Element, To> : loadWider<false, Element, To>;
}
Action widerLoadOf(const std::string &space, const std::string &type, bool isWide) {
  bool isShared = space == "shared";
  if (type == "s32" && isWide)
    return wider<int32_t, int64_t>(isShared);
  if ((type == "u32" || type == "b32") && isWide)
    return wider<uint32_t, uint64_t>(isShared);
  if (type == "s8")
    return isWide ? wider<int8_t, int64_t>(isShared) : wider<int8_t, int32_t>(isShared);
  if (type == "u8" || type == "b8")
    return isWide ? wider<uint8_t, uint64_t>(isShared) : wider<uint8_t, uint32_t>(isShared);
  if (type == "s16")
    return isWide ? wider<int16_t, int64_t>(isShared) : wider<int16_t, int32_t>(isShared);
  if (type == "u16" || type == "b16")
    return isWide ? wider<uint16_t, uint64_t>(isShared) : wider<uint16_t, uint32_t>(isShared);
  return nullptr;
}

/// The low bytes of a 64-bit register.
template <bool isShared, int bytes> static void storeLow(Machine &m, const Instruction &i) {
  for (int l = 0; l < width; ++l)
    if (m.mask >> l & 1)
      memcpy(place<isShared, true>(m, l, m.r64[i.from[0]][l] + uint64_t(i.offset), bytes),
             &m.r64[i.from[1]][l], bytes);
}
Action lowStoreOf(const std::string &space, int bytes) {
  if (bytes == 1)
    return space == "shared" ? storeLow<true, 1> : storeLow<false, 1>;
  if (space == "shared")
    return bytes == 2 ? storeLow<true, 2> : storeLow<true, 4>;
  return bytes == 2 ? storeLow<false, 2> : storeLow<false, 4>;
}

template <bool isLoad, bool isShared, int bytes> static Action ofCount(int count) {
  switch (count) {
  case 1:
    return isLoad ? load<isShared, bytes, 1> : store<isShared, bytes, 1>;
  case 2:
    return isLoad ? load<isShared, bytes, 2> : store<isShared, bytes, 2>;
  case 4:
    return isLoad ? load<isShared, bytes, 4> : store<isShared, bytes, 4>;
  default:
    return bytes * count > 16 ? nullptr : isLoad ? load<isShared, bytes, 8> : store<isShared, bytes, 8>;
  }
}
template <bool isLoad> static Action access(const std::string &space, int bytes, int count) {
  bool isShared = space == "shared";
  if (bytes * count > 16)
    return nullptr;
  switch (bytes) {
  case 1:
    return isShared ? ofCount<isLoad, true, 1>(count) : ofCount<isLoad, false, 1>(count);
  case 2:
    return isShared ? ofCount<isLoad, true, 2>(count) : ofCount<isLoad, false, 2>(count);
  case 4:
    return isShared ? ofCount<isLoad, true, 4>(count) : ofCount<isLoad, false, 4>(count);
  default:
    return isShared ? ofCount<isLoad, true, 8>(count) : ofCount<isLoad, false, 8>(count);
  }
}
Action loadOf(const std::string &space, int bytes, int count) {
  return access<true>(space, bytes, count);
}
Action storeOf(const std::string &space, int bytes, int count) {
  return access<false>(space, bytes, count);
}

template <int bytes> static void parameter(Machine &m, const Instruction &i) {
  for (int l = 0; l < width; ++l) {
    if (!(m.mask >> l & 1))
      continue;
    uint64_t place = m.r64[i.from[0]][l] + uint64_t(i.offset), at = place / 8;
    if (at >= m.parameters.size() || place % bytes)
      throw std::runtime_error("byte " + std::to_string(place) + " of parameters was not given");
    uint64_t value = m.parameters[at] >> 8 * (place % 8);
    if (bytes == 8)
      write<uint64_t>(m, i.to[0], l, value);
    else
      write<uint32_t>(m, i.to[0], l, uint32_t(value));
  }
}
Action parameterOf(int bytes) { return bytes == 8 ? parameter<8> : parameter<4>; }

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

template <typename F> static void special(Machine &m, const Instruction &i) {
  for (int l = 0; l < width; ++l)
    write<uint32_t>(m, i.to[0], l, F::of(m, l));
}
struct Thread {
  static uint32_t of(Machine &m, int lane) { return uint32_t(m.firstThread + lane); }
};
struct Threads {
  static uint32_t of(Machine &m, int) { return uint32_t(m.threads); }
};
struct BlockNumber {
  static uint32_t of(Machine &m, int) { return uint32_t(m.block); }
};
struct Blocks {
  static uint32_t of(Machine &m, int) { return uint32_t(m.blocks); }
};
struct Lane {
  static uint32_t of(Machine &, int lane) { return uint32_t(lane); }
};
struct Zero {
  static uint32_t of(Machine &, int) { return 0; }
};

Action specialOf(const std::string &name) {
  static const std::unordered_map<std::string, Action> known = {
      {"%tid.x", special<Thread>},       {"%ntid.x", special<Threads>},
      {"%ctaid.x", special<BlockNumber>}, {"%nctaid.x", special<Blocks>},
      {"%laneid", special<Lane>},        {"%tid.y", special<Zero>},
      {"%tid.z", special<Zero>},         {"%ctaid.y", special<Zero>},
      {"%ctaid.z", special<Zero>}};
  auto found = known.find(name);
  return found == known.end() ? nullptr : found->second;
}

namespace {
struct Forms {
  std::unordered_map<std::string, Form> all;

  template <typename F, typename To, typename A> void add1(const std::string &name) {
    all[name] = {one<F, To, A>, {letterOf<To>()}, {letterOf<A>()}};
  }
  template <typename F, typename To, typename A, typename B = A> void add2(const std::string &name) {
    all[name] = {two<F, To, A, B>, {letterOf<To>()}, {letterOf<A>(), letterOf<B>()}};
  }
  template <typename F, typename To, typename A, typename B = A, typename C = A>
  void add3(const std::string &name) {
    all[name] = {three<F, To, A, B, C>, {letterOf<To>()},
                 {letterOf<A>(), letterOf<B>(), letterOf<C>()}};
  }

  template <typename T> void integers(const std::string &type) {
    add2<Add, T, T>("add." + type);
    add2<Sub, T, T>("sub." + type);
    add2<MulLow, T, T>("mul.lo." + type);
    add2<MulHigh, T, T>("mul.hi." + type);
    add3<MadLow, T, T>("mad.lo." + type);
    add2<Div, T, T>("div." + type);
    add2<Rem, T, T>("rem." + type);
    add2<Max, T, T>("max." + type);
    add2<Min, T, T>("min." + type);
    add2<ShiftRight, T, T, uint32_t>("shr." + type);
    if constexpr (std::is_signed_v<T>) {
      add1<Neg, T, T>("neg." + type);
      add1<Abs, T, T>("abs." + type);
    }
    if constexpr (sizeof(T) >= 4) {
      add3<Field, T, T, uint32_t, uint32_t>("bfe." + type);
    }
    comparisons<T>(type);
  }
  /// "setp.eq.f32" and so on; `suffix` is u for those that NaN makes true.
  template <typename T, template <int> class Relation = Compare>
  void comparisons(const std::string &type, const std::string &suffix = "") {
    add2<Relation<0>, Truth, T>("setp.eq" + suffix + "." + type);
    add2<Relation<1>, Truth, T>("setp.ne" + suffix + "." + type);
    add2<Relation<2>, Truth, T>("setp.lt" + suffix + "." + type);
    add2<Relation<3>, Truth, T>("setp.le" + suffix + "." + type);
    add2<Relation<4>, Truth, T>("setp.gt" + suffix + "." + type);
    add2<Relation<5>, Truth, T>("setp.ge" + suffix + "." + type);
  }
  template <typename T> void floats(const std::string &type) {
    for (const char *rounding : {"", "rn."}) {
      add2<Add, T, T>(std::string("add.") + rounding + type);
      add2<Sub, T, T>(std::string("sub.") + rounding + type);
      add2<Mul, T, T>(std::string("mul.") + rounding + type);
    }
    add3<Fma, T, T>("fma.rn." + type);
    add2<Div, T, T>("div.rn." + type);
    add1<Sqrt, T, T>("sqrt.rn." + type);
    add1<Reciprocal, T, T>("rcp.rn." + type);
    add1<Neg, T, T>("neg." + type);
    add1<Abs, T, T>("abs." + type);
    add1<Nearest, T, T>("cvt.rni." + type + "." + type);
    add1<TowardsZero, T, T>("cvt.rzi." + type + "." + type);
    add1<Floor, T, T>("cvt.rmi." + type + "." + type);
    comparisons<T>(type);
    comparisons<T, CompareUnordered>(type, "u");
    add2<IsNumber, Truth, T>("setp.num." + type);
    add2<IsNan, Truth, T>("setp.nan." + type);
    conversions<T, int16_t>("s16", type);
    conversions<T, uint16_t>("u16", type);
    conversions<T, int32_t>("s32", type);
    conversions<T, uint32_t>("u32", type);
    conversions<T, int64_t>("s64", type);
    conversions<T, uint64_t>("u64", type);
  }
  template <typename T, typename I>
  void conversions(const std::string &integer, const std::string &type) {
    add1<Convert<T>, T, I>("cvt.rn." + type + "." + integer);
    add1<Integer<I, true>, I, T>("cvt.rzi." + integer + "." + type);
    add1<Integer<I, false>, I, T>("cvt.rni." + integer + "." + type);
  }
  template <typename T> void halves(const std::string &type) {
    for (const char *rounding : {"", "rn."}) {
      add2<Add, T, T>(std::string("add.") + rounding + type);
      add2<Sub, T, T>(std::string("sub.") + rounding + type);
      add2<Mul, T, T>(std::string("mul.") + rounding + type);
      add2<Add, Pair<T>, Pair<T>>(std::string("add.") + rounding + type + "x2");
      add2<Sub, Pair<T>, Pair<T>>(std::string("sub.") + rounding + type + "x2");
      add2<Mul, Pair<T>, Pair<T>>(std::string("mul.") + rounding + type + "x2");
    }
    comparisons<T>(type);
    comparisons<T, CompareUnordered>(type, "u");
    add2<MaxNaN, T, T>("max.NaN." + type);
    add2<MinNaN, T, T>("min.NaN." + type);
    add2<MaxNaN, Pair<T>, Pair<T>>("max.NaN." + type + "x2");
    add2<MinNaN, Pair<T>, Pair<T>>("min.NaN." + type + "x2");
    add3<Fma, T, T>("fma.rn." + type);
    add3<Fma, Pair<T>, Pair<T>>("fma.rn." + type + "x2");
  }
  template <typename T> void bits(const std::string &type) {
    add2<And, T, T>("and." + type);
    add2<Or, T, T>("or." + type);
    add2<Xor, T, T>("xor." + type);
    add1<Not, T, T>("not." + type);
    add1<Same, T, T>("mov." + type);
  }
  template <typename T> void words(const std::string &size) {
    bits<T>("b" + size);
    add2<ShiftLeft, T, T, uint32_t>("shl.b" + size);
    add2<Compare<0>, Truth, T>("setp.eq.b" + size);
    add2<Compare<1>, Truth, T>("setp.ne.b" + size);
    for (const char *kind : {"b", "s", "u", "f"})
      add3<Select, T, T, T, Truth>("selp." + (kind + size));
    for (const char *kind : {"s", "u", "f"})
      add1<Same, T, T>("mov." + (kind + size));
  }
  template <typename To, typename From> void widths(const std::string &to, const std::string &from) {
    add1<Convert<To>, To, From>("cvt." + to + "." + from);
  }

  Forms() {
    integers<int16_t>("s16");
    integers<uint16_t>("u16");
    integers<int32_t>("s32");
    integers<uint32_t>("u32");
    integers<int64_t>("s64");
    integers<uint64_t>("u64");
    words<uint16_t>("16");
    words<uint32_t>("32");
    words<uint64_t>("64");
    bits<Truth>("pred");
    floats<float>("f32");
    floats<double>("f64");
    add2<Max, float, float>("max.f32");
    add2<Min, float, float>("min.f32");
    add2<MaxNaN, float, float>("max.NaN.f32");
    add2<MinNaN, float, float>("min.NaN.f32");
    halves<Bf16>("bf16");
    halves<_Float16>("f16");
    add1<Exp2, float, float>("ex2.approx.ftz.f32");
    add2<CopySign, float, float>("copysign.f32");
    // Exact here; a GPU's is two units in the last place from it at most.
    add1<PowerOfTwo, float, float>("ex2.approx.f32");
    add1<CountBits, uint32_t, uint32_t>("popc.b32");
    add2<CopySign, double, double>("copysign.f64");
    add2<MulWide<int32_t>, int32_t, int16_t>("mul.wide.s16");
    add2<MulWide<uint32_t>, uint32_t, uint16_t>("mul.wide.u16");
    add2<MulWide<int64_t>, int64_t, int32_t>("mul.wide.s32");
    add2<MulWide<uint64_t>, uint64_t, uint32_t>("mul.wide.u32");
    add3<MadWide<int64_t>, int64_t, int32_t, int32_t, int64_t>("mad.wide.s32");
    add3<MadWide<uint64_t>, uint64_t, uint32_t, uint32_t, uint64_t>("mad.wide.u32");
    add3<Permute, uint32_t, uint32_t>("prmt.b32");
    widths<uint64_t, uint32_t>("u64", "u32");
    widths<int64_t, int32_t>("s64", "s32");
    widths<uint64_t, uint16_t>("u64", "u16");
    widths<int64_t, int16_t>("s64", "s16");
    widths<uint32_t, uint64_t>("u32", "u64");
    widths<uint32_t, uint16_t>("u32", "u16");
    widths<int32_t, int16_t>("s32", "s16");
    widths<uint16_t, uint32_t>("u16", "u32");
    widths<uint16_t, uint64_t>("u16", "u64");
    add1<Convert<double>, double, float>("cvt.f64.f32");
    add1<Convert<float>, float, double>("cvt.rn.f32.f64");
    add1<FromBf16, float, Bf16>("cvt.f32.bf16");
    add1<ToBf16, Bf16, float>("cvt.rn.bf16.f32");
    add2<ToBf16Pair, Pair<Bf16>, float>("cvt.rn.bf16x2.f32");
    add1<FromF16, float, _Float16>("cvt.f32.f16");
    add1<ToF16, _Float16, float>("cvt.rn.f16.f32");
    add2<ToF16Pair, Pair<_Float16>, float>("cvt.rn.f16x2.f32");
    all["shfl.sync.bfly.b32"] = {shuffle<Butterfly>, "w", "wwww"};
    all["shfl.sync.down.b32"] = {shuffle<Down>, "w", "wwww"};
    all["shfl.sync.up.b32"] = {shuffle<Up>, "w", "wwww"};
    all["shfl.sync.idx.b32"] = {shuffle<Index>, "w", "wwww"};
    all["vote.sync.ballot.b32"] = {ballot, "w", "pw"};
    all["bar.warp.sync"] = {warpBarrier, "", "w"};
    all["mov.b32.pack"] = {pack<uint32_t, uint16_t>, "w", "H"};
    all["mov.b32.unpack"] = {unpack<uint32_t, uint16_t>, "H", "w"};
    all["mov.b64.pack"] = {pack<uint64_t, uint32_t>, "d", "W"};
    all["mov.b64.unpack"] = {unpack<uint64_t, uint32_t>, "W", "d"};
  }
};
} // namespace

const Form *formOf(const std::string &opcode) {
  static const Forms forms;
  auto found = forms.all.find(opcode);
  return found == forms.all.end() ? tensorFormOf(opcode) : &found->second;
}

} // namespace ptx
