//===- PtxParser.cpp - the text of PTX -------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Ptx.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace ptx {

static std::string trim(const std::string &text) {
  size_t begin = text.find_first_not_of(" \t\r"), end = text.find_last_not_of(" \t\r");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

/// At commas outside of braces and brackets.
static std::vector<std::string> split(const std::string &text) {
  std::vector<std::string> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    char c = i < text.size() ? text[i] : ',';
    depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
    if (c == ',' && (depth == 0 || i == text.size())) {
      if (std::string part = trim(text.substr(begin, i - begin)); !part.empty())
        parts.push_back(part);
      begin = i + 1;
    }
  }
  return parts;
}

static bool starts(const std::string &text, const char *with) {
  return text.compare(0, strlen(with), with) == 0;
}

class Parser {
public:
  Parser(Module &module, const std::string &text) : module(module), text(text) {}

  void parse() {
    for (size_t at = 0; at < text.size();) {
      size_t end = std::min(text.find('\n', at), text.size());
      std::string current = text.substr(at, end - at);
      at = end + 1;
      ++line;
      if (size_t comment = current.find("//"); comment != std::string::npos)
        current.resize(comment);
      current = trim(current);
      // An instruction whose lists have lines of their own.
      if (!pending.empty() || (entry && !inHead && starts(current, "mma.") && current.back() != ';')) {
        pending += current + " ";
        if (current.empty() || current.back() != ';')
          continue;
        current = trim(std::exchange(pending, ""));
      }
      if (!current.empty())
        statement(current);
    }
  }

private:
  [[noreturn]] void wrong(const std::string &what) const {
    throw std::runtime_error("line " + std::to_string(line) + " of the PTX: " + what);
  }

  void statement(const std::string &s) {
    if (!entry)
      return outside(s);
    if (inHead)
      return head(s);
    if (s == "}")
      return finish();
    if (s == "{")
      return;
    if (starts(s, ".reg"))
      return;
    // What LLVM writes before PTX 7.1 for a half that nobody needs, {_, %r1} since then.
    if (starts(s, "{ .reg .b32 tmp;")) {
      std::string move = trim(s.substr(16, s.rfind(';') - 16));
      return instruction(move.replace(move.find("tmp"), 3, "_"));
    }
    if (starts(s, ".shared"))
      return variable(s, true);
    if (starts(s, ".pragma") || starts(s, ".loc") || starts(s, ".file"))
      return;
    if (s.back() == ':')
      labels[s.substr(0, s.size() - 1)] = int(entry->code.size());
    else if (s.back() == ';')
      instruction(s.substr(0, s.size() - 1));
    else
      wrong("'" + s + "' is not known");
  }

  void outside(const std::string &s) {
    if (size_t at = s.find(".entry "); at != std::string::npos) {
      std::string name = s.substr(at + 7);
      entry = &module.all[name.substr(0, name.find('('))];
      *entry = Entry();
      entry->name = name.substr(0, name.find('('));
      inHead = true;
      sharedBytes = 0;
      symbols.clear();
      labels.clear();
      jumps.clear();
      rows32.clear();
      rows64.clear();
      return head(name);
    }
    if (starts(s, ".extern .shared")) {
      dynamic = nameOf(s);
      return;
    }
    if (starts(s, ".global") || starts(s, ".visible .global") || starts(s, ".const"))
      return variable(s, false);
    for (const char *known : {".version", ".target", ".address_size", ".visible", ".weak", "}"})
      if (starts(s, known))
        return;
    wrong("'" + s + "' is not known");
  }

  void head(const std::string &s) {
    for (size_t at = 0; (at = s.find(".param ", at)) != std::string::npos; ++at) {
      if (s.find("64", at) == std::string::npos)
        wrong("a parameter that is not of 64 bits");
      ++entry->parameters;
    }
    for (const char *word : {".maxntid ", ".reqntid "})
      if (size_t at = s.find(word); at != std::string::npos)
        entry->threads = atoi(s.c_str() + at + strlen(word));
    if (s.back() == '{')
      inHead = false;
  }

  static std::string nameOf(const std::string &s) {
    size_t end = s.find('['), begin = s.find_last_of(" \t", end);
    return s.substr(begin + 1, end - begin - 1);
  }

  /// ".shared .align 4 .b8 name[32];", or with "= {..}" a constant.
  void variable(const std::string &s, bool isShared) {
    size_t open = s.find('['), align = s.find(".align ");
    if (open == std::string::npos || s.find(".b8") == std::string::npos)
      wrong("'" + s + "' is no array of bytes");
    std::string name = nameOf(s);
    auto bytes = size_t(atoll(s.c_str() + open + 1));
    if (isShared) {
      int64_t alignment = align == std::string::npos ? 16 : atoll(s.c_str() + align + 7);
      sharedBytes = (sharedBytes + alignment - 1) / alignment * alignment;
      symbols[name] = sharedBase + uint64_t(sharedBytes);
      sharedBytes += int64_t(bytes);
      return;
    }
    // Room to begin at a multiple of 256, as the driver's allocations do.
    std::vector<char> &data = module.data[name];
    data.assign(bytes + 256, 0);
    uint64_t begin = (uint64_t(data.data()) + 255) / 256 * 256;
    if (size_t brace = s.find('{'); brace != std::string::npos) {
      size_t i = 0;
      for (const std::string &value : split(s.substr(brace + 1, s.find('}') - brace - 1)))
        reinterpret_cast<char *>(begin)[i++] = char(atoi(value.c_str()));
    }
    globals[name] = begin;
  }

  //===--- instructions ---------------------------------------------------===//

  int row(const std::string &name, bool isWide) {
    auto &rows = isWide ? rows64 : rows32;
    return rows.emplace(name, int(rows.size())).first->second;
  }

  static uint64_t number(const std::string &s, bool isWide) {
    if (starts(s, "0f")) {
      auto bits = uint32_t(strtoul(s.c_str() + 2, nullptr, 16));
      return bits;
    }
    if (starts(s, "0d"))
      return strtoull(s.c_str() + 2, nullptr, 16);
    char *end = nullptr;
    uint64_t value = s[0] == '-' ? uint64_t(strtoll(s.c_str(), &end, 0))
                                 : uint64_t(strtoull(s.c_str(), &end, 0));
    if (*end && strcmp(end, "U"))
      throw std::runtime_error("'" + s + "' is no number");
    return isWide ? value : uint32_t(value);
  }

  /// The row of a register, constant or symbol of the width that `letter` names.
  int operand(const std::string &s, char letter) {
    bool isWide = letter == 'd';
    if (s == "_")
      return -1;
    if (s[0] == '%') {
      bool named = starts(s, "%rd");
      if (named != isWide)
        wrong(s + " has not the width of its instruction");
      return row(s, isWide);
    }
    uint64_t value;
    if (auto symbol = symbols.find(s); symbol != symbols.end())
      value = symbol->second;
    else if (auto global = globals.find(s); global != globals.end())
      value = global->second;
    else if (size_t at = s.rfind("_param_"); at != std::string::npos && s.compare(0, at, entry->name) == 0)
      value = 8 * uint64_t(atoi(s.c_str() + at + strlen("_param_")));
    else if (s == dynamic)
      return row("dynamic", true);
    else
      value = number(s, isWide);
    bool isNew = !(isWide ? rows64 : rows32).count("= " + std::to_string(value));
    int result = row("= " + std::to_string(value), isWide);
    if (isNew && isWide)
      entry->constants64.push_back({result, value});
    else if (isNew)
      entry->constants32.push_back({result, uint32_t(value)});
    return result;
  }

  /// One operand or the elements of a {list}.
  std::vector<int> operands(const std::string &s, char letter) {
    std::vector<int> result;
    if (s[0] != '{')
      return {operand(s, letter)};
    for (const std::string &part : split(s.substr(1, s.size() - 2)))
      result.push_back(operand(part, letter));
    return result;
  }

  void instruction(std::string s) {
    Instruction result;
    result.line = line;
    if (s[0] == '@') {
      result.negated = s[1] == '!';
      size_t begin = result.negated ? 2 : 1, end = s.find_first_of(" \t");
      result.guard = operand(s.substr(begin, end - begin), 'p');
      s = trim(s.substr(end));
    }
    size_t space = std::min(s.find_first_of(" \t"), s.size());
    std::string opcode = s.substr(0, space);
    std::vector<std::string> parts = split(s.substr(space));
    if (opcode == "bra" || opcode == "bra.uni") {
      result.kind = Instruction::branch;
      jumps.push_back({int(entry->code.size()), parts.at(0)});
    } else if (opcode == "ret" || opcode == "exit") {
      result.kind = Instruction::ret;
    } else if (opcode == "bar.sync" || opcode == "barrier.sync") {
      if (parts.size() != 1 || parts[0] != "0")
        wrong("only barrier 0 of all threads is known");
      result.kind = Instruction::barrier;
    } else if (starts(opcode, "ld.") || starts(opcode, "st.")) {
      access(result, opcode, parts);
    } else {
      compute(result, opcode, parts);
    }
    entry->code.push_back(result);
  }

  /// Of "[%rd1+16]", the row of the register and the number.
  int address(const std::string &s, int64_t &offset) {
    std::string place = trim(s.substr(1, s.size() - 2));
    size_t plus = place.find('+');
    offset = plus == std::string::npos ? 0 : atoll(place.c_str() + plus + 1);
    return operand(place.substr(0, plus), 'd');
  }

  void access(Instruction &result, const std::string &opcode, const std::vector<std::string> &parts) {
    bool isLoad = opcode[0] == 'l';
    std::string space, last;
    int count = 1;
    for (size_t begin = 3; begin <= opcode.size();) {
      size_t end = std::min(opcode.find('.', begin), opcode.size());
      last = opcode.substr(begin, end - begin);
      if (last == "global" || last == "shared" || last == "param")
        space = last;
      else if (last == "v2" || last == "v4" || last == "v8")
        count = last[1] - '0';
      else if (end != opcode.size() && last != "nc" && last != "cs" && last != "cg" &&
               last != "ca" && last != "lu" && last != "cv" && last != "wb" && last != "wt" && !starts(last, "L1::") && !starts(last, "L2::"))
        wrong("'" + opcode + "' is not known");
      begin = end + 1;
    }
    int bits = atoi(last.c_str() + 1);
    char letter = bits == 64 ? 'd' : 'w';
    if (parts.size() != 2 || (bits != 8 && bits != 16 && bits != 32 && bits != 64))
      wrong("'" + opcode + "' is not known");
    const std::string &place = isLoad ? parts[1] : parts[0];
    bool isWider = isLoad && count == 1 && space != "param" &&
                   (starts(parts[0], "%rd") ? bits < 64 : last == "s16" || last == "s8");
    if (last == "s8" && !isWider)
      wrong("'" + opcode + "' is not known");
    bool isLow = !isLoad && count == 1 && bits < 64 && starts(parts[1], "%rd");
    if (isLow)
      letter = 'd';
    if (isWider)
      letter = starts(parts[0], "%rd") ? 'd' : 'w';
    std::vector<int> values = operands(isLoad ? parts[0] : parts[1], letter);
    if (int(values.size()) != count)
      wrong("not as many elements as the instruction has");
    int base = address(place, result.offset);
    if (space == "param") {
      if (!isLoad || count != 1 || bits < 32)
        wrong("'" + opcode + "' is not known");
      result.to = values;
      result.from = {base};
      result.action = parameterOf(bits / 8);
      return;
    }
    if (space.empty())
      wrong("generic addresses are not known: '" + opcode + "'");
    result.from = {base};
    if (isLoad)
      result.to = values;
    else
      result.from.insert(result.from.end(), values.begin(), values.end());
    result.action = isWider ? widerLoadOf(space, last, letter == 'd')
                    : isLow   ? lowStoreOf(space, bits / 8)
                    : isLoad  ? loadOf(space, bits / 8, count) : storeOf(space, bits / 8, count);
    if (!result.action)
      wrong("'" + opcode + "' is not known");
  }

  void compute(Instruction &result, std::string opcode, const std::vector<std::string> &parts) {
    if (starts(opcode, "mov.") && parts.size() == 2) {
      if ((result.action = specialOf(parts[1]))) {
        result.to = {operand(parts[0], 'w')};
        return;
      }
      if (parts[0][0] == '{')
        opcode += ".unpack";
      else if (parts[1][0] == '{')
        opcode += ".pack";
    }
    const Form *form = formOf(opcode);
    if (!form)
      wrong("'" + opcode + "' is not known");
    if (parts.size() != form->to.size() + form->from.size())
      wrong("'" + opcode + "' with " + std::to_string(parts.size()) + " operands");
    size_t i = 0;
    for (char letter : form->to)
      for (int r : operands(parts[i++], char(tolower(letter))))
        result.to.push_back(r);
    int64_t *offset = &result.offset;
    for (char letter : form->from) {
      const std::string &part = parts[i++];
      if (letter == 'a') {
        result.from.push_back(address(part, *offset));
        offset = &result.offset2;
        continue;
      }
      for (int r : operands(part, char(tolower(letter))))
        result.from.push_back(r);
    }
    result.action = form->action;
  }

  void finish() {
    for (auto &[at, label] : jumps) {
      auto found = labels.find(label);
      if (found == labels.end())
        wrong("no label " + label + " in " + entry->name);
      entry->code[size_t(at)].target = found->second;
    }
    findJoins();
    entry->sharedBytes = (sharedBytes + 15) / 16 * 16;
    if (auto found = rows64.find("dynamic"); found != rows64.end())
      entry->constants64.push_back({found->second, sharedBase + uint64_t(entry->sharedBytes)});
    entry->rows32 = int(rows32.size());
    entry->rows64 = int(rows64.size());
    entry = nullptr;
  }

  /// The immediate postdominators of blocks that end with a branch.
  void findJoins() {
    std::vector<Instruction> &code = entry->code;
    auto count = int(code.size());
    std::vector<int> begins; // Of blocks; the last one is the end.
    std::vector<char> leads(size_t(count) + 1);
    leads[0] = leads[size_t(count)] = 1;
    for (int i = 0; i < count; ++i) {
      if (code[size_t(i)].kind == Instruction::branch)
        leads[size_t(code[size_t(i)].target)] = 1;
      if (code[size_t(i)].kind == Instruction::branch || code[size_t(i)].kind == Instruction::ret)
        leads[size_t(i) + 1] = 1;
    }
    std::vector<int> blockAt(size_t(count) + 1);
    for (int i = 0; i <= count; ++i) {
      if (leads[size_t(i)])
        begins.push_back(i);
      blockAt[size_t(i)] = int(begins.size()) - 1;
    }
    auto end = int(begins.size()) - 1;
    auto last = [&](int block) -> Instruction & { return code[size_t(begins[size_t(block) + 1]) - 1]; };
    auto successors = [&](int block) -> std::vector<int> {
      const Instruction &i = last(block);
      if (i.kind == Instruction::ret)
        return {end};
      if (i.kind != Instruction::branch)
        return {block + 1};
      int target = blockAt[size_t(i.target)];
      return i.guard < 0 ? std::vector<int>{target} : std::vector<int>{block + 1, target};
    };
    // Of each block those that every way from it comes through.
    std::vector<std::vector<char>> after(size_t(end) + 1, std::vector<char>(size_t(end) + 1, 1));
    after[size_t(end)].assign(size_t(end) + 1, 0);
    after[size_t(end)][size_t(end)] = 1;
    for (bool changed = true; changed;) {
      changed = false;
      for (int block = end - 1; block >= 0; --block) {
        std::vector<char> now(size_t(end) + 1, 1);
        for (int next : successors(block))
          for (int b = 0; b <= end; ++b)
            now[size_t(b)] &= after[size_t(next)][size_t(b)];
        now[size_t(block)] = 1;
        changed |= now != after[size_t(block)];
        after[size_t(block)] = now;
      }
    }
    auto size = [&](int block) {
      return std::count(after[size_t(block)].begin(), after[size_t(block)].end(), 1);
    };
    for (int block = 0; block < end; ++block)
      for (int b = 0; b <= end; ++b)
        if (b != block && after[size_t(block)][size_t(b)] && size(b) == size(block) - 1)
          last(block).join = begins[size_t(b)];
  }

  Module &module;
  const std::string &text;
  int line = 0;
  std::string pending; ///< an instruction's first lines
  Entry *entry = nullptr;
  bool inHead = false;
  int64_t sharedBytes = 0;
  std::string dynamic = "no such symbol";
  std::map<std::string, uint64_t> symbols, globals;
  std::map<std::string, int> labels, rows32, rows64;
  std::vector<std::pair<int, std::string>> jumps;
};

Module::Module(const std::string &text) { Parser(*this, text).parse(); }

} // namespace ptx
