//===- CostTable.cpp - the devices whose numbers are known ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The only place with numbers of devices, each with its source.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Cost/CostTable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"

using namespace meshwright;
using namespace meshwright::cost;
using llvm::StringRef;

/// Seconds of a message, through any link. NCCL's model of a ring (src/graph/tuning.cc, protocol
/// Simple) has 9.6 us a step through a network, and within a machine 3.4 us a step beside 8.4 us a
/// call.
static constexpr double messageLatency = 10e-6;

/// From a kernel of a stream to the next: measured on an H100, of 1,000 in a row
/// (bench/results/h100/rates.json, `launches`), and taken for other GPUs too.
static constexpr double gpuLaunch = 1.6e-6;

/// Copies between a GPU and pinned memory of the host: 4.9 us at least, and of PCIe's 64 GB/s in one
/// direction 54.8 (the same file, `transfers`), a share that is taken for other GPUs too.
static constexpr double hostLatency = 4.9e-6, pcieShare = 54.8 / 64;

/// Generated products of experts in bf16 reach 262 TFLOP/s on an H100 where cuBLASLt's of that size
/// reach 690 (bench/results/h100/grouped-products.json), a share that is taken for other GPUs too.
static constexpr double groupedShare = 262.0 / 690;

/// cuBLASLt's products in bf16 with 4,096 rows reach nine tenths of the rate of those with 8,192
/// (the same file, `products`).
static constexpr int64_t gpuProductRows = 4096;

/// An NVMe SSD for data centers: Samsung's PM9A3 as a U.2 drive reads up to 6.5 GB/s and writes up to 3.5 GB/s (heise
/// online, May 2020), of which the smaller counts in both directions; 4 KiB are read from flash in 78 us (AnandTech's
/// measurement of Intel's P3700 at queue depth 1, 2017).
static constexpr Link nvme{78e-6, 3.5e9};

/// Peak rates as a data sheet has them, the same for every size; attention at the rate of products.
static Device peak(const char *name, const char *description, double flops, double narrowFlops,
                   double memory, double launch, int64_t productRows, double machine,
                   double network, Link host, double capacity) {
  RatesByType products{flops, narrowFlops};
  Link inside{messageLatency, machine}, between{messageLatency, network};
  Device device{name,   description, products, products, products, 0.0,  0.0,      1,
                Rate(flops), memory, launch, productRows, inside, between, host, capacity};
  device.peakF32 = flops;
  device.peakNarrow = narrowFlops;
  device.ssd = nvme;
  return device;
}
static Device gpu(const char *name, const char *description, double flops, double narrowFlops,
                  double memory, double machine, double network, double pcie, double capacity) {
  Device device = peak(name, description, flops, narrowFlops, memory, gpuLaunch, gpuProductRows,
                       machine, network, {hostLatency, pcieShare * pcie}, capacity);
  device.groupedShare = groupedShare;
  return device;
}

/// GPUs for data centers as NVIDIA's data sheets describe them. f32 is that of the cores for
/// arithmetic, because products of f32 use no TF32; 16 bits that of tensor cores without sparsity.
/// Links are those of one direction, half of what sheets say. The network is one adapter a GPU,
/// that of NVIDIA's own machine with it: 200 Gb/s (ConnectX-6) or 400 Gb/s (ConnectX-7).
static std::vector<Device> makeDevices() {
  std::vector<Device> devices{
      // A socket with an EPYC 9654, as AMD describes it (2022): 96 cores at 3.55 GHz, all of them,
      // and 12 channels of DDR5-4800. A Zen 4 core does 32 operations of f32 a cycle, and 64 of
      // bf16
      // by vdpbf16ps. What ranks of one machine send is read and written in that memory. One
      // adapter
      // of 200 Gb/s a socket. What a launch costs, which is a call there, and from how many rows on
      // products are at their best has not been measured: nothing, and 1,024.
      peak("epyc-9654", "a socket with an EPYC 9654", 96 * 32 * 3.55e9, 96 * 64 * 3.55e9, 460.8e9,
           0, 1024, 230.4e9, 25e9, {0, 230.4e9}, 0),
      // A100 80GB SXM (2021): FP32 19.5 and BF16 312 TFLOPS, 2,039 GB/s, NVLink 600 GB/s, PCIe 4.0
      // x16; DGX A100.
      gpu("a100-sxm", "an A100 80GB SXM", 19.5e12, 312e12, 2.039e12, 300e9, 25e9, 32e9, 80e9),
      // A40 (2020): 48 GB, FP32 37.4 and BF16 149.7 TFLOPS, 696 GB/s, NVLink 112.5 GB/s, PCIe 4.0
      // x16.
      gpu("a40", "an A40", 37.4e12, 149.7e12, 696e9, 56.25e9, 25e9, 32e9, 48e9),
      // L40S (2023): 48 GB, FP32 91.6 and BF16 362.05 TFLOPS, 864 GB/s, PCIe 4.0 x16 64 GB/s.
      gpu("l40s", "an L40S", 91.6e12, 362.05e12, 864e9, 32e9, 25e9, 32e9, 48e9),
      // H100 SXM (2023): 80 GB, FP32 67 and BF16 1,979 TFLOPS with sparsity, 3.35 TB/s, NVLink 900
      // GB/s, PCIe 5.0 x16 128 GB/s; DGX H100.
      gpu("h100-sxm", "an H100 SXM", 67e12, 989.5e12, 3.35e12, 450e9, 50e9, 64e9, 80e9),
      // HGX B200, of each GPU (Blackwell architecture brief, 2024): FP32 80 and BF16 2,250 TFLOPS
      // dense, 180 GB, 8 TB/s, NVLink 1.8 TB/s, PCIe 5.0 x16; DGX B200.
      gpu("b200-hgx", "a B200 of HGX", 80e12, 2250e12, 8e12, 900e9, 50e9, 64e9, 180e9)};

  // An H100 SXM as measured (bench/results/h100/rates.json): products of cuBLASLt, in bf16 the median
  // of those of about as many FLOPs among the shapes of published models, in f32 square ones of 1,024
  // and 4,096 rows; cuDNN's causal attention with heads of 128 and 64 and sequences of
  // 512 to 16,384; copies of 1 MiB to 4 GiB, of which each byte is read and written.
  // Links and attention in f32 were not measured.
  Device measured = *llvm::find_if(devices, [](auto &d) { return d.name == "h100-sxm"; });
  measured.name = "h100-sxm-measured";
  measured.description = "an H100 SXM as measured";
  measured.products = {Rate{{2.147e9, 37.8e12}, {1.374e11, 50.9e12}},
                       Rate{{2.147e9, 247.4e12},
                            {8.59e9, 557.6e12},
                            {1.718e10, 626.5e12},
                            {6.872e10, 666.4e12},
                            {2.749e11, 684.8e12},
                            {1.1e12, 691.2e12},
                            {2.2e12, 705.0e12}}};
  // Five numbers, fitted to the 329 products in bf16 of that file and to the times of products within
  // steps of four models (docs/performance.md), which are longer: operands come from memory, and the
  // device is hot.
  measured.tiles = ProductTiles{132, 1115e12, 756e12, 3.1e-6, 2.9e-6, 0.5};
  measured.attention.narrow =
      Rate{{1024, 390.7e12}, {2048, 492.1e12}, {8192, 594.5e12}, {16384, 646.7e12}};
  measured.attentionGrad.narrow =
      Rate{{1024, 232.5e12}, {2048, 340.3e12}, {8192, 495.7e12}, {16384, 538.3e12}};
  measured.smallHeads =
      Rate{{512, 133.4e12}, {1024, 302.1e12}, {2048, 373.6e12}, {4096, 420e12}, {8192, 450e12}};
  measured.smallHeadsGrad =
      Rate{{512, 87.2e12}, {1024, 191.1e12}, {2048, 263.9e12}, {4096, 349.8e12}, {8192, 403.5e12}};
  measured.memory = Rate{{2.097e6, 0.3661e12}, {8.389e6, 1.1808e12}, {1.342e8, 2.8359e12},
                         {5.369e8, 2.9418e12}, {2.147e9, 2.9963e12}, {8.59e9, 3.011e12}};
  devices.push_back(measured);
  return devices;
}

llvm::ArrayRef<Device> cost::getDevices() {
  static const std::vector<Device> devices = makeDevices();
  return devices;
}

const Device *cost::findDevice(StringRef name) {
  const Device *found =
      llvm::find_if(getDevices(), [&](const Device &device) { return device.name == name; });
  return found == getDevices().end() ? nullptr : found;
}

const Device &cost::getDevice(StringRef name) {
  if (const Device *device = findDevice(name))
    return *device;
  llvm::report_fatal_error("the table of costs has no device '" + name + "'");
}

llvm::Error cost::parseOption(StringRef text, DeviceChoice &choice) {
  if ((choice.device = findDevice(text)))
    return llvm::Error::success();
  choice = DeviceChoice();
  return llvm::createStringError(notAmong(
      text, llvm::map_to_vector(getDevices(), [](const Device &d) { return StringRef(d.name); })));
}
