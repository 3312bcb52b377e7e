// What subcommands say. The only writer to stdout besides the protocol's transport. Text of foreign origin (model,
// client, commands) is made inert for terminals here: no escape sequence leaves. Any thread; one call is written whole.
#pragma once

#include <string>
#include <string_view>

namespace cli {

// Answers: to stdout. False when nobody reads it any more.
bool print(std::string_view text);
// Remarks: one line to stderr, newline added.
void note(std::string_view line);

// Control characters but \n and \t removed, C1 included.
std::string inert(std::string_view text);

}  // namespace cli
