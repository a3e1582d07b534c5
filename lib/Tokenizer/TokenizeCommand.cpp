//===- TokenizeCommand.cpp - the `tokenize` command ------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Tokenizer/ChatTemplate.h"
#include "Tokenizer/CommandLine.h"
#include "Tokenizer/Core/Error.h"
#include "Tokenizer/Portions.h"
#include "Tokenizer/ShardWriter.h"
#include "meshwright/HelpRequested.h"
#include "meshwright/Tokenize.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace meshwright {

using namespace tokenizer;
namespace fs = std::filesystem;

static constexpr const char *tokenizeUsage =
    "usage: meshwright tokenize FILE|DIR... --tokenizer FILE|DIR|bytes -o DIR [flags]\n"
    "  Tokenizes text into DIR/tokens-00000.bin and so on, training data for an executable's --data.\n"
    "  Each file is one document; in a .jsonl file each line is one: an object with the key `text`.\n"
    "  The tokenizer is copied into DIR, and by training runs from there into checkpoints.\n"
    "  --tokenizer FILE|DIR|bytes  Hugging Face tokenizer.json (BPE), SentencePiece model, a folder\n"
    "                              with either, or bytes: each byte is a token\n"
    "  -o DIR                      output folder\n"
    "  --field NAME                JSONL key of the text (text)\n"
    "  --documents                 also store document boundaries, for executables compiled with\n"
    "                              --packed\n"
    "  --pairs                     JSONL lines are one side of source-target pairs, for --source or\n"
    "                              --data of encoder-decoder models; implies --documents, and every\n"
    "                              line must have text\n"
    "  --begin-token TOKEN|none    token before each document (default: the tokenizer's)\n"
    "  --end-token TOKEN|none      token after each document (default: the tokenizer's end-of-document\n"
    "                              token)\n"
    "  --special-as-text           encode special tokens that occur in the text, such as\n"
    "                              <|endoftext|>, as ordinary text\n"
    "  --chat NAME|FILE            JSONL lines are conversations: `messages` with role and content.\n"
    "                              Chat template: chatml, llama3, gemma, or a JSON file. Only the\n"
    "                              assistant's messages are targets; the loss mask is written to\n"
    "                              DIR/tokens-00000.mask and so on, for --loss-mask\n"
    "  --messages NAME             JSONL key of the messages (messages)\n"
    "  --preferences               JSONL lines are preferences, `prompt`, `chosen` and `rejected`, for\n"
    "                              executables compiled with --loss dpo: each line becomes two\n"
    "                              documents, the prompt with either completion, of which only the\n"
    "                              completion's tokens are targets; implies --documents. With --chat all\n"
    "                              three are messages\n"
    "  --shard-tokens N            start a new file after the document that reaches N tokens\n"
    "                              (100000000)\n"
    "  --threads N                 encoder threads (all cores)\n";

namespace {

struct TokenizeOptions {
  std::vector<std::string> inputs;
  std::string tokenizer, folder, field = "text", begin, end, chat, messages = "messages";
  bool documents = false, specialAsText = false, pairs = false, preferences = false;
  bool hasMask() const { return preferences || !chat.empty(); }
  int64_t shardTokens = 100'000'000, threads = defaultThreads();
};

/// What becomes of a portion: documents in a row, of which the first may go on from the portion
/// before.
struct Encoded {
  std::vector<int32_t> ids;
  std::vector<uint8_t> mask;
  std::vector<size_t> ends; ///< of documents, in `ids`
  /// Bytes of text up to each end, and at last of what follows the last one.
  std::vector<uint64_t> textBytes = {0};
  size_t empty = 0;         ///< documents without text, which are left out

  void endDocument() {
    ends.push_back(ids.size());
    textBytes.push_back(0);
  }
};

/// Encodes portions on one thread.
class PortionEncoder {
public:
  PortionEncoder(const TokenizeOptions &options, const Corpus &corpus, const Tokenizer &tokenizer,
                 const std::vector<int32_t> &begin, const std::vector<int32_t> &end,
                 const ChatTemplate *chat)
      : options(options), corpus(corpus), begin(begin), end(end), chat(chat),
        encoder(tokenizer.makeEncoder(options.specialAsText)), reader(corpus, options.field) {}

  Encoded operator()(const Portion &portion) {
    Encoded result;
    if (options.preferences) {
      PortionReader::eachLine(portion, [&](std::string_view line) { addPreference(portion, line, result); });
      return result;
    }
    if (chat) {
      PortionReader::eachLine(portion,
                              [&](std::string_view line) { addChat(portion, line, result); });
      return result;
    }
    if (options.pairs)
      refuseBlankLines(portion);
    reader.each(portion, [&](const TextPart &part) {
      if (part.text.empty()) {
        if (options.pairs)
          failPair(portion, part.line, "\"" + options.field + "\" is empty");
        ++result.empty;
        return;
      }
      if (part.beginsDocument)
        result.ids.insert(result.ids.end(), begin.begin(), begin.end());
      encoder->encode(part.text, result.ids, part.beginsDocument);
      result.textBytes.back() += part.text.size();
      if (!part.endsDocument)
        return;
      result.ids.insert(result.ids.end(), end.begin(), end.end());
      if (options.pairs && result.ids.size() == (result.ends.empty() ? 0 : result.ends.back()))
        failPair(portion, part.line, "\"" + options.field + "\" has no token");
      result.endDocument();
    });
    return result;
  }

private:
  /// The place counts all lines before it, so it is made for an error only.
  template <typename... Words>
  [[noreturn]] void failLine(const Portion &portion, std::string_view line, const Words &...what) {
    fail(corpus.place(portion.file, line.data()), ": ", what...);
  }
  [[noreturn]] void failPair(const Portion &portion, const char *at, const std::string &what) {
    fail(corpus.place(portion.file, at), ": ", what,
         ", and would leave all pairs behind it with the wrong other side: remove the pair from both sides");
  }
  /// A blank line is no document. The end of a file may have some.
  void refuseBlankLines(const Portion &portion) {
    std::string_view bytes = portion.bytes;
    size_t last = bytes.find_last_not_of(" \t\r\n");
    for (size_t begin = 0; begin < bytes.size() && (!portion.endsFile || begin < last);) {
      size_t end = std::min(bytes.find('\n', begin), bytes.size());
      if (bytes.substr(begin, end - begin).find_first_not_of(" \t\r") == bytes.npos)
        failPair(portion, bytes.data() + begin, "the line is blank");
      begin = end + 1;
    }
  }

  /// The prompt of a preference with each of its completions.
  void addPreference(const Portion &portion, std::string_view line, Encoded &result) {
    nlohmann::json object = parsed(portion, line);
    for (const char *key : {"prompt", "chosen", "rejected"}) {
      bool isThere = object.is_object() && object.contains(key);
      if (!isThere || (chat ? !object[key].is_array() || object[key].empty() : !object[key].is_string()))
        failLine(portion, line, "has no ", chat ? "array of messages" : "string", " \"", key,
                 "\"; a preference is an object with prompt, chosen and rejected",
                 isThere && !chat && object[key].is_array() ? ": give --chat for prompts that are messages" : "");
    }
    for (const char *key : {"chosen", "rejected"}) {
      std::vector<ChatPart> parts = {{object["prompt"].is_string() ? object["prompt"].get<std::string>() : "", false},
                                     {object[key].is_string() ? object[key].get<std::string>() : "", true}};
      if (chat) {
        nlohmann::json messages = object["prompt"];
        messages.insert(messages.end(), object[key].begin(), object[key].end());
        parts = rendered(portion, line, messages, object["prompt"].size());
      }
      addParts(parts, /*endCounts=*/!chat, result);
      size_t from = result.ends.size() > 1 ? result.ends[result.ends.size() - 2] : 0;
      // Nothing predicts a document's first token, which it may lack.
      size_t second = std::min(from + 1, result.mask.size());
      if (std::find(result.mask.begin() + int64_t(second), result.mask.end(), 1) == result.mask.end())
        failLine(portion, line, "\"", key,
                 "\" has no token that counts as a target: a completion needs text or an end token, and "
                 "something before it");
    }
  }

  nlohmann::json parsed(const Portion &portion, std::string_view line) {
    nlohmann::json object = nlohmann::json::parse(line, nullptr, false);
    if (object.is_discarded())
      failLine(portion, line, "is no JSON, or not in UTF-8; each line of a .jsonl file is an object");
    return object;
  }

  std::vector<ChatPart> rendered(const Portion &portion, std::string_view line, const nlohmann::json &messages,
                                 size_t first) {
    try {
      return chat->render(messages, first);
    } catch (const tokenizer::Error &error) {
      failLine(portion, line, error.what());
    }
  }

  /// A document of parts, each encoded by itself.
  void addParts(const std::vector<ChatPart> &parts, bool endCounts, Encoded &result) {
    result.ids.insert(result.ids.end(), begin.begin(), begin.end());
    result.mask.resize(result.ids.size(), 0);
    bool first = true;
    for (const ChatPart &part : parts) {
      encoder->encode(part.text, result.ids, first);
      result.textBytes.back() += part.text.size();
      first = false;
      result.mask.resize(result.ids.size(), part.counts);
    }
    result.ids.insert(result.ids.end(), end.begin(), end.end());
    result.mask.resize(result.ids.size(), endCounts);
    result.endDocument();
  }

  void addChat(const Portion &portion, std::string_view line, Encoded &result) {
    nlohmann::json object = parsed(portion, line);
    auto found = object.is_object() ? object.find(options.messages) : object.end();
    if (found == object.end() || !found->is_array() || found->empty())
      failLine(portion, line, "has no \"", options.messages,
               "\" that is an array of messages; give --messages with the one that has them");
    addParts(rendered(portion, line, *found, 0), /*endCounts=*/false, result);
  }

  const TokenizeOptions &options;
  const Corpus &corpus;
  const std::vector<int32_t> &begin, &end;
  const ChatTemplate *chat;
  std::unique_ptr<Encoder> encoder;
  PortionReader reader;
};

} // namespace

/// The tokens that `flag` puts at an end of documents.
static std::vector<int32_t> tokensAt(const std::string &flag, const std::string &value,
                                     const Tokenizer &tokenizer,
                                     const std::vector<int32_t> &otherwise) {
  if (value.empty())
    return otherwise;
  if (value == "none")
    return {};
  std::optional<int32_t> id = tokenizer.idOf(value);
  if (!id)
    fail(flag, " ", value,
         " is no token of the tokenizer; name one of its special tokens as its file "
         "has them, or none");
  return {*id};
}

static TokenizeOptions parse(llvm::ArrayRef<std::string> args) {
  TokenizeOptions options;
  parseFlags(args,
             {{"--tokenizer", &options.tokenizer},
              {"-o", &options.folder},
              {"--field", &options.field},
              {"--documents", &options.documents},
              {"--pairs", &options.pairs},
              {"--begin-token", &options.begin},
              {"--end-token", &options.end},
              {"--special-as-text", &options.specialAsText},
              {"--chat", &options.chat},
              {"--messages", &options.messages},
              {"--preferences", &options.preferences},
              {"--shard-tokens", NumberFlag{&options.shardTokens, 1, INT64_MAX}},
              {"--threads", NumberFlag{&options.threads, 1, 1024}}},
             options.inputs, tokenizeUsage);
  if (options.inputs.empty())
    fail("no text given\n", tokenizeUsage);
  if (options.tokenizer.empty())
    fail("--tokenizer is missing: give a tokenizer.json, a SentencePiece model, or bytes");
  if (options.folder.empty())
    fail("-o is missing: it says which folder tokens go to");
  if (!options.chat.empty() && options.specialAsText)
    fail("--special-as-text would encode the marks of --chat as text: leave one of them out");
  if (options.pairs && !options.chat.empty())
    fail("--pairs is for two texts, and --chat for conversations, which have both sides: leave one of them out");
  if (options.preferences && options.pairs)
    fail("--pairs is for sources and targets, and --preferences for completions to compare: leave one of them out");
  if (options.preferences && options.field != "text")
    fail("--field names the key of one text, and --preferences reads prompt, chosen and rejected: leave it out");
  options.documents |= options.pairs || options.preferences;
  if ((options.chat.empty() || options.preferences) && options.messages != "messages")
    fail(options.preferences ? "--messages is for conversations, and --preferences reads prompt, chosen and rejected: leave it out"
                             : "--messages is for conversations: give --chat too, or leave it out");
  return options;
}

/// Makes the folder; an Error if tokens are in it.
static void prepare(const std::string &folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    fail("cannot make the folder '", folder, "': ", error.message());
  for (fs::directory_iterator file(folder, error), end; !error && file != end;
       file.increment(error)) {
    std::string name = file->path().filename().string();
    if (name.rfind("tokens-", 0) == 0)
      fail("'", folder, "' holds ", name,
           " of an earlier run, which would pass for a part of this one: "
           "remove it, or name another folder for -o");
  }
  if (error)
    fail("cannot read the folder '", folder, "': ", error.message());
}

/// The file that `path`, the value of --tokenizer, names.
static fs::path fileOf(const std::string &path) {
  std::error_code error;
  if (!fs::is_directory(path, error))
    return path;
  fs::path json = fs::path(path) / "tokenizer.json";
  return fs::is_regular_file(json, error) ? json : fs::path(path) / "tokenizer.model";
}

/// Puts the tokenizer beside the tokens; the checksum of its file.
static uint64_t copyTokenizer(const TokenizeOptions &options) {
  fs::path from = fileOf(options.tokenizer);
  std::ifstream file(from, std::ios::binary);
  std::string contents((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  bool isJson = contents.find_first_not_of(" \t\r\n") != contents.npos &&
                contents[contents.find_first_not_of(" \t\r\n")] == '{';
  fs::path to = fs::path(options.folder) / (isJson ? "tokenizer.json" : "tokenizer.model");
  std::error_code error;
  if (!fs::equivalent(from, to, error)) {
    fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
    if (error)
      fail("cannot write '", to.string(), "': ", error.message());
  }
  return XXH3_64bits(contents.data(), contents.size());
}

/// An Error naming a file that is no JSONL, where `reads` says what is read of lines.
static void refuseOtherFiles(const Corpus &corpus, const char *reads) {
  for (size_t i = 0; i < corpus.files(); ++i)
    if (!corpus.isJsonLines(i))
      fail("'", corpus.path(i), "' is no .jsonl file: ", reads, " from lines of JSONL");
}

static void run(const TokenizeOptions &options, llvm::raw_ostream &os) {
  bool bytes = options.tokenizer == "bytes";
  std::unique_ptr<Tokenizer> tokenizer = loadTokenizer(options.tokenizer);
  std::optional<ChatTemplate> chat;
  if (!options.chat.empty())
    chat = ChatTemplate::load(options.chat);
  for (const std::string &mark : tokenizer->marksNotFound())
    if (chat && chat->has(mark))
      fail("--chat ", options.chat, " has ", mark,
           ", a control token of the SentencePiece model, whose library reads it in text as plain characters: "
           "give --tokenizer the model's tokenizer.json");

  // A template has what conversations begin and end with.
  std::vector<int32_t> begin, end;
  if (!chat) {
    begin = tokenizer->before();
    end = tokenizer->behind();
    if (end.empty() && tokenizer->endToken())
      end = {*tokenizer->endToken()};
  }
  begin = tokensAt("--begin-token", options.begin, *tokenizer, begin);
  end = tokensAt("--end-token", options.end, *tokenizer, end);
  if (end.empty() && options.end.empty() && !chat && !bytes)
    fail("the tokenizer does not say which token ends documents: give --end-token with it, or "
         "--end-token "
         "none");

  Corpus corpus(options.inputs, bytes);
  if (chat)
    refuseOtherFiles(corpus, "--chat reads conversations");
  if (options.pairs)
    refuseOtherFiles(corpus, "--pairs reads one side of pairs");
  if (options.preferences)
    refuseOtherFiles(corpus, "--preferences reads prompts and completions");
  prepare(options.folder);

  ShardWriter::Options shards;
  shards.folder = options.folder;
  shards.shardTokens = uint64_t(options.shardTokens);
  shards.documents = options.documents;
  shards.together = options.preferences ? 2 : 1;
  shards.mask = options.hasMask();
  int64_t vocabulary = tokenizer->vocabulary();
  shards.header.vocabulary = int32_t(vocabulary);
  shards.header.tokenBytes = vocabulary <= 1 << 8 ? 1 : vocabulary <= 1 << 16 ? 2 : 4;
  shards.header.endToken = end.empty() ? -1 : end.back();
  shards.header.tokenizer = bytes ? 0 : copyTokenizer(options);
  ShardWriter writer(shards);

  ProgressBar progress(corpus.bytes());
  size_t empty = corpus.emptyDocuments(), counted = 0;
  forEachPortion<Encoded>(
      corpus, *tokenizer, int(options.threads), progress,
      [&] {
        return PortionEncoder(options, corpus, *tokenizer, begin, end, chat ? &*chat : nullptr);
      },
      [&](const Encoded &encoded) {
        size_t done = 0, documents = encoded.ends.size();
        auto add = [&](size_t to, uint64_t textBytes) {
          writer.add(encoded.ids.data() + done, encoded.mask.data() + (options.hasMask() ? done : 0), to - done,
                     textBytes);
          done = to;
        };
        for (size_t i = 0; i < documents; ++i) {
          add(encoded.ends[i], encoded.textBytes[i]);
          writer.endDocument();
        }
        add(encoded.ids.size(), encoded.textBytes[documents]);
        empty += encoded.empty;
        for (uint8_t each : encoded.mask)
          counted += each;
      });
  writer.finish();
  if (writer.tokens() == 0)
    fail("there is no text in ", corpus.files(), " files, so nothing was written");

  double seconds = progress.seconds();
  os << llvm::formatv(
      "{0:N} tokens (u{1}, vocabulary {2}) of {3:N} documents in {4} {5}, {6:f2} bytes a "
      "token\n",
      writer.tokens(), 8 * shards.header.tokenBytes, vocabulary, writer.documents(),
      writer.shards(), writer.shards() == 1 ? "file" : "files",
      double(writer.textBytes()) / double(writer.tokens()));
  if (options.hasMask())
    os << llvm::formatv("{0:N} tokens count as targets\n", counted);
  std::string unknown;
  for (const std::string &mark : chat && !bytes ? chat->marks() : std::set<std::string>())
    if (!tokenizer->idOf(mark))
      unknown += (unknown.empty() ? "" : ", ") + mark;
  if (!unknown.empty())
    os << "note: --chat " << options.chat << " writes what is no token of the tokenizer, so it is ordinary text: "
       << unknown << "\n";
  if (empty)
    os << llvm::formatv("{0:N} documents without text were left out\n", empty);
  os << llvm::formatv("{0:f1} MB in {1:f1} s, {2:f1} MB/s\n", double(corpus.bytes()) / 1e6, seconds,
                      double(corpus.bytes()) / 1e6 / std::max(seconds, 1e-9));
}

llvm::Error tokenize(llvm::ArrayRef<std::string> args, llvm::raw_ostream &os) {
  if (llvm::is_contained(args, "-h") || llvm::is_contained(args, "--help"))
    return llvm::make_error<HelpRequested>(tokenizeUsage);
  try {
    run(parse(args), os);
  } catch (const tokenizer::Error &error) {
    return llvm::createStringError(error.what());
  }
  return llvm::Error::success();
}

} // namespace meshwright
