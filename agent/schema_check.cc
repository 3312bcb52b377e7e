#include "agent/schema_check.h"

#include <algorithm>
#include <limits>
#include <locale>
#include <mutex>
#include <nlohmann/json.hpp>

#define VALIJSON_USE_EXCEPTIONS 1  // else it ends the process at a bad schema
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "base/text.h"

namespace agent {

struct SchemaCheck::Compiled {
  nlohmann::json document;
  valijson::Schema schema;
};

SchemaCheck::SchemaCheck(std::unique_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}
SchemaCheck::SchemaCheck(SchemaCheck&&) noexcept = default;
SchemaCheck::~SchemaCheck() = default;

namespace {

// valijson matches with std::regex, whose libstdc++ fills the character table of the global locale's facet on first
// use, unguarded. Filled here, schemas are only read from then on, and may be used by many sessions at once.
void fill_character_table() {
  static std::once_flag once;
  std::call_once(once, [] {
    const auto& facet = std::use_facet<std::ctype<char>>(std::locale());
    for (int c = 1; c <= std::numeric_limits<unsigned char>::max(); ++c) facet.narrow(static_cast<char>(c), '\0');
  });
}

}  // namespace

base::Result<SchemaCheck> SchemaCheck::compile(const std::string& schema) {
  fill_character_table();
  auto parsed = base::parse_json(schema);
  if (!parsed) return base::fail(base::ErrorCode::invalid_argument, "tool schema: " + parsed.error().message);
  auto compiled = std::make_unique<Compiled>();
  try {
    compiled->document = nlohmann::json::parse(schema);  // valijson knows only the type with sorted members
    valijson::SchemaParser parser;
    parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(compiled->document), compiled->schema);
  } catch (const std::exception& error) {
    return base::fail(base::ErrorCode::invalid_argument, std::string("tool schema: ") + error.what());
  }
  return SchemaCheck(std::move(compiled));
}

namespace {

// valijson names a place as "<root>", "[edits]", "[0]", "[old_string]": here edits[0].old_string.
std::string place(const std::vector<std::string>& context) {
  std::string text;
  for (const std::string& part : context) {
    if (part.size() < 3 || part.front() != '[' || part.back() != ']') continue;
    const std::string plain = part.substr(1, part.size() - 2);
    if (plain.find_first_not_of("0123456789") == std::string::npos) {
      text += part;
    } else {
      text += (text.empty() ? "" : ".") + plain;
    }
  }
  return base::ellipsize(text, 200);
}

// What went wrong, for a model; empty for a line that only says that something inside did.
std::string plain(const std::string& description) {
  if (description.rfind("Failed to validate", 0) == 0) return {};
  const std::size_t name = description.rfind(": ");
  if (description.rfind("Object contains a property that could not be validated", 0) == 0 &&
      name != std::string::npos) {
    return "there is no property " + description.substr(name + 2);
  }
  return description;
}

}  // namespace

std::vector<std::string> SchemaCheck::violations(const base::Json& arguments) const {
  std::vector<std::string> found;
  try {
    const nlohmann::json target = nlohmann::json::parse(base::dump(arguments));
    valijson::ValidationResults results;
    valijson::Validator validator(valijson::Validator::kStrongTypes);
    if (validator.validate(compiled_->schema, valijson::adapters::NlohmannJsonAdapter(target), &results)) return {};
    valijson::ValidationResults::Error error;
    while (results.popError(error)) {
      const std::string what = plain(error.description);
      if (what.empty()) continue;
      const std::string where = place(error.context);
      std::string line = (where.empty() ? "" : where + ": ") + base::ellipsize(what, 300);
      if (std::find(found.begin(), found.end(), line) == found.end()) found.push_back(std::move(line));
    }
  } catch (const std::exception& error) {
    found.emplace_back(std::string("the arguments cannot be checked: ") + error.what());
  }
  if (found.empty()) found.emplace_back("the arguments do not fit the schema");
  return found;
}

}  // namespace agent
