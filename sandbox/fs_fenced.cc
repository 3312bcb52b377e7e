// The fence: the in-process counterpart of the backends' profiles, with the same writable set. Immediately before a
// change the target is made canonical, compared with the set, and its folder opened from the root's descriptor without
// following a single link; the change is then made on that descriptor. A folder that is swapped meanwhile moves the
// change with it, or is noticed, but never lets it out.
#include <sys/stat.h>

#include <filesystem>

#include "sandbox/fs_posix.h"
#include "sandbox/protect.h"

namespace sandbox {
namespace {

constexpr int most_attempts = 4;  // while somebody keeps swapping folders

class FencedFs : public Fs {
 public:
  explicit FencedFs(Host host) : host_(std::move(host)) {}
  bool confines() const override { return true; }
  base::Result<FileContent> read(const std::string& path) override { return read_regular(path); }
  bool exists(const std::string& path) override {
    struct stat status {};
    return stat(path.c_str(), &status) == 0;
  }

  base::Result<WriteResult> write(const WriteRequest& request, const Policy& policy) override {
    base::Result<WriteResult> result;
    for (int attempt = 0; attempt < most_attempts; ++attempt) {
      result = try_write(request, policy);
      if (result || result.error().code != base::ErrorCode::busy) break;
    }
    return result;
  }

 private:
  base::Result<WriteResult> try_write(const WriteRequest& request, const Policy& policy) {
    const auto target = write_target(request.path);
    if (!target) return tl::unexpected(target.error());
    const std::filesystem::path path(*target);
    const auto root = root_of(*target, policy);
    if (!root) return tl::unexpected(root.error());
    const std::string below = path.parent_path().lexically_relative(*root).string();
    const auto folder = open_folder(*root, below == "." ? "" : below);
    if (!folder) return tl::unexpected(folder.error());
    const bool everything = policy.mode == Mode::danger_full_access;
    return replace_in(*folder, path.filename().string(), *target, request, everything);
  }

  // The writable root the target lies in, or the refusal.
  base::Result<std::string> root_of(const std::string& target, const Policy& policy) const {
    if (policy.mode == Mode::danger_full_access) return std::string("/");
    const auto roots = writable_roots(policy, host_);
    if (!roots) return tl::unexpected(roots.error());
    const auto denied = [&](const std::string& why) {
      return base::fail(base::ErrorCode::fs_sandbox_denied, "changing " + target + " is not allowed under " +
                                                                std::string(mode_name(policy.mode)) + " mode" + why);
    };
    const auto root = std::find_if(roots->begin(), roots->end(),
                                   [&](const std::string& r) { return path_within(target, r) && target != r; });
    if (root == roots->end()) return denied("");
    if (!host_.state_dir.empty() && path_within(target, host_.state_dir))
      return denied(": it is the agent's own state");
    const auto guarded = protected_paths(policy, *roots, host_);
    if (!guarded) return tl::unexpected(guarded.error());
    for (const auto* list : {&guarded->kept, &guarded->absent}) {
      for (const std::string& path : *list)
        if (path_within(target, path)) return denied(": " + path + " is protected");
    }
    if (below_closed(*guarded, target)) return denied(": git would take what is there for a submodule's");
    return *root;
  }

  Host host_;
};

}  // namespace

std::unique_ptr<Fs> make_fenced_fs(Host host) { return std::make_unique<FencedFs>(std::move(host)); }

}  // namespace sandbox
