// Which proxy a request goes through. cpp-httplib knows no environment variables, so the rules of NO_PROXY are here.
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "llm/http.h"
#include "llm/url.h"

namespace llm {

// nullopt: connect directly. invalid_argument: the variable's value cannot be used.
base::Result<std::optional<Url>> choose_proxy(const HttpEnvironment& environment, const Url& url);

// An entry is `*`, a host (it and every subdomain; a leading dot or `*.` means the same), an address, or a network in
// CIDR form; any of the first three with :port. Entries are separated by commas or spaces.
bool no_proxy_matches(std::string_view no_proxy, std::string_view host, int port);

}  // namespace llm
