# Compiles group_scan_test for AArch64 and runs it under emulation: proves the NEON form's
# arithmetic, not any ordering. Prints "skipped: …" where the tools are missing.
find_program(compiler NAMES aarch64-linux-gnu-g++ aarch64-linux-gnu-g++-12)
find_program(emulator NAMES qemu-aarch64-static qemu-aarch64)
if(NOT compiler OR NOT emulator)
  message(STATUS "skipped: needs aarch64-linux-gnu-g++ (${compiler}) and qemu-aarch64 (${emulator})")
  return()
endif()

# -idirafter: doctest lies among this machine's own headers, which must not win.
execute_process(
  COMMAND ${compiler} -std=c++20 -O2 -static -Wall -Wextra -Werror -I${ROOT} -idirafter /usr/include
          ${ROOT}/tests/group_scan_test.cpp ${ROOT}/tests/test_main.cpp -o ${PROGRAM}
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${emulator} ${PROGRAM} COMMAND_ERROR_IS_FATAL ANY)
