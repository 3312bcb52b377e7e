#include "agent/model_step.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <random>

#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"

namespace agent {
namespace {

constexpr std::size_t logged_error_limit = 2000;

// False: stopped.
bool sleep_for(std::int64_t ms, const std::stop_token& stop) {
  const base::StopFd stop_fd(stop);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
  (void)base::wait_fd(stop_fd.fd(), POLLIN, stop_fd, deadline);
  return !stop.stop_requested();
}

// Up to a quarter more, so that many sessions do not come back at the same instant.
std::int64_t jitter(std::int64_t delay_ms) {
  thread_local std::minstd_rand random{std::random_device{}()};
  return std::uniform_int_distribution<std::int64_t>(0, delay_ms / 4)(random);
}

// "0.6 s", "45 s", "24 h", "1 h 30 min".
std::string spoken_time(std::int64_t ms) {
  if (ms < 10'000) return fmt::format("{:.1f} s", static_cast<double>(ms) / 1000);
  const std::int64_t seconds = (ms + 999) / 1000, minutes = (seconds + 59) / 60;
  if (seconds < 120) return fmt::format("{} s", seconds);
  if (minutes < 60) return fmt::format("{} min", minutes);
  return minutes % 60 == 0 ? fmt::format("{} h", minutes / 60) : fmt::format("{} h {} min", minutes / 60, minutes % 60);
}

// What one attempt showed.
class Streaming {
 public:
  Streaming(const TurnSetup& setup, std::string message_id) : setup_(setup), message_id_(std::move(message_id)) {}

  llm::StreamSink sink() {
    return {[this](std::string_view text) { show(LiveDelta::Kind::text, "text", text, shown_.text); },
            [this](std::string_view text) { show(LiveDelta::Kind::thought, "thought", text, shown_.reasoning); }};
  }
  bool anything() const { return !shown_.text.empty() || !shown_.reasoning.empty(); }
  const llm::Message& shown() const { return shown_; }
  const std::string& message_id() const { return message_id_; }

 private:
  void show(LiveDelta::Kind kind, const char* word, std::string_view text, std::string& kept) {
    if (text.empty()) return;
    // As the log will hold it, or the difference would be sent once more when the answer is whole.
    std::string scrubbed;
    if (text.find('\0') != std::string_view::npos) text = scrubbed = base::to_utf8(text);
    kept.append(text);
    setup_.session.delta({kind, message_id_, text});
    if (setup_.services.log && setup_.services.log->chunks) {
      // Ignorable by definition; that the log is broken shows at the next event that is not.
      (void)setup_.session.append(event::AssistantChunk{message_id_, word, std::string(text)});
    }
    setup_.session.wait_drained(setup_.stop.token());
  }

  const TurnSetup& setup_;
  const std::string message_id_;
  llm::Message shown_{llm::Role::assistant, "", "", {}, ""};
};

bool is_answer(const llm::Completion& completion) {
  if (!completion.message.text.empty() || !completion.message.tool_calls.empty()) return true;
  // Nothing said, but for a reason that asking again does not change.
  return completion.finish == llm::FinishReason::max_tokens || completion.finish == llm::FinishReason::content_filter ||
         completion.dropped_calls > 0;
}

llm::ModelError empty_answer() {
  llm::ModelError error;
  error.error = {base::ErrorCode::empty_response, "the model answered with nothing", ""};
  error.retryable = true;
  return error;
}

}  // namespace

base::Result<ModelAnswer> ask_model(const TurnSetup& setup, const llm::Route& route, const llm::RequestHeader& header) {
  const std::vector<llm::WireMessage> messages = setup.session.wire_messages(route.adapter);
  const std::vector<std::int64_t>& delays = setup.services.loop.retry_delays_ms;
  ModelAnswer answer;
  for (std::size_t attempt = 0;; ++attempt) {
    if (auto synced = setup.session.sync(); !synced) return tl::unexpected<base::Error>(synced.error());
    if (setup.stop.stopped()) return answer;  // not sent
    Streaming streaming(setup, setup.session.world().new_id());
    answer.message_id = streaming.message_id();
    auto result = route.adapter->complete(header, messages, streaming.sink(), setup.stop.token());
    if (result && is_answer(*result)) {
      answer.kind = ModelAnswer::Kind::answered;
      answer.completion = std::move(*result);
      return answer;
    }
    if (setup.stop.stopped()) {
      answer.kind = ModelAnswer::Kind::interrupted;
      answer.completion.message = streaming.shown();
      return answer;
    }
    const llm::ModelError error = result ? empty_answer() : result.error();
    if (streaming.anything()) {
      auto logged = setup.session.append(event::AssistantAborted{answer.message_id, streaming.shown().text});
      if (!logged) return tl::unexpected<base::Error>(logged.error());
    }
    if (!error.retryable || attempt >= delays.size() || error.retry_after_ms > retry_after_limit_ms) {
      answer.kind = ModelAnswer::Kind::failed;
      answer.error = error.error;
      if (error.retryable && error.retry_after_ms > retry_after_limit_ms)
        answer.error.message += "; the server asks to try again in " + spoken_time(error.retry_after_ms);
      answer.retryable = error.retryable;
      return answer;
    }
    const std::int64_t delay = std::max(delays[attempt], error.retry_after_ms);
    auto logged = setup.session.append(
        event::LlmRetry{static_cast<int>(attempt) + 1, std::string(base::error_name(error.error.code)),
                        base::ellipsize(error.error.message, logged_error_limit), delay});
    if (!logged) return tl::unexpected<base::Error>(logged.error());
    const std::int64_t pause = delay + jitter(delay);
    base::log_warning(fmt::format("the model request failed ({}); trying again in {}, {} of {}", error.error.message,
                                  spoken_time(pause), attempt + 1, delays.size()));
    if (!sleep_for(pause, setup.stop.token())) return answer;  // not sent
  }
}

}  // namespace agent
