#include "agent/log_read.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>

#include "agent/log.h"
#include "agent/session.h"

namespace agent {

using base::ErrorCode;

base::Result<std::int64_t> for_each_event(std::string_view bytes, const std::string& file, Fold& fold,
                                          const std::function<void(const Event&)>& each) {
  std::int64_t number = 0;
  std::size_t at = 0;
  const auto damaged = [&](const std::string& why) {
    return base::fail(ErrorCode::corrupt, fmt::format("{}: line {} (byte {}): {}", file, number, at, why));
  };
  for (;;) {
    const std::size_t end = bytes.find('\n', at);
    if (end == std::string_view::npos) break;
    ++number;
    auto event = decode(bytes.substr(at, end - at));
    if (!event) return damaged(event.error().message);
    if (*event) {
      if ((*event)->seq != number) return damaged(fmt::format("seq {} where {} comes next", (*event)->seq, number));
      if (auto good = fold.check((*event)->payload); !good) return damaged(good.error().message);
      fold.apply((*event)->payload);
      if (each) each(**event);
    }
    at = end + 1;
  }
  if (!fold.has_header()) {
    number = 1;
    at = 0;
    return damaged("the header is missing");
  }
  return number;
}

void encode_new(const llm::LlmAdapter& adapter, const Fold& fold, std::vector<llm::WireMessage>& wire) {
  const auto& messages = fold.messages();
  while (wire.size() < messages.size()) {
    wire.push_back(std::make_shared<const std::string>(adapter.encode(*messages[wire.size()])));
  }
}

base::Result<ReadLog> read_log(const std::string& file) {
  auto bytes = read_log_bytes(file);
  if (!bytes) return tl::unexpected<base::Error>(bytes.error());
  ReadLog log;
  Fold fold;
  auto read = for_each_event(*bytes, file, fold, [&](const Event& event) { log.events.push_back(event); });
  if (!read) log.damage = read.error();
  return log;
}

base::Result<event::Header> read_log_header(const std::string& file) {
  // Through read_log_bytes for its checks; a header read costs a read of the file, which the caller does next anyway.
  auto bytes = read_log_bytes(file);
  if (!bytes) return tl::unexpected<base::Error>(bytes.error());
  const auto end = bytes->find('\n');
  if (end == std::string::npos) {  // an unfinished line holds nothing, the header's as any other
    return base::fail(ErrorCode::corrupt, fmt::format("{}: line 1 (byte 0): the header is missing", file));
  }
  auto event = decode(std::string_view(*bytes).substr(0, end));
  if (!event)
    return base::fail(ErrorCode::corrupt, fmt::format("{}: line 1 (byte 0): {}", file, event.error().message));
  if (!*event || !std::holds_alternative<event::Header>((*event)->payload)) {
    return base::fail(ErrorCode::corrupt, fmt::format("{}: line 1 (byte 0): the header is missing", file));
  }
  return std::get<event::Header>((*event)->payload);
}

base::Result<std::string> find_log(const LogOptions& options, const std::string& id) {
  const auto unknown = [&] {
    return base::fail(ErrorCode::not_found, fmt::format("there is no session {}", base::quote(id)));
  };
  if (!valid_session_id(id)) return base::fail(ErrorCode::not_found, "there is no session of that id");
  const std::unique_ptr<DIR, int (*)(DIR*)> root(::opendir(options.root.c_str()), ::closedir);
  if (!root) {
    if (errno == ENOENT) return unknown();
    return base::fail_errno("cannot read " + options.root, errno);
  }
  while (const dirent* entry = ::readdir(root.get())) {
    const std::string slug = entry->d_name;
    if (slug[0] == '.') continue;
    const std::string folder = options.root + "/" + slug;
    const std::string file = folder + "/" + id + "/" + log_file_name;
    struct stat info {};
    if (::lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) continue;
    if (::lstat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode)) return file;
  }
  return unknown();
}

std::vector<std::string> regenerate_requests(const std::vector<Event>& events, const llm::LlmAdapter& adapter) {
  std::vector<std::string> bodies;
  std::vector<llm::WireMessage> wire;
  Fold fold;
  for (const Event& event : events) {
    const auto* end = std::get_if<event::TurnEnd>(&event.payload);
    const bool sent = std::holds_alternative<event::LlmRetry>(event.payload) ||
                      std::holds_alternative<event::AssistantMessage>(event.payload) ||
                      (end != nullptr && end->reason == TurnEndReason::error && fold.awaits_answer());
    if (sent && fold.last_header()) {
      encode_new(adapter, fold, wire);
      bodies.push_back(llm::request_body(adapter, fold.last_header()->header, wire));
    }
    if (!fold.check(event.payload)) break;
    fold.apply(event.payload);
  }
  return bodies;
}

}  // namespace agent
