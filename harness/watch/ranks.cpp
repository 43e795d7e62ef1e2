#include "harness/watch/ranks.h"

#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/core/secrets.h"
#include "harness/json/json.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstring>
#include <random>
#include <sstream>

namespace assay::watch {
namespace {

// As hook/assay_watch.py writes them.
constexpr std::uint64_t magic = 0x3259535341;
constexpr std::size_t state_bytes = 4096, capacity = 16384;
constexpr std::size_t count_at = 8, command_at = 16, entered_at = 24, name_at = 64, name_bytes = 64;
constexpr std::size_t recording_at = 32, seconds_at = 40, text_at_byte = 128, text_bytes = 512;
constexpr std::size_t step_bytes = step_numbers * sizeof(double);
constexpr std::size_t max_hello = 16384;
constexpr int max_frames = 6;

std::uint64_t number_at(const std::byte* memory, std::size_t at) {
  std::uint64_t value = 0;
  std::memcpy(&value, memory + at, sizeof value);
  return value;
}

int member(const Json& json, const char* name, int otherwise) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_number_integer()) return otherwise;
  return static_cast<int>(std::clamp<std::int64_t>(found->get<std::int64_t>(), 0, 1 << 24));
}

std::string text_of(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool flag_of(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_boolean() && found->get<bool>();
}

// As hardware sheets name them.
std::string short_dtype(const std::string& torch) {
  static const std::map<std::string, std::string> names = {{"torch.bfloat16", "bf16"},
                                                           {"torch.float16", "fp16"},
                                                           {"torch.tf32", "tf32"},
                                                           {"torch.float32", "f32"},
                                                           {"torch.float64", "f64"}};
  const auto found = names.find(torch);
  return found == names.end() ? std::string() : found->second;
}

struct Hello {
  std::string text;
  std::vector<Descriptor> descriptors;
};

// The one message of a connection.
Hello receive(int connection) {
  Hello hello;
  hello.text.resize(max_hello);
  alignas(cmsghdr) std::array<char, CMSG_SPACE(4 * sizeof(int))> control{};
  iovec part{hello.text.data(), hello.text.size()};
  msghdr message{};
  message.msg_iov = &part, message.msg_iovlen = 1;
  message.msg_control = control.data(), message.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(connection, &message, MSG_CMSG_CLOEXEC);
  hello.text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  for (cmsghdr* part_of = CMSG_FIRSTHDR(&message); part_of; part_of = CMSG_NXTHDR(&message, part_of)) {
    if (part_of->cmsg_level != SOL_SOCKET || part_of->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part_of->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part_of) + i * sizeof(int), sizeof fd);
      hello.descriptors.emplace_back(fd);
    }
  }
  return hello;
}

// The process of this user at the other end, by its id here (a container has ids of its own); 0: none.
pid_t peer_of(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return 0;
  return peer.uid == ::geteuid() || ::geteuid() == 0 ? peer.pid : 0;
}

}  // namespace

std::optional<RankInfo> rank_info_from(const std::string& text, int next_rank) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || member(json, "pid", 0) == 0) return std::nullopt;
  RankInfo info;
  info.pid = member(json, "pid", 0);
  info.rank = member(json, "rank", next_rank);
  info.world = std::max(1, member(json, "world", 1));
  info.threads = std::max(1, member(json, "threads", 1));
  info.cpus = std::max(1, member(json, "cpus", 1));
  info.stack_signal = member(json, "stack_signal", 0);
  info.torch = text_of(json, "torch"), info.python = text_of(json, "python");
  info.cuda = flag_of(json, "cuda"), info.gpu_parts = flag_of(json, "gpu_parts");
  info.dtype = short_dtype(text_of(json, "dtype"));
  if (const auto gpu = json.find("gpu"); gpu != json.end() && gpu->is_object()) {
    info.gpu_name = text_of(*gpu, "name"), info.gpu_uuid = text_of(*gpu, "uuid"), info.gpu_pci = text_of(*gpu, "pci");
    if (const auto memory = gpu->find("memory");
        memory != gpu->end() && memory->is_number() && memory->get<double>() >= 0)
      info.gpu_memory = memory->get<double>();
  }
  if (const auto absent = json.find("absent"); absent != json.end() && absent->is_object())
    for (const auto& [name, why] : absent->items())
      if (why.is_string()) info.absent[name] = mask_secrets(why.get<std::string>());
  if (const auto loaders = json.find("loaders"); loaders != json.end() && loaders->is_array())
    for (const Json& loader : *loaders) {
      if (!loader.is_object() || member(loader, "workers", 0) < info.workers) continue;
      info.workers = member(loader, "workers", 0), info.batch = member(loader, "batch", 0);
    }
  return info;
}

std::optional<Step> step_from(std::array<double, step_numbers> numbers) {
  constexpr double max_number = 1e9;  // s: 30 years
  std::optional<double> ready;
  if (std::isfinite(numbers[8])) ready = numbers[8];
  numbers[8] = 0;  // unknown is no mistake
  if (!std::ranges::all_of(numbers, [](double one) { return std::abs(one) <= max_number; }) || numbers[1] < 0)
    return std::nullopt;
  Step step{numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], numbers[6], numbers[7]};
  step.ready = ready;
  step.parts = numbers[9] != 0, step.recorded = numbers[9] == 2, step.backwards = static_cast<int>(numbers[10]);
  step.synced = numbers[11], step.syncs = static_cast<int>(std::max(numbers[12], 0.0));
  return step;
}

std::string one_line_stack(const std::string& written) {
  std::istringstream lines(written);
  std::string stack;
  int frames = 0;
  for (std::string line; std::getline(lines, line) && frames < max_frames;) {
    const std::size_t file = line.find("File \""), end = line.find("\", line "), in = line.rfind(" in ");
    if (file == line.npos || end == line.npos || in == line.npos || in < end) continue;
    const std::string path = line.substr(file + 6, end - file - 6), name = path.substr(path.rfind('/') + 1);
    if (name == "assay_watch.py") continue;
    stack += fmt::format("{}{} ({}:{})", frames++ > 0 ? " < " : "", line.substr(in + 4), name,
                         line.substr(end + 8, in - end - 8));
  }
  return stack;
}

Rank::Rank(RankInfo info, Descriptor connection, Descriptor pages, Descriptor stacks)
    : info_(std::move(info)),
      connection_(std::move(connection)),
      pages_(std::move(pages)),
      stacks_(std::move(stacks)),
      size_(state_bytes + capacity * step_bytes) {
  struct stat about {};
  if (::fstat(pages_, &about) != 0 || about.st_size != static_cast<off_t>(size_))
    throw Error("not the memory of a hook");
  void* const memory = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, pages_, 0);
  if (memory == MAP_FAILED) throw Error("the memory of a hook cannot be read");
  memory_ = static_cast<std::byte*>(memory);
  if (number_at(memory_, 0) == magic) return;
  ::munmap(memory_, size_);
  throw Error("the hook is of another build");
}

Rank::~Rank() { ::munmap(memory_, size_); }

bool Rank::take() {
  const std::uint64_t count = number_at(memory_, count_at);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (count <= taken_) return false;
  if (count - taken_ > capacity) taken_ = count - capacity;  // faster than anyone reads: the oldest are lost
  for (; taken_ < count; ++taken_) {
    std::array<double, step_numbers> numbers{};
    std::memcpy(numbers.data(), memory_ + state_bytes + (taken_ % capacity) * step_bytes, step_bytes);
    if (const auto step = step_from(numbers)) steps_.push_back(*step);
  }
  return true;
}

void Rank::tell_to_stop() { memory_[command_at] = std::byte{1}; }

std::uint64_t Rank::entered() const { return number_at(memory_, entered_at); }

std::string Rank::text_at(std::size_t at, std::size_t bytes) const {
  std::string text(bytes, '\0');
  std::memcpy(text.data(), memory_ + at, bytes);
  text.resize(std::min(text.find('\0'), text.size()));
  std::erase_if(text, [](char c) { return c < ' ' || c > '~'; });
  return text;
}

std::string Rank::collective() const { return text_at(name_at, name_bytes); }

Recording Rank::recording() const {
  Recording recording;
  recording.state = static_cast<Recording::State>(std::min<std::uint64_t>(number_at(memory_, recording_at), 3));
  std::memcpy(&recording.seconds, memory_ + seconds_at, sizeof recording.seconds);
  if (!std::isfinite(recording.seconds)) recording.seconds = 0;
  recording.text = text_at(text_at_byte, text_bytes);
  if (recording.state == Recording::State::absent) recording.text = mask_secrets(recording.text);
  return recording;
}

std::string Rank::stack(double seconds) {
  if (gone_ || info_.stack_signal < SIGRTMIN || info_.stack_signal > SIGRTMAX) return {};
  if (::ftruncate(stacks_, 0) != 0 || ::lseek(stacks_, 0, SEEK_SET) != 0) return {};
  // To the main thread, whose stack is then written.
  if (::syscall(SYS_tgkill, info_.pid, info_.pid, info_.stack_signal) != 0) return {};
  std::string written;
  const Clock::time_point begin = Clock::now();
  do {
    ::poll(nullptr, 0, 10);
    const std::size_t before = written.size();
    written.resize(8192);
    const ssize_t got = ::pread(stacks_, written.data(), written.size(), 0);
    written.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (!written.empty() && written.size() == before) break;  // it writes no more
  } while (seconds_since(begin) < seconds);
  return one_line_stack(written);
}

Meeting::Meeting() {
  address_ = fmt::format("assay-watch-{}-{:08x}", ::getpid(), std::random_device()());
  listener_ = Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, address_.data(), address_.size());  // it begins with a NUL: abstract
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + address_.size());
  if (listener_ < 0 || ::bind(listener_, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::listen(listener_, 1024) != 0)
    throw Error(fmt::format("no socket for the hooks: {}", std::strerror(errno)));
}

std::vector<std::unique_ptr<Rank>> Meeting::accept(int next_rank) {
  std::vector<std::unique_ptr<Rank>> come;
  while (true) {
    Descriptor connection(::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
    if (connection < 0) return come;
    const pid_t peer = peer_of(connection);
    if (peer <= 0) continue;
    const timeval patience{1, 0};
    ::setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    Hello hello = receive(connection);
    auto info = rank_info_from(hello.text, next_rank + static_cast<int>(come.size()));
    if (!info || hello.descriptors.size() != 2) continue;
    info->pid = peer;
    try {
      come.push_back(std::make_unique<Rank>(*info, std::move(connection), std::move(hello.descriptors[0]),
                                            std::move(hello.descriptors[1])));
    } catch (const Error&) {
      // no hook of this build: the job goes on unwatched
    }
  }
}

}  // namespace assay::watch
