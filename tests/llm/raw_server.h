// A loopback server that speaks whatever its handler writes, for tests of what servers do wrong. One thread per
// connection.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace test {

inline sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

inline int listen_loopback(int backlog, int& port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address);
  ::listen(fd, backlog);
  socklen_t size = sizeof address;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  port = ntohs(address.sin_port);
  return fd;
}

inline void send_all(int fd, const std::string& bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::send(fd, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (n <= 0) return;
    done += static_cast<std::size_t>(n);
  }
}

// Headers and, by their Content-Length, body; "" when the peer is gone.
inline std::string read_request(int fd) {
  std::string text;
  std::size_t need = std::string::npos;
  while (text.size() < need) {
    char buffer[4096];
    const ssize_t n = ::recv(fd, buffer, sizeof buffer, 0);
    if (n <= 0) return {};
    text.append(buffer, static_cast<std::size_t>(n));
    const std::size_t head = text.find("\r\n\r\n");
    if (head == std::string::npos || need != std::string::npos) continue;
    const std::size_t length = text.find("Content-Length: ");
    need = head + 4 + (length < head ? std::stoul(text.substr(length + 16)) : 0);
  }
  return text;
}

inline void wait_for_close(int fd) {
  char byte;
  while (::recv(fd, &byte, 1, 0) > 0) {
  }
}

class RawServer {
 public:
  // `number` counts connections from 0. The connection is closed when the handler returns.
  using Handler = std::function<void(int fd, int number)>;

  explicit RawServer(Handler handler) : handler_(std::move(handler)) {
    listener_ = listen_loopback(64, port_);
    acceptor_ = std::thread([this] { run(); });
  }
  ~RawServer() {
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (const int fd : open_) ::shutdown(fd, SHUT_RDWR);
    }
    for (std::thread& thread : threads_) thread.join();
    ::close(listener_);
  }
  int port() const { return port_; }
  int connections() const { return connections_; }

 private:
  void run() {
    for (;;) {
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      const int number = connections_++;
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        open_.push_back(fd);
      }
      threads_.emplace_back([this, fd, number] {
        handler_(fd, number);
        const std::lock_guard<std::mutex> lock(mutex_);
        std::erase(open_, fd);
        ::close(fd);
      });
    }
  }

  Handler handler_;
  int listener_ = -1, port_ = 0;
  std::atomic<int> connections_{0};
  std::mutex mutex_;
  std::vector<int> open_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace test
