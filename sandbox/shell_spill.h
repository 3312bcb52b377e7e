// The file that takes the full output of one command when the part kept in memory is cut. Bounded: of an output longer
// than its limit the head and the newest tail are kept and the loss is stated, in the file and in bytes. Mode 0600, in
// a folder of the session. One thread. Failures (disk full, no folder) cost the file or its rest, never the call.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace sandbox {

class SpillFile {
 public:
  // `folder` "" = nowhere: everything appended counts as lost. The file may take call_limit bytes, and less when the
  // spill files already in the folder leave less of session_limit.
  SpillFile(std::string folder, std::uint64_t call_limit, std::uint64_t session_limit);

  void append(std::string_view bytes);               // opens the file at the first call
  void finish();                                     // puts a wrapped tail in order
  const std::string& path() const { return path_; }  // "" when there is no file
  std::uint64_t lost() const { return lost_; }

 private:
  void open();
  bool put(std::string_view bytes, std::uint64_t offset);
  bool linearise();

  std::string folder_, path_;
  std::uint64_t limit_, session_limit_;
  std::uint64_t head_ = 0, tail_ = 0;  // sizes of the two parts of the file
  std::uint64_t total_ = 0;            // bytes taken
  std::uint64_t lost_ = 0;
  bool opened_ = false, broken_ = false;
  base::Fd file_;
};

}  // namespace sandbox
