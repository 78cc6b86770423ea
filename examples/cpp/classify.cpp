// SPDX-License-Identifier: Apache-2.0
// Classifies a picture, given as the raw floats of the model's input. The same program works for every chip.
#include <algorithm>
#include <bmrt/bmrt.hpp>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

// Reads the last |bytes| of a file, which skips the header of a .npy file.
static std::vector<char> readTail(const std::string &path, uint64_t bytes) {
  std::vector<char> data(bytes);
  std::ifstream file(path, std::ios::binary);
  file.seekg(-std::streamoff(bytes), std::ios::end);
  if (!file.read(data.data(), std::streamsize(bytes))) {
    throw std::runtime_error("cannot read " + path);
  }
  return data;
}

static void classify(const std::string &path, const std::string &picture) {
  bmrt::Model model(path);
  bmrt::Net net(model, {.threads = 2});
  const bmrt_tensor_info_t input = net.inputs()[0], output = net.outputs()[0];

  const std::vector<char> pixels = readTail(picture, input.bytes);
  net.setInput(input.name, pixels.data(), pixels.size()); // read in place if aligned; the buffer remains ours
  net.run();

  const float *scores = net.output<float>(output.name);
  std::vector<size_t> order(output.bytes / sizeof(float));
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + 3, order.end(),
                    [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  std::printf("%s", path.c_str());
  for (size_t rank = 0; rank < 3; ++rank) {
    std::printf("  class %zu: %2.0f %%", order[rank], 100 * scores[order[rank]]);
  }
  std::printf("\n");
}

int main(int argc, char **argv) try {
  for (int i = 2; i < argc; ++i) {
    classify(argv[i], argv[1]);
  }
  return argc > 2 ? 0 : 2;
} catch (const std::exception &error) { // bmrt::Error states what, where, actual and allowed value
  std::fprintf(stderr, "classify: %s\n", error.what());
  return 1;
}
