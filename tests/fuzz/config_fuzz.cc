// Any bytes as a composition: no crash, faults have lines of the file, getters keep their promises, and what
// print_config prints is a composition that prints the same.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/config_reader.h"
#include "base/text.h"

namespace {

void require(bool fact) {
  if (!fact) std::abort();
}

void walk(base::ConfigReader reader) {
  (void)reader.string("a", "x");
  (void)reader.required_string("b");
  const std::int64_t number = reader.integer("c", 5, 0, 10);
  require(number >= 0 && number <= 10);
  (void)reader.boolean("d", true);
  const std::string choice = reader.choice("mode", "one", {"one", "two"});
  require(choice == "one" || choice == "two");
  (void)reader.strings("list", {"x"});
  (void)reader.string_map("headers");
  for (auto& each : reader.maps("models")) each.finish();
  for (auto& [name, each] : reader.named_maps("presets")) each.finish();
  reader.refuse("workspace_root", "no");
  reader.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const base::ConfigWorld world{[](const std::string& name) -> std::optional<std::string> {
                                  if (name.size() % 2 == 0) return std::nullopt;
                                  return "value of " + name;
                                },
                                "/cwd"};
  const base::ConfigFile file = base::parse_config("f", text, world);
  std::vector<base::Fault> faults = file.faults;
  for (const base::ConfigEntry& entry : file.entries) {
    walk(base::ConfigReader(entry.config, "", &faults));
    if (!file.faults.empty()) continue;
    const std::string head = "- id: x\n  name: y\n  config:\n";
    const std::string printed = base::print_config(entry, 4);
    const base::ConfigFile again = base::parse_config("f", head + printed, world);
    require(again.faults.empty() && again.entries.size() == 1);
    require(base::print_config(again.entries[0], 4) == printed);
  }
  const auto lines = std::count(text.begin(), text.end(), '\n') + 1;
  for (const base::Fault& fault : faults) {
    require(fault.line >= 0 && fault.line <= lines + 1 && !fault.text.empty());
    require(base::valid_utf8(fault.text));
  }
  return 0;
}
