//===- ChatTemplate.h - conversations as text ----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TOKENIZER_CHATTEMPLATE_H
#define MESHWRIGHT_TOKENIZER_CHATTEMPLATE_H

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

namespace meshwright::tokenizer {

/// A part of a conversation's text, which is encoded by itself: at inference the prompt is too.
struct ChatPart {
  std::string text;
  bool counts = false; ///< whether its tokens count as targets
};

/// What is written around the messages of a conversation, by their roles.
class ChatTemplate {
public:
  /// One that is known by name, or that of a JSON file. An Error if it is neither.
  static ChatTemplate load(const std::string &nameOrPath);

  /// The text of `messages`, an array of objects with "role" and "content", in parts of which every
  /// second one counts: of the messages from `first` on. An Error saying what message the template has no place for.
  std::vector<ChatPart> render(const nlohmann::json &messages, size_t first = 0) const;

  /// Whether it writes `mark` anywhere.
  bool has(const std::string &mark) const;
  /// What looks like a special token in what it writes: <...> without a blank.
  std::set<std::string> marks() const;

private:
  struct Role {
    std::string prefix, suffix;
    bool learned = false; ///< whether what it says, and its suffix, are to be predicted
  };
  static ChatTemplate parse(const nlohmann::json &spec);
  /// All that it writes, piece by piece.
  std::vector<std::string> texts() const;

  std::string begin, end;
  bool trims = false; ///< leaves out spaces around a message's content
  std::map<std::string, Role> roles;
};

} // namespace meshwright::tokenizer

#endif // MESHWRIGHT_TOKENIZER_CHATTEMPLATE_H
