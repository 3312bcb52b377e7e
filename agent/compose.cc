#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "agent/plugin.h"

namespace agent {
namespace {

bool has(const std::vector<Seam>& seams, Seam seam) {
  return std::find(seams.begin(), seams.end(), seam) != seams.end();
}

const Plugin* find_plugin(const std::vector<Plugin>& plugins, std::string_view name) {
  for (const Plugin& plugin : plugins) {
    if (plugin.name == name) return &plugin;
  }
  return nullptr;
}

std::vector<std::string> sorted_names(const std::vector<Plugin>& plugins) {
  std::vector<std::string> names;
  for (const Plugin& plugin : plugins) names.push_back(plugin.name);
  std::sort(names.begin(), names.end());
  return names;
}

std::string join(const std::vector<std::string>& items, std::string_view separator, std::string_view last_separator) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += i + 1 == items.size() ? last_separator : separator;
    text += items[i];
  }
  return text;
}

struct Item {
  const base::ConfigEntry* entry = nullptr;
  const Plugin* plugin = nullptr;    // null: unknown name
  const Plugin* presumed = nullptr;  // what an unknown name most likely means, so that one typo is one fault
  Mount mount;

  const std::vector<Seam>& gives() const {
    static const std::vector<Seam> none;
    const Plugin* known = plugin ? plugin : presumed;
    return known ? known->gives : none;
  }
  std::string label() const { return fmt::format("entry `{}` ({}, line {})", entry->id, entry->name, entry->line); }
};

class Composer {
 public:
  Composer(const base::ConfigFile& file, const std::vector<Plugin>& plugins, Composition& out)
      : file_(file), plugins_(plugins), out_(out) {
    out_.faults = file.faults;
  }

  void configure(const ConfigureContext& context) {
    for (const base::ConfigEntry& entry : file_.entries) {
      Item item;
      item.entry = &entry;
      item.plugin = find_plugin(plugins_, entry.name);
      if (item.plugin) {
        ConfigureContext own = context;
        own.entry_id = entry.id;
        base::ConfigReader reader(entry.config, "", &out_.faults);
        item.mount = item.plugin->configure(reader, own);
        reader.finish();
      } else {
        const std::vector<std::string> names = sorted_names(plugins_);
        if (const std::string* near = base::nearest_name(entry.name, names))
          item.presumed = find_plugin(plugins_, *near);
        unknown_name(item);
      }
      for (const Seam seam : item.gives()) {
        if (!out_.gives(seam)) out_.given.push_back(seam);
      }
      items_.push_back(std::move(item));
    }
  }

  void match() {
    for (std::size_t i = 0; i < items_.size(); ++i) {
      given_twice(i);
      if (!items_[i].plugin) continue;
      for (const Seam seam : items_[i].plugin->needs) {
        if (!out_.gives(seam)) absent(items_[i], seam);
      }
    }
    state_.assign(items_.size(), Visit::no);
    for (std::size_t i = 0; i < items_.size(); ++i) visit(i);
  }

  void mount(Services& services) {
    std::set<std::size_t> failed;
    for (const std::size_t i : order_) {
      const std::vector<std::size_t> needed = dependencies(i);
      const bool blocked =
          std::any_of(needed.begin(), needed.end(), [&](std::size_t d) { return failed.count(d) > 0; });
      if (blocked) {
        failed.insert(i);
        continue;
      }
      if (const base::Result<void> mounted = items_[i].mount(services); !mounted) {
        failed.insert(i);
        const base::Error& error = mounted.error();
        fault(items_[i], error.detail.empty() ? error.message : error.message + " (" + error.detail + ")");
      }
      refuse_second_tools(items_[i], services);
    }
  }

 private:
  enum class Visit { no, open, done };

  // The model calls a tool by its name alone.
  void refuse_second_tools(const Item& item, const Services& services) {
    for (; tools_seen_ < services.tools.size(); ++tools_seen_) {
      const std::string name = services.tools[tools_seen_]->spec({}).name;
      if (!tool_names_.insert(name).second)
        fault(item, fmt::format("another entry gives the tool `{}` already; delete one of them", name));
    }
  }

  void fault(const Item& item, std::string text) {
    out_.faults.push_back({file_.file, item.entry->line, std::move(text)});
  }

  void unknown_name(const Item& item) {
    std::string text = fmt::format("there is no plugin `{}`", item.entry->written_name);
    text += item.presumed ? fmt::format("; did you mean {}?", item.presumed->name) : ".";
    fault(item, text + " Plugins: " + join(sorted_names(plugins_), ", ", ", "));
  }

  void given_twice(std::size_t i) {
    for (const Seam seam : items_[i].gives()) {
      // A confining shell is a property of `shell`, which is reported.
      if (is_list(seam) || seam == Seam::confining_shell) continue;
      for (std::size_t earlier = 0; earlier < i; ++earlier) {
        if (!has(items_[earlier].gives(), seam)) continue;
        fault(items_[i], fmt::format("`{}` gives the {}, which {} already gives; delete one of the two",
                                     items_[i].entry->name, seam_name(seam), items_[earlier].label()));
        break;
      }
    }
  }

  void absent(const Item& item, Seam seam) {
    const std::string& name = item.entry->name;
    if (seam == Seam::confining_shell) {
      for (const Item& other : items_) {
        if (!has(other.gives(), Seam::shell)) continue;
        fault(item,
              fmt::format("`{}` needs a shell that confines, but {} does not; replace that entry's name with {}, or "
                          "delete this entry",
                          name, other.label(), givers(plugins_, seam)));
        return;
      }
    }
    fault(item, fmt::format("`{}` needs the {}, which no entry gives; add an entry with name {}", name, seam_name(seam),
                            givers(plugins_, seam)));
  }

  std::vector<std::size_t> dependencies(std::size_t i) const {
    std::vector<std::size_t> found;
    const Plugin* plugin = items_[i].plugin;
    if (!plugin) return found;
    for (std::size_t other = 0; other < items_.size(); ++other) {
      const std::vector<Seam>& gives = items_[other].gives();
      const bool wanted = std::any_of(gives.begin(), gives.end(),
                                      [&](Seam seam) { return has(plugin->needs, seam) || has(plugin->uses, seam); });
      if (wanted) found.push_back(other);
    }
    return found;
  }

  // Depth first in file order, so that list seams collect in file order wherever their givers' needs are written.
  void visit(std::size_t i) {
    if (state_[i] != Visit::no) return;
    state_[i] = Visit::open;
    path_.push_back(i);
    for (const std::size_t needed : dependencies(i)) {
      if (state_[needed] == Visit::open) {
        cycle(needed);
      } else {
        visit(needed);
      }
    }
    path_.pop_back();
    state_[i] = Visit::done;
    order_.push_back(i);
  }

  void cycle(std::size_t from) {
    std::vector<std::string> names;
    for (auto at = std::find(path_.begin(), path_.end(), from); at != path_.end(); ++at) {
      names.push_back(items_[*at].label());
    }
    if (names.size() == 1) {
      fault(items_[from], fmt::format("`{}` needs what it gives itself", items_[from].entry->name));
      return;
    }
    fault(items_[from],
          fmt::format("{} need each other in a circle; delete or replace one", join(names, ", ", " and ")));
  }

  const base::ConfigFile& file_;
  const std::vector<Plugin>& plugins_;
  Composition& out_;
  std::vector<Item> items_;
  std::vector<Visit> state_;
  std::vector<std::size_t> path_, order_;
  std::set<std::string> tool_names_;
  std::size_t tools_seen_ = 0;
};

}  // namespace

std::string_view seam_name(Seam seam) {
  switch (seam) {
    case Seam::route:
      return "route";
    case Seam::policy:
      return "policy";
    case Seam::sandbox:
      return "sandbox";
    case Seam::shell:
      return "shell";
    case Seam::confining_shell:
      return "confining shell";
    case Seam::fs:
      return "fs";
    case Seam::fs_observation:
      return "fs observation";
    case Seam::approval:
      return "approval";
    case Seam::presets:
      return "presets";
    case Seam::tools:
      return "tools";
    case Seam::log:
      return "log";
    case Seam::loop:
      return "loop";
    case Seam::front_end:
      return "front end";
  }
  return "";
}

bool is_list(Seam seam) {
  switch (seam) {
    case Seam::route:
    case Seam::presets:
    case Seam::tools:
    case Seam::front_end:
      return true;
    case Seam::policy:
    case Seam::sandbox:
    case Seam::shell:
    case Seam::confining_shell:
    case Seam::fs:
    case Seam::fs_observation:
    case Seam::approval:
    case Seam::log:
    case Seam::loop:
      return false;
  }
  return false;
}

bool Composition::gives(Seam seam) const { return has(given, seam); }

std::string givers(const std::vector<Plugin>& plugins, Seam seam) {
  std::vector<std::string> names;
  for (const Plugin& plugin : plugins) {
    if (has(plugin.gives, seam)) names.push_back(plugin.name);
  }
  return names.empty() ? "(none)" : join(names, ", ", " or ");
}

Composition compose(const base::ConfigFile& file, const std::vector<Plugin>& plugins, const ConfigureContext& context,
                    base::World world) {
  Composition composition;
  composition.services.world = std::move(world);
  composition.services.host = sandbox::read_host(context.state_dir, context.config_dir, context.config_file);
  Composer composer(file, plugins, composition);
  composer.configure(context);
  composer.match();
  if (composition.faults.empty()) composer.mount(composition.services);
  std::vector<base::Fault>& faults = composition.faults;
  std::stable_sort(faults.begin(), faults.end(),
                   [](const base::Fault& a, const base::Fault& b) { return a.line < b.line; });
  // A plugin that calls finish() itself reports its unknown keys twice.
  faults.erase(
      std::unique(faults.begin(), faults.end(),
                  [](const base::Fault& a, const base::Fault& b) { return a.line == b.line && a.text == b.text; }),
      faults.end());
  return composition;
}

}  // namespace agent
