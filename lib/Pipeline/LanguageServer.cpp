//===- LanguageServer.cpp - messages that MLIR's server survives -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// MLIR's server ends at a message that is no JSON-RPC, and its parsers of JSON and of IR
// recurse as brackets nest. It has no place for a check, but it reads from the C library's
// `stdin`, which may be any stream: here one that hands on what it has checked. The stream
// reads when the server asks for the next message, so answers of both take turns. Questions that
// Meshwright answers better, what is under the cursor and which attributes there are, do not reach
// MLIR's server.
//
//===----------------------------------------------------------------------===//
#include "meshwright/LanguageServer.h"

#include "EditorHelp.h"
#include "meshwright/IrText.h"
#include "meshwright/Json.h"
#include "meshwright/Register.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "llvm/Support/LSP/Protocol.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdio>
#include <cstring>

using namespace meshwright;
using llvm::StringRef;
namespace json = llvm::json;

static void sendMessage(json::Object message) {
  std::string text;
  message["jsonrpc"] = "2.0";
  llvm::raw_string_ostream(text) << json::Value(std::move(message));
  llvm::outs() << "Content-Length: " << text.size() << "\r\n\r\n" << text;
  llvm::outs().flush();
}

static void refuse(json::Value id, llvm::lsp::ErrorCode code, const llvm::Twine &what) {
  sendMessage(json::Object{
      {"id", std::move(id)},
      {"error", json::Object{{"code", int(code)}, {"message", what.str()}}}});
}

/// Marks where a document would end MLIR's parser. The server keeps what it knew of it.
static void mark(const json::Object &document, StringRef text, const TextFault &fault) {
  StringRef before = text.take_front(fault.offset);
  auto line = int64_t(before.count('\n')), column = int64_t(before.size() - before.rfind('\n') - 1);
  auto place = [&](int64_t further) {
    return json::Object{{"line", line}, {"character", column + further}};
  };
  json::Object diagnostic{{"range", json::Object{{"start", place(0)}, {"end", place(1)}}},
                          {"severity", int(llvm::lsp::DiagnosticSeverity::Error)},
                          {"source", "meshwright"},
                          {"message", fault.what}};
  json::Object params{{"uri", document.getString("uri").value_or("")},
                      {"diagnostics", json::Array{std::move(diagnostic)}}};
  sendMessage(json::Object{{"method", "textDocument/publishDiagnostics"},
                           {"params", std::move(params)}});
}

namespace {
/// What is asked about documents, answered from their texts.
class Answers {
public:
  explicit Answers(const mlir::DialectRegistry &registry) : context(registry) {
    context.loadAllAvailableDialects();
  }

  void keep(StringRef uri, StringRef text) { documents[uri] = text.str(); }

  /// Whether the message is a question that is answered here.
  bool answer(const json::Object &message) {
    std::optional<StringRef> method = message.getString("method");
    const json::Value *id = message.get("id");
    const json::Object *params = message.getObject("params");
    const json::Object *document = params ? params->getObject("textDocument") : nullptr;
    const json::Object *place = params ? params->getObject("position") : nullptr;
    if (!method || !id || !document || !place)
      return false;
    auto found = documents.find(document->getString("uri").value_or(""));
    int64_t line = place->getInteger("line").value_or(-1);
    int64_t character = place->getInteger("character").value_or(-1);
    if (found == documents.end() || line < 0 || character < 0 || line > UINT32_MAX || character > UINT32_MAX)
      return false;
    EditorPosition position{unsigned(line), unsigned(character)};
    if (*method == "textDocument/hover") {
      std::string text = hoverText(found->second, position, context);
      if (text.empty())
        return false;
      sendMessage(json::Object{{"id", *id}, {"result", json::Object{{"contents", json::Object{{"kind", "markdown"}, {"value", std::move(text)}}}}}});
      return true;
    }
    if (*method == "textDocument/completion") {
      std::optional<json::Array> items = completeAttributes(found->second, position, context);
      if (!items)
        return false;
      sendMessage(json::Object{{"id", *id}, {"result", json::Object{{"isIncomplete", false}, {"items", std::move(*items)}}}});
      return true;
    }
    return false;
  }

private:
  mlir::MLIRContext context;
  llvm::StringMap<std::string> documents;
};
} // namespace

/// Whether the server may have the message; if not, the client has been told.
static bool check(StringRef text, Answers &answers) {
  using llvm::lsp::ErrorCode;
  llvm::Expected<json::Value> message = parseJson(text);
  if (!message) {
    refuse(nullptr, ErrorCode::ParseError, llvm::toString(message.takeError()));
    return false;
  }
  const json::Object *object = message->getAsObject();
  const json::Value *id = object ? object->get("id") : nullptr;
  if (!object || object->getString("jsonrpc") != StringRef("2.0") ||
      !(id || object->getString("method"))) {
    refuse(id ? *id : json::Value(nullptr), ErrorCode::InvalidRequest,
           "a message is an object with \"jsonrpc\": \"2.0\" and a \"method\" or an \"id\"");
    return false;
  }
  // Documents come whole, when they are opened and when they change.
  const json::Object *params = object->getObject("params");
  const json::Object *document = params ? params->getObject("textDocument") : nullptr;
  if (!document)
    return true;
  std::vector<StringRef> texts;
  if (auto opened = document->getString("text"))
    texts.push_back(*opened);
  if (const json::Array *changes = params->getArray("contentChanges"))
    for (const json::Value &change : *changes)
      if (const json::Object *of = change.getAsObject())
        if (auto changed = of->getString("text"))
          texts.push_back(*changed);
  for (StringRef one : texts) {
    if (std::optional<TextFault> fault = findTextFault(one)) {
      mark(*document, one, *fault);
      return false;
    }
    answers.keep(document->getString("uri").value_or(""), one);
  }
  return !answers.answer(*object);
}

namespace {
/// What the server reads: the messages of the client that it may have.
class CheckedInput {
public:
  CheckedInput(std::FILE *client, const mlir::DialectRegistry &registry) : client(client), answers(registry) {}

  /// As read(2): 0 at the end of the input.
  ssize_t read(char *buffer, size_t size) {
    while (given == ready.size())
      if (!next())
        return 0;
    size_t count = std::min(size, ready.size() - given);
    std::memcpy(buffer, ready.data() + given, count);
    given += count;
    return ssize_t(count);
  }

private:
  /// Reads a message, and makes it ready if the server may have it. False at the end of the input.
  bool next() {
    // The largest that MLIR's server takes.
    constexpr uint64_t most = uint64_t(1) << 30;
    std::optional<uint64_t> size = readHeaders();
    if (!size)
      return false;
    std::string message;
    if (*size == 0 || *size > most) {
      refuse(nullptr, llvm::lsp::ErrorCode::ParseError,
             "a message begins with 'Content-Length: ' and a number of bytes from 1 to " +
                 llvm::Twine(most));
      return skip(*size);
    }
    message.resize(*size);
    if (std::fread(message.data(), 1, message.size(), client) != message.size())
      return false;
    if (check(message, answers)) {
      ready = "Content-Length: " + std::to_string(message.size()) + "\r\n\r\n" + message;
      given = 0;
    }
    return true;
  }

  /// What the headers of a message say is its size, 0 if nothing; none at the end of the input.
  /// Names of headers have no case.
  std::optional<uint64_t> readHeaders() {
    uint64_t size = 0;
    bool any = false;
    std::string line;
    for (int c; (c = std::fgetc(client)) != EOF;) {
      if (c != '\n') {
        line += char(c);
        continue;
      }
      StringRef header = StringRef(line).trim();
      if (header.empty() && any)
        return size;
      auto [name, value] = header.split(':');
      if (name.equals_insensitive("Content-Length") && value.trim().getAsInteger(10, size))
        size = 0;
      any |= !header.empty();
      line.clear();
    }
    return std::nullopt;
  }

  bool skip(uint64_t size) {
    for (; size > 0; --size)
      if (std::fgetc(client) == EOF)
        return false;
    return true;
  }

  std::FILE *client;
  Answers answers;
  std::string ready;
  size_t given = 0;
};
} // namespace

int meshwright::languageServerMain(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  CheckedInput input(stdin, registry);
  // Other styles of messages are for tests by hand, which mean what they send.
  auto isPlain = [](StringRef argument) {
    return !argument.contains("lit-test") && !argument.contains("input-style");
  };
  if (llvm::all_of(llvm::ArrayRef(argv, size_t(argc)).drop_front(), isPlain)) {
    cookie_io_functions_t functions{};
    functions.read = [](void *cookie, char *buffer, size_t size) {
      return static_cast<CheckedInput *>(cookie)->read(buffer, size);
    };
    stdin = fopencookie(&input, "r", functions);
  }
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
