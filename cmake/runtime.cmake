# libsharewell-gpu.so, which is preloaded into programs that know nothing of us: without sanitizers, which would have to be there before everything else,
# and with the driver's names as its only exports.
file(GLOB sources CONFIGURE_DEPENDS src/runtime/*.c)
add_library(sharewell-gpu SHARED ${sources})
target_include_directories(sharewell-gpu PRIVATE src include)
target_compile_options(sharewell-gpu PRIVATE -O2 -fno-sanitize=all -fno-lto)
target_link_options(sharewell-gpu PRIVATE -fno-sanitize=all -Wl,--version-script=${CMAKE_SOURCE_DIR}/src/runtime/exports.map -Wl,-Bsymbolic -Wl,-z,defs
	-Wl,-z,now)
set_target_properties(sharewell-gpu PROPERTIES LINK_DEPENDS ${CMAKE_SOURCE_DIR}/src/runtime/exports.map)
target_link_libraries(sharewell-gpu PRIVATE Threads::Threads dl)
install(TARGETS sharewell-gpu LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/sharewell)
# `sharewell share` looks for it beside the program.
if(TARGET sharewell)
	add_dependencies(sharewell sharewell-gpu)
endif()
