//===- ChatTemplateTest.cpp - conversations as text -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Tokenizer/ChatTemplate.h"
#include "Inputs.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

using namespace meshwright::tokenizer;
using namespace testing_tokenizer;
using nlohmann::json;
using testing::HasSubstr;

/// The text, with what counts in braces.
static std::string rendered(const std::string &name, const json &messages) {
  std::string text;
  for (const ChatPart &part : ChatTemplate::load(name).render(messages))
    text += part.counts ? "{" + part.text + "}" : part.text;
  return text;
}

static const json conversation = {{{"role", "system"}, {"content", "Be brief."}},
                                  {{"role", "user"}, {"content", " Hi "}},
                                  {{"role", "assistant"}, {"content", "Hello!\n"}},
                                  {{"role", "user"}, {"content", "Bye"}},
                                  {{"role", "assistant"}, {"content", "Bye."}}};

TEST(ChatTemplate, WritesKnownOnes) {
  EXPECT_EQ(rendered("chatml", conversation),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n Hi "
            "<|im_end|>\n<|im_start|>assistant\n"
            "{Hello!\n<|im_end|>\n}<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n{Bye.<|"
            "im_end|>\n}");
  EXPECT_EQ(rendered("llama3", conversation),
            "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe "
            "brief.<|eot_id|><|start_header_id|>user"
            "<|end_header_id|>\n\nHi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n{"
            "Hello!<|eot_id|>}"
            "<|start_header_id|>user<|end_header_id|>\n\nBye<|eot_id|><|start_header_id|>assistant<"
            "|end_header_id|>\n\n"
            "{Bye.<|eot_id|>}");
  json without = conversation;
  without.erase(0);
  EXPECT_EQ(
      rendered("gemma", without),
      "<bos><start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n{Hello!<end_of_turn>\n}"
      "<start_of_turn>user\nBye<end_of_turn>\n<start_of_turn>model\n{Bye.<end_of_turn>\n}");
}

TEST(ChatTemplate, RefusesMessagesWithoutPlace) {
  EXPECT_THAT(complaint([] { rendered("gemma", conversation); }),
              HasSubstr("message 0 has the role \"system\", for which the template has no text; it "
                        "has assistant, user"));
  EXPECT_THAT(complaint([] {
                rendered("chatml",
                         json::parse(R"([{"role": "user", "content": [{"type": "image"}]}])"));
              }),
              HasSubstr("content that is no string"));
  EXPECT_THAT(complaint([] { rendered("chatml", json::parse(R"(["Hi"])")); }),
              HasSubstr("message 0 is \"Hi\""));
  EXPECT_THAT(complaint([] { ChatTemplate::load("/nowhere.json"); }),
              HasSubstr("neither a readable file nor one of the templates chatml, llama3, gemma"));
}
