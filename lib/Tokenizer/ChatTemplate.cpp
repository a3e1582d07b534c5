//===- ChatTemplate.cpp - conversations as text --------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Tokenizer/ChatTemplate.h"

#include "Tokenizer/Core/Spec.h"

#include <algorithm>
#include <fstream>
#include <iterator>

namespace meshwright::tokenizer {

/// Templates that are known by name, as files have them.
static constexpr std::pair<const char *, const char *> known[] = {
    {"chatml", R"({"roles": {
       "system": {"prefix": "<|im_start|>system\n", "suffix": "<|im_end|>\n"},
       "user": {"prefix": "<|im_start|>user\n", "suffix": "<|im_end|>\n"},
       "assistant": {"prefix": "<|im_start|>assistant\n", "suffix": "<|im_end|>\n"}}})"},
    {"llama3", R"({"begin": "<|begin_of_text|>", "trim": true, "roles": {
       "system": {"prefix": "<|start_header_id|>system<|end_header_id|>\n\n", "suffix": "<|eot_id|>"},
       "user": {"prefix": "<|start_header_id|>user<|end_header_id|>\n\n", "suffix": "<|eot_id|>"},
       "assistant": {"prefix": "<|start_header_id|>assistant<|end_header_id|>\n\n", "suffix": "<|eot_id|>"}}})"},
    {"gemma", R"({"begin": "<bos>", "trim": true, "roles": {
       "user": {"prefix": "<start_of_turn>user\n", "suffix": "<end_of_turn>\n"},
       "assistant": {"prefix": "<start_of_turn>model\n", "suffix": "<end_of_turn>\n"}}})"}};

template <typename Names> static std::string listed(const Names &names) {
  std::string list;
  for (const auto &[name, value] : names)
    list += (list.empty() ? "" : ", ") + std::string(name);
  return list;
}

static void checkKeys(const Json &object, const std::string &what,
                      std::initializer_list<const char *> keys) {
  if (!object.is_object())
    fail("its ", what, " is no object");
  for (const auto &[key, value] : object.items())
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      std::string list;
      for (const char *each : keys)
        list += (list.empty() ? "" : ", ") + std::string(each);
      fail("its ", what, " has the key \"", key, "\", which is none of ", list);
    }
}

ChatTemplate ChatTemplate::parse(const Json &spec) {
  checkKeys(spec, "template", {"begin", "end", "trim", "roles"});
  ChatTemplate result;
  result.begin = get(spec, "begin", std::string());
  result.end = get(spec, "end", std::string());
  result.trims = get(spec, "trim", false);
  Json roles = spec.value("roles", Json());
  if (!roles.is_object() || roles.empty())
    fail("it has no \"roles\", an object with the prefix and the suffix of each, e.g. {\"roles\": "
         "{\"user\": {\"prefix\": \"User: \", \"suffix\": \"\\n\"}, ..}}");
  bool learns = false;
  for (const auto &[name, role] : roles.items()) {
    checkKeys(role, "role " + name, {"prefix", "suffix", "learn"});
    bool learned = get(role, "learn", name == "assistant");
    learns |= learned;
    result.roles[name] = {get(role, "prefix", std::string()), get(role, "suffix", std::string()),
                          learned};
  }
  if (!learns)
    fail(
        "none of its roles has \"learn\": true, so no token would count; the role assistant has it "
        "unless it says otherwise");
  return result;
}

ChatTemplate ChatTemplate::load(const std::string &nameOrPath) {
  for (auto [name, text] : known)
    if (nameOrPath == name)
      return parse(Json::parse(text));
  std::ifstream file(nameOrPath);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file || text.empty())
    fail("--chat ", nameOrPath, " is neither a readable file nor one of the templates ",
         listed(known));
  Json spec = Json::parse(text, nullptr, false);
  if (spec.is_discarded()) {
    bool isJinja = text.find("{%") != text.npos || text.find("{{") != text.npos;
    fail("--chat ", nameOrPath, " is ", isJinja ? "a Jinja template, which is not run" : "no JSON",
         ": name one of ", listed(known),
         ", or write a file such as {\"begin\": \"<s>\", \"roles\": "
         "{\"user\": {\"prefix\": \"[INST] \", \"suffix\": \" [/INST]\"}, \"assistant\": "
         "{\"prefix\": "
         "\" \", \"suffix\": \"</s>\"}}}");
  }
  try {
    return parse(spec);
  } catch (const Error &error) {
    fail("--chat ", nameOrPath, ": ", error.what());
  }
}

static std::string trimmed(const std::string &text) {
  constexpr const char *spaces = " \t\n\r\v\f";
  size_t first = text.find_first_not_of(spaces), last = text.find_last_not_of(spaces);
  return first == text.npos ? "" : text.substr(first, last - first + 1);
}

std::vector<std::string> ChatTemplate::texts() const {
  std::vector<std::string> all = {begin, end};
  for (const auto &[name, role] : roles) {
    all.push_back(role.prefix);
    all.push_back(role.suffix);
  }
  return all;
}

bool ChatTemplate::has(const std::string &mark) const {
  std::vector<std::string> all = texts();
  return std::any_of(all.begin(), all.end(),
                     [&](const std::string &text) { return text.find(mark) != text.npos; });
}

std::set<std::string> ChatTemplate::marks() const {
  std::set<std::string> found;
  for (const std::string &text : texts())
    for (size_t at = text.find('<'); at != text.npos; at = text.find('<', at + 1))
      if (size_t end = text.find_first_of("> \t\n<", at + 1); end != text.npos && text[end] == '>')
        found.insert(text.substr(at, end + 1 - at));
  return found;
}

std::vector<ChatPart> ChatTemplate::render(const Json &messages, size_t first) const {
  std::vector<ChatPart> parts;
  auto add = [&](const std::string &text, bool counts) {
    if (text.empty())
      return;
    if (parts.empty() || parts.back().counts != counts)
      parts.push_back({"", counts});
    parts.back().text += text;
  };
  add(begin, false);
  for (size_t i = 0; i < messages.size(); ++i) {
    const Json &message = messages[i];
    if (!message.is_object() || !message.contains("role") || !message["role"].is_string() ||
        !message.contains("content"))
      fail("message ", i, " is ",
           message.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 80),
           ", which is no object with \"role\" and \"content\"");
    std::string name = message["role"];
    auto role = roles.find(name);
    if (role == roles.end())
      fail("message ", i, " has the role \"", name,
           "\", for which the template has no text; it has ", listed(roles));
    if (!message["content"].is_string())
      fail("message ", i,
           " has content that is no string: messages in parts and calls of tools are not "
           "supported; write what the model should see as its content");
    std::string content = message["content"];
    bool counts = role->second.learned && i >= first;
    add(role->second.prefix, false);
    add(trims ? trimmed(content) : content, counts);
    add(role->second.suffix, counts);
  }
  add(end, false);
  return parts;
}

} // namespace meshwright::tokenizer
