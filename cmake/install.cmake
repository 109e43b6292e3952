# What `make install` puts where.
include(GNUInstallDirs)
install(TARGETS sharewell)
install(DIRECTORY include/sharewell DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(DIRECTORY docs/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 OPTIONAL FILES_MATCHING PATTERN "*.1")
install(FILES completions/sharewell.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME sharewell OPTIONAL)
install(FILES completions/sharewell.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d OPTIONAL)
install(FILES completions/_sharewell DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions OPTIONAL)
