#include "agent/plugin.h"

#include "tests/agent/support.h"

namespace {

using agent::Seam;

// Plugins that only say when they are mounted.
struct Recorder {
  std::vector<std::string> mounted;

  agent::Plugin plugin(std::string name, std::vector<Seam> needs, std::vector<Seam> uses, std::vector<Seam> gives,
                       bool fails = false) {
    agent::Plugin made{name, std::move(needs), std::move(uses), std::move(gives), {}};
    made.configure = [this, name, fails](base::ConfigReader& config, const agent::ConfigureContext& context) {
      const std::string id = context.entry_id;
      config.integer("size", 1, 1, 10);
      return agent::Mount([this, id, name, fails](agent::Services&) -> base::Result<void> {
        if (fails) return base::fail(base::ErrorCode::io, name + " does not start");
        mounted.push_back(id);
        return {};
      });
    };
    return made;
  }
};

agent::Composition compose(const std::string& text, const std::vector<agent::Plugin>& plugins) {
  agent::ConfigureContext context;
  context.world.cwd = "/var/tmp";
  return agent::compose(base::parse_config("c.yml", text, context.world), plugins, context, base::real_world());
}

std::vector<std::string> texts(const agent::Composition& composition) {
  std::vector<std::string> all;
  for (const base::Fault& fault : composition.faults) all.push_back(base::to_string(fault));
  return all;
}

using Texts = std::vector<std::string>;

std::vector<agent::Plugin> product_shape(Recorder& recorder) {
  return {
      recorder.plugin("policy-plugin", {}, {}, {Seam::policy}),
      recorder.plugin("runner", {Seam::policy}, {}, {Seam::sandbox}),
      recorder.plugin("confined", {Seam::policy, Seam::sandbox}, {Seam::route}, {Seam::shell, Seam::confining_shell}),
      recorder.plugin("open", {}, {Seam::route}, {Seam::shell}),
      recorder.plugin("model", {}, {}, {Seam::route}),
      recorder.plugin("consent", {}, {}, {Seam::approval}),
      recorder.plugin("selector", {Seam::approval, Seam::policy, Seam::confining_shell}, {}, {Seam::presets}),
      recorder.plugin("bash", {Seam::shell}, {Seam::approval}, {Seam::tools}),
      recorder.plugin("broken", {}, {}, {Seam::fs}, true),
      recorder.plugin("files", {Seam::fs}, {}, {Seam::tools})};
}

}  // namespace

TEST_CASE("entries are mounted after what they need and use, wherever it is written") {
  Recorder recorder;
  const auto composition = compose(
      "- {id: tool, name: bash}\n"
      "- {id: shell, name: confined}\n"
      "- {id: box, name: runner}\n"
      "- {id: rules, name: policy-plugin}\n"
      "- {id: ask, name: consent}\n"
      "- {id: llm, name: model}\n",
      product_shape(recorder));
  CHECK(texts(composition).empty());
  CHECK(recorder.mounted == Texts{"rules", "box", "llm", "shell", "ask", "tool"});
}

TEST_CASE("list seams collect in file order though one giver's needs come last") {
  Recorder recorder;
  auto plugins = product_shape(recorder);
  plugins.push_back(recorder.plugin("plain", {}, {}, {Seam::tools}));
  const auto composition = compose(
      "- {id: first, name: bash}\n- {id: second, name: plain}\n- {id: shell, name: open}\n- {id: third, name: plain}\n",
      plugins);
  CHECK(texts(composition).empty());
  CHECK(recorder.mounted == Texts{"shell", "first", "second", "third"});
}

TEST_CASE("an absent need names the plugins that would give it; an absent use is no fault") {
  Recorder recorder;
  const auto composition = compose("- {id: tool, name: bash}\n- {id: box, name: runner}\n", product_shape(recorder));
  CHECK(texts(composition) ==
        Texts{"c.yml:1: `bash` needs the shell, which no entry gives; add an entry with name confined or open",
              "c.yml:2: `runner` needs the policy, which no entry gives; add an entry with name policy-plugin"});
  CHECK(recorder.mounted.empty());
}

TEST_CASE("a shell that does not confine is named as the entry to replace") {
  Recorder recorder;
  const auto composition = compose(
      "- {id: rules, name: policy-plugin}\n- {id: ask, name: consent}\n- {id: sh, name: open}\n- {id: sel, name: "
      "selector}\n",
      product_shape(recorder));
  CHECK(texts(composition) == Texts{"c.yml:4: `selector` needs a shell that confines, but entry `sh` (open, line 3) "
                                    "does not; replace that entry's "
                                    "name with confined, or delete this entry"});
}

TEST_CASE("a seam given twice is a fault at the later entry, but for lists") {
  Recorder recorder;
  const auto composition = compose(
      "- {id: rules, name: policy-plugin}\n- {id: box, name: runner}\n- {id: one, name: confined}\n"
      "- {id: two, name: open}\n- {id: a, name: model}\n- {id: b, name: model}\n",
      product_shape(recorder));
  CHECK(texts(composition) == Texts{"c.yml:4: `open` gives the shell, which entry `one` (confined, line 3) already "
                                    "gives; delete one of the two"});
}

TEST_CASE("a circle of needs is a fault that names its members") {
  Recorder recorder;
  const std::vector<agent::Plugin> plugins = {recorder.plugin("a", {Seam::fs}, {}, {Seam::log}),
                                              recorder.plugin("b", {Seam::log}, {}, {Seam::fs}),
                                              recorder.plugin("self", {Seam::loop}, {}, {Seam::loop})};
  const auto composition = compose("- {id: x, name: a}\n- {id: y, name: b}\n- {id: z, name: self}\n", plugins);
  CHECK(
      texts(composition) ==
      Texts{
          "c.yml:1: entry `x` (a, line 1) and entry `y` (b, line 2) need each other in a circle; delete or replace one",
          "c.yml:3: `self` needs what it gives itself"});
}

TEST_CASE("an unknown plugin is one fault: the nearest name is taken to be there") {
  Recorder recorder;
  const std::vector<agent::Plugin> plugins = {recorder.plugin("policy", {}, {}, {Seam::policy}),
                                              recorder.plugin("runner", {Seam::policy}, {}, {Seam::sandbox})};
  const auto composition =
      compose("- {id: p, name: polcy}\n- {id: r, name: runner}\n- {id: q, name: zzzzzz}\n", plugins);
  CHECK(texts(composition) == Texts{"c.yml:1: there is no plugin `polcy`; did you mean policy? Plugins: policy, runner",
                                    "c.yml:3: there is no plugin `zzzzzz`. Plugins: policy, runner"});
}

TEST_CASE("every entry is configured and all faults come together in line order") {
  Recorder recorder;
  const auto composition = compose(
      "- {id: r, name: runner}\n"
      "- {id: n, name: nothing-like-it}\n"
      "- id: p\n  name: policy-plugin\n  config:\n    size: 99\n    colour: red\n"
      "- {id: p, name: model, extra: 1}\n",
      product_shape(recorder));
  const Texts all = texts(composition);
  REQUIRE(all.size() == 5);
  CHECK(all[0].rfind("c.yml:2: there is no plugin `nothing-like-it`", 0) == 0);
  CHECK(all[1].rfind("c.yml:6: ", 0) == 0);
  CHECK(all[2].rfind("c.yml:7: unknown key `colour`", 0) == 0);
  CHECK(all[3].rfind("c.yml:8: ", 0) == 0);
  CHECK(all[4].rfind("c.yml:8: ", 0) == 0);
  CHECK(recorder.mounted.empty());
}

TEST_CASE("a mount that fails is a fault at its entry, and what needs it is not mounted") {
  Recorder recorder;
  const auto composition =
      compose("- {id: f, name: files}\n- {id: d, name: broken}\n- {id: m, name: model}\n", product_shape(recorder));
  CHECK(texts(composition) == Texts{"c.yml:2: broken does not start"});
  CHECK(recorder.mounted == Texts{"m"});
}

TEST_CASE("a composition says what its entries give, and a seam of it can be absent") {
  Recorder recorder;
  const auto composition = compose("- {id: m, name: model}\n", product_shape(recorder));
  CHECK(composition.gives(Seam::route));
  CHECK_FALSE(composition.gives(Seam::shell));
}

TEST_CASE("the route: by name when named, else the first that is ready and not chosen_only") {
  agent::Services services;
  llm::Route missing, ready, recorded;
  missing.id = "one";
  missing.protocol = ready.protocol = recorded.protocol = "openai-completions";
  missing.missing = "set ONE_KEY";
  ready.id = "two";
  ready.ready = recorded.ready = true;
  recorded.id = "recorded";
  recorded.chosen_only = true;

  services.routes = {recorded, missing};
  CHECK(agent::choose_route(services) == nullptr);
  CHECK(agent::route_missing(services) == "No model route is ready. one: set ONE_KEY.");

  services.routes = {recorded, missing, ready};
  REQUIRE(agent::choose_route(services) != nullptr);
  CHECK(agent::choose_route(services)->id == "two");

  services.loop.route = "recorded";
  REQUIRE(agent::choose_route(services) != nullptr);
  CHECK(agent::choose_route(services)->id == "recorded");

  services.loop.route = "one";
  CHECK(agent::choose_route(services) == nullptr);
  CHECK(agent::route_missing(services) == "The model route `one` is not ready: set ONE_KEY");

  services.loop.route = "nowhere";
  CHECK(agent::choose_route(services) == nullptr);
  CHECK(agent::route_missing(services) == "There is no model route `nowhere`; choose one of: recorded, one, two");
}

TEST_CASE("two entries that give one tool are a fault, not a warning at run time") {
  Recorder recorder;
  agent::Plugin tool{"tool", {}, {}, {Seam::tools}, {}};
  tool.configure = [](base::ConfigReader&, const agent::ConfigureContext&) {
    return agent::Mount([](agent::Services& services) -> base::Result<void> {
      services.tools.push_back(std::make_shared<test::LambdaTool>(
          "twin", true, [](const base::Json&, agent::ToolContext&) { return agent::ToolOutcome{}; }));
      return {};
    });
  };
  CHECK(texts(compose("- {id: a, name: tool}\n", {tool})).empty());
  CHECK(texts(compose("- {id: a, name: tool}\n- {id: b, name: tool}\n", {tool})) ==
        Texts{"c.yml:2: another entry gives the tool `twin` already; delete one of them"});
}
