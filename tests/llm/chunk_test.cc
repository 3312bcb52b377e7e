// The assembler on what servers really send.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "llm/openai_chunk.h"

namespace {

using llm::ChunkAssembler;
using llm::FinishReason;

struct Assembled {
  std::string streamed_text, streamed_reasoning;
  tl::expected<llm::Completion, llm::ModelError> result = llm::Completion{};
};

Assembled assemble(const std::vector<std::string>& events) {
  Assembled out;
  const llm::StreamSink sink{[&](std::string_view piece) { out.streamed_text += piece; },
                             [&](std::string_view piece) { out.streamed_reasoning += piece; }};
  ChunkAssembler assembler(sink);
  for (const std::string& event : events) {
    const auto fed = assembler.feed("", event);
    if (fed == ChunkAssembler::Fed::done || fed == ChunkAssembler::Fed::error) break;
  }
  out.result = assembler.finish();
  return out;
}

std::string delta(const std::string& members, const std::string& finish = "null") {
  return R"({"choices":[{"index":0,"delta":{)" + members + R"(},"finish_reason":)" + finish + "}]}";
}
std::string call(const std::string& members) { return delta("\"tool_calls\":[{" + members + "}]"); }
const std::string stop = delta("", "\"stop\"");
const std::string tools = delta("", "\"tool_calls\"");

// "id name arguments" of each call, and the finish.
std::vector<std::string> calls_of(const std::vector<std::string>& events) {
  std::vector<std::string> out;
  const Assembled assembled = assemble(events);
  REQUIRE(assembled.result);
  CHECK(assembled.result->finish == FinishReason::tool_calls);
  for (const auto& one : assembled.result->message.tool_calls)
    out.push_back(one.id + " " + one.name + " " + one.arguments);
  return out;
}

}  // namespace

TEST_CASE("text, reasoning and usage are put together and streamed", "[chunk]") {
  const Assembled a = assemble(
      {delta(R"("role":"assistant","content":"")"), delta(R"("reasoning_content":"hm")"), delta(R"("reasoning":"m")"),
       delta(R"("content":"Hel")"), delta(R"("content":"lo é")"), stop,
       R"({"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":2}}})",
       "[DONE]"});
  REQUIRE(a.result);
  CHECK(a.result->message.text == "Hello é");
  CHECK(a.streamed_text == "Hello é");
  CHECK(a.result->message.reasoning == "hmm");
  CHECK(a.streamed_reasoning == "hmm");
  CHECK(a.result->finish == FinishReason::stop);
  REQUIRE(a.result->usage);
  CHECK(a.result->usage->input_tokens == 10);
  CHECK(a.result->usage->output_tokens == 5);
  CHECK(a.result->usage->cached_tokens == 4);
  CHECK(a.result->usage->reasoning_tokens == 2);
}

TEST_CASE("the same thought under two names counts once", "[chunk]") {
  const Assembled a = assemble({delta(R"("reasoning_content":"x","reasoning":"x","content":"y")"), stop});
  REQUIRE(a.result);
  CHECK(a.result->message.reasoning == "x");
}

TEST_CASE("usage in each of its forms", "[chunk]") {
  const auto usage = [](const std::string& object) {
    const Assembled a = assemble({delta(R"("content":"x")"), R"({"choices":null,"usage":)" + object + "}", stop});
    REQUIRE(a.result);
    REQUIRE(a.result->usage);
    return *a.result->usage;
  };
  CHECK(usage(R"({"prompt_tokens":9,"completion_tokens":1,"prompt_cache_hit_tokens":6,"prompt_cache_miss_tokens":3})")
            .cached_tokens == 6);
  CHECK(
      usage(
          R"({"prompt_tokens":9,"completion_tokens":1,"prompt_tokens_details":null,"completion_tokens_details":null})")
          .input_tokens == 9);
  const llm::Usage anthropic =
      usage(R"({"input_tokens":3,"output_tokens":2,"cache_read_input_tokens":100,"cache_creation_input_tokens":10})");
  CHECK(anthropic.input_tokens == 113);
  CHECK(anthropic.cached_tokens == 100);
  const llm::Usage gateway = usage(R"({"prompt_tokens":110,"completion_tokens":2,"cache_read_input_tokens":100})");
  CHECK(gateway.input_tokens == 110);
  CHECK(gateway.cached_tokens == 100);
  CHECK(usage(R"({"prompt_tokens":-5,"completion_tokens":3})").input_tokens == 0);
  // In the chunk that ends the answer, in the choice, and where Groq puts it.
  for (
      const std::string& chunk :
      {std::string(
           R"({"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":1}})"),
       std::string(
           R"({"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":7,"completion_tokens":1}}]})"),
       std::string(
           R"({"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"x_groq":{"usage":{"prompt_tokens":7,"completion_tokens":1}}})")}) {
    const Assembled a = assemble({delta(R"("content":"x")"), chunk});
    REQUIRE(a.result);
    REQUIRE(a.result->usage);
    CHECK(a.result->usage->input_tokens == 7);
  }
  CHECK_FALSE(assemble({delta(R"("content":"x")"), R"({"choices":null,"usage":null})", stop}).result->usage);
}

TEST_CASE("tool calls are assembled whatever identifies them", "[chunk]") {
  using V = std::vector<std::string>;
  const V both = {"a f {\"x\":1}", "b g {\"y\":2}"};
  SECTION("as documented, fragments interleaved") {
    CHECK(calls_of({call(R"("index":0,"id":"a","type":"function","function":{"name":"f","arguments":""})"),
                    call(R"("index":1,"id":"b","type":"function","function":{"name":"g","arguments":""})"),
                    call(R"("index":0,"function":{"arguments":"{\"x\":"})"),
                    call(R"("index":1,"function":{"arguments":"{\"y\":"})"),
                    call(R"("index":0,"function":{"arguments":"1}"})"),
                    call(R"("index":1,"function":{"arguments":"2}"})"), tools}) == both);
  }
  SECTION("without index") {
    CHECK(calls_of({call(R"("id":"a","function":{"name":"f","arguments":"{\"x\":1}"})"),
                    call(R"("id":"b","function":{"name":"g","arguments":"{\"y\":2}"})"), tools}) == both);
    CHECK(calls_of({call(R"("function":{"name":"f","arguments":"{\"x\":1}"})"),
                    call(R"("function":{"name":"g","arguments":"{\"y\":"})"), call(R"("function":{"arguments":"2}"})"),
                    tools}) == V{"call_1 f {\"x\":1}", "call_2 g {\"y\":2}"});
  }
  SECTION("every call at index 0") {
    CHECK(calls_of({call(R"("index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"})"),
                    call(R"("index":0,"id":"b","function":{"name":"g","arguments":"{\"y\":"})"),
                    call(R"("index":0,"function":{"arguments":"2}"})"), tools}) == both);
    CHECK(calls_of({call(R"("index":0,"function":{"name":"f","arguments":"{\"x\":1}"})"),
                    call(R"("index":0,"function":{"name":"g","arguments":"{\"y\":2}"})"), tools})
              .size() == 2);
  }
  SECTION("id and name in every fragment") {
    CHECK(calls_of({call(R"("index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"})"),
                    call(R"("index":0,"id":"a","function":{"name":"f","arguments":"1}"})"),
                    call(R"("index":0,"id":"a","function":{"name":"","arguments":""})"), tools}) == V{"a f {\"x\":1}"});
  }
  SECTION("the name in pieces, repeated or growing") {
    CHECK(calls_of({call(R"("index":0,"id":"a","function":{"name":"edit_ex"})"),
                    call(R"("index":0,"function":{"name":"isting_file","arguments":"{}"})"), tools}) ==
          V{"a edit_existing_file {}"});
    CHECK(calls_of({call(R"("index":0,"id":"a","function":{"name":"edit"})"),
                    call(R"("index":0,"function":{"name":"edit_file","arguments":"{}"})"), tools}) ==
          V{"a edit_file {}"});
  }
  SECTION("ids missing, null, empty, late or the same for all") {
    CHECK(calls_of({call(R"("index":0,"id":null,"function":{"name":"f","arguments":"{}"})"),
                    call(R"("index":1,"id":"","function":{"name":"g","arguments":"{}"})"), tools}) ==
          V{"call_1 f {}", "call_2 g {}"});
    CHECK(calls_of({call(R"("index":0,"function":{"name":"f"})"),
                    call(R"("index":0,"id":"a","function":{"arguments":"{}"})"), tools}) == V{"a f {}"});
    const V same = calls_of({call(R"("index":0,"id":"a","function":{"name":"f","arguments":"{}"})"),
                             call(R"("index":1,"id":"a","function":{"name":"g","arguments":"{}"})"), tools});
    REQUIRE(same.size() == 2);
    CHECK(same[0].substr(0, 6) != same[1].substr(0, 6));
  }
  SECTION("arguments as an object, empty or null") {
    CHECK(calls_of({call(R"("index":0,"id":"a","function":{"name":"f","arguments":{"x":1}})"), tools}) ==
          V{"a f {\"x\":1}"});
    CHECK(calls_of({call(R"("index":0,"id":"a","function":{"name":"f","arguments":""})"), tools}) == V{"a f {}"});
    CHECK(calls_of({call(R"("index":0,"id":"a","function":{"name":"f","arguments":null})"), tools}) == V{"a f {}"});
  }
  SECTION("finish reason stop, or only [DONE]") {
    const std::string one = call(R"("index":0,"id":"a","function":{"name":"f","arguments":"{}"})");
    CHECK(calls_of({one, stop}) == V{"a f {}"});
    CHECK(calls_of({one, "[DONE]"}) == V{"a f {}"});
  }
  SECTION("arguments that are no JSON are the tool's to refuse") {
    CHECK(calls_of({call(R"("index":0,"id":"a","function":{"name":"f","arguments":"{oops"})"), tools}) ==
          V{"a f {oops"});
  }
}

TEST_CASE("half a call at the token limit is dropped, a complete one before it stays", "[chunk]") {
  const Assembled a =
      assemble({call(R"("index":0,"id":"a","function":{"name":"f","arguments":"{}"})"),
                call(R"("index":1,"id":"b","function":{"name":"write","arguments":"{\"content\":\"ha"})"),
                delta("", "\"length\"")});
  REQUIRE(a.result);
  CHECK(a.result->finish == FinishReason::max_tokens);
  CHECK(a.result->dropped_calls == 1);
  REQUIRE(a.result->message.tool_calls.size() == 1);
  CHECK(a.result->message.tool_calls[0].id == "a");
}

TEST_CASE("how an answer may end", "[chunk]") {
  const std::string text = delta(R"("content":"x")");
  CHECK(assemble({text, stop}).result);
  CHECK(assemble({text, "[DONE]"}).result);
  const auto clean = assemble({text});
  REQUIRE_FALSE(clean.result);
  CHECK(clean.result.error().error.code == base::ErrorCode::cut_stream);
  CHECK(clean.result.error().retryable);
  CHECK(clean.result.error().anything_streamed);
  CHECK(clean.result.error().partial.text == "x");
  // Half an answer is no whole one, even when its calls happen to parse.
  const std::string one = call(R"("index":0,"id":"a","function":{"name":"f","arguments":"{}"})");
  const std::string two = call(R"("index":1,"id":"b","function":{"name":"g","arguments":"{\"x\":1}"})");
  const std::string half = call(R"("index":0,"id":"a","function":{"name":"f","arguments":"{\"a"})");
  for (const std::vector<std::string>& events : {std::vector{one}, {one, two}, {text, one}, {one, text}, {half}}) {
    const auto cut = assemble(events);
    REQUIRE_FALSE(cut.result);
    CHECK(cut.result.error().error.code == base::ErrorCode::cut_stream);
    CHECK(cut.result.error().retryable);
    CHECK(cut.result.error().partial.tool_calls.empty());
  }
  for (const std::string& end : {stop, tools, std::string("[DONE]")}) {
    const auto whole = assemble({text, one, two, end});
    REQUIRE(whole.result);
    CHECK(whole.result->message.tool_calls.size() == 2);
  }
  const auto filtered = assemble({text, delta("", "\"content_filter\"")});
  REQUIRE(filtered.result);
  CHECK(filtered.result->finish == FinishReason::content_filter);
}

TEST_CASE("an empty answer is an error that can be retried", "[chunk]") {
  for (const auto& events : {std::vector<std::string>{stop}, std::vector<std::string>{delta(R"("content":"\n")"), stop},
                             std::vector<std::string>{delta(R"("reasoning":"hm")"), stop}}) {
    const auto a = assemble(events);
    REQUIRE_FALSE(a.result);
    CHECK(a.result.error().error.code == base::ErrorCode::empty_response);
    CHECK(a.result.error().retryable);
  }
}

TEST_CASE("errors inside a stream", "[chunk]") {
  const auto error = [](const std::string& event) {
    const auto a = assemble({delta(R"("content":"x")"), event});
    REQUIRE_FALSE(a.result);
    return a.result.error();
  };
  CHECK(error(R"({"error":{"message":"boom","code":502},"choices":[]})").error.code == base::ErrorCode::server);
  CHECK(error(R"({"error":{"message":"boom","code":502},"choices":[]})").retryable);
  CHECK(error(R"({"error":{"message":"slow down","code":429}})").error.code == base::ErrorCode::rate_limit);
  CHECK(error(R"({"error":"plain text"})").error.message.find("plain text") != std::string::npos);
  CHECK(error(R"([{"error":{"message":"arr","status":"RESOURCE_EXHAUSTED"}}])").error.code ==
        base::ErrorCode::rate_limit);
  CHECK(error(R"({"error_type":"x","error_message":"why","choices":null})").error.message.find("why") !=
        std::string::npos);
  CHECK(error(R"({"object":"error","message":"maximum context length is 4096 tokens","code":400})").error.code ==
        base::ErrorCode::context_overflow);
  CHECK(error(delta("", "\"model_context_window_exceeded\"")).error.code == base::ErrorCode::context_overflow);
  CHECK(error(delta("", "\"network_error\"")).retryable);
  CHECK(error("this is no json").error.code == base::ErrorCode::malformed);
  CHECK(error(R"({"error":{"message":"boom"}})").partial.text == "x");

  ChunkAssembler named({});
  CHECK(named.feed("error", R"({"message":"named"})") == ChunkAssembler::Fed::error);
  CHECK(named.failure()->error.message.find("named") != std::string::npos);
  ChunkAssembler words({});
  CHECK(words.feed("error", "upstream died") == ChunkAssembler::Fed::error);
  CHECK(words.failure()->error.message.find("upstream died") != std::string::npos);
}

TEST_CASE("odd but harmless events are passed over", "[chunk]") {
  const auto a = assemble(
      {": OPENROUTER PROCESSING", "", "{}", "[]", "7", R"({"choices":[]})", R"({"choices":null})",
       R"({"choices":[{"index":1,"delta":{"content":"other"}}]})", R"({"choices":[null]})",
       R"({"error":null,"choices":[{"delta":null}]})", delta(R"("content":null)"),
       delta(R"("content":[{"type":"text","text":"a"},{"type":"thinking","thinking":[{"type":"text","text":"t"}]}])"),
       delta("\"content\":\"\xC3\""), stop});
  REQUIRE(a.result);
  CHECK(a.result->message.text == "a\xEF\xBF\xBD");
  CHECK(a.result->message.reasoning == "t");
}

TEST_CASE("the last event, cut in the middle, is a cut", "[chunk]") {
  ChunkAssembler assembler({});
  assembler.feed("", delta(R"("content":"x")"));
  CHECK(assembler.feed("", R"({"choices":[{"ind)", true) == ChunkAssembler::Fed::nothing);
  const auto result = assembler.finish();
  REQUIRE_FALSE(result);
  CHECK(result.error().error.code == base::ErrorCode::cut_stream);
}

TEST_CASE("a placeholder in the list of calls makes a whole answer an incomplete one") {
  const auto done = assemble({delta(R"("content":"all done","tool_calls":[{"index":0}])"), stop});
  REQUIRE(done.result);
  CHECK(done.result->finish == FinishReason::stop);
  CHECK(done.result->dropped_calls == 0);
  CHECK(done.result->message.text == "all done");
  const auto half = assemble({delta(R"("content":"so","tool_calls":[{"index":0,"id":"x"}])"), stop});
  REQUIRE(half.result);
  CHECK(half.result->dropped_calls == 1);
}
