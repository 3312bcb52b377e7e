// The shipped files and the plugin table as an operator meets them.
#include <catch2/catch.hpp>

#include "base/fd.h"
#include "llm/adapter.h"
#include "plugins.h"

namespace {

using Texts = std::vector<std::string>;

struct Setting {
  std::map<std::string, std::string> env;
  agent::Overrides overrides;
  std::string state_dir = "/var/tmp/acp-agent-test-state";
};

agent::Composition compose(const std::string& text, const Setting& setting = {}) {
  agent::ConfigureContext context;
  context.world.cwd = "/var/tmp";
  context.world.env = [&setting](const std::string& name) -> std::optional<std::string> {
    const auto found = setting.env.find(name);
    if (found == setting.env.end()) return std::nullopt;
    return found->second;
  };
  context.state_dir = setting.state_dir;
  context.call_init = "/usr/libexec/acp-agent/call-init";
  context.landlock_run = "/usr/libexec/acp-agent/landlock-run";
  context.overrides = setting.overrides;
  return agent::compose(base::parse_config("cordis.yml", text, context.world), plugins::table(), context,
                        base::real_world());
}

std::string shipped(const std::string& name) {
  const auto text = base::read_file(std::string(SOURCE_DIR) + "/" + name, 1 << 20);
  REQUIRE(text);
  return *text;
}

Texts texts(const agent::Composition& composition) {
  Texts all;
  for (const base::Fault& fault : composition.faults) all.push_back(base::to_string(fault));
  return all;
}

// Everything a composition must have but what a case writes itself.
const std::string rest =
    "- {id: llm, name: llm-recorded}\n"
    "- {id: log, name: session-log}\n"
    "- {id: loop, name: agent-loop}\n"
    "- {id: acp, name: acp}\n";

std::string schema_of(const agent::Composition& composition, const std::string& tool) {
  for (const auto& candidate : composition.services.tools) {
    const llm::ToolSpec spec = candidate->spec(agent::capabilities(composition.services));
    if (spec.name == tool) return spec.parameters;
  }
  FAIL("no tool " + tool);
  return {};
}

}  // namespace

TEST_CASE("the shipped composition is sound and says what its head comment says") {
  const auto composition = compose(shipped("cordis.yml"));
  REQUIRE(texts(composition).empty());
  const agent::Services& services = composition.services;
  CHECK(services.policy->mode == sandbox::Mode::workspace_write);
  CHECK(services.approval->default_policy() == agent::ApprovalPolicy::ask);
  CHECK(services.shell->confines());
  CHECK(services.fs->confines());
  CHECK(services.fs_observation);
  CHECK(services.presets.size() == 3);
  CHECK(services.tools.size() == 4);
  CHECK(services.log->root == "/var/tmp/acp-agent-test-state/sessions");
  CHECK(services.loop.max_steps == 500);
  REQUIRE(services.front_ends.size() == 1);
  CHECK(services.front_ends[0].surface == "editor");
  for (const char* tool : {"bash", "write", "edit"}) {
    CHECK(schema_of(composition, tool).find("sandbox_permissions") != std::string::npos);
  }
}

TEST_CASE("the shipped composition takes its mode, approval and route from the environment") {
  Setting setting;
  setting.env = {{"ACP_AGENT_MODE", "read-only"}, {"ACP_AGENT_APPROVAL", "never"}, {"ACP_AGENT_ROUTE", "recorded"}};
  const auto composition = compose(shipped("cordis.yml"), setting);
  REQUIRE(texts(composition).empty());
  CHECK(composition.services.policy->mode == sandbox::Mode::read_only);
  CHECK(composition.services.approval->default_policy() == agent::ApprovalPolicy::never);
  REQUIRE(agent::choose_route(composition.services));
  CHECK(agent::choose_route(composition.services)->id == "recorded");

  setting.env["ACP_AGENT_MODE"] = "open";
  setting.env["ACP_AGENT_ROUTE"] = "";
  const Texts wrong = texts(compose(shipped("cordis.yml"), setting));
  REQUIRE(wrong.size() == 1);
  CHECK(wrong[0].find("`mode` must be one of read-only, workspace-write, danger-full-access") != std::string::npos);

  setting.env = {{"ACP_AGENT_ROUTE", "nowhere"}};
  const Texts unknown = texts(compose(shipped("cordis.yml"), setting));
  REQUIRE(unknown.size() == 1);
  CHECK(unknown[0].find("`route` names `nowhere`, which is no model route; choose one of: openai, deepseek, recorded "
                        "(the value comes from the environment variable ACP_AGENT_ROUTE)") != std::string::npos);

  setting.env = {{"OPENAI_MODEL", ""}, {"DEEPSEEK_API_KEY", "key"}};
  const Texts empty = texts(compose(shipped("cordis.yml"), setting));
  REQUIRE(empty.size() == 1);
  CHECK(empty[0].find("`model` is empty; give it a value, or leave it out (the value comes from the environment "
                      "variable OPENAI_MODEL)") != std::string::npos);
}

TEST_CASE("the shipped composition: no key, no route, and recorded answers are never used unasked") {
  const auto without = compose(shipped("cordis.yml"));
  CHECK(agent::choose_route(without.services) == nullptr);
  const std::string missing = agent::route_missing(without.services);
  CHECK(missing.find("OPENAI_API_KEY") != std::string::npos);
  CHECK(missing.find("DEEPSEEK_API_KEY") != std::string::npos);
  CHECK(missing.find("recorded") == std::string::npos);

  Setting deepseek;
  deepseek.env = {{"DEEPSEEK_API_KEY", "k"}};
  const auto with = compose(shipped("cordis.yml"), deepseek);
  REQUIRE(agent::choose_route(with.services));
  CHECK(agent::choose_route(with.services)->id == "deepseek");
  CHECK(agent::choose_route(with.services)->model == "deepseek-chat");

  Setting both;
  both.env = {{"DEEPSEEK_API_KEY", "k"}, {"OPENAI_API_KEY", "k"}, {"OPENAI_MODEL", "m"}};
  const auto two = compose(shipped("cordis.yml"), both);
  REQUIRE(agent::choose_route(two.services));
  CHECK(agent::choose_route(two.services)->id == "openai");
  CHECK(agent::choose_route(two.services)->model == "m");
  // A child gets neither key.
  CHECK(two.services.shell->options().strip_env == Texts{"OPENAI_API_KEY", "DEEPSEEK_API_KEY"});
}

TEST_CASE("the unconfined composition is sound and advertises no escalation") {
  const auto composition = compose(shipped("cordis.unconfined.yml"));
  REQUIRE(texts(composition).empty());
  CHECK_FALSE(composition.services.policy);
  CHECK_FALSE(composition.services.shell->confines());
  CHECK_FALSE(composition.services.fs->confines());
  CHECK(composition.services.presets.empty());
  for (const char* tool : {"bash", "write", "edit"}) {
    CHECK(schema_of(composition, tool).find("sandbox_permissions") == std::string::npos);
    CHECK(schema_of(composition, tool).find("justification") == std::string::npos);
  }
}

TEST_CASE("without the approval entry confinement stays and presets are a fault") {
  const std::string confined =
      "- {id: policy, name: sandbox-policy}\n- {id: sandbox, name: sandbox-local}\n- {id: bash, name: bash-sandbox}\n"
      "- {id: t, name: tool-bash}\n";
  const auto composition = compose(confined + rest);
  REQUIRE(texts(composition).empty());
  CHECK(composition.services.shell->confines());
  CHECK(composition.services.approval == nullptr);
  CHECK(schema_of(composition, "bash").find("sandbox_permissions") != std::string::npos);
  CHECK(texts(compose(confined + "- {id: p, name: permission-presets}\n" + rest)) ==
        Texts{"cordis.yml:5: `permission-presets` needs the approval, which no entry gives; add an entry with name "
              "user-approval"});
}

TEST_CASE("the four entries of the reference are answered entry by entry with what to write instead") {
  const std::string snippet =
      "- id: sandbox\n"
      "  name: '@deepseek-ai/dsh-sandbox-local'   # the per-platform runner provider (ctx.sandbox)\n"
      "- id: bash\n"
      "  name: '@deepseek-ai/dsh-bash-sandbox'    # the confined executor, replacing dsh-bash-local behind ctx.shell\n"
      "  config:\n"
      "    mode: workspace-write                  # the deployment default every session starts from\n"
      "    workspaceRoot: !!js process.cwd()      # the boundary workspace-write may write under\n"
      "- id: approval\n"
      "  name: '@deepseek-ai/dsh-user-approval'        # the escalation gate's channel (the approval Agent Note)\n"
      "  config:\n"
      "    policy: ask\n"
      "- id: permission\n"
      "  name: '@deepseek-ai/dsh-permission-presets'      # one product-facing select over both mechanism knobs\n";
  const std::string move =
      " belongs to the sandbox-policy entry, which the shell and the file tools share: move it there (- id: policy, "
      "name: "
      "sandbox-policy, config: {mode: workspace-write, workspace_root: !cwd})";
  const std::string no_policy = " needs the policy, which no entry gives; add an entry with name sandbox-policy";
  CHECK(texts(compose(snippet + rest)) == Texts{"cordis.yml:1: `sandbox-local`" + no_policy,
                                                "cordis.yml:3: `bash-sandbox`" + no_policy,
                                                "cordis.yml:6: `mode`" + move, "cordis.yml:7: `workspace_root`" + move,
                                                "cordis.yml:12: `permission-presets`" + no_policy});

  // What the answers say to write.
  const std::string mended =
      "- id: sandbox\n  name: '@deepseek-ai/dsh-sandbox-local'\n"
      "- id: policy\n  name: sandbox-policy\n  config: {mode: workspace-write, workspace_root: !!js process.cwd()}\n"
      "- id: bash\n  name: '@deepseek-ai/dsh-bash-sandbox'\n"
      "- id: approval\n  name: '@deepseek-ai/dsh-user-approval'\n  config:\n    policy: ask\n"
      "- id: permission\n  name: '@deepseek-ai/dsh-permission-presets'\n";
  const auto composition = compose(mended + rest);
  CHECK(texts(composition).empty());
  CHECK(composition.services.policy->mode == sandbox::Mode::workspace_write);
  CHECK(composition.services.policy->workspace_root == "/var/tmp");
}

TEST_CASE("protect and sockets: absent is the default, a list replaces, kinds are left and added") {
  const auto with = [](const std::string& config) {
    auto composition = compose("- id: policy\n  name: sandbox-policy\n  config: {" + config + "}\n" + rest);
    INFO(config);
    CHECK(texts(composition).empty());
    return composition.services.policy.value();
  };
  const auto defaults = with("mode: read-only");
  CHECK_FALSE(defaults.protect);
  CHECK(defaults.sockets.masked.size() == 7);
  CHECK(with("protect: []").protect == Texts{});
  CHECK(with("protect: [a/b]").protect == Texts{"a/b"});
  CHECK(with("writable: [/usr/lib, /var/tmp/not-there]").writable == Texts{"/usr/lib", "/var/tmp/not-there"});
  CHECK_THAT(
      texts(compose("- id: policy\n  name: sandbox-policy\n  config: {writable: [/var/tmp, /]}\n" + rest)).front(),
      Catch::Contains("the writable folder / is too wide"));
  const auto sockets = with("sockets: {allow: [docker, x11], deny: [ssh-agent, /run/x.sock]}").sockets;
  CHECK(sockets.masked.size() == 7);
  CHECK(std::find(sockets.masked.begin(), sockets.masked.end(), sandbox::SocketKind::docker) == sockets.masked.end());
  CHECK(sockets.masked.back() == sandbox::SocketKind::ssh_agent);
  CHECK(sockets.paths == Texts{"/run/x.sock"});
  CHECK_THAT(texts(compose("- id: policy\n  name: sandbox-policy\n  config: {sockets: [docker]}\n" + rest)).front(),
             Catch::Contains("`sockets` must be a map"));
  CHECK_THAT(
      texts(compose("- id: policy\n  name: sandbox-policy\n  config: {sockets: {alow: [docker]}}\n" + rest)).front(),
      Catch::Contains("unknown key `alow`; did you mean `allow`? Keys: allow, deny"));
  // A key that is known only to be refused is none to offer.
  CHECK_THAT(texts(compose("- {id: b, name: bash-local, config: {colour: red}}\n" + rest)).front(),
             Catch::EndsWith("Keys: timeout_ms, max_timeout_ms, pass_env"));
}

TEST_CASE("every mistake in the settings of an entry is named with its line, all at once") {
  const auto composition = compose(
      "- id: policy\n  name: sandbox-policy\n  config:\n    mode: open\n    workspace_root: relative\n"
      "    protect: [/etc, ../up, '']\n    sockets: {allow: [dockr]}\n    colour: red\n"                   // 4-8
      "- id: sandbox\n  name: sandbox-local\n  config:\n    chain: [docker]\n    runner_command: [run]\n"  // 9-13
      "    probe_timeout_ms: 0\n"                                                                          // 14
      "- id: bash\n  name: bash-sandbox\n  config:\n    timeout_ms: 700000\n    pass_env: yes\n"           // 15-19
      "- id: approval\n  name: user-approval\n  config:\n    policy: always\n"                             // 20-23
      "- id: permission\n  name: permission-presets\n  config:\n    presets:\n      custom: {mode: read-only, policy: "
      "ask}\n"
      "      half: {mode: read-only}\n"                                                              // 28-29
      "- id: log\n  name: session-log\n  config:\n    root: here\n"                                  // 30-33
      "- id: loop\n  name: agent-loop\n  config:\n    max_steps: 0\n    system_prompt: prompt.md\n"  // 34-38
      "- id: acp\n  name: acp\n  config:\n    surface: web\n"                                        // 39-42
      "- {id: llm, name: llm-recorded}\n");
  std::string all;
  for (const std::string& text : texts(composition)) all += text + "\n";
  INFO(all);
  for (const char* expected :
       {"cordis.yml:4: `mode` must be one of read-only, workspace-write, danger-full-access",
        "cordis.yml:5: `workspace_root` must be an absolute path or !cwd, not `relative`",
        "cordis.yml:6: `protect` takes paths below the workspace root, without `..`; `/etc` is none",
        "cordis.yml:6: `protect` takes paths below the workspace root, without `..`; `../up` is none",
        "cordis.yml:6: `protect` takes paths below the workspace root, without `..`; `` is none",
        "cordis.yml:7: `dockr` is no kind of socket; `allow` takes docker, podman, containerd, systemd, dbus, tmux, "
        "screen, "
        "ssh-agent, x11",
        "cordis.yml:8: unknown key `colour`. Keys: mode, workspace_root, protect, sockets",
        "cordis.yml:12: `docker` is no backend; `chain` takes bwrap, landlock, seatbelt",
        "cordis.yml:12: `runner_command` replaces the chain; delete `chain` or `runner_command`",
        "cordis.yml:13: `runner_command` needs `runner_failure_signatures`",
        "cordis.yml:14: `probe_timeout_ms`",
        "cordis.yml:18: `timeout_ms` (700000) is over `max_timeout_ms` (600000)",
        "cordis.yml:19: `pass_env` must be a list of strings",
        "cordis.yml:23: `policy` must be one of ask, never",
        "cordis.yml:28: ",
        "cordis.yml:29: ",
        "cordis.yml:33: `root` must be an absolute path, not `here`",
        "cordis.yml:37: `max_steps`",
        "cordis.yml:38: `system_prompt` must be the absolute path of a file",
        "cordis.yml:42: `surface` must be one of editor, automation"}) {
    CHECK_THAT(all, Catch::Contains(expected));
  }
}

TEST_CASE("an operator's own runner needs the texts of its failures, one line each") {
  const auto faults = [](const std::string& config) {
    return texts(compose("- {id: policy, name: sandbox-policy}\n- id: sandbox\n  name: sandbox-local\n  config:\n" +
                         config + rest));
  };
  CHECK(faults("    runner_command: [/usr/bin/my-bwrap]\n    runner_failure_signatures: ['my-bwrap: ']\n").empty());
  CHECK(faults("    runner_command: [/usr/bin/my-bwrap]\n    runner_failure_signatures: []\n").size() == 1);
  CHECK(faults("    runner_command: [/usr/bin/my-bwrap]\n    runner_failure_signatures: [\"a\\nb\"]\n") ==
        Texts{"cordis.yml:6: every runner failure signature is one non-empty line"});
  CHECK(faults("    runner_failure_signatures: [x]\n") ==
        Texts{"cordis.yml:5: `runner_failure_signatures` is for a `runner_command`, and there is none"});
  CHECK(faults("    runner_command: ['']\n    runner_failure_signatures: [x]\n") ==
        Texts{"cordis.yml:5: `runner_command` starts with an empty word; write the program first"});
}

TEST_CASE("read before change holds wherever its entry is written") {
  const auto composition = compose("- {id: t, name: tool-fs}\n- {id: fs, name: fs-local}\n" + rest +
                                   "- {id: o, name: fs-observation-policy}\n");
  REQUIRE(texts(composition).empty());
  CHECK(composition.services.fs_observation);
  // The order of mounting is what counts: the tools read the switch when they are mounted.
  const auto table = plugins::table();
  const auto tool =
      std::find_if(table.begin(), table.end(), [](const auto& plugin) { return plugin.name == "tool-fs"; });
  CHECK(std::count(tool->uses.begin(), tool->uses.end(), agent::Seam::fs_observation) == 1);
}

TEST_CASE("presets over a shell that does not confine name the entry to replace") {
  CHECK(texts(compose(
            "- {id: policy, name: sandbox-policy}\n- {id: sh, name: bash-local}\n- {id: ask, name: user-approval}\n"
            "- {id: sel, name: permission-presets}\n" +
            rest)) == Texts{"cordis.yml:4: `permission-presets` needs a shell that confines, but entry `sh` "
                            "(bash-local, line 2) does not; "
                            "replace that entry's name with bash-sandbox, or delete this entry"});
}

TEST_CASE("presets of the file replace the shipped ones") {
  const auto composition = compose(
      "- {id: policy, name: sandbox-policy}\n- {id: sandbox, name: sandbox-local}\n- {id: sh, name: bash-sandbox}\n"
      "- {id: ask, name: user-approval}\n"
      "- id: sel\n  name: permission-presets\n  config:\n    presets:\n      look: {mode: read-only, policy: never}\n" +
      rest);
  REQUIRE(texts(composition).empty());
  REQUIRE(composition.services.presets.size() == 1);
  CHECK(composition.services.presets[0].id == "look");
  CHECK(composition.services.presets[0].approval == agent::ApprovalPolicy::never);
}

TEST_CASE("the command line goes before the file") {
  Setting setting;
  setting.overrides.mode = sandbox::Mode::read_only;
  setting.overrides.approval = agent::ApprovalPolicy::never;
  const auto composition = compose(shipped("cordis.yml"), setting);
  REQUIRE(texts(composition).empty());
  CHECK(composition.services.policy->mode == sandbox::Mode::read_only);
  CHECK(composition.services.approval->default_policy() == agent::ApprovalPolicy::never);
}

TEST_CASE("without any home folder the log says what to set") {
  Setting setting;
  setting.state_dir = "";
  const Texts faults = texts(compose(rest, setting));
  REQUIRE(faults.size() == 1);
  CHECK_THAT(faults[0], Catch::Contains("set XDG_STATE_HOME"));
}
