// What subcommands say. The only writer to stdout besides the protocol's transport. Text of foreign origin (model,
// client, commands) is made inert for terminals here: no escape sequence leaves. Any thread; one call is written whole.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace cli {

// Answers: to stdout. An error, or false, when nobody reads it any more.
base::Result<void> write_answer(std::string_view text);
bool print(std::string_view text);
bool watched();  // stdout is a terminal
// Remarks: one line to stderr, newline added.
void note(std::string_view line);

// Control characters but \n and \t removed, C1 included.
std::string inert(std::string_view text);

}  // namespace cli
