// The operator's log: one line per message on stderr through spdlog. Never stdout. Any thread. Callers never pass
// secrets; text of foreign origin goes through base::ellipsize first.
#pragma once

#include <string_view>

namespace base {

enum class LogLevel { debug, info, warning, error };
void set_log_level(LogLevel level);  // default warning; ACP_AGENT_LOG=debug|info|warning|error, read by main
void log(LogLevel level, std::string_view message);
inline void log_warning(std::string_view message) { log(LogLevel::warning, message); }
inline void log_error(std::string_view message) { log(LogLevel::error, message); }
inline void log_info(std::string_view message) { log(LogLevel::info, message); }

}  // namespace base
