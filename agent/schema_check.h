// Checks a call's arguments against the very schema that was sent to the model. valijson stays inside schema_check.cc.
// Immutable after compile(): any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace agent {

class SchemaCheck {
 public:
  // invalid_argument: the text is no JSON schema.
  static base::Result<SchemaCheck> compile(const std::string& schema);
  ~SchemaCheck();
  SchemaCheck(SchemaCheck&&) noexcept;

  // Every violation as one line: "file_path: ..."; empty when the arguments fit.
  std::vector<std::string> violations(const base::Json& arguments) const;

 private:
  struct Compiled;
  explicit SchemaCheck(std::unique_ptr<const Compiled> compiled);
  std::unique_ptr<const Compiled> compiled_;
};

}  // namespace agent
