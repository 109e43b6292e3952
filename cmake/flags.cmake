# Compiler flags that every target gets.
add_compile_definitions(_GNU_SOURCE SW_VERSION="${PROJECT_VERSION}")
add_compile_options(
	-UNDEBUG
	# Results must not depend on whether the machine fuses multiply and add.
	-ffp-contract=off
	-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wcast-qual -Wwrite-strings -Wundef -Wvla
	-Wformat=2
)
if(SW_WERROR)
	add_compile_options(-Werror)
endif()

if(SW_FUZZ)
	if(NOT CMAKE_C_COMPILER_ID MATCHES Clang)
		message(FATAL_ERROR "the fuzzers need clang: configure with the preset 'fuzz'")
	endif()
	add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(SW_SANITIZE)
	add_compile_options(-fsanitize=${SW_SANITIZE} -fno-sanitize-recover=all)
	add_link_options(-fsanitize=${SW_SANITIZE})
	# These builds link two hundred programs, which takes lld a quarter of the time. What people run is linked by what their compiler comes with.
	find_program(SW_LLD ld.lld)
	if(SW_LLD)
		add_link_options(-fuse-ld=lld)
	endif()
	# It sees no fences and might report a race where there is none: it would fail then, so no warning is needed at each compilation.
	if(SW_SANITIZE STREQUAL thread AND CMAKE_C_COMPILER_ID STREQUAL GNU)
		add_compile_options(-Wno-tsan)
	endif()
endif()
if(SW_COVERAGE)
	add_compile_options(--coverage)
	add_link_options(--coverage)
endif()
