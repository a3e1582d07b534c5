//===- Corpus.cpp - text in files ---------------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Tokenizer/Corpus.h"

#include "Tokenizer/Core/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace meshwright::tokenizer {

namespace fs = std::filesystem;

/// How much one thread encodes at a time, about.
static constexpr size_t portionBytes = size_t(1) << 20;

namespace {
/// What files begin with that hold no text as it is, and what to do with them.
struct OtherFormat {
  std::string_view begin;
  const char *name, *remedy;
};
} // namespace

static constexpr OtherFormat otherFormats[] = {
    {"\x1f\x8b", "compressed by gzip", "decompress it first (gunzip)"},
    {"\x28\xb5\x2f\xfd", "compressed by Zstandard", "decompress it first (unzstd)"},
    {"\xfd"
     "7zXZ",
     "compressed by xz", "decompress it first (unxz)"},
    {"BZh", "compressed by bzip2", "decompress it first (bunzip2)"},
    {"PK\x03\x04", "a ZIP archive", "unpack it first (unzip)"},
    {"PAR1", "a Parquet file",
     "write its text as JSONL first, e.g. pandas.read_parquet(FILE).to_json("
     "\"text.jsonl\", orient=\"records\", lines=True)"},
    {"\xff\xfe", "UTF-16 text", "convert it first (iconv -f UTF-16 -t UTF-8)"},
    {"\xfe\xff", "UTF-16 text", "convert it first (iconv -f UTF-16 -t UTF-8)"},
    {"%PDF-", "a PDF file", "extract its text first (pdftotext)"}};

/// Why a file that begins with `text` is no text; empty if it may be.
static std::string notText(std::string_view text) {
  for (const OtherFormat &format : otherFormats)
    if (text.substr(0, format.begin.size()) == format.begin)
      return std::string("is ") + format.name + ", which is not read: " + format.remedy;
  // As git and grep tell binary files.
  if (size_t zero = text.substr(0, 8000).find('\0'); zero != text.npos)
    return "is no text: its byte " + std::to_string(zero) +
           " is 0; name text files, or use --tokenizer bytes for files of any kind";
  return "";
}

Corpus::Corpus(const std::vector<std::string> &paths, bool anyBytes) {
  for (const std::string &path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      addFile(path, anyBytes);
      continue;
    }
    std::vector<std::string> found;
    fs::recursive_directory_iterator entry(path, error), end;
    for (; !error && entry != end; entry.increment(error)) {
      bool hidden = entry->path().filename().string()[0] == '.';
      if (hidden && entry->is_directory())
        entry.disable_recursion_pending();
      else if (!hidden && entry->is_regular_file())
        found.push_back(entry->path().string());
    }
    if (error)
      fail("cannot read the folder '", path, "': ", error.message());
    if (found.empty())
      fail("the folder '", path, "' holds no files (hidden ones are not read)");
    std::sort(found.begin(), found.end());
    for (const std::string &file : found)
      addFile(file, anyBytes);
  }
}

Corpus::~Corpus() {
  for (const Source &source : sources)
    if (!source.text.empty())
      munmap(const_cast<char *>(source.text.data()), source.text.size());
}

void Corpus::addFile(const std::string &path, bool anyBytes) {
  int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status;
  if (descriptor < 0 || fstat(descriptor, &status) != 0) {
    int why = errno;
    if (descriptor >= 0)
      ::close(descriptor);
    fail("cannot read '", path, "': ", strerror(why));
  }
  if (!S_ISREG(status.st_mode)) {
    ::close(descriptor);
    fail("cannot read '", path, "': it is a pipe or a device; name a regular file");
  }
  std::string_view text;
  if (status.st_size > 0) {
    void *mapped = mmap(nullptr, size_t(status.st_size), PROT_READ, MAP_PRIVATE, descriptor, 0);
    int why = errno;
    ::close(descriptor);
    if (mapped == MAP_FAILED)
      fail("cannot read '", path, "': ", strerror(why));
    madvise(mapped, size_t(status.st_size), MADV_SEQUENTIAL);
    text = {static_cast<const char *>(mapped), size_t(status.st_size)};
  } else {
    ::close(descriptor);
  }
  fs::path ending = fs::path(path).extension();
  bool isJsonLines = ending == ".jsonl" || ending == ".ndjson";
  sources.push_back({path, isJsonLines, text});
  if (std::string why = anyBytes && !isJsonLines ? "" : notText(text); !why.empty())
    fail("'", path, "' ", why);
}

uint64_t Corpus::bytes() const {
  uint64_t sum = 0;
  for (const Source &source : sources)
    sum += source.text.size();
  return sum;
}

bool Corpus::next(const Tokenizer &tokenizer, Portion &portion) {
  while (file < sources.size() && offset == sources[file].text.size()) {
    ++file;
    offset = 0;
  }
  if (file == sources.size())
    return false;
  const Source &source = sources[file];
  size_t end = source.text.size();
  if (end - offset > portionBytes) {
    size_t from = offset + portionBytes;
    if (!source.isJsonLines)
      end = tokenizer.cut(source.text, from);
    else if (size_t line = source.text.find('\n', from); line != source.text.npos)
      end = line + 1;
    // Blank lines at the end of a file stay with the last line.
    if (source.isJsonLines && source.text.find_first_not_of(" \t\r\n", end) == source.text.npos)
      end = source.text.size();
  }
  portion = {file, source.text.substr(offset, end - offset), offset == 0,
             end == source.text.size()};
  offset = end;
  return true;
}

std::string Corpus::place(size_t file, const char *at) const {
  const Source &source = sources[file];
  auto line = 1 + std::count(source.text.data(), at, '\n');
  return "'" + source.path + "', line " + std::to_string(line);
}

std::string_view PortionReader::textOf(const Portion &portion, std::string_view line) {
  nlohmann::json object = nlohmann::json::parse(line, nullptr, false);
  auto place = [&] { return corpus.place(portion.file, line.data()); };
  if (object.is_discarded())
    fail(place(), ": is no JSON, or not in UTF-8; each line of a .jsonl file is an object");
  auto found = object.is_object() ? object.find(field) : object.end();
  if (found == object.end() || !found->is_string()) {
    std::string names;
    if (object.is_object())
      for (const auto &[name, value] : object.items())
        if (value.is_string())
          names += (names.empty() ? "" : ", ") + name;
    fail(place(), ": has no string \"", field, "\"",
         names.empty() ? "" : "; give --field with the one that has the text: " + names);
  }
  text = found->get<std::string>();
  return text;
}

} // namespace meshwright::tokenizer
