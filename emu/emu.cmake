# The emulated driver: libcuda.so.1 and libnvidia-ml.so.1 in a folder of their own, where nothing finds them by accident. They are preloaded into, and
# loaded by, programs that know nothing of sanitizers, so they have none; build/<preset>/emu-checked holds the same with the preset's sanitizers, for
# tests/unit/emu.
file(GLOB emu_common CONFIGURE_DEPENDS emu/config.c emu/shared.c emu/engine.c emu/faults.c)
file(GLOB emu_sources CONFIGURE_DEPENDS emu/*.c)
set(emu_nvml ${emu_sources})
list(FILTER emu_sources EXCLUDE REGEX "/emu/nvml[^/]*\\.c$")
list(FILTER emu_nvml INCLUDE REGEX "/emu/nvml[^/]*\\.c$")

function(sw_emu_library target name folder)
	add_library(${target} SHARED ${ARGN})
	set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} SUFFIX .so.1 SOVERSION "" NO_SONAME ON LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${folder}
		LINK_DEPENDS ${CMAKE_SOURCE_DIR}/emu/exports.map)
	target_include_directories(${target} PRIVATE src emu)
	target_compile_options(${target} PRIVATE -fvisibility=hidden -O2)
	# Its own names are its own, whatever else defines them, and it stays loaded: its threads run.
	target_link_options(${target} PRIVATE -Wl,--version-script=${CMAKE_SOURCE_DIR}/emu/exports.map -Wl,-Bsymbolic -Wl,-z,nodelete
		-Wl,-soname,lib${name}.so.1)
	target_link_libraries(${target} PRIVATE Threads::Threads)
endfunction()

sw_emu_library(emu_cuda cuda emu ${emu_sources})
target_compile_options(emu_cuda PRIVATE -fno-sanitize=all)
target_link_options(emu_cuda PRIVATE -fno-sanitize=all -Wl,-z,defs)
sw_emu_library(emu_cuda_checked cuda emu-checked ${emu_sources})
if(emu_nvml)
	sw_emu_library(emu_nvml nvidia-ml emu ${emu_nvml} ${emu_common})
	target_compile_options(emu_nvml PRIVATE -fno-sanitize=all)
	target_link_options(emu_nvml PRIVATE -fno-sanitize=all -Wl,-z,defs)
endif()

# The sample job in C; a program like any other, so without sanitizers too.
add_executable(example_train examples/gpu/train.c)
set_target_properties(example_train PROPERTIES OUTPUT_NAME train RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/examples)
target_include_directories(example_train PRIVATE src)
target_compile_options(example_train PRIVATE -fno-sanitize=all)
target_link_options(example_train PRIVATE -fno-sanitize=all)
target_link_libraries(example_train PRIVATE dl)
