// Reading one line of a log. Strict: a missing member, a wrong type, an unknown word or an unknown member is `corrupt`
// and named, because a member that this build does not know may change what the others mean.
#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "agent/event.h"
#include "base/text.h"

namespace agent {
namespace {

using base::Json;

// Walks one object; the first fault is kept and everything after it yields empty values.
class Fields {
 public:
  Fields(const Json* object, std::string where, std::string& fault)
      : object_(object), where_(std::move(where)), fault_(fault) {
    if (object_ == nullptr || !object_->is_object()) {
      say("is not an object");
      object_ = nullptr;
    }
  }

  std::string text(const char* key) {
    const Json* value = need(key);
    if (value == nullptr) return {};
    if (!value->is_string()) return say_member(key, "is not a string"), std::string();
    return value->get_ref<const std::string&>();
  }
  std::string text_or_empty(const char* key) { return has(key) ? text(key) : std::string(); }

  std::int64_t integer(const char* key) {
    const Json* value = need(key);
    if (value == nullptr) return 0;
    const std::optional<std::int64_t> number = base::get_int(*object_, key);
    if (!number || *number < 0) return say_member(key, "is not a whole number"), 0;
    return *number;
  }

  bool boolean(const char* key) {
    const Json* value = need(key);
    if (value == nullptr) return false;
    if (!value->is_boolean()) return say_member(key, "is not true or false"), false;
    return value->get<bool>();
  }
  bool boolean_or_false(const char* key) { return has(key) && boolean(key); }

  base::JsonPtr object_or_null(const char* key) {
    if (!has(key)) return nullptr;
    const Json* value = need(key);
    if (!value->is_object()) return say_member(key, "is not an object"), nullptr;
    return base::share(*value);
  }

  const Json* member(const char* key) { return need(key); }

  // The items of a list, each with its place for messages.
  template <class F>
  void each(const char* key, F&& f) {
    const Json* value = need(key);
    if (value == nullptr) return;
    if (!value->is_array()) return say_member(key, "is not a list");
    std::size_t index = 0;
    for (const Json& item : *value) f(item, fmt::format("{}.{}[{}]", where_, key, index++));
  }
  template <class F>
  void each_if_there(const char* key, F&& f) {
    if (has(key)) each(key, std::forward<F>(f));
  }

  // One of an enum's members by its name.
  template <class E>
  E word(const char* key, std::initializer_list<E> members, std::string_view (*spelling)(E)) {
    const std::string value = text(key);
    for (const E one : members) {
      if (spelling(one) == value) return one;
    }
    if (fault_.empty()) say_member(key, fmt::format("has the unknown value \"{}\"", base::ellipsize(value, 40)));
    return *members.begin();
  }

  bool has(const char* key) {
    known_.emplace_back(key);
    return object_ != nullptr && base::find(*object_, key) != nullptr;
  }

  void finish() {
    if (object_ == nullptr) return;
    for (const auto& [key, value] : object_->items()) {
      if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
        return say(fmt::format("has the unknown member \"{}\"", base::ellipsize(key, 40)));
      }
    }
  }

  const std::string& where() const { return where_; }
  std::string& fault() { return fault_; }

 private:
  const Json* need(const char* key) {
    if (!has(key)) {
      if (object_ != nullptr) say(fmt::format("lacks \"{}\"", key));
      return nullptr;
    }
    return base::find(*object_, key);
  }
  void say(std::string_view what) {
    if (fault_.empty()) fault_ = fmt::format("{} {}", where_, what);
  }
  void say_member(const char* key, std::string_view what) {
    if (fault_.empty()) fault_ = fmt::format("{}.{} {}", where_, key, what);
  }

  const Json* object_;
  std::string where_;
  std::string& fault_;
  std::vector<std::string> known_;
};

std::vector<ContentBlock> read_content(Fields& fields) {
  std::vector<ContentBlock> content;
  fields.each("content", [&](const Json& item, const std::string& where) {
    Fields block(&item, where, fields.fault());
    ContentBlock one;
    one.type = block.word<ContentBlock::Type>(
        "type", {ContentBlock::Type::text, ContentBlock::Type::resource_link, ContentBlock::Type::resource}, name);
    if (one.type != ContentBlock::Type::text) one.uri = block.text("uri");
    if (one.type == ContentBlock::Type::resource_link) one.name = block.text("name");
    if (one.type != ContentBlock::Type::resource_link) one.text = block.text("text");
    block.finish();
    content.push_back(std::move(one));
  });
  return content;
}

std::vector<std::string> read_strings(Fields& fields, const char* key) {
  std::vector<std::string> list;
  fields.each(key, [&](const Json& item, const std::string& where) {
    if (item.is_string()) {
      list.push_back(item.get_ref<const std::string&>());
    } else if (fields.fault().empty()) {
      fields.fault() = where + " is not a string";
    }
  });
  return list;
}

Payload read_header(Fields& f) {
  event::Header e;
  e.id = f.text("id");
  e.cwd = f.text("cwd");
  e.created = f.text("created");
  e.worktree = f.text_or_empty("worktree");
  const std::int64_t version = f.integer("version");
  if (version != 1 && f.fault().empty()) {
    f.fault() = fmt::format("version {} of the log is not known to this program; use a newer one", version);
  }
  return e;
}

Payload read_spliced(Fields& f) {
  event::InboxSpliced e;
  f.each("added", [&](const Json& item, const std::string& where) {
    Fields entry(&item, where, f.fault());
    event::InboxItem one;
    one.id = entry.text("id");
    one.target = entry.word<InboxTarget>("target",
                                         {InboxTarget::next_turn, InboxTarget::next_step, InboxTarget::injected}, name);
    one.content = read_content(entry);
    one.source = entry.object_or_null("source");
    entry.finish();
    e.added.push_back(std::move(one));
  });
  e.removed = read_strings(f, "removed");
  return e;
}

Payload read_turn_end(Fields& f) {
  event::TurnEnd e;
  e.turn = f.integer("turn");
  using R = TurnEndReason;
  e.reason = f.word<R>(
      "reason", {R::completed, R::max_tokens, R::max_steps, R::blocked, R::interrupted, R::aborted, R::error}, name);
  if (f.has("cause")) {
    using C = AbortCause;
    e.cause = f.word<C>("cause", {C::user, C::parent, C::hook, C::disposed}, name);
  }
  if (e.reason == R::error) {
    Fields error(f.member("error"), f.where() + ".error", f.fault());
    e.code = error.text("code");
    e.message = error.text("message");
    error.finish();
  }
  e.title = f.text("title");
  e.time = f.text("time");
  return e;
}

Payload read_request_header(Fields& f) {
  event::RequestHeader e;
  e.route = f.text("route");
  e.header.model = f.text("model");
  e.header.params = f.text("params");
  e.header.system = f.text("system");
  f.each("tools", [&](const Json& item, const std::string& where) {
    Fields tool(&item, where, f.fault());
    llm::ToolSpec spec;
    spec.name = tool.text("name");
    spec.description = tool.text("description");
    spec.parameters = tool.text("parameters");
    tool.finish();
    e.header.tools.push_back(std::move(spec));
  });
  return e;
}

llm::Usage read_usage(Fields& f) {
  Fields usage(f.member("usage"), f.where() + ".usage", f.fault());
  llm::Usage one;
  one.input_tokens = usage.integer("input_tokens");
  one.output_tokens = usage.integer("output_tokens");
  one.cached_tokens = usage.integer("cached_tokens");
  one.reasoning_tokens = usage.integer("reasoning_tokens");
  usage.finish();
  return one;
}

Payload read_assistant(Fields& f) {
  event::AssistantMessage e;
  e.message.role = llm::Role::assistant;
  e.message_id = f.text("message_id");
  Fields content(f.member("content"), f.where() + ".content", f.fault());
  e.message.text = content.text("text");
  e.message.reasoning = content.text_or_empty("reasoning");
  content.each_if_there("tool_calls", [&](const Json& item, const std::string& where) {
    Fields call(&item, where, f.fault());
    llm::ToolCall one;
    one.id = call.text("id");
    one.name = call.text("name");
    one.arguments = call.text("arguments");
    call.finish();
    e.message.tool_calls.push_back(std::move(one));
  });
  content.finish();
  Fields source(f.member("source"), f.where() + ".source", f.fault());
  e.route = source.text("route");
  e.model = source.text("model");
  source.finish();
  using F = llm::FinishReason;
  e.finish = f.word<F>("finish", {F::stop, F::tool_calls, F::max_tokens, F::content_filter, F::other},
                       llm::finish_reason_name);
  if (f.has("usage")) e.usage = read_usage(f);
  e.interrupted = f.boolean_or_false("interrupted");
  return e;
}

Payload read_tool_result(Fields& f) {
  event::ToolResult e;
  e.call_id = f.text("call_id");
  e.content = f.text("content");
  e.is_error = f.boolean("is_error");
  e.facts = f.object_or_null("facts");
  return e;
}

Payload read_asked(Fields& f) {
  event::ApprovalAsked e;
  e.id = f.text("id");
  e.tool_name = f.text("tool_name");
  e.call_id = f.text("call_id");
  e.reason = f.text("reason");
  e.grounded = f.boolean("grounded");
  return e;
}

Payload read_decided(Fields& f) {
  using O = ApprovalOutcome;
  event::ApprovalDecided e;
  e.id = f.text("id");
  e.outcome = f.word<O>("outcome", {O::allowed_once, O::rejected, O::cancelled, O::unavailable}, name);
  return e;
}

Payload read_mode(Fields& f) {
  using M = sandbox::Mode;
  return event::SandboxMode{
      f.word<M>("mode", {M::read_only, M::workspace_write, M::danger_full_access}, sandbox::mode_name)};
}

Payload read_retry(Fields& f) {
  event::LlmRetry e;
  const std::int64_t attempt = f.integer("attempt");
  e.attempt = static_cast<int>(std::min<std::int64_t>(attempt, std::numeric_limits<int>::max()));
  e.code = f.text("code");
  e.message = f.text("message");
  e.delay_ms = f.integer("delay_ms");
  return e;
}

template <class E>
Payload read_step(Fields& f) {
  E e;
  e.turn = f.integer("turn");
  e.step = f.integer("step");
  return e;
}

struct Reader {
  std::string_view type;
  Payload (*read)(Fields&);
};

// Every alternative of Payload once; event_test.cc checks that nothing is missing.
constexpr Reader readers[] = {
    {"session", read_header},
    {"inbox/spliced", read_spliced},
    {"turn/start", [](Fields& f) -> Payload { return event::TurnStart{f.integer("turn")}; }},
    {"turn/end", read_turn_end},
    {"step/start", read_step<event::StepStart>},
    {"step/end", read_step<event::StepEnd>},
    {"user/message",
     [](Fields& f) -> Payload {
       event::UserMessage e;
       e.content = read_content(f);
       e.source = f.object_or_null("source");
       return e;
     }},
    {"request/header", read_request_header},
    {"assistant/chunk",
     [](Fields& f) -> Payload {
       event::AssistantChunk e;
       e.message_id = f.text("message_id");
       e.kind = f.text("kind");
       e.text = f.text("text");
       return e;
     }},
    {"assistant/message", read_assistant},
    {"assistant/aborted",
     [](Fields& f) -> Payload {
       event::AssistantAborted e;
       e.message_id = f.text("message_id");
       e.text = f.text("text");
       return e;
     }},
    {"tool/call",
     [](Fields& f) -> Payload {
       event::ToolCall e;
       e.call_id = f.text("call_id");
       e.name = f.text("name");
       e.arguments = f.text("arguments");
       return e;
     }},
    {"tool/result", read_tool_result},
    {"approval/asked", read_asked},
    {"approval/decided", read_decided},
    {"approval/policy",
     [](Fields& f) -> Payload {
       return event::ApprovalPolicySet{
           f.word<ApprovalPolicy>("policy", {ApprovalPolicy::ask, ApprovalPolicy::never}, name)};
     }},
    {"sandbox/mode", read_mode},
    {"permission/preset", [](Fields& f) -> Payload { return event::PermissionPreset{f.text("preset")}; }},
    {"session/title", [](Fields& f) -> Payload { return event::SessionTitle{f.text("title")}; }},
    {"llm/retry", read_retry},
};
static_assert(std::size(readers) == std::variant_size_v<Payload>);

}  // namespace

base::Result<std::optional<Event>> decode(std::string_view line) {
  auto parsed = base::parse_json(line);
  if (!parsed) return base::fail(base::ErrorCode::corrupt, parsed.error().message);
  std::string fault;
  Fields outer(&*parsed, "event", fault);
  Event event;
  event.seq = outer.integer("seq");
  event.time = outer.text("time");
  const std::string type = outer.text("type");
  const Json* data = outer.member("data");
  const bool ignorable = outer.boolean_or_false("ignorable");
  outer.finish();
  if (!fault.empty()) return base::fail(base::ErrorCode::corrupt, fault);

  for (const Reader& reader : readers) {
    if (reader.type != type) continue;
    Fields fields(data, type, fault);
    event.payload = reader.read(fields);
    fields.finish();
    if (!fault.empty()) return base::fail(base::ErrorCode::corrupt, fault);
    return std::optional<Event>(std::move(event));
  }
  if (ignorable) return std::optional<Event>();
  return base::fail(
      base::ErrorCode::corrupt,
      fmt::format("event type \"{}\" is not known to this program; use a newer one", base::ellipsize(type, 60)));
}

}  // namespace agent
