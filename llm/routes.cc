#include "llm/routes.h"

#include <assets.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "llm/openai_completions.h"
#include "llm/recorded.h"
#include "llm/url.h"

namespace llm {

namespace {

constexpr std::size_t max_recording = 64u << 20;
constexpr std::int64_t max_timeout_ms = 24LL * 3600 * 1000;

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) == 0x7f;
  });
}

bool is_header_name(std::string_view name) {
  constexpr std::string_view allowed = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz";
  return !name.empty() && base::to_lower(name).find_first_not_of(allowed) == std::string::npos;
}

bool is_variable_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

bool host_is(std::string_view host, std::string_view domain) {
  return host == domain ||
         (host.size() > domain.size() && host.ends_with(domain) && host[host.size() - domain.size() - 1] == '.');
}

void read_timeouts(base::ConfigReader& config, HttpLimits& limits) {
  const auto read = [&](std::string_view key, std::chrono::milliseconds& limit) {
    limit = std::chrono::milliseconds(config.integer(key, limit.count(), 1, max_timeout_ms));
  };
  read("connect_timeout_ms", limits.connect);
  read("first_byte_timeout_ms", limits.first_byte);
  read("idle_timeout_ms", limits.idle);
  read("no_content_timeout_ms", limits.no_content);
}

void read_headers(base::ConfigReader& config, OpenAiOptions& options) {
  for (auto& [name, value] : config.string_map("headers")) {
    if (!is_header_name(name)) {
      config.fault("headers", "\"" + base::ellipsize(name, 60) + "\" is no HTTP header name");
    } else if (has_control(value)) {
      config.fault("headers", "the value of " + name + " holds a line break or control character");
    } else if (const std::string lower = base::to_lower(name); lower == "host" || lower == "content-length" ||
                                                               lower == "transfer-encoding" || lower == "connection" ||
                                                               lower == "content-type" || lower == "accept-encoding") {
      config.fault("headers", name + " is set by the program and cannot be configured");
    } else {
      options.headers.emplace_back(name, value);
    }
  }
}

bool authorizes(const OpenAiOptions& options) {
  return std::any_of(options.headers.begin(), options.headers.end(), [](const auto& header) {
    const std::string name = base::to_lower(header.first);
    return (name == "authorization" || name == "api-key" || name == "x-api-key") && !header.second.empty();
  });
}

// The model, the list it is in, the window, and the extra members of every request.
void read_model(base::ConfigReader& config, Route& route, const std::string& default_tokens_field) {
  route.models = config.strings("models", {});
  route.model = config.string("model", route.models.empty() ? "" : route.models.front());
  if (config.has("model") && base::trim(route.model).empty())
    config.fault("model", "`model` is empty; give it a value, or leave it out");
  if (!route.model.empty() && std::find(route.models.begin(), route.models.end(), route.model) == route.models.end()) {
    route.models.insert(route.models.begin(), route.model);
  }
  route.context_window = config.integer("context_window", 0, 0, 1'000'000'000);
  const std::int64_t max_tokens = config.integer("max_tokens", 0, 0, 1'000'000'000);
  const std::string field =
      config.choice("max_tokens_field", default_tokens_field, {"max_tokens", "max_completion_tokens"});
  base::Json params = base::Json::object();
  if (max_tokens > 0) params[field] = max_tokens;
  if (const auto temperature = config.optional_string("temperature")) {
    const auto value = base::parse_json(*temperature);
    if (value && value->is_number() && value->get<double>() >= 0 && value->get<double>() <= 2) {
      params["temperature"] = *value;
    } else {
      config.fault("temperature", "temperature is a number from 0 to 2");
    }
  }
  route.params = base::dump(params);
}

}  // namespace

MakeRoute configure_openai_completions(const std::string& id, base::ConfigReader& config,
                                       const base::ConfigWorld& world) {
  Route route;
  route.id = id;
  route.protocol = "openai-completions";
  OpenAiOptions options;

  config.refuse("api_key",
                "a key does not belong into a file: put it into an environment variable and write that "
                "variable's name as api_key_env");
  const std::string base_url = config.string("base_url", "https://api.openai.com/v1");
  auto url = chat_completions_url(base_url);
  if (!url) {
    config.fault("base_url", "base_url cannot be used: " + url.error().message);
    url = Url{};
  }
  options.url = url->to_string();

  const std::string variable = config.string("api_key_env", "OPENAI_API_KEY");
  std::string key_problem;
  if (!variable.empty()) {
    if (!is_variable_name(variable)) {
      config.fault("api_key_env",
                   "api_key_env is the name of an environment variable (letters, digits, _), not the key");
    } else {
      route.key_variables.push_back(variable);
      options.key = base::trim(world.env(variable).value_or(""));
      const bool odd = std::any_of(options.key.begin(), options.key.end(), [](char c) {
        return static_cast<unsigned char>(c) <= ' ' || static_cast<unsigned char>(c) >= 0x7f;
      });
      if (odd) {
        key_problem =
            "the key in " + variable + " holds a space, line break or other character no key has; set it again";
        options.key.clear();
      }
    }
  }
  read_headers(config, options);
  read_timeouts(config, options.limits);
  options.reasoning_field =
      config.choice("reasoning_field", host_is(url->host, "deepseek.com") ? "reasoning_content" : "none",
                    {"none", "reasoning_content", "reasoning"});
  if (options.reasoning_field == "none") options.reasoning_field.clear();
  read_model(config, route, host_is(url->host, "openai.com") ? "max_completion_tokens" : "max_tokens");

  const bool needs_key = !variable.empty() && !is_loopback(url->host) && !authorizes(options);
  if (!key_problem.empty()) {
    route.missing = key_problem;
  } else if (needs_key && options.key.empty()) {
    route.missing = "set " + variable + " to an API key for " + url->host;
  } else if (route.model.empty()) {
    route.missing =
        "name a model: set `model` of the entry " + id + " (the shipped cordis.yml takes it from the environment)";
  }
  route.ready = route.missing.empty();

  return [route, options]() -> base::Result<Route> {
    Route made = route;
    made.adapter = std::make_shared<OpenAiCompletions>(options, make_http_post(read_http_environment()));
    return made;
  };
}

MakeRoute configure_recorded(const std::string& id, base::ConfigReader& config, const base::ConfigWorld& world) {
  Route route;
  route.id = id;
  route.protocol = "openai-completions";
  route.chosen_only = true;
  route.ready = true;
  const auto absolute = [&](const std::string& path) {
    return path.empty() || path.front() == '/' ? path : world.cwd + "/" + path;
  };
  const std::string file = config.string("file", "builtin");
  const std::string requests = absolute(config.string("requests", ""));
  route.model = config.string("model", "recorded");
  route.models = {route.model};
  route.context_window = config.integer("context_window", 0, 0, 1'000'000'000);
  OpenAiOptions options;
  options.url = "http://recorded.invalid/v1/chat/completions";
  options.reasoning_field = config.choice("reasoning_field", "none", {"none", "reasoning_content", "reasoning"});
  if (options.reasoning_field == "none") options.reasoning_field.clear();

  base::Result<std::string> text = std::string(assets::demo_recording_txt);
  if (file != "builtin") text = base::read_file(absolute(file), max_recording);
  std::vector<RecordedAnswer> answers;
  if (!text) {
    config.fault("file", "the recording cannot be read: " + text.error().message);
  } else if (auto parsed = parse_recording(*text)) {
    answers = std::move(*parsed);
  } else {
    config.fault("file", "the recording " + file + " is malformed: " + parsed.error().message);
  }
  return [route, options, requests, answers = std::move(answers)]() -> base::Result<Route> {
    Route made = route;
    made.adapter = std::make_shared<OpenAiCompletions>(options, make_recorded_post(answers, requests));
    return made;
  };
}

std::span<const RoutePlugin> route_plugins() {
  static constexpr RoutePlugin plugins[] = {
      {"llm-openai-completions", configure_openai_completions},
      {"llm-recorded", configure_recorded},
  };
  return plugins;
}

}  // namespace llm
