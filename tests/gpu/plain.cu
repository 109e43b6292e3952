// A plain program of the CUDA runtime: changes numbers in several pieces of memory on two streams, prints "warm" after a while and a hash of all at its end. Usage: plain SECONDS
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                        \
	do {                                                                               \
		cudaError_t result_ = (call);                                              \
		if (result_ != cudaSuccess) {                                              \
			std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(result_)); \
			std::exit(1);                                                      \
		}                                                                          \
	} while (0)

__global__ void stir(uint32_t *x, size_t count)
{
	size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
	if (i < count)
		x[i] = x[i] * 1664525u + 1013904223u;
}

int main(int count, char **words)
{
	const size_t pieces = 8, numbers = 4 << 20;
	const int rounds = 3000;
	double seconds = count > 1 ? std::atof(words[1]) : 4;
	std::vector<uint32_t *> x(pieces);
	std::vector<uint32_t> host(numbers);
	cudaStream_t streams[2];
	for (auto &stream : streams)
		CHECK(cudaStreamCreate(&stream));
	for (size_t i = 0; i < pieces; i++) {
		CHECK(cudaMalloc(&x[i], numbers * sizeof(uint32_t)));
		CHECK(cudaMemset(x[i], (int)i + 1, numbers * sizeof(uint32_t)));
	}
	auto begun = std::chrono::steady_clock::now();
	uint64_t hash = 1469598103934665603u;
	for (int round = 0; round < rounds; round++) {
		for (size_t i = 0; i < pieces; i++)
			stir<<<numbers / 256, 256, 0, streams[i % 2]>>>(x[i], numbers);
		CHECK(cudaGetLastError());
		CHECK(cudaDeviceSynchronize());
		if (round == 100) {
			std::puts("warm");
			std::fflush(stdout);
		}
		// The numbers are those of all rounds, however long they took; it lasts as long as asked.
		std::chrono::duration<double> ran = std::chrono::steady_clock::now() - begun;
		if (ran.count() < seconds * round / rounds)
			while (std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count() < seconds * round / rounds)
				;
	}
	for (auto piece : x) {
		CHECK(cudaMemcpy(host.data(), piece, numbers * sizeof(uint32_t), cudaMemcpyDeviceToHost));
		for (uint32_t number : host)
			hash = (hash ^ number) * 1099511628211u;
		CHECK(cudaFree(piece));
	}
	std::printf("hash %016llx\n", (unsigned long long)hash);
	return 0;
}
