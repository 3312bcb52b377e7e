#include "agent/session_list.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/fd.h"

namespace agent {
namespace {

constexpr off_t tail_bytes = 64 * 1024;

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};

std::vector<std::string> folders_in(const std::string& path) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, CloseFolder> folder(opendir(path.c_str()));
  if (!folder) return names;
  while (const dirent* entry = readdir(folder.get())) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  return names;
}

// Whole lines at the end of the file.
std::string read_tail(const std::string& file) {
  const base::Fd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info {};
  if (!fd || fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  const off_t start = std::max<off_t>(0, info.st_size - tail_bytes);
  std::string text(static_cast<std::size_t>(std::min(tail_bytes, info.st_size)), '\0');
  const ssize_t got = pread(fd.get(), text.data(), text.size(), start);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  if (start > 0)
    text.erase(0, std::min(text.size(), text.find('\n') == std::string::npos ? text.size() : text.find('\n') + 1));
  return text;
}

void read_last(const std::string& file, ListedSession& listed) {
  const std::string tail = read_tail(file);
  std::size_t end = tail.size();
  while (end > 0 && listed.title.empty()) {
    const std::size_t before = end >= 2 ? tail.rfind('\n', end - 2) : std::string::npos;
    const std::size_t start = before == std::string::npos ? 0 : before + 1;
    std::string_view line(tail.data() + start, end - start);
    end = start;
    if (line.empty() || line.back() != '\n') continue;  // a torn tail
    line.remove_suffix(1);
    const auto event = decode(line);
    if (!event || !*event) continue;
    if (listed.time.empty()) listed.time = (*event)->time;
    if (const auto* turn = std::get_if<event::TurnEnd>(&(*event)->payload)) {
      listed.title = turn->title;
      return;
    }
    if (const auto* title = std::get_if<event::SessionTitle>(&(*event)->payload)) listed.title = title->title;
  }
}

}  // namespace

std::vector<ListedSession> list_sessions(const LogOptions& options) {
  std::vector<ListedSession> sessions;
  for (const std::string& slug : folders_in(options.root)) {
    for (const std::string& id : folders_in(options.root + "/" + slug)) {
      const std::string file = options.root + "/" + slug + "/" + id + "/session.jsonl";
      const base::Result<event::Header> header = read_log_header(file);
      if (!header) continue;
      ListedSession listed{header->id, header->cwd, {}, {}, file};
      read_last(file, listed);
      if (listed.time.empty()) listed.time = header->created;
      sessions.push_back(std::move(listed));
    }
  }
  std::sort(sessions.begin(), sessions.end(),
            [](const ListedSession& a, const ListedSession& b) { return a.time > b.time; });
  return sessions;
}

}  // namespace agent
