// Nanoseconds of an empty launch, as the program sees them: the cost of whatever stands between it and the driver.
#include <chrono>
#include <cstdio>

__global__ void nothing() {}

int main()
{
	const int launches = 200000;
	for (int i = 0; i < 1000; i++)
		nothing<<<1, 1>>>();
	cudaDeviceSynchronize();
	double best = 1e9;
	for (int round = 0; round < 5; round++) {
		double total = 0;
		for (int i = 0; i < launches / 500; i++) {
			auto begun = std::chrono::steady_clock::now();
			for (int j = 0; j < 500; j++)
				nothing<<<1, 1>>>();
			total += std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begun).count();
			cudaDeviceSynchronize();
		}
		best = total / launches < best ? total / launches : best;
	}
	std::printf("%.1f\n", best);
	return 0;
}
