#include "llm/recorded.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/fd.h"
#include "base/mutex.h"
#include "base/text.h"

namespace llm {

namespace {

using base::ErrorCode;

tl::unexpected<base::Error> bad_line(int line, const std::string& what) {
  return base::fail(ErrorCode::invalid_argument, "line " + std::to_string(line) + ": " + what);
}

// The rest of an `=== answer` line: name=word or name="text with \" and \\", separated by spaces.
base::Result<std::vector<std::pair<std::string, std::string>>> parse_attributes(std::string_view text, int line) {
  std::vector<std::pair<std::string, std::string>> out;
  std::size_t at = 0;
  while (true) {
    at = text.find_first_not_of(" \t", at);
    if (at == std::string_view::npos) return out;
    const std::size_t equals = text.find('=', at);
    if (equals == std::string_view::npos) return bad_line(line, "expected name=value after === answer");
    const std::string name(text.substr(at, equals - at));
    std::string value;
    at = equals + 1;
    if (at < text.size() && text[at] == '"') {
      for (++at;; ++at) {
        if (at >= text.size()) return bad_line(line, "the value of " + name + " lacks its closing \"");
        if (text[at] == '"') break;
        if (text[at] == '\\' && at + 1 < text.size()) ++at;
        value.push_back(text[at]);
      }
      ++at;
    } else {
      const std::size_t end = std::min(text.find_first_of(" \t", at), text.size());
      value = text.substr(at, end - at);
      at = end;
    }
    out.emplace_back(name, std::move(value));
  }
}

base::Result<RecordedAnswer> parse_answer_line(std::string_view rest, int line) {
  RecordedAnswer answer;
  answer.line = line;
  auto attributes = parse_attributes(rest, line);
  if (!attributes) return tl::unexpected(attributes.error());
  for (const auto& [name, value] : *attributes) {
    if (name == "status") {
      const auto result = std::from_chars(value.data(), value.data() + value.size(), answer.status);
      if (result.ec != std::errc() || result.ptr != value.data() + value.size() || answer.status < 100 ||
          answer.status > 599) {
        return bad_line(line, "status is a number from 100 to 599");
      }
    } else if (name == "match") {
      answer.match = value;
    } else if (name == "header") {
      const std::size_t colon = value.find(':');
      if (colon == std::string::npos) return bad_line(line, "header is \"Name: value\"");
      answer.headers.emplace_back(base::to_lower(value.substr(0, colon)), base::trim(value.substr(colon + 1)));
    } else {
      return bad_line(line, "unknown attribute " + name + " (known: status, match, header)");
    }
  }
  return answer;
}

class Player {
 public:
  Player(std::vector<RecordedAnswer> answers, std::string requests)
      : answers_(std::move(answers)), used_(answers_.size(), false), requests_(std::move(requests)) {}

  base::Result<HttpResponse> post(const HttpRequest& request, const HttpSink& sink, std::stop_token stop) {
    if (stop.stop_requested()) return stopped();
    const RecordedAnswer* answer = nullptr;
    {
      const base::Lock lock(mutex_);
      if (auto kept = keep_request(request.body); !kept) return tl::unexpected(kept.error());
      answer = next(request.body);
    }
    if (answer == nullptr) {
      return base::fail(ErrorCode::invalid_argument,
                        "the recording has no answer left for this request (" + std::to_string(answers_.size()) +
                            " answers; see docs/recordings.md)",
                        base::ellipsize(request.body, 300));
    }
    HttpResponse response;
    response.status = answer->status;
    for (const auto& [name, value] : answer->headers) response.headers.emplace(name, value);
    if (sink.on_headers) sink.on_headers(response);
    const base::StopFd stop_fd(stop);
    for (const RecordedStep& step : answer->steps) {
      if (stop.stop_requested()) return stopped();
      switch (step.kind) {
        case RecordedStep::Kind::bytes:
          if (answer->status / 100 != 2) {
            response.error_body += step.bytes;
          } else if (bool progress = false; !sink.on_body(step.bytes, progress)) {
            return response;
          }
          break;
        case RecordedStep::Kind::wait:
        case RecordedStep::Kind::hang: {
          std::optional<std::chrono::steady_clock::time_point> until;
          if (step.kind == RecordedStep::Kind::wait) {
            until = std::chrono::steady_clock::now() + std::chrono::milliseconds(step.wait_ms);
          }
          const auto waited = base::wait_fd(-1, 0, stop_fd, until);
          if (!waited && waited.error().code == ErrorCode::cancelled) return stopped();
          break;
        }
        case RecordedStep::Kind::cut:
          return base::fail(ErrorCode::cut_stream, "the connection ended in the middle of the answer (recorded)");
      }
    }
    return response;
  }

 private:
  static tl::unexpected<base::Error> stopped() { return base::fail(ErrorCode::cancelled, "the request was stopped"); }

  const RecordedAnswer* next(std::string_view body) REQUIRES(mutex_) {
    for (std::size_t i = 0; i < answers_.size(); ++i) {
      if (used_[i] || body.find(answers_[i].match) == std::string_view::npos) continue;
      used_[i] = true;
      return &answers_[i];
    }
    return nullptr;
  }

  base::Result<void> keep_request(const std::string& body) REQUIRES(mutex_) {
    if (requests_.empty()) return {};
    const base::Fd file(::open(requests_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file) return base::fail_errno("open " + requests_, errno);
    return base::write_all(file.get(), body + "\n");
  }

  const std::vector<RecordedAnswer> answers_;
  base::Mutex mutex_;
  std::vector<bool> used_ GUARDED_BY(mutex_);
  const std::string requests_;
};

}  // namespace

base::Result<std::vector<RecordedAnswer>> parse_recording(std::string_view text) {
  std::vector<RecordedAnswer> answers;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    answers.back().steps.push_back(RecordedStep{RecordedStep::Kind::bytes, std::move(bytes), 0});
    bytes.clear();
  };
  int number = 0;
  std::size_t at = 0;
  bool ended = false;  // by @hang or @cut
  while (at < text.size()) {
    ++number;
    const std::size_t end = text.find('\n', at);
    const std::string_view line = text.substr(at, end == std::string_view::npos ? end : end - at);
    const std::string_view with_end = text.substr(at, end == std::string_view::npos ? end : end + 1 - at);
    at += with_end.size();
    if (line.starts_with("=== answer")) {
      if (!answers.empty()) flush();
      auto answer = parse_answer_line(line.substr(10), number);
      if (!answer) return tl::unexpected(answer.error());
      answers.push_back(std::move(*answer));
      ended = false;
      continue;
    }
    if (answers.empty()) {
      if (base::trim(line).empty() || line.starts_with('#')) continue;
      return bad_line(number, "expected === answer (or a # comment before the first)");
    }
    if (!line.starts_with('@')) {
      if (ended && !base::trim(line).empty()) return bad_line(number, "nothing can follow @hang or @cut in an answer");
      if (!ended) bytes.append(with_end);
      continue;
    }
    if (ended) return bad_line(number, "nothing can follow @hang or @cut in an answer");
    flush();
    const std::string_view order = base::trim(line);
    if (order.starts_with("@wait ")) {
      std::int64_t ms = -1;
      const std::string_view value = base::trim(order.substr(6));
      const auto result = std::from_chars(value.data(), value.data() + value.size(), ms);
      if (result.ec != std::errc() || result.ptr != value.data() + value.size() || ms < 0 || ms > 600'000) {
        return bad_line(number, "@wait takes milliseconds, 0 to 600000");
      }
      answers.back().steps.push_back(RecordedStep{RecordedStep::Kind::wait, {}, ms});
    } else if (order == "@hang" || order == "@cut") {
      const auto kind = order == "@hang" ? RecordedStep::Kind::hang : RecordedStep::Kind::cut;
      answers.back().steps.push_back(RecordedStep{kind, {}, 0});
      ended = true;
    } else if (order != "@chunk") {
      return bad_line(number, "unknown order (known: @wait <ms>, @hang, @cut, @chunk)");
    }
  }
  if (answers.empty()) return base::fail(ErrorCode::invalid_argument, "the recording has no === answer");
  flush();
  return answers;
}

HttpPost make_recorded_post(std::vector<RecordedAnswer> answers, std::string requests) {
  const auto player = std::make_shared<Player>(std::move(answers), std::move(requests));
  return [player](const HttpRequest& request, const HttpSink& sink, std::stop_token stop) {
    return player->post(request, sink, std::move(stop));
  };
}

}  // namespace llm
