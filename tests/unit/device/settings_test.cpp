// Which environment variables count, for whom, and what becomes of them.
#include "harness/device/settings.h"

#include "harness/core/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <utility>

namespace assay {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr DeviceKind cpu = DeviceKind::cpu, cuda = DeviceKind::cuda;

// Has these variables and no others that count, until it ends.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& wanted) {
    for (const DeviceKind device : {cpu, cuda})
      for (const Setting& setting : settings_here(device, 2)) set(setting.name, nullptr);
    for (const auto& [name, value] : wanted) set(name, value.c_str());
  }
  ~Environment() {
    for (const auto& [name, value] : before_)
      if (value.first)
        setenv(name.c_str(), value.second.c_str(), 1);
      else
        unsetenv(name.c_str());
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  void set(const std::string& name, const char* value) {
    const char* was = std::getenv(name.c_str());
    before_.try_emplace(name, was != nullptr, was ? was : "");
    if (value)
      setenv(name.c_str(), value, 1);
    else
      unsetenv(name.c_str());
  }

  std::map<std::string, std::pair<bool, std::string>> before_;
};

std::vector<std::string> here(DeviceKind device, int ranks) {
  std::vector<std::string> words;
  for (const Setting& one : settings_here(device, ranks)) words.push_back(one.name + "=" + one.value);
  return words;
}

std::string refusal(DeviceKind device) {
  try {
    refuse_other_precision(device);
  } catch (const UsageError& error) {
    return error.what();
  }
  return {};
}

TEST(Settings, CountForTheDeviceAndTheRanksThatUseTheLibrary) {
  const Environment set({{"CUBLAS_WORKSPACE_CONFIG", ":4096:8"},
                         {"NCCL_ALGO", "Ring"},
                         {"OPENBLAS_CORETYPE", "Haswell"},
                         {"OMPI_MCA_coll", "^tuned"},
                         {"OMPI_MCA_btl_tcp_if_include", "lo"},
                         {"ASSAY_ISA", "generic"}});
  EXPECT_THAT(here(cuda, 1), ElementsAre("CUBLAS_WORKSPACE_CONFIG=:4096:8"));
  EXPECT_THAT(here(cuda, 2), ElementsAre("CUBLAS_WORKSPACE_CONFIG=:4096:8", "NCCL_ALGO=Ring"));
  EXPECT_THAT(here(cpu, 1), ElementsAre("ASSAY_ISA=generic", "OPENBLAS_CORETYPE=Haswell"));
  EXPECT_THAT(here(cpu, 2), ElementsAre("ASSAY_ISA=generic", "OMPI_MCA_coll=^tuned", "OPENBLAS_CORETYPE=Haswell"));
}

TEST(Settings, WhatSaysWhereSomethingIsOrIsOverriddenDoesNotCount) {
  const Environment set({{"CUDNN_VERSION", "9.19"},
                         {"NCCL_VERSION", "2.28.9"},
                         {"NCCL_DEBUG", "WARN"},
                         {"CUDA_VISIBLE_DEVICES", "0"},
                         {"NVIDIA_VISIBLE_DEVICES", "all"},
                         {"OMP_NUM_THREADS", "1"},
                         {"OPENBLAS_NUM_THREADS", "1"},
                         {"ASSAY_CACHE", "/tmp"}});
  EXPECT_THAT(here(cuda, 2), IsEmpty());
  EXPECT_THAT(here(cpu, 2), IsEmpty());
}

TEST(Settings, TheDefaultsValueDoesNotCount) {
  const Environment set({{"CUDA_LAUNCH_BLOCKING", "0"},
                         {"CUBLAS_EMULATE_SINGLE_PRECISION", "0"},
                         {"ONEDNN_DEFAULT_FPMATH_MODE", "STRICT"},
                         {"OMP_DYNAMIC", "FALSE"}});
  EXPECT_THAT(here(cuda, 2), IsEmpty());
  EXPECT_THAT(here(cpu, 2), IsEmpty());
  EXPECT_EQ(refusal(cuda), "");
}

TEST(Settings, AnotherPrecisionIsRefusedAndNamed) {
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"NVIDIA_TF32_OVERRIDE", "0"},
                                          {"CUBLAS_EMULATE_DOUBLE_PRECISION", "1"},
                                          {"CUBLAS_EMULATION_STRATEGY", "performant"},
                                          {"CUBLAS_FIXEDPOINT_EMULATION_MANTISSA_BIT_COUNT", "23"}}) {
    const Environment set(std::map<std::string, std::string>{{name, value}});
    EXPECT_THAT(refusal(cuda), AllOf(HasSubstr(name + "=" + value), HasSubstr("unset " + name)));
    EXPECT_EQ(refusal(cpu), "");
  }
  const Environment set(
      std::map<std::string, std::string>{{"ONEDNN_DEFAULT_FPMATH_MODE", "bf16"}, {"DNNL_DEFAULT_FPMATH_MODE", "ANY"}});
  EXPECT_THAT(refusal(cpu), HasSubstr("unset DNNL_DEFAULT_FPMATH_MODE ONEDNN_DEFAULT_FPMATH_MODE"));
  EXPECT_EQ(refusal(cuda), "");
}

TEST(Settings, WhatSlowsCallsIsTold) {
  const Environment set({{"CUDA_LAUNCH_BLOCKING", "1"}, {"CUDNN_LOGLEVEL_DBG", "3"}, {"CUDNN_CONV_WSCAP_DBG", "64"}});
  std::map<std::string, SettingEffect> effects;
  for (const Setting& one : settings_here(cuda, 1)) effects[one.name] = one.effect;
  EXPECT_EQ(effects, (std::map<std::string, SettingEffect>{{"CUDA_LAUNCH_BLOCKING", SettingEffect::slows},
                                                           {"CUDNN_LOGLEVEL_DBG", SettingEffect::slows},
                                                           {"CUDNN_CONV_WSCAP_DBG", SettingEffect::figures}}));
}

TEST(Settings, OtherHostsNeedThoseOfEveryDevice) {
  for (const char* name :
       {"NVIDIA_TF32_OVERRIDE", "BLIS_ARCH_TYPE", "GOMP_SPINCOUNT", "NCCL_PROTO", "DNNL_MAX_CPU_ISA"})
    EXPECT_TRUE(changes_figures(name)) << name;
  for (const char* name : {"PATH", "HOME", "NCCL_HOSTID", "CUDA_VISIBLE_DEVICES"})
    EXPECT_FALSE(changes_figures(name)) << name;
}

}  // namespace
}  // namespace assay
