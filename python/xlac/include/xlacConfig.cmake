# For CMake: find_package(xlac REQUIRED) with -Dxlac_DIR=$(python -m xlac.include --folder), and then target_link_libraries(program xlac::xlac).
if(NOT TARGET xlac::xlac)
  get_filename_component(xlac_FOLDER "${CMAKE_CURRENT_LIST_DIR}" REALPATH)
  set(xlac_INCLUDE "${xlac_FOLDER}")
  if(NOT EXISTS "${xlac_INCLUDE}/xlac.h")  # a checkout that runs in place
    get_filename_component(xlac_INCLUDE "${xlac_FOLDER}/../../../csrc/include" ABSOLUTE)
  endif()
  set(xlac_INCLUDE_DIR "${xlac_INCLUDE}" CACHE PATH "where xlac.h lies")
  add_library(xlac::xlac SHARED IMPORTED)
  set_target_properties(xlac::xlac PROPERTIES IMPORTED_LOCATION "${xlac_FOLDER}/../libxlac.so" INTERFACE_INCLUDE_DIRECTORIES "${xlac_INCLUDE_DIR}")
endif()
set(xlac_VERSION 0.1.0)
