#!/usr/bin/env bash
# Compiles every program for GPUs that are not here: compile-check.sh rocm|cuda BUILD_DIR
#   rocm   for gfx90a, with Debian's hipcc
#   cuda   for sm_80 and sm_90, with the nvcc of the Python packages in .venv
# Then starts one, which has to end with 3: no device.
set -euo pipefail
cd "$(dirname "$0")/.."
runtime=$1
build=$2
# Nothing is run but to see it end, so nothing is optimized: half of the time.
options=(-G Ninja -S . -B "$build" -DFABRICHECK_RUNTIME="$runtime" -DFABRICHECK_WERROR=ON
  -DFABRICHECK_MPI=ON -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0
  -DCMAKE_HIP_FLAGS_DEBUG=-O0 -DCMAKE_CUDA_FLAGS_DEBUG=-O0)
export PATH=$PWD/.venv/bin:$PWD/.venv/mpich/bin:$PATH  # mpicxx: any MPI will do to compile with

case $runtime in
  rocm)
    # CMake's HIP language wants one tree, as of a ROCm installation; Debian has its parts apart.
    triplet=$(gcc -print-multiarch)
    tree=$PWD/$build/rocm-tree
    clang=$(dirname "$(dirname "$(readlink -f "$(command -v clang++-15 || command -v clang++)")")")
    mkdir -p "$tree"
    ln -sfn /usr/bin "$tree/bin"
    ln -sfn /usr/include "$tree/include"
    ln -sfn "/usr/lib/$triplet" "$tree/lib"
    ln -sfn "/usr/lib/$triplet/amdgcn" "$tree/amdgcn"
    ln -sfn "$clang" "$tree/llvm"
    export CMAKE_PREFIX_PATH=$tree ROCM_PATH=$tree
    options+=(-DCMAKE_HIP_COMPILER_ROCM_ROOT="$tree" -DCMAKE_HIP_COMPILER="$tree/llvm/bin/clang++"
      -DCMAKE_HIP_FLAGS="--rocm-path=$tree")
    ;;
  cuda)
    toolkit=$(.venv/bin/python -c \
      'import importlib.util as u; print(u.find_spec("nvidia.cu13").submodule_search_locations[0])')
    # Names under which nvcc and CMake look for its run-time library; the packages lack them.
    ln -sfn lib "$toolkit/lib64"
    ln -sfn libcudart.so.13 "$toolkit/lib/libcudart.so"
    options+=(-DCMAKE_CUDA_COMPILER="$toolkit/bin/nvcc")
    ;;
  *)
    echo "compile-check: '$runtime' is not rocm or cuda" >&2
    exit 2
    ;;
esac

log=$build/compile-check.log
mkdir -p "$build"
if ! { cmake "${options[@]}" && cmake --build "$build"; } > "$log" 2>&1; then
  tail -n 40 "$log" >&2
  echo "compile-check: the runtime $runtime does not compile; the whole log is $log" >&2
  exit 1
fi
export CUDA_VISIBLE_DEVICES='' HIP_VISIBLE_DEVICES=-1  # as if there were none here either
for program in "$build"/bin/*; do
  status=0
  "$program" --output /dev/null 2> "$build/start.txt" || status=$?
  if [ "$status" -ne 3 ]; then
    echo "compile-check: $program ended with $status, not with 3 (no device): $(cat "$build/start.txt")" >&2
    exit 1
  fi
done
echo "compile-check: $runtime compiles ($(ls "$build/bin" | tr '\n' ' ')); without a device: $(cat "$build/start.txt")"
