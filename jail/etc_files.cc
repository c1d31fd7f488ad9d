// SPDX-License-Identifier: Apache-2.0
#include "jail/etc_files.h"

#include <array>

#include "base/hash.h"

namespace stoplog::jail {
namespace {

// What /usr links into /etc or reads from it, and nothing that names people,
// machines, networks or keys: not ssh, not ssl/private, not hostname.
constexpr std::array kEtcTable = {
    "alternatives",
    "bash.bashrc",
    "bash_completion.d",
    "bindresvport.blacklist",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "debian_version",
    "environment.d",
    "ethertypes",
    "fonts",
    "fedora-release",
    "gai.conf",
    "gdb",
    "glvnd",
    "groff",
    "gss",
    "host.conf",
    "inputrc",
    "java",
    "java-8-openjdk",
    "java-11-openjdk",
    "java-17-openjdk",
    "java-21-openjdk",
    "java-25-openjdk",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "lsb-release",
    "locale.alias",
    "locale.conf",
    "localtime",
    "login.defs",
    "lynx",
    "magic",
    "magic.mime",
    "manpath.config",
    "maven",
    "mime.types",
    "mke2fs.conf",
    "nanorc",
    "netconfig",
    "networks",
    "npmrc",
    "openmpi",
    "os-release",
    "papersize",
    "perl",
    "php",
    "pip.conf",
    "pki/ca-trust",
    "pki/java",
    "pki/tls/certs",
    "pki/tls/cert.pem",
    "pki/tls/openssl.cnf",
    "profile",
    "protocols",
    "python",
    "python2",
    "python2.7",
    "python3",
    "python3.8",
    "python3.9",
    "python3.10",
    "python3.11",
    "python3.12",
    "python3.13",
    "python3.14",
    "redhat-release",
    "rpc",
    "sensors3.conf",
    "services",
    "sgml",
    "shells",
    "skel",
    "ssl/certs",
    "ssl/cert.pem",
    "ssl/ct_log_list.cnf",
    "ssl/openssl.cnf",
    "static",
    "system-release",
    "terminfo",
    "texmf",
    "timezone",
    "vim",
    "wgetrc",
    "xattr.conf",
    "xdg",
    "xml",
};

constexpr uint64_t kCopyLimit = 32 << 10;

MountOp file(std::string target, std::string content) {
  return {.kind = MountKind::kFile,
          .target = std::move(target),
          .mode = 0644,
          .content = std::move(content)};
}

std::string resolv_conf(const JailSpec& spec, const HostFacts& facts) {
  // An absent or empty file would make resolvers ask 127.0.0.1: fast and
  // refused, which is what "no network" should feel like.
  if (spec.net == Net::kNone) return "nameserver 127.0.0.1\n";
  return facts.resolv_conf;
}

}  // namespace

std::span<const char* const> etc_table() { return kEtcTable; }

std::vector<MountOp> synthesised_etc(const JailSpec& spec,
                                     const HostFacts& facts) {
  const Identity& id = spec.identity;
  const bool bash = facts.at("/bin/bash").kind != PathKind::kNone;
  std::string passwd = "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n";
  passwd += fmt::format("{}:x:{}:{}::{}:{}\n", id.user, id.uid, id.gid,
                        spec.home, bash ? "/bin/bash" : "/bin/sh");
  std::string group = "root:x:0:\n";
  group += fmt::format("{}:x:{}:\n", id.group, id.gid);
  if (id.uid != 65534)
    passwd += "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
  if (id.gid != 65534) group += "nogroup:x:65534:\n";
  // The same for everyone: an id that says nothing about the machine.
  const std::string machine = xxh3(std::as_bytes(std::span("stoplog"))).hex();
  return {
      file("/etc/group", std::move(group)),
      file("/etc/hostname", spec.hostname + "\n"),
      file("/etc/hosts", fmt::format("127.0.0.1 localhost\n::1 localhost "
                                     "ip6-localhost\n127.0.1.1 {}\n",
                                     spec.hostname)),
      file("/etc/machine-id", machine + "\n"),
      file("/etc/nsswitch.conf",
           "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
           "networks: files\nprotocols: files\nservices: files\n"
           "ethers: files\nrpc: files\n"),
      file("/etc/passwd", std::move(passwd)),
      file("/etc/resolv.conf", resolv_conf(spec, facts)),
      {.kind = MountKind::kLink,
       .target = "/etc/mtab",
       .source = "../proc/self/mounts"},
  };
}

std::vector<MountOp> plan_etc(const JailSpec& spec, const HostFacts& facts) {
  std::vector<MountOp> plan = synthesised_etc(spec, facts);
  if (!spec.git_config.empty())
    plan.push_back(file("/etc/gitconfig", spec.git_config));
  for (const char* name : kEtcTable) {
    const std::string path = std::string("/etc/") + name;
    const PathFact& fact = facts.at(path);
    MountOp op{.target = path, .source = path, .required = false};
    switch (fact.kind) {
      case PathKind::kDir:
        op.kind = MountKind::kBind;
        op.flags = kReadOnlyMount | kNoSuidMount | kNoDevMount;
        break;
      case PathKind::kFile:
        // A mount costs each command 2 us, a copy costs its size once.
        if (fact.size > kCopyLimit) {
          op.kind = MountKind::kBind;
          op.flags = kReadOnlyMount | kNoSuidMount | kNoDevMount;
          break;
        }
        op.kind = MountKind::kCopy;
        op.mode = 0644;
        break;
      case PathKind::kLink:
        op.kind = MountKind::kLink;
        op.source = fact.link;
        break;
      default:
        continue;
    }
    plan.push_back(std::move(op));
  }
  return plan;
}

}  // namespace stoplog::jail
