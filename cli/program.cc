#include "cli/program.h"

#include <unistd.h>

#include "cli/exit_code.h"
#include "cli/output.h"

namespace cli {

int dispatch(const Program& program, int argc, char** argv) {
  const std::variant<Options, ParseEnd> parsed = parse_options(argc, argv, program.version);
  if (const ParseEnd* end = std::get_if<ParseEnd>(&parsed)) {
    if (end->exit_code == 0) return print(end->text) ? 0 : exit_status::failed;
    note(end->text.substr(0, end->text.find_last_not_of('\n') + 1));
    return end->exit_code;
  }
  const Options& options = std::get<Options>(parsed);
  switch (options.command) {
    case Command::bare:
      if (isatty(STDIN_FILENO) == 1) {
        note("acp-agent speaks the Agent Client Protocol on stdin and stdout; an editor starts it.");
        note("By hand: acp-agent run \"prompt\". More: acp-agent --help");
        return exit_status::usage;
      }
      return serve(program, options);
    case Command::acp:
      return serve(program, options);
    case Command::run:
      return run(program, options);
    case Command::check:
      return check(program, options);
    case Command::print_config:
      return print_config(program, options);
    case Command::confine:
      return confine(program, options);
    case Command::doctor:
      return doctor(program, options);
    case Command::sessions:
      return sessions(program, options);
  }
  return exit_status::usage;
}

}  // namespace cli
