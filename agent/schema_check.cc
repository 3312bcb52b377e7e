#include "agent/schema_check.h"

#include <algorithm>
#include <nlohmann/json.hpp>
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

base::Result<SchemaCheck> SchemaCheck::compile(const std::string& schema) {
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

// valijson names a place as ["<root>", "[\"edits\"]", "[0]"].
std::string place(const std::vector<std::string>& context) {
  std::string text;
  for (const std::string& part : context) {
    if (part == "<root>") continue;
    std::string plain = part;
    if (plain.size() > 4 && plain.rfind("[\"", 0) == 0) {
      plain = plain.substr(2, plain.size() - 4);
      if (!text.empty()) text += '.';
    }
    text += plain;
  }
  return base::ellipsize(text, 200);
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
      const std::string where = place(error.context);
      std::string line = (where.empty() ? "" : where + ": ") + base::ellipsize(error.description, 300);
      if (std::find(found.begin(), found.end(), line) == found.end()) found.push_back(std::move(line));
    }
  } catch (const std::exception& error) {
    found.emplace_back(std::string("the arguments cannot be checked: ") + error.what());
  }
  if (found.empty()) found.emplace_back("the arguments do not fit the schema");
  return found;
}

}  // namespace agent
